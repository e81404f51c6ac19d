//! Counters of one shard's clients; only the shard changes them, any thread reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Figures {
    pub(crate) connections: Counter,
    pub(crate) requests: Counter,
    pub(crate) in_flight: Counter,
    pub(crate) prepared_executed: Counter,
    pub(crate) regular_executed: Counter,
    pub(crate) protocol_errors: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn up(&self) {
        self.0.store(self.get().wrapping_add(1), Relaxed);
    }

    pub(crate) fn down(&self) {
        self.0.store(self.get().saturating_sub(1), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
