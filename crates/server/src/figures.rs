//! Counters of one shard's clients; only the shard changes them, any thread reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::clock::nanos;
use halcyon_io::{BUCKETS, bucket};

#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Figures {
    pub(crate) connections: Counter,
    pub(crate) requests: Counter,
    pub(crate) in_flight: Counter,
    pub(crate) prepared_executed: Counter,
    pub(crate) regular_executed: Counter,
    pub(crate) protocol_errors: Counter,
    /// From socket to statement.
    pub(crate) waits: Waits,
}

/// How long requests waited for their statement to start: `0[b]` of them `[2^b, 2^(b+1))` nanoseconds.
#[derive(Debug)]
pub(crate) struct Waits([Counter; BUCKETS]);

impl Default for Waits {
    fn default() -> Waits {
        Waits(std::array::from_fn(|_| Counter::default()))
    }
}

impl Waits {
    pub(crate) fn record(&self, wait: Duration) {
        let ns = nanos(wait);
        self.0[bucket(ns)].up();
    }

    /// Upper edges in nanoseconds, with their requests; empty buckets are left out.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counted = self.0.iter().enumerate().filter(|(_, counter)| counter.get() > 0);
        counted.map(|(bucket, counter)| (1 << (bucket + 1), counter.get()))
    }
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
