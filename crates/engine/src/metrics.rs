//! Counters that the server pulls; shards and background threads only add to them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Of one table on one shard, which alone changes them; a cache line of their own, so that shards do not wait for each other.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct TableMetrics {
    /// The oldest write in a memtable; `i64::MAX` if there is none.
    pub(crate) min_timestamp: AtomicI64,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) pending_flushes: AtomicU64,
    pub(crate) memtable_bytes: AtomicU64,
    pub(crate) sstables_read: AtomicU64,
    pub(crate) bloom_false_positives: AtomicU64,
}

/// A table's counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    pub keyspace: String,
    pub table: String,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub pending_flushes: u64,
    pub memtable_bytes: u64,
    /// SSTables that reads looked into.
    pub sstables_read: u64,
    pub bloom_false_positives: u64,
    pub sstables: usize,
    /// Bytes of Data.db of all live SSTables.
    pub disk_space: u64,
}

impl Default for TableMetrics {
    fn default() -> TableMetrics {
        TableMetrics {
            min_timestamp: AtomicI64::new(i64::MAX),
            reads: AtomicU64::default(),
            writes: AtomicU64::default(),
            flushes: AtomicU64::default(),
            pending_flushes: AtomicU64::default(),
            memtable_bytes: AtomicU64::default(),
            sstables_read: AtomicU64::default(),
            bloom_false_positives: AtomicU64::default(),
        }
    }
}

impl TableStats {
    pub(crate) fn add(&mut self, shard: &TableMetrics) {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        self.reads += get(&shard.reads);
        self.writes += get(&shard.writes);
        self.flushes += get(&shard.flushes);
        self.pending_flushes += get(&shard.pending_flushes);
        self.memtable_bytes += get(&shard.memtable_bytes);
        self.sstables_read += get(&shard.sstables_read);
        self.bloom_false_positives += get(&shard.bloom_false_positives);
    }
}

/// One thread writes, so no locked instruction is needed.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

pub(crate) fn subtract(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).saturating_sub(n), Relaxed);
}

/// The lesser of what it was and what is new.
pub(crate) fn lower(least: &AtomicI64, to: i64) {
    if to < least.load(Relaxed) {
        least.store(to, Relaxed);
    }
}
