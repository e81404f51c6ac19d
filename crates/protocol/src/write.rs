//! Writes the protocol's notations.

/// [string]; truncated at a character if it is longer than its length field allows.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    let (text, _) = text.split_at(text.floor_char_boundary(usize::from(u16::MAX)));
    out.extend(count(text.len()).to_be_bytes());
    out.extend(text.as_bytes());
}

/// A count of elements; Cassandra's limits keep it below 65,536.
pub(crate) fn count(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

pub(crate) fn int(out: &mut Vec<u8>, value: i32) {
    out.extend(value.to_be_bytes());
}

pub(crate) fn short(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_be_bytes());
}

/// [long string]
pub(crate) fn long_string(out: &mut Vec<u8>, text: &str) {
    bytes(out, Some(text.as_bytes()));
}

/// [bytes]
pub(crate) fn bytes(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            int(out, i32::try_from(value.len()).unwrap_or(i32::MAX));
            out.extend(value);
        }
        None => int(out, -1),
    }
}

/// [short bytes]
pub(crate) fn short_bytes(out: &mut Vec<u8>, value: &[u8]) {
    let (value, _) = value.split_at(value.len().min(usize::from(u16::MAX)));
    short(out, count(value.len()));
    out.extend(value);
}

/// [string list]
pub(crate) fn string_list<S: AsRef<str>>(out: &mut Vec<u8>, list: &[S]) {
    short(out, count(list.len()));
    for text in list.iter().take(usize::from(u16::MAX)) {
        string(out, text.as_ref());
    }
}

/// [bytes map]
pub(crate) fn bytes_map(out: &mut Vec<u8>, map: &[(String, Option<Vec<u8>>)]) {
    short(out, count(map.len()));
    for (key, value) in map.iter().take(usize::from(u16::MAX)) {
        string(out, key);
        bytes(out, value.as_deref());
    }
}
