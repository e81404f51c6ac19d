//! Where Java's hash maps have names: Cassandra goes through columns in that order where it keeps them in such a map.

/// The bucket of a name (a `ColumnIdentifier`, whose hash is that of its bytes) in a `HashMap`.
fn bucket(name: &str, buckets: usize) -> usize {
    let add =
        |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()));
    let hash = name.as_bytes().iter().rev().fold(1i32, add).cast_unsigned();
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

/// The order of a map that these were put into one by one.
pub(crate) fn sort_filled<T>(all: &mut [T], name: impl Fn(&T) -> &str) {
    let buckets = ((all.len() * 4).div_ceil(3)).next_power_of_two().max(16);
    all.sort_by_key(|one| bucket(name(one), buckets));
}

/// The order of a map that was made as a copy of another one.
pub(crate) fn sort_copied<T>(all: &mut [T], name: impl Fn(&T) -> &str) {
    let buckets = (all.len() * 4 / 3 + 1).next_power_of_two();
    all.sort_by_key(|one| bucket(name(one), buckets));
}
