//! Counters that one shard writes and any thread reads.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// One thread writes, so no locked instruction is needed.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Lowers a minimum.
pub(crate) fn lower(least: &AtomicI64, to: i64) {
    if to < least.load(Relaxed) {
        least.store(to, Relaxed);
    }
}

pub(crate) fn subtract(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).saturating_sub(n), Relaxed);
}
