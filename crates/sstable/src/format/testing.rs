//! Properties that the tests of every component check.

use halcyon_model::{Cursor, DecodeResult};

pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digit = |b: u8| char::from(b).to_digit(16).expect("hex digit") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Decodes, and checks that the notes name every byte exactly once.
pub(super) fn check_bytes<T>(
    bytes: &[u8],
    decode: impl Fn(&mut Cursor<'_>) -> DecodeResult<T>,
) -> T {
    let mut cursor = Cursor::describing(bytes, 0);
    let decoded = decode(&mut cursor).expect("sound bytes");
    assert_eq!(cursor.remaining(), 0, "bytes left");
    let mut at = 0;
    for note in cursor.into_notes() {
        assert_eq!(note.start, at, "gap or overlap before {note:?}");
        assert!(!note.meaning.is_empty());
        at = note.end;
    }
    assert_eq!(at, bytes.len() as u64, "bytes without a meaning");
    decoded
}

/// Every truncation and every change of one byte gives an error, a remark or a value, and never a panic.
/// Returns how many changes went unnoticed.
pub(super) fn survives_corruption<T>(
    bytes: &[u8],
    decode: impl Fn(&mut Cursor<'_>) -> DecodeResult<T>,
) -> usize {
    let mut unnoticed = 0;
    let mut attempt = |bytes: &[u8]| {
        let mut cursor = Cursor::new(bytes);
        match decode(&mut cursor) {
            Ok(_) => unnoticed += usize::from(cursor.remarks().is_empty()),
            Err(error) => assert!(error.offset <= bytes.len() as u64, "{error}"),
        }
    };
    for length in 0..bytes.len() {
        attempt(&bytes[..length]);
    }
    let mut copy = bytes.to_vec();
    for i in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff, 0x10] {
            copy[i] ^= flip;
            attempt(&copy);
            copy[i] ^= flip;
        }
    }
    unnoticed
}
