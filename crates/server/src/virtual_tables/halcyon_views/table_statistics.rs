//! Tables as `nodetool tablestats` shows them. What is not there, Halcyon does not count.

use std::collections::BTreeMap;

use halcyon_engine::{Measure, Summary, TableStats};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Filled, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::gathered(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.table_statistics (
    keyspace_name text,
    table_name text,
    auto_compaction boolean,
    bytes_pending_repair bigint,
    bytes_repaired bigint,
    compression_memory bigint,
    compression_ratio double,
    data_bytes bigint,
    disk_space bigint,
    droppable_tombstone_ratio double,
    filter_bytes bigint,
    filter_false_positives bigint,
    filter_false_ratio double,
    filter_memory bigint,
    flushes bigint,
    level_bytes frozen<list<bigint>>,
    level_fanout bigint,
    level_sstables frozen<list<bigint>>,
    max_sstable_duration bigint,
    max_sstable_size bigint,
    max_threshold int,
    memtable_bytes bigint,
    min_threshold int,
    old_sstables int,
    partition_max bigint,
    partition_mean bigint,
    partition_min bigint,
    partitions bigint,
    pending_flushes bigint,
    read_count bigint,
    read_mean_ns double,
    rows_per_read_max bigint,
    rows_per_read_mean double,
    sstables int,
    summary_memory bigint,
    tombstones_per_read_max bigint,
    tombstones_per_read_mean double,
    write_count bigint,
    write_mean_ns double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 35d3cc11-54e3-3c9f-9443-7facb592716e
    AND comment = 'tables of the node: SSTables, memtables, reads and writes; sizes in bytes';";

/// One measure by table.
struct Measured(BTreeMap<(String, String), Summary>);

impl Measured {
    fn of(node: &Node, measure: Measure) -> Measured {
        let summaries = node.engine.tables().summaries(measure).into_iter();
        Measured(summaries.map(|(keyspace, table, of)| ((keyspace, table), of)).collect())
    }

    /// Count, mean and maximum.
    fn get(&self, table: &(String, String)) -> (u64, Option<f64>, u64) {
        self.0.get(table).map_or((0, None, 0), |of| (of.count, of.mean(), of.max()))
    }
}

fn fill<'a>(node: &'a Node, rows: &'a mut Rows<'_>) -> Filled<'a> {
    Box::pin(async move {
        match node.engine.tables().details().await {
            Ok(details) => push(node, details, rows),
            Err(e) => rows.fail(e.to_string()),
        }
    })
}

fn push(node: &Node, details: Vec<halcyon_engine::TableDetails>, rows: &mut Rows<'_>) {
    let stats: BTreeMap<(String, String), TableStats> = node
        .engine
        .tables()
        .stats()
        .into_iter()
        .map(|of| ((of.keyspace.clone(), of.table.clone()), of))
        .collect();
    let measured = |measure| Measured::of(node, measure);
    let (reads, writes) = (measured(Measure::LocalRead), measured(Measure::LocalWrite));
    let (live, dead) = (measured(Measure::RowsPerRead), measured(Measure::TombstonesPerRead));
    let int = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let (catalog, compactor) = (node.engine.tables().catalog(), node.engine.compactor());
    let mut rows = rows.with(COLUMNS);
    for of in details {
        let name = (of.keyspace.clone(), of.table.clone());
        let Some(stats) = stats.get(&name) else { continue };
        let table = catalog.table(&name.0, &name.1);
        let thresholds = table.and_then(|of| compactor.thresholds(of.id).ok().flatten());
        let (read_count, read_mean, _) = reads.get(&name);
        let (write_count, write_mean, _) = writes.get(&name);
        let ((_, live_mean, live_max), (_, dead_mean, dead_max)) =
            (live.get(&name), dead.get(&name));
        rows.push([
            name.0.into(),
            name.1.into(),
            of.auto_compaction.into(),
            of.pending_repair.into(),
            of.repaired.into(),
            of.compression_memory.into(),
            of.compression_ratio().into(),
            of.data.into(),
            stats.disk_space.into(),
            of.droppable_tombstones.into(),
            of.filter_bytes.into(),
            stats.filter_false.into(),
            stats.filter_false_ratio().into(),
            of.filter_memory.into(),
            stats.flushes.into(),
            of.level_bytes.as_slice().into(),
            of.level_fanout.into(),
            of.level_sstables.as_slice().into(),
            stats.max_sstable_duration.into(),
            stats.max_sstable_size.into(),
            thresholds.map(|(_, max)| int(max)).into(),
            of.memtable_bytes.into(),
            thresholds.map(|(min, _)| int(min)).into(),
            int(of.old_sstables).into(),
            of.partition_max.into(),
            of.partition_mean.into(),
            of.partition_min.unwrap_or(0).into(),
            of.partitions.into(),
            stats.pending_flushes.into(),
            read_count.into(),
            read_mean.into(),
            live_max.into(),
            live_mean.into(),
            int(stats.sstables).into(),
            of.summary_memory.into(),
            dead_max.into(),
            dead_mean.into(),
            write_count.into(),
            write_mean.into(),
        ]);
    }
}

const COLUMNS: [&str; 39] = [
    "keyspace_name",
    "table_name",
    "auto_compaction",
    "bytes_pending_repair",
    "bytes_repaired",
    "compression_memory",
    "compression_ratio",
    "data_bytes",
    "disk_space",
    "droppable_tombstone_ratio",
    "filter_bytes",
    "filter_false_positives",
    "filter_false_ratio",
    "filter_memory",
    "flushes",
    "level_bytes",
    "level_fanout",
    "level_sstables",
    "max_sstable_duration",
    "max_sstable_size",
    "max_threshold",
    "memtable_bytes",
    "min_threshold",
    "old_sstables",
    "partition_max",
    "partition_mean",
    "partition_min",
    "partitions",
    "pending_flushes",
    "read_count",
    "read_mean_ns",
    "rows_per_read_max",
    "rows_per_read_mean",
    "sstables",
    "summary_memory",
    "tombstones_per_read_max",
    "tombstones_per_read_mean",
    "write_count",
    "write_mean_ns",
];
