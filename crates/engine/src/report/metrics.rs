//! Metrics of tables. Shards and background threads write them, the server reads them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use halcyon_io::clock::Instant;
use halcyon_model::request::BatchKind;

use crate::report::distribution::{Distribution, Summary};

/// The histograms of a table; times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Reads of one partition on its shard, from the start to the last selected row.
    LocalRead,
    /// Reads of ranges on one shard.
    LocalScan,
    /// Mutations applied to the memtable, without the commit log, as in Cassandra.
    LocalWrite,
    /// The time until a client's statement has its rows, or until its writes are durable and visible.
    CoordinatorRead,
    CoordinatorScan,
    CoordinatorWrite,
    /// Of each local read.
    TombstonesPerRead,
    RowsPerRead,
}

const MEASURES: usize = Measure::RowsPerRead as usize + 1;

/// The metrics of one table on one shard. Only that shard writes them, on cache lines of its own, so that shards do not contend.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct TableMetrics {
    /// The oldest write in a memtable; `i64::MAX` if there is none.
    pub(crate) min_timestamp: AtomicI64,
    /// The oldest write that a replay may apply without the deletions that followed it (`write/spanning.rs`); `i64::MAX` if there is none.
    pub(crate) replayed_since: AtomicI64,
    pub(crate) flushes: AtomicU64,
    pub(crate) pending_flushes: AtomicU64,
    pub(crate) memtable_bytes: AtomicU64,
    pub(crate) sstables_read: AtomicU64,
    distributions: [Distribution; MEASURES],
}

/// A table's metrics at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    pub keyspace: String,
    pub table: String,
    pub flushes: u64,
    pub pending_flushes: u64,
    pub memtable_bytes: u64,
    /// SSTables that reads opened.
    pub sstables_read: u64,
    pub sstables: usize,
    /// Bytes of all components of all live SSTables.
    pub disk_space: u64,
    pub max_sstable_size: u64,
    /// From the statistics of SSTables.
    pub max_partition_size: u64,
    /// Milliseconds between the oldest and the newest write of an SSTable.
    pub max_sstable_duration: u64,
}

impl Default for TableMetrics {
    fn default() -> TableMetrics {
        TableMetrics {
            min_timestamp: AtomicI64::new(i64::MAX),
            replayed_since: AtomicI64::new(i64::MAX),
            flushes: AtomicU64::default(),
            pending_flushes: AtomicU64::default(),
            memtable_bytes: AtomicU64::default(),
            sstables_read: AtomicU64::default(),
            distributions: Default::default(),
        }
    }
}

impl TableMetrics {
    pub(crate) fn record(&self, measure: Measure, value: u64, now: Instant) {
        self.distributions[measure as usize].record(value, now);
    }

    /// The time since `began`.
    pub(crate) fn record_time(&self, measure: Measure, began: Instant, now: Instant) {
        self.record(measure, now.as_nanos().saturating_sub(began.as_nanos()), now);
    }

    pub(crate) fn add_to(&self, summary: &mut Summary, measure: Measure, now: Instant) {
        summary.add(&self.distributions[measure as usize], now);
    }
}

/// Partitions of each batch, by kind, on one shard.
#[derive(Debug, Default)]
pub(crate) struct BatchMetrics([Distribution; 3]);

impl BatchMetrics {
    pub(crate) fn of(&self, kind: BatchKind) -> &Distribution {
        let [logged, unlogged, counter] = &self.0;
        match kind {
            BatchKind::Logged => logged,
            BatchKind::Unlogged => unlogged,
            BatchKind::Counter => counter,
        }
    }
}

impl TableStats {
    pub(crate) fn add(&mut self, shard: &TableMetrics) {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        self.flushes += get(&shard.flushes);
        self.pending_flushes += get(&shard.pending_flushes);
        self.memtable_bytes += get(&shard.memtable_bytes);
        self.sstables_read += get(&shard.sstables_read);
    }
}
