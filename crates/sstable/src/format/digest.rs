//! Digest.crc32: CRC32 of Data.db as stored, in decimal digits, without a newline.

use halcyon_model::{Cursor, DecodeError, DecodeResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub u32);

impl Digest {
    /// Blanks around the number are tolerated.
    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<Digest> {
        let offset = cursor.offset();
        let bytes = cursor.take(cursor.remaining())?;
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let crc = text.parse().ok().filter(|_| digits).ok_or_else(|| DecodeError {
            offset,
            what: "CRC32 in decimal digits expected".into(),
        })?;
        cursor.note(|| format!("CRC32 of Data.db: {crc:08x}"));
        Ok(Digest(crc))
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{check_bytes, survives_corruption};

    #[test]
    fn decimal_digits() {
        for crc in [0, 1, u32::MAX] {
            let mut bytes = Vec::new();
            Digest(crc).encode(&mut bytes);
            assert_eq!(check_bytes(&bytes, Digest::decode), Digest(crc));
        }
        assert_eq!(check_bytes(b"42\n", Digest::decode), Digest(42));
        for bad in [&b""[..], b"-1", b"+1", b"4294967296", b"1 2", b"\xff"] {
            assert!(Digest::decode(&mut Cursor::new(bad)).is_err());
        }
        survives_corruption(b"4294967295", Digest::decode);
    }
}
