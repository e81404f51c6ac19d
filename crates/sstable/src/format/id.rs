//! SSTable identifiers: a decimal sequence, or a time UUID spelled in base 36.
//!
//! ```text
//!   3dyh _ 000i _ 4sqcu 2q57ww3mxrulb      days of UUID time, second of day, ticks (100 ns) in the second,
//!   days   secs   ticks lsb                low 64 bits of the UUID
//! ```
//!
//! Kept as the 16 bytes that Cassandra orders by: UUID time (ticks since 1582-10-15, big-endian), then the low
//! 64 bits.  Every UUID sorts after every sequence.

use std::fmt;
use std::str::FromStr;

use halcyon_model::uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SSTableId {
    Sequence(u32),
    /// UUID time and low 64 bits, big-endian; *not* the layout of a UUID (see `to_uuid`).
    Uuid([u8; 16]),
}

const TICKS_PER_SECOND: u64 = 10_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
/// UUID time has 60 bits.
const MAX_TICKS: u64 = (1 << 60) - 1;
const MAX_SEQUENCE: u32 = i32::MAX as u32;

impl SSTableId {
    /// A time UUID of now (`unix_nanos`), unique by 62 random bits; clocks whose resolution is coarser than their calls
    /// cost nothing.
    pub fn fresh(unix_nanos: u64, random: u64) -> SSTableId {
        let ticks = (unix_nanos / 100 + uuid::UNIX_EPOCH_TICKS).min(MAX_TICKS);
        SSTableId::from_parts(ticks, uuid::random_node(random))
    }

    fn from_parts(ticks: u64, low: u64) -> SSTableId {
        SSTableId::Uuid(uuid::join(ticks, low))
    }

    /// The RFC 4122 bytes of the identifier's UUID.
    pub fn to_uuid(self) -> Option<[u8; 16]> {
        let SSTableId::Uuid(bytes) = self else { return None };
        let (ticks, low) = uuid::split(&bytes);
        Some(uuid::join(uuid::most_significant(ticks), low))
    }

    /// The identifier of a version-1 UUID.
    pub fn from_uuid(uuid: [u8; 16]) -> Option<SSTableId> {
        let (high, low) = uuid::split(&uuid);
        uuid::is_time_based(&uuid).then(|| SSTableId::from_parts(uuid::ticks(high), low))
    }
}

fn base36(mut v: u64, out: &mut [u8]) {
    for place in out.iter_mut().rev() {
        let digit = (v % 36) as u8;
        *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        v /= 36;
    }
}

fn parse_base36(text: &str) -> Option<u64> {
    text.bytes().try_fold(0u64, |value, byte| {
        value.checked_mul(36)?.checked_add(u64::from(char::from(byte).to_digit(36)?))
    })
}

impl fmt::Display for SSTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SSTableId::Uuid(bytes) = *self else {
            let SSTableId::Sequence(n) = *self else { return Ok(()) };
            return write!(f, "{n}");
        };
        let (ticks, low) = uuid::split(&bytes);
        let seconds = ticks / TICKS_PER_SECOND;
        let mut text = *b"dddd_ssss_nnnnnrrrrrrrrrrrrr";
        base36(seconds / SECONDS_PER_DAY, &mut text[0..4]);
        base36(seconds % SECONDS_PER_DAY, &mut text[5..9]);
        base36(ticks % TICKS_PER_SECOND, &mut text[10..15]);
        base36(low, &mut text[15..28]);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for SSTableId {
    type Err = String;

    fn from_str(s: &str) -> Result<SSTableId, String> {
        let bad = || {
            format!(
                "SSTable id expected (a number, or dddd_ssss_nnnnnrrrrrrrrrrrrr in base 36), found {s:?}"
            )
        };
        if s.len() <= 10 {
            if !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) {
                let id = s.parse().ok().filter(|n| *n <= MAX_SEQUENCE).ok_or_else(bad)?;
                return Ok(SSTableId::Sequence(id));
            }
            return Err(bad());
        }
        parse_uuid_text(s).ok_or_else(bad)
    }
}

fn parse_uuid_text(s: &str) -> Option<SSTableId> {
    if s.len() != 28 || !s.is_ascii() {
        return None;
    }
    let underscore = |at: usize| s.as_bytes().get(at) == Some(&b'_');
    if !underscore(4) || !underscore(9) {
        return None;
    }
    let days = parse_base36(s.get(0..4)?)?;
    let seconds = parse_base36(s.get(5..9)?)?;
    let ticks = parse_base36(s.get(10..15)?)?;
    let low = parse_base36(s.get(15..28)?)?;
    // Anything else would not be spelled back the same way.
    if seconds >= SECONDS_PER_DAY || ticks >= TICKS_PER_SECOND {
        return None;
    }
    let all = (days * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND + ticks;
    (all <= MAX_TICKS).then(|| SSTableId::from_parts(all, low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(s: &str) -> [u8; 16] {
        u128::from_str_radix(s, 16).expect("hex").to_be_bytes()
    }

    /// Spelling, bytes and UUID of one identifier, given by Cassandra.
    #[test]
    fn golden() {
        let text = "3dyh_000i_4sqcu2q57ww3mxrulb";
        let id: SSTableId = text.parse().expect("valid");
        assert_eq!(id, SSTableId::Uuid(hex("01e529bb50554d6eb345feff819cdc9f")));
        assert_eq!(id.to_string(), text);
        let uuid = hex("50554d6e29bb11e5b345feff819cdc9f");
        assert_eq!(id.to_uuid(), Some(uuid));
        assert_eq!(SSTableId::from_uuid(uuid), Some(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
    }

    #[test]
    fn order_and_fresh() {
        let early = SSTableId::fresh(1_700_000_000_000_000_000, 7);
        let late = SSTableId::fresh(1_700_000_000_000_000_100, 3);
        assert!(SSTableId::Sequence(MAX_SEQUENCE) < early && early < late);
        for id in [early, late, SSTableId::fresh(u64::MAX, u64::MAX), SSTableId::Sequence(0)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let uuid = early.to_uuid().expect("uuid");
        assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (1, 2), "version 1, variant 10");
    }

    #[test]
    fn foreign_ids() {
        for bad in [
            "",
            "-1",
            "x",
            "2147483648",
            "99999999999",
            "3dyh-000i_4sqcu2q57ww3mxrulb",
            "3dyh_000i_4sqcu2q57ww3mxrul!",
            "3dyh_zzzz_4sqcu2q57ww3mxrulb",
            "3dyh_000i_zzzzz2q57ww3mxrulb",
            "zzzz_000i_4sqcu2q57ww3mxrulb",
            "3dyh_000i_4sqcuzzzzzzzzzzzzz",
            "3dyh_000i_4sqcu2q57ww3mxruñ",
        ] {
            assert!(bad.parse::<SSTableId>().is_err(), "{bad}");
        }
    }
}
