//! The tables that show one metric of each table that has storage, rounded as Cassandra rounds it.

use halcyon_engine::{Measure, TableStats};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

/// `$columns`: beside the key.
macro_rules! by_table {
    ($constant:ident, $name:literal, $id:literal, $columns:literal, $fill:expr) => {
        pub(crate) const $constant: VirtualTable = VirtualTable::computed(
            concat!(
                "CREATE TABLE system_views.",
                $name,
                " (keyspace_name text, table_name text, ",
                $columns,
                ", PRIMARY KEY ((keyspace_name, table_name))) WITH ID = ",
                $id,
                ";"
            ),
            $fill,
        );
    };
}

macro_rules! latency {
    ($constant:ident, $name:literal, $id:literal, $measure:ident) => {
        by_table!(
            $constant,
            $name,
            $id,
            "count bigint, max_ms double, p50th_ms double, p99th_ms double, per_second double",
            |node, rows| latencies(node, Measure::$measure, rows)
        );
    };
}

macro_rules! histogram {
    ($constant:ident, $name:literal, $id:literal, $measure:ident) => {
        by_table!(
            $constant,
            $name,
            $id,
            "count bigint, max double, p50th double, p99th double",
            |node, rows| histograms(node, Measure::$measure, rows)
        );
    };
}

macro_rules! mebibytes {
    ($constant:ident, $name:literal, $id:literal, $bytes:ident) => {
        by_table!($constant, $name, $id, "mebibytes bigint", |node, rows| {
            mebibytes(node, |stats| stats.$bytes, rows)
        });
    };
}

latency!(
    COORDINATOR_READ_LATENCY,
    "coordinator_read_latency",
    "86b6b059-d735-3549-a969-5a63557a061c",
    CoordinatorRead
);
latency!(
    COORDINATOR_SCAN_LATENCY,
    "coordinator_scan_latency",
    "71d7cfe3-7986-3d35-aec2-29e70ee5ec6a",
    CoordinatorScan
);
latency!(
    COORDINATOR_WRITE_LATENCY,
    "coordinator_write_latency",
    "08fe4d63-54c0-3b4d-8323-80f4cd10a764",
    CoordinatorWrite
);
latency!(
    LOCAL_READ_LATENCY,
    "local_read_latency",
    "77903fc8-aa00-34cd-a5f6-0de80edd1955",
    LocalRead
);
latency!(
    LOCAL_SCAN_LATENCY,
    "local_scan_latency",
    "871478a6-dd43-3303-b868-b9e92d39444a",
    LocalScan
);
latency!(
    LOCAL_WRITE_LATENCY,
    "local_write_latency",
    "a3c79fba-d827-3f95-8461-ea31db5c321e",
    LocalWrite
);
histogram!(ROWS_PER_READ, "rows_per_read", "a4d00f60-2eef-35e1-b6cf-958986ae7559", RowsPerRead);
histogram!(
    TOMBSTONES_PER_READ,
    "tombstones_per_read",
    "232a8f1b-a759-32f8-810c-35f36e87f50c",
    TombstonesPerRead
);
mebibytes!(DISK_USAGE, "disk_usage", "8622af8c-9c2f-3604-bc8f-6df90fff8531", disk_space);
mebibytes!(
    MAX_PARTITION_SIZE,
    "max_partition_size",
    "de38f0c6-9a95-37fe-8376-24a396e1554a",
    max_partition_size
);
mebibytes!(
    MAX_SSTABLE_SIZE,
    "max_sstable_size",
    "b3a4a469-c91b-3120-99fd-9123f0dd3f55",
    max_sstable_size
);

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn latencies(node: &Node, measure: Measure, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "count",
        "max_ms",
        "p50th_ms",
        "p99th_ms",
        "per_second",
    ]);
    let ms = |ns: u64| thousandths(ns as f64 / 1e6);
    for (keyspace, table, summary) in node.engine.tables().summaries(measure) {
        rows.push([
            keyspace.into(),
            table.into(),
            summary.count.into(),
            ms(summary.max()).into(),
            ms(summary.quantile(0.5)).into(),
            ms(summary.quantile(0.99)).into(),
            thousandths(summary.per_second).into(),
        ]);
    }
}

pub(in crate::virtual_tables) fn histograms(node: &Node, measure: Measure, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "count", "max", "p50th", "p99th"]);
    for (keyspace, table, summary) in node.engine.tables().summaries(measure) {
        rows.push([
            keyspace.into(),
            table.into(),
            summary.count.into(),
            (summary.max() as f64).into(),
            (summary.quantile(0.5) as f64).into(),
            (summary.quantile(0.99) as f64).into(),
        ]);
    }
}

fn mebibytes(node: &Node, bytes: fn(&TableStats) -> u64, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "mebibytes"]);
    for stats in node.engine.tables().stats() {
        let mebibytes = bytes(&stats).div_ceil(1 << 20);
        rows.push([stats.keyspace.into(), stats.table.into(), mebibytes.into()]);
    }
}
