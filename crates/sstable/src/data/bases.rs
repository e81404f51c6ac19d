//! The base values that timestamps, deletion times and TTLs of one SSTable are stored relative to
//! (`SerializationHeader`, `EncodingStats`).  They are hints: values below a base are legal, only longer.

use halcyon_model::bytes::Put;
use halcyon_model::time::{
    EXPIRED_LIVENESS_TTL, INVALID_DELETION_TIME, MAX_DELETION_TIME, NO_TIMESTAMP,
};
use halcyon_model::{Cursor, DecodeResult, DeletionTime, NO_DELETION_TIME};

use crate::format::statistics::header::{DELETION_TIME_EPOCH, TIMESTAMP_EPOCH};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bases {
    pub timestamp: i64,
    pub local_deletion_time: i64,
    pub ttl: i32,
}

impl Bases {
    /// Where nothing of a kind is known: 2015-09-22T00:00:00Z, no TTL.
    pub const NONE: Bases =
        Bases { timestamp: TIMESTAMP_EPOCH, local_deletion_time: DELETION_TIME_EPOCH, ttl: 0 };

    #[inline]
    pub(crate) fn read_timestamp(&self, cursor: &mut Cursor<'_>) -> DecodeResult<i64> {
        Ok(self.timestamp.wrapping_add(cursor.uvint()? as i64))
    }

    #[inline]
    pub(crate) fn read_ttl(&self, cursor: &mut Cursor<'_>) -> DecodeResult<i32> {
        Ok(self.ttl.wrapping_add(cursor.uvint32()?))
    }

    #[inline]
    fn read_raw_deletion_time(&self, cursor: &mut Cursor<'_>) -> DecodeResult<i64> {
        Ok(i64::from(cursor.uvint32()?) + self.local_deletion_time)
    }

    /// Deletion time of a cell, or expiration of a row. Versions since `oa` keep the low 32 bits unsigned.
    #[inline]
    pub(crate) fn read_cell_deletion_time(
        &self,
        cursor: &mut Cursor<'_>,
        unsigned: bool,
    ) -> DecodeResult<u32> {
        let value = self.read_raw_deletion_time(cursor)?;
        Ok(match u32::try_from(value) {
            Ok(seconds) if unsigned => seconds,
            Ok(seconds) if seconds == i32::MAX as u32 => NO_DELETION_TIME,
            Ok(seconds) if seconds < i32::MAX as u32 => seconds,
            _ if unsigned => value as u32,
            _ => INVALID_DELETION_TIME,
        })
    }

    #[inline]
    pub(crate) fn read_deletion(
        &self,
        cursor: &mut Cursor<'_>,
        unsigned: bool,
    ) -> DecodeResult<DeletionTime> {
        let marked_for_delete_at = self.read_timestamp(cursor)?;
        let value = self.read_raw_deletion_time(cursor)?;
        if marked_for_delete_at == NO_TIMESTAMP {
            return Ok(DeletionTime::LIVE);
        }
        let seconds = if unsigned { Some(value as u32) } else { u32::try_from(value).ok() };
        // "None" is not a time of a deletion either (`DeletionTime.build`).
        let possible = seconds.filter(|seconds| *seconds <= MAX_DELETION_TIME);
        let local_deletion_time = possible.unwrap_or(INVALID_DELETION_TIME);
        Ok(DeletionTime { marked_for_delete_at, local_deletion_time })
    }

    #[inline]
    pub(crate) fn write_timestamp(&self, timestamp: i64, out: &mut Vec<u8>) {
        out.put_uvint(timestamp.wrapping_sub(self.timestamp) as u64);
    }

    #[inline]
    pub(crate) fn write_ttl(&self, ttl: i32, out: &mut Vec<u8>) {
        out.put_uvint32(ttl.wrapping_sub(self.ttl));
    }

    #[inline]
    pub(crate) fn write_deletion_time(&self, seconds: u32, out: &mut Vec<u8>) {
        out.put_uvint32((i64::from(seconds) - self.local_deletion_time) as i32);
    }

    #[inline]
    pub(crate) fn write_deletion(&self, deletion: &DeletionTime, out: &mut Vec<u8>) {
        self.write_timestamp(deletion.marked_for_delete_at, out);
        self.write_deletion_time(deletion.local_deletion_time, out);
    }
}

/// An expiration before its own TTL could pass is a corrupt one (CASSANDRA-14092).
#[inline]
pub(crate) fn checked_expiration(seconds: u32, ttl: i32) -> u32 {
    if ttl != EXPIRED_LIVENESS_TTL && ttl > 0 && seconds < ttl as u32 {
        INVALID_DELETION_TIME
    } else {
        seconds
    }
}
