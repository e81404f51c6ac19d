//! The two kinds of time that data carries, which never mix: write timestamps (µs, chosen by the client) and
//! local deletion times (seconds, chosen by the server, used for expiry and gc_grace).

use std::cell::Cell;

/// "No timestamp": an absent primary-key liveness, or a live deletion.
pub const NO_TIMESTAMP: i64 = i64::MIN;
pub const NO_TTL: i32 = 0;
/// TTL that marks the liveness of a row deleted through a view ("expired liveness").
pub const EXPIRED_LIVENESS_TTL: i32 = i32::MAX;
/// Local deletion time "none" (conceptually +∞).
pub const NO_DELETION_TIME: u32 = u32::MAX;
/// A local deletion time that could not be represented: the data is corrupt in that one place.
pub const INVALID_DELETION_TIME: u32 = u32::MAX - 1;
/// Largest valid local deletion time: 2106-02-07T06:28:13Z.
pub const MAX_DELETION_TIME: u32 = u32::MAX - 2;

/// The write timestamps (µs) that a shard gives: each is later than the one before, whatever the clock does, so that of two writes
/// that follow each other the later one wins.
#[derive(Debug)]
pub struct Timestamps {
    last: Cell<i64>,
}

impl Default for Timestamps {
    fn default() -> Timestamps {
        Timestamps { last: Cell::new(NO_TIMESTAMP) }
    }
}

impl Timestamps {
    pub fn next(&self, now_micros: i64) -> i64 {
        let next = now_micros.max(self.last.get().saturating_add(1));
        self.last.set(next);
        next
    }
}

/// A partition, row, range or collection deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeletionTime {
    /// Write timestamp (µs): everything written at or before it is deleted.
    pub marked_for_delete_at: i64,
    /// Server seconds at which it was made, for gc_grace.
    pub local_deletion_time: u32,
}

impl DeletionTime {
    pub const LIVE: DeletionTime =
        DeletionTime { marked_for_delete_at: NO_TIMESTAMP, local_deletion_time: NO_DELETION_TIME };

    /// Collection deletions are spelled in several ways when live; the timestamp alone decides (§6 of the format sheet).
    #[inline]
    pub fn is_live(&self) -> bool {
        self.marked_for_delete_at == NO_TIMESTAMP
    }

    #[inline]
    pub fn deletes(&self, timestamp: i64) -> bool {
        !self.is_live() && timestamp <= self.marked_for_delete_at
    }

    /// `DeletionTime.supersedes`: later mark, then later local deletion time.
    #[inline]
    pub fn supersedes(&self, other: &DeletionTime) -> bool {
        self.marked_for_delete_at > other.marked_for_delete_at
            || (self.marked_for_delete_at == other.marked_for_delete_at
                && self.local_deletion_time > other.local_deletion_time)
    }

    #[inline]
    #[must_use]
    pub fn max(self, other: DeletionTime) -> DeletionTime {
        if other.supersedes(&self) { other } else { self }
    }
}

/// Primary-key liveness of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Liveness {
    pub timestamp: i64,
    pub ttl: i32,
    pub local_expiration_time: u32,
}

impl Liveness {
    pub const EMPTY: Liveness =
        Liveness { timestamp: NO_TIMESTAMP, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timestamp == NO_TIMESTAMP
    }

    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }
}
