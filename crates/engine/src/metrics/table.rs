//! Metrics of tables. Shards and background threads write them, the server reads them.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use halcyon_io::clock::Instant;
use halcyon_metrics::{
    Counter, Gauge, Kind, Labels, Metric, Reservoir, Sample, Unit, Value, buckets_below,
};
use halcyon_model::request::BatchKind;

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
}

const MEASURES: usize = Measure::RowsPerRead as usize + 1;

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
    ];
}

/// In the order of [`Measure::ALL`]; `group` is `Table` or `Keyspace`.
const fn measured(group: &'static str) -> [Metric; MEASURES] {
    let [reads, ranges, writes] = [
        ("ReadLatency", "Reads of one partition on its shard, to the last selected row."),
        ("RangeLatency", "Reads of ranges on one shard."),
        ("WriteLatency", "Mutations applied to the memtable, without the commit log."),
    ];
    let [read, scan, write] = [
        ("CoordinatorReadLatency", "Statements that read one partition, until they have its rows."),
        ("CoordinatorScanLatency", "Statements that read ranges, until they have a page of rows."),
        ("CoordinatorWriteLatency", "Statements that write, until that is durable and visible."),
    ];
    [
        time(group, reads),
        time(group, ranges),
        time(group, writes),
        time(group, read),
        time(group, scan),
        time(group, write),
        histogram(group, "TombstoneScannedHistogram", "Tombstones that each local read met."),
        histogram(group, "LiveScannedHistogram", "Rows that each local read returned."),
    ]
}

const fn time(group: &'static str, (name, help): (&'static str, &'static str)) -> Metric {
    Metric::cassandra(group, name, help).of(Kind::Timer, Unit::Nanoseconds)
}

const fn histogram(group: &'static str, name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra(group, name, help).of(Kind::Histogram, Unit::Count)
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Table", name, help).of(Kind::Gauge, unit)
}

pub(crate) const OF_TABLES: [Metric; MEASURES] = measured("Table");
pub(crate) const OF_KEYSPACES: [Metric; MEASURES] = measured("Keyspace");

/// In the order of [`TableStats::values`].
const NUMBERS: [Metric; VALUES] = [
    Metric::cassandra("Table", "MemtableSwitchCount", "Flushes."),
    Metric::cassandra("Table", "PendingFlushes", "Flushes that wait or are under way."),
    gauge("MemtableLiveDataSize", Unit::Bytes, "Memory of all memtables."),
    Metric::own("Table", "SSTablesRead", "SSTables that reads opened."),
    gauge("LiveSSTableCount", Unit::Count, "Live SSTables."),
    Metric::cassandra("Table", "LiveDiskSpaceUsed", "All components of all live SSTables.")
        .of(Kind::Counter, Unit::Bytes),
    gauge("MaxSSTableSize", Unit::Bytes, "The largest live SSTable."),
    gauge("MaxPartitionSize", Unit::Bytes, "The largest partition of a live SSTable."),
    gauge("MaxSSTableDuration", Unit::Milliseconds, "From the oldest to the newest write of one."),
];

/// In the order of [`BATCH_KINDS`].
pub(crate) const OF_BATCHES: [Metric; BATCH_KINDS.len()] = [
    histogram("Batch", "PartitionsPerLoggedBatch", "Partitions of each logged batch."),
    histogram("Batch", "PartitionsPerUnloggedBatch", "Partitions of each unlogged batch."),
    histogram("Batch", "PartitionsPerCounterBatch", "Partitions of each batch of counters."),
];

/// All metrics of the engine.
pub(crate) const DECLARED: [Metric; 2 * MEASURES + VALUES + BATCH_KINDS.len()] = {
    let mut all = [OF_TABLES[0]; 2 * MEASURES + VALUES + BATCH_KINDS.len()];
    let parts: [&[Metric]; 4] = [&OF_TABLES, &OF_KEYSPACES, &NUMBERS, &OF_BATCHES];
    let (mut part, mut at, mut to) = (0, 0, 0);
    while part < parts.len() {
        if at == parts[part].len() {
            (part, at) = (part + 1, 0);
            continue;
        }
        all[to] = parts[part][at];
        (at, to) = (at + 1, to + 1);
    }
    all
};

const VALUES: usize = 9;

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
    pub(crate) pending_flushes: Gauge,
    pub(crate) memtable_bytes: Gauge,
    pub(crate) sstables_read: Counter,
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
            flushes: Counter::default(),
            pending_flushes: Gauge::default(),
            memtable_bytes: Gauge::default(),
            sstables_read: Counter::default(),
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
    /// Its numbers, in the order of their declarations.
    fn values(&self) -> [u64; VALUES] {
        [
            self.flushes,
            self.pending_flushes,
            self.memtable_bytes,
            self.sstables_read,
            self.sstables as u64,
            self.disk_space,
            self.max_sstable_size,
            self.max_partition_size,
            self.max_sstable_duration,
        ]
    }

    pub(crate) fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let labels =
            Labels { keyspace: Some(&self.keyspace), scope: Some(&self.table), path: None };
        for (metric, value) in NUMBERS.iter().zip(self.values()) {
            show(Sample { metric, labels, value: Value::Number(value) });
        }
    }

    pub(crate) fn add(&mut self, shard: &TableMetrics) {
        self.flushes += shard.flushes.get();
        self.pending_flushes += shard.pending_flushes.get();
        self.memtable_bytes += shard.memtable_bytes.get();
        self.sstables_read += shard.sstables_read.get();
    }
}
