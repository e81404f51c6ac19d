//! Row-index keys: short byte strings between the clusterings of neighbouring blocks.
//!
//! ```text
//!   last of block 0     40 80 00 00 05 38
//!   first of block 1    40 80 00 00 09 38
//!   separator           40 80 00 00 06            common prefix, then the last one's next byte + 1
//! ```
//!
//! So `last of block i-1 < separator i ≤ first of block i`: the floor of a clustering among the separators is
//! the block that could hold it.

/// The separator between two byte-comparable clusterings. `None` if they are not in ascending order.
pub(crate) fn separator(last: &[u8], first: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let shared = shared_prefix(last, first);
    let (&before, &after) = (last.get(shared)?, first.get(shared)?);
    if before >= after {
        return None;
    }
    out.clear();
    out.extend_from_slice(last.get(..shared)?);
    out.push(before + 1);
    Some(())
}

/// A key just above the last clustering, about as long as the last separator: no block has anything above it.
pub(crate) fn sentinel(last: &[u8], last_separator: &[u8], out: &mut Vec<u8>) {
    let parted = shared_prefix(last, last_separator);
    out.clear();
    let mut rest = last.get(parted..).unwrap_or_default().iter();
    out.extend_from_slice(last.get(..parted).unwrap_or_default());
    // FF cannot be incremented: keep it and increment the next byte, or append a 00.
    for &byte in rest.by_ref() {
        match byte.checked_add(1) {
            Some(above) => return out.push(above),
            None => out.push(byte),
        }
    }
    out.push(0);
}

pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(last: &[u8], first: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        separator(last, first, &mut out).map(|()| out)
    }

    fn above(last: &[u8], separator: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        sentinel(last, separator, &mut out);
        out
    }

    #[test]
    fn separators_lie_between() {
        assert_eq!(between(&[0x40, 5, 0x38], &[0x40, 9, 0x38]), Some(vec![0x40, 6]));
        assert_eq!(between(&[0x40, 5, 0x38], &[0x40, 6, 0x38]), Some(vec![0x40, 6]));
        assert_eq!(between(&[0x40, 5, 0x38], &[0x40, 5, 0x60]), Some(vec![0x40, 5, 0x39]));
        assert_eq!(between(&[0x40, 5, 0x38], &[0x40, 5, 0x38]), None);
        assert_eq!(between(&[0x40, 9, 0x38], &[0x40, 5, 0x38]), None);
    }

    #[test]
    fn the_sentinel_lies_just_above() {
        assert_eq!(above(&[0x40, 9, 0x38], &[0x40, 6]), vec![0x40, 10]);
        assert_eq!(above(&[0x40, 6, 0x38], &[0x40, 6]), vec![0x40, 6, 0x39]);
        assert_eq!(above(&[0x40, 0xff, 0x38], &[0x40, 6]), vec![0x40, 0xff, 0x39]);
        assert_eq!(above(&[0xff], &[]), vec![0xff, 0]);
    }
}
