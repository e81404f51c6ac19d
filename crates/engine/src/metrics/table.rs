//! Metrics of tables. Shards and background threads write them, the server reads them.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use halcyon_io::clock::Instant;
use halcyon_metrics::{Counter, Gauge, Reservoir, buckets_below};
use halcyon_model::request::BatchKind;

use super::samplers::Samplers;

/// Quarters of powers of two, up to 2^40: eighteen minutes in nanoseconds.
const BUCKETS: usize = buckets_below(4, 40);

pub(crate) type Distribution = Reservoir<4, BUCKETS>;

/// The values of a distribution of all shards at one time.
pub type Summary = halcyon_metrics::Summary<4, BUCKETS>;

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
    /// SSTables that had the partition, of each read of one partition.
    SSTablesPerRead,
}

pub(crate) const MEASURES: usize = Measure::SSTablesPerRead as usize + 1;

impl Measure {
    pub const ALL: [Measure; MEASURES] = [
        Measure::LocalRead,
        Measure::LocalScan,
        Measure::LocalWrite,
        Measure::CoordinatorRead,
        Measure::CoordinatorScan,
        Measure::CoordinatorWrite,
        Measure::TombstonesPerRead,
        Measure::RowsPerRead,
        Measure::SSTablesPerRead,
    ];

    /// Whether Cassandra has it of keyspaces too.
    pub(crate) const fn is_of_keyspaces(self) -> bool {
        use Measure::{CoordinatorRead, CoordinatorScan, CoordinatorWrite};
        !matches!(self, CoordinatorRead | CoordinatorScan | CoordinatorWrite)
    }
}

pub(crate) const BATCH_KINDS: [BatchKind; 3] =
    [BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter];

/// The metrics of one table on one shard. Only that shard writes them, on cache lines of its own, so that shards do not contend.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct TableMetrics {
    /// The oldest write in a memtable; `i64::MAX` if there is none.
    pub(crate) min_timestamp: AtomicI64,
    /// The oldest write that a replay may apply without the deletions that followed it (`write/spanning.rs`); `i64::MAX` if there is none.
    pub(crate) replayed_since: AtomicI64,
    pub(crate) flushes: Counter,
    pub(crate) bytes_flushed: Counter,
    pub(crate) pending_flushes: Gauge,
    pub(crate) memtable_bytes: Gauge,
    /// Partitions in the memtable that takes writes, and in those that are being flushed.
    pub(crate) active_partitions: Gauge,
    pub(crate) frozen_partitions: Gauge,
    pub(crate) sstables_read: Counter,
    /// SSTables whose Bloom filter excluded the partition of a read, and those whose filter did not although they do not have it.
    pub(crate) filter_absent: Counter,
    pub(crate) filter_false: Counter,
    pub(crate) row_cache_hits: Counter,
    pub(crate) row_cache_misses: Counter,
    pub(crate) samplers: Samplers,
    distributions: [Distribution; MEASURES],
}

impl Default for TableMetrics {
    fn default() -> TableMetrics {
        TableMetrics {
            min_timestamp: AtomicI64::new(i64::MAX),
            replayed_since: AtomicI64::new(i64::MAX),
            flushes: Counter::default(),
            bytes_flushed: Counter::default(),
            pending_flushes: Gauge::default(),
            memtable_bytes: Gauge::default(),
            active_partitions: Gauge::default(),
            frozen_partitions: Gauge::default(),
            sstables_read: Counter::default(),
            filter_absent: Counter::default(),
            filter_false: Counter::default(),
            row_cache_hits: Counter::default(),
            row_cache_misses: Counter::default(),
            samplers: Samplers::default(),
            distributions: Default::default(),
        }
    }
}

impl TableMetrics {
    /// The shard has a write this old in a memtable.
    pub(crate) fn lower_min_timestamp(&self, to: i64) {
        if to < self.min_timestamp.load(Relaxed) {
            self.min_timestamp.store(to, Relaxed);
        }
    }

    pub(crate) fn record(&self, measure: Measure, value: u64, now: Instant) {
        self.distributions[measure as usize].record(value, now);
    }

    /// The time since `began`.
    pub(crate) fn record_time(&self, measure: Measure, began: Instant, now: Instant) {
        self.record(measure, now.as_nanos().saturating_sub(began.as_nanos()), now);
    }

    /// How many values of a measure there were since the start.
    pub(crate) fn count(&self, measure: Measure) -> u64 {
        self.distributions[measure as usize].count()
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
