//! The progress of a compaction, and its cancellation, from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
struct Counters {
    data_read: AtomicU64,
    data_total: AtomicU64,
    data_written: AtomicU64,
    file_written: AtomicU64,
    partitions: AtomicU64,
    cancelled: AtomicBool,
}

/// A handle to one compaction; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counters>);

/// The values of `nodetool compactionstats`. `data` counts uncompressed bytes, `file` stored bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub data_read: u64,
    pub data_total: u64,
    pub data_written: u64,
    pub file_written: u64,
    pub partitions: u64,
}

impl Progress {
    pub fn snapshot(&self) -> Snapshot {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            data_read: get(&self.0.data_read),
            data_total: get(&self.0.data_total),
            data_written: get(&self.0.data_written),
            file_written: get(&self.0.file_written),
            partitions: get(&self.0.partitions),
        }
    }

    /// Asks the compaction to stop at the next partition; it then deletes its outputs and leaves its inputs unchanged.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn add_total(&self, data_total: u64) {
        self.0.data_total.fetch_add(data_total, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, base: Snapshot, run: Snapshot) {
        let put = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        put(&self.0.data_read, base.data_read + run.data_read);
        put(&self.0.data_written, base.data_written + run.data_written);
        put(&self.0.file_written, base.file_written + run.file_written);
        put(&self.0.partitions, base.partitions + run.partitions);
    }
}
