//! Which of two versions of the same thing survives: Cassandra's rules to the letter, with ties
//! (`Cells.resolveRegular`, `LivenessInfo.supersedes`, CASSANDRA-14592).  The clock is never consulted.

use std::cmp::Ordering;

use crate::time::{EXPIRED_LIVENESS_TTL, Liveness, NO_DELETION_TIME, NO_TTL};

/// What decides between two versions of a regular cell.
#[derive(Debug, Clone, Copy)]
pub struct CellVersion<'a> {
    pub timestamp: i64,
    pub ttl: i32,
    /// Deletion time of a tombstone, expiration of an expiring cell, else `NO_DELETION_TIME`.
    pub local_deletion_time: u32,
    pub value: &'a [u8],
}

/// Whether `right` replaces `left`; on full equality `left` stays.
#[inline]
pub fn right_cell_wins(left: &CellVersion<'_>, right: &CellVersion<'_>) -> bool {
    if left.timestamp != right.timestamp {
        return right.timestamp > left.timestamp;
    }
    // Tombstones and expiring cells (expired or not) beat live ones.
    let left_ends = left.local_deletion_time != NO_DELETION_TIME;
    let right_ends = right.local_deletion_time != NO_DELETION_TIME;
    if left_ends != right_ends {
        return right_ends;
    }
    if left_ends {
        // A pure tombstone beats an expiring cell.
        let left_expiring = left.ttl != NO_TTL;
        let right_expiring = right.ttl != NO_TTL;
        if left_expiring != right_expiring {
            return left_expiring;
        }
        if left.local_deletion_time != right.local_deletion_time {
            return right.local_deletion_time > left.local_deletion_time;
        }
        // Same expiration, smaller TTL: it was written later.
        if left_expiring && left.ttl != right.ttl {
            return right.ttl < left.ttl;
        }
    }
    left.value.cmp(right.value) == Ordering::Less
}

/// `LivenessInfo.supersedes`.
#[inline]
pub fn liveness_supersedes(a: &Liveness, b: &Liveness) -> bool {
    if a.timestamp != b.timestamp {
        return a.timestamp > b.timestamp;
    }
    let (a_expired, b_expired) = (a.ttl == EXPIRED_LIVENESS_TTL, b.ttl == EXPIRED_LIVENESS_TTL);
    if a_expired != b_expired {
        return a_expired;
    }
    if a.is_expiring() != b.is_expiring() {
        return a.is_expiring();
    }
    if a.local_expiration_time != b.local_expiration_time {
        return a.local_expiration_time > b.local_expiration_time;
    }
    a.is_expiring() && a.ttl < b.ttl
}
