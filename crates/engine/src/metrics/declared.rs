//! What the engine's metrics are called: Cassandra's names, and a few of Halcyon's own.

use halcyon_metrics::{Kind, Metric, Unit};

use super::table::{BATCH_KINDS, MEASURES, Measure};

/// In the order of [`super::table::Measure::ALL`]; `group` is `Table` or `Keyspace`.
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
        histogram(group, "SSTablesPerReadHistogram", "SSTables with the partition of each read."),
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

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Table", name, help).of(Kind::Counter, unit)
}

pub(crate) const OF_TABLES: [Metric; MEASURES] = measured("Table");
/// Those of [`Measure::is_of_keyspaces`] only.
pub(crate) const OF_KEYSPACES: [Metric; MEASURES] = measured("Keyspace");

const MEASURES_OF_KEYSPACES: usize = {
    let (mut at, mut count) = (0, 0);
    while at < MEASURES {
        count += Measure::ALL[at].is_of_keyspaces() as usize;
        at += 1;
    }
    count
};

const DECLARED_OF_KEYSPACES: [Metric; MEASURES_OF_KEYSPACES] = {
    let mut all = [OF_KEYSPACES[0]; MEASURES_OF_KEYSPACES];
    let (mut at, mut to) = (0, 0);
    while at < MEASURES {
        if Measure::ALL[at].is_of_keyspaces() {
            all[to] = OF_KEYSPACES[at];
            to += 1;
        }
        at += 1;
    }
    all
};

/// In the order of `TableStats::values`.
pub(crate) const NUMBERS: [Metric; 38] = [
    counter("MemtableSwitchCount", Unit::Count, "Flushes."),
    counter("PendingFlushes", Unit::Count, "Flushes that wait or are under way."),
    counter("BytesFlushed", Unit::Bytes, "All components of all SSTables that flushes wrote."),
    gauge("MemtableLiveDataSize", Unit::Bytes, "Memory of all memtables."),
    gauge("MemtableOnHeapDataSize", Unit::Bytes, "Memory of all memtables."),
    gauge("MemtableOffHeapDataSize", Unit::Bytes, "Always 0: there is one kind of memory."),
    gauge("AllMemtablesLiveDataSize", Unit::Bytes, "As MemtableLiveDataSize."),
    gauge("AllMemtablesOnHeapDataSize", Unit::Bytes, "As MemtableOnHeapDataSize."),
    gauge("AllMemtablesOffHeapDataSize", Unit::Bytes, "Always 0: there is one kind of memory."),
    gauge("MemtableOnHeapSize", Unit::Bytes, "As MemtableOnHeapDataSize."),
    gauge("MemtableOffHeapSize", Unit::Bytes, "Always 0: there is one kind of memory."),
    gauge("AllMemtablesHeapSize", Unit::Bytes, "As MemtableOnHeapDataSize."),
    gauge("AllMemtablesOffHeapSize", Unit::Bytes, "Always 0: there is one kind of memory."),
    Metric::own("Table", "SSTablesRead", "SSTables that reads opened."),
    gauge("LiveSSTableCount", Unit::Count, "Live SSTables."),
    counter("LiveDiskSpaceUsed", Unit::Bytes, "All components of all live SSTables."),
    counter(
        "TotalDiskSpaceUsed",
        Unit::Bytes,
        "As LiveDiskSpaceUsed: obsolete SSTables are not counted.",
    ),
    gauge("MaxSSTableSize", Unit::Bytes, "The largest live SSTable."),
    gauge("MaxSSTableDuration", Unit::Milliseconds, "From the oldest to the newest write of one."),
    gauge("MinPartitionSize", Unit::Bytes, "The smallest partition of a live SSTable."),
    gauge("MaxPartitionSize", Unit::Bytes, "The largest partition of a live SSTable."),
    gauge("MeanPartitionSize", Unit::Bytes, "The mean of all partitions of live SSTables."),
    gauge("EstimatedPartitionCount", Unit::Count, "Partitions, by the sketches of SSTables."),
    gauge("PendingCompactions", Unit::Count, "Compactions that are due."),
    counter("CompactionBytesWritten", Unit::Bytes, "Bytes that compactions wrote, as stored."),
    gauge("CompressionRatio", Unit::Count, "Stored bytes of each byte of data; -1 without any."),
    gauge("PercentRepaired", Unit::Count, "Share of the data that is repaired, in percent."),
    gauge(
        "BloomFilterFalsePositives",
        Unit::Count,
        "SSTables that reads opened although they lack the partition.",
    ),
    gauge(
        "BloomFilterFalseRatio",
        Unit::Count,
        "Share of such SSTables in all that reads considered.",
    ),
    gauge("BloomFilterOffHeapMemoryUsed", Unit::Bytes, "Memory of Bloom filters."),
    gauge("IndexSummaryOffHeapMemoryUsed", Unit::Bytes, "Memory of index summaries."),
    gauge("CompressionMetadataOffHeapMemoryUsed", Unit::Bytes, "Memory of chunk offsets."),
    counter("RowCacheHitOutOfRange", Unit::Count, "Always 0: such reads count as hits."),
    counter("RowCacheHit", Unit::Count, "Reads that the row cache answered."),
    counter("RowCacheMiss", Unit::Count, "Reads whose partition the row cache did not have."),
    counter("DroppedMutations", Unit::Count, "Always 0: no write is dropped."),
    counter("ReadRepairRequests", Unit::Count, "Always 0: the node has no replicas."),
    counter("SpeculativeRetries", Unit::Count, "Always 0: the node has no replicas."),
];

/// Sums over the tables of a keyspace, in the order of `OfKeyspace::values`; all are gauges, as in Cassandra.
pub(crate) const SUMS: [Metric; 5] = [
    sum("LiveDiskSpaceUsed", Unit::Bytes, "All components of all live SSTables."),
    sum("TotalDiskSpaceUsed", Unit::Bytes, "As LiveDiskSpaceUsed."),
    sum("MemtableLiveDataSize", Unit::Bytes, "Memory of all memtables."),
    sum("PendingFlushes", Unit::Count, "Flushes that wait or are under way."),
    sum("PendingCompactions", Unit::Count, "Compactions that are due."),
];

const fn sum(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Keyspace", name, help).of(Kind::Gauge, unit)
}

/// In the order of [`BATCH_KINDS`].
pub(crate) const OF_BATCHES: [Metric; BATCH_KINDS.len()] = [
    histogram("Batch", "PartitionsPerLoggedBatch", "Partitions of each logged batch."),
    histogram("Batch", "PartitionsPerUnloggedBatch", "Partitions of each unlogged batch."),
    histogram("Batch", "PartitionsPerCounterBatch", "Partitions of each batch of counters."),
];

/// In the order of `Engine::show_compactions`.
pub(crate) const OF_COMPACTIONS: [Metric; 4] = [
    Metric::cassandra("Compaction", "PendingTasks", "Compactions that are due.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("Compaction", "CompletedTasks", "Compactions that have ended.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("Compaction", "TotalCompactionsCompleted", "Compactions that have ended.")
        .of(Kind::Meter, Unit::Count),
    Metric::cassandra("Compaction", "BytesCompacted", "Data of the inputs of compactions.")
        .of(Kind::Counter, Unit::Bytes),
];

const fn pace(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::own("Compaction", name, help).of(Kind::Gauge, unit)
}

/// Why compaction is as fast as it is, in the order of `Engine::show_pace`.
pub(crate) const OF_PACE: [Metric; 4] = [
    pace("BytesPerSecond", Unit::Count, "The rate of all compactions; not a number: unlimited."),
    pace("LatencyTarget", Unit::Nanoseconds, "The target for the p99 of reads, if there is one."),
    pace("ReadLatency", Unit::Nanoseconds, "The p99 of single-partition reads, if it is known."),
    pace("ReadLatencyAtRest", Unit::Nanoseconds, "The same while compaction rests."),
];

/// In the order of `Engine::show_log`.
pub(crate) const OF_LOG: [Metric; 5] = [
    Metric::cassandra("CommitLog", "PendingTasks", "Records that are not written yet.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("CommitLog", "CompletedTasks", "Records that were appended.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("CommitLog", "TotalCommitLogSize", "Bytes of all segments.")
        .of(Kind::Gauge, Unit::Bytes),
    time("CommitLog", ("WaitingOnCommit", "Writes that waited until their record was durable.")),
    time("CommitLog", ("WaitingOnSegmentAllocation", "Groups that waited for the next segment.")),
];

/// Of a shard's memtables.
pub(crate) const OF_MEMTABLES: [Metric; 1] = [time(
    "MemtablePool",
    ("BlockedOnAllocation", "Writes that waited because memtables were full."),
)];

const COUNT: usize = MEASURES
    + MEASURES_OF_KEYSPACES
    + OF_MEMTABLES.len()
    + NUMBERS.len()
    + SUMS.len()
    + OF_BATCHES.len()
    + OF_COMPACTIONS.len()
    + OF_PACE.len()
    + OF_LOG.len();

/// All metrics of the engine.
pub const DECLARED: [Metric; COUNT] = Metric::join(&[
    &OF_TABLES,
    &DECLARED_OF_KEYSPACES,
    &OF_MEMTABLES,
    &NUMBERS,
    &SUMS,
    &OF_BATCHES,
    &OF_COMPACTIONS,
    &OF_PACE,
    &OF_LOG,
]);
