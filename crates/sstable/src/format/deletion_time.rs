//! The fixed form of a deletion time (`DeletionTime.Serializer`), used where no base values are at hand: in partition
//! headers of Data.db, in promoted indexes of Index.db and in Rows.db.  Rows and markers use vint deltas instead.
//!
//! ```text
//!              before oa                               oa and later, BTI
//!  live        7fffffff 8000000000000000               80
//!  deleted     local:i32  marked:i64                   marked:i64 (top bit 0)  local:u32
//! ```
//!
//! The field order differs.  The later form has no room for a negative timestamp: its top bit means "live".

use halcyon_model::bytes::Put;
use halcyon_model::time::{INVALID_DELETION_TIME, NO_DELETION_TIME};
use halcyon_model::{Cursor, DecodeError, DecodeResult, DeletionTime};

use crate::{Error, Result};

const LIVE: u8 = 0x80;
const LEGACY_NO_DELETION_TIME: i32 = i32::MAX;
/// The last second that versions before oa can store, 2038-01-19T03:14:06Z (`Cell.MAX_DELETION_TIME_2038_LEGACY_CAP`).
pub const LEGACY_LATEST: u32 = LEGACY_NO_DELETION_TIME as u32 - 1;

/// Bytes that `write_deletion_time` writes.
pub fn deletion_time_len(version_is_oa_or_later: bool, deletion: &DeletionTime) -> usize {
    if version_is_oa_or_later && deletion.is_live() { 1 } else { 12 }
}

pub fn write_deletion_time(
    version_is_oa_or_later: bool,
    deletion: &DeletionTime,
    out: &mut impl Put,
) -> Result<()> {
    let marked = deletion.marked_for_delete_at;
    if !version_is_oa_or_later {
        let local = if deletion.is_live() || deletion.local_deletion_time == NO_DELETION_TIME {
            LEGACY_NO_DELETION_TIME
        } else {
            // The legacy field ends in 2038; Cassandra caps it one below "none".
            deletion.local_deletion_time.min(LEGACY_LATEST) as i32
        };
        out.put_i32(local);
        out.put_i64(marked);
    } else if deletion.is_live() {
        out.put_u8(LIVE);
    } else if marked < 0 {
        return Err(Error::Invalid(format!(
            "a deletion at the negative timestamp {marked} cannot be stored in this SSTable version: \
             delete with a timestamp of 0 or later, or write version nb"
        )));
    } else {
        out.put_i64(marked);
        out.put_u32(deletion.local_deletion_time);
    }
    Ok(())
}

pub fn read_deletion_time(
    version_is_oa_or_later: bool,
    cursor: &mut Cursor<'_>,
) -> DecodeResult<DeletionTime> {
    if !version_is_oa_or_later {
        let local = match cursor.i32()? {
            LEGACY_NO_DELETION_TIME => NO_DELETION_TIME,
            seconds => u32::try_from(seconds).unwrap_or(INVALID_DELETION_TIME),
        };
        let marked_for_delete_at = cursor.i64()?;
        return Ok(DeletionTime { marked_for_delete_at, local_deletion_time: local });
    }
    let offset = cursor.offset();
    let first = cursor.u8()?;
    if first == LIVE {
        return Ok(DeletionTime::LIVE);
    }
    if first & LIVE != 0 {
        let what = format!("deletion time expected, found the unknown flags {first:#04x}");
        return Err(DecodeError { offset, what });
    }
    let rest: [u8; 7] = cursor.array()?;
    let marked = rest.iter().fold(i64::from(first), |value, &byte| value << 8 | i64::from(byte));
    let local_deletion_time = cursor.u32()?;
    Ok(DeletionTime { marked_for_delete_at: marked, local_deletion_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(oa: bool, deletion: DeletionTime) -> Vec<u8> {
        let mut out = Vec::new();
        write_deletion_time(oa, &deletion, &mut out).expect("representable");
        assert_eq!(out.len(), deletion_time_len(oa, &deletion));
        assert_eq!(read_deletion_time(oa, &mut Cursor::new(&out)), Ok(deletion));
        for end in 0..out.len() {
            assert!(read_deletion_time(oa, &mut Cursor::new(&out[..end])).is_err());
        }
        out
    }

    /// The bytes of a partition deletion as Cassandra writes them, in both forms.
    #[test]
    fn both_forms_are_cassandras() {
        let at = DeletionTime {
            marked_for_delete_at: 1_700_000_000_000_000,
            local_deletion_time: 0x6b00_c081,
        };
        assert_eq!(written(true, at), [0, 6, 0x0a, 0x24, 0x18, 0x1e, 0x40, 0, 0x6b, 0, 0xc0, 0x81]);
        assert_eq!(
            written(false, at),
            [0x6b, 0, 0xc0, 0x81, 0, 6, 0x0a, 0x24, 0x18, 0x1e, 0x40, 0]
        );
        assert_eq!(written(true, DeletionTime::LIVE), [0x80]);
        assert_eq!(
            written(false, DeletionTime::LIVE),
            [0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn what_a_form_cannot_hold() {
        let negative = DeletionTime { marked_for_delete_at: -5, local_deletion_time: 7 };
        let mut out = Vec::new();
        assert!(write_deletion_time(true, &negative, &mut out).is_err());
        assert_eq!(written(false, negative).len(), 12);
        assert!(read_deletion_time(true, &mut Cursor::new(&[0x81; 12])).is_err());
        let late = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 0x8000_0000 };
        write_deletion_time(false, &late, &mut out).expect("capped");
        assert_eq!(out.get(..4), Some(&[0x7f, 0xff, 0xff, 0xfe][..]));
        let invalid = read_deletion_time(false, &mut Cursor::new(&[0xff; 12])).expect("12 bytes");
        assert_eq!(invalid.local_deletion_time, INVALID_DELETION_TIME);
    }
}
