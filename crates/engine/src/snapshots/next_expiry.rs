//! The time at which a snapshot expires next.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// When the next snapshot expires, in milliseconds since 1970; [`UNKNOWN`] until the manifests have been read.
pub(super) struct NextExpiry(AtomicI64);

pub(super) const UNKNOWN: i64 = i64::MIN;
pub(super) const NEVER: i64 = i64::MAX;

impl Default for NextExpiry {
    fn default() -> NextExpiry {
        NextExpiry(AtomicI64::new(UNKNOWN))
    }
}

impl NextExpiry {
    pub(super) fn add(&self, expires_ms: i64) {
        self.0.fetch_min(expires_ms, Relaxed);
    }

    /// Whether manifests are to be read. Then nothing is due until the reader adds what it has found, so that readers do not pile up.
    pub(super) fn take_due(&self, now_ms: i64) -> bool {
        let next = self.0.swap(NEVER, Relaxed);
        let due = next < now_ms;
        if !due {
            self.add(next);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the first look reads, that later ones wait for the earliest expiry, and that one reader works at a time.
    #[test]
    fn looks_wait_for_the_next_expiry() {
        let next = NextExpiry::default();
        assert!(next.take_due(1000) && !next.take_due(2000));
        next.add(5000);
        next.add(7000);
        assert!(!next.take_due(5000) && next.take_due(5001) && !next.take_due(9000));
        next.add(UNKNOWN);
        assert!(next.take_due(0));
    }
}
