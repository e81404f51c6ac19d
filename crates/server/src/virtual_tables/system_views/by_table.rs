//! Rows of the tables that show one metric of each table that has storage, rounded as Cassandra rounds it.

use halcyon_engine::{Measure, TableStats};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::Node;

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

pub(super) fn latencies(node: &Node, measure: Measure, rows: &mut Rows<'_>) {
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

pub(super) fn histograms(node: &Node, measure: Measure, rows: &mut Rows<'_>) {
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

pub(super) fn mebibytes(node: &Node, bytes: fn(&TableStats) -> u64, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "mebibytes"]);
    for stats in node.engine.tables().stats() {
        let mebibytes = bytes(&stats).div_ceil(1 << 20);
        rows.push([stats.keyspace.into(), stats.table.into(), mebibytes.into()]);
    }
}
