//! The little of DER that keys need.

/// The content of a DER value with this tag, and what follows it.
pub(super) fn content(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // Four bytes hold every length that a file can have.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length).filter(|_| *found == tag)
}

/// A value with this tag; its content is that of a key, far below 65,535 bytes.
pub(super) fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut value = vec![tag];
    match content.len() {
        short @ 0..=0x7f => value.push(short as u8),
        byte @ 0x80..=0xff => value.extend([0x81, byte as u8]),
        long => value.extend([0x82, (long >> 8) as u8, long as u8]),
    }
    value.extend(content);
    value
}
