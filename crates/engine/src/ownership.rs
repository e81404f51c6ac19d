//! Which shard owns a token, as SCYLLA_SHARD drivers compute it.

/// The shard that owns a token: `((token + 2^63) * shards) >> 64`.
pub(crate) fn owner(token: i64, shards: usize) -> usize {
    let from_zero = (token as u64) ^ (1 << 63);
    ((u128::from(from_zero) * shards as u128) >> 64) as usize
}

/// First and last token of a shard.
pub(crate) fn tokens(index: usize, shards: usize) -> (i64, i64) {
    let boundary = |index: usize| (((index as u128) << 64).div_ceil(shards as u128)) as u64;
    let first = boundary(index) ^ (1 << 63);
    let last = if index + 1 == shards { u64::MAX } else { boundary(index + 1) - 1 } ^ (1 << 63);
    (first as i64, last as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the shards' token ranges are what `owner` says, without gaps.
    #[test]
    fn tokens_and_owner_agree() {
        for shards in [1, 2, 3, 7, 16, 48] {
            let mut next = i64::MIN;
            for index in 0..shards {
                let (first, last) = tokens(index, shards);
                assert_eq!(first, next);
                assert_eq!((owner(first, shards), owner(last, shards)), (index, index));
                next = last.wrapping_add(1);
            }
            assert_eq!(next, i64::MIN);
        }
    }
}
