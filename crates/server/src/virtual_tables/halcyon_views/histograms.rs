//! Percentiles for `nodetool tablehistograms` and `proxyhistograms`. Rows with empty names are of the whole node. Times are in ns.

use halcyon_engine::{Measure, Percentiles, Summary};

use crate::virtual_tables::rows::{Inserted, Rows};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.histograms (
    keyspace_name text,
    table_name text,
    measure text,
    max bigint,
    min bigint,
    p50th bigint,
    p75th bigint,
    p95th bigint,
    p98th bigint,
    p99th bigint,
    PRIMARY KEY ((keyspace_name, table_name), measure)
) WITH ID = b22be0b1-bb8c-3b81-b63d-d07ea708466b
    AND comment = 'latencies in ns, partitions in bytes and cells, SSTables of a read; empty names: the node';";

const OF_TABLES: [(Measure, &str); 3] = [
    (Measure::LocalRead, "read_ns"),
    (Measure::LocalWrite, "write_ns"),
    (Measure::SSTablesPerRead, "sstables"),
];
const OF_NODE: [(Measure, &str); 3] = [
    (Measure::CoordinatorRead, "read_ns"),
    (Measure::CoordinatorScan, "range_ns"),
    (Measure::CoordinatorWrite, "write_ns"),
];

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let tables = node.engine.tables();
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "measure",
        "p50th",
        "p75th",
        "p95th",
        "p98th",
        "p99th",
        "min",
        "max",
    ]);
    for (measure, name) in OF_TABLES {
        for (keyspace, table, summary) in tables.summaries(measure) {
            push(&mut rows, [&keyspace, &table, name], of_summary(&summary));
        }
    }
    for shape in tables.shapes() {
        let names = |measure| [shape.keyspace.as_str(), shape.table.as_str(), measure];
        push(&mut rows, names("partition_bytes"), shape.partition_bytes);
        push(&mut rows, names("partition_cells"), shape.partition_cells);
    }
    for (measure, name) in OF_NODE {
        let mut all = Summary::nothing();
        tables.summaries(measure).iter().for_each(|(_, _, summary)| all.merge(summary));
        push(&mut rows, ["", "", name], of_summary(&all));
    }
}

fn of_summary(summary: &Summary) -> Percentiles {
    let [half, quarters, most, more, all] = Percentiles::FRACTIONS.map(|p| summary.quantile(p));
    Percentiles([half, quarters, most, more, all, summary.quantile(0.0), summary.max()])
}

fn push(rows: &mut Inserted<'_, '_, 10>, names: [&str; 3], percentiles: Percentiles) {
    let [keyspace, table, measure] = names;
    let [p50, p75, p95, p98, p99, min, max] = percentiles.0;
    rows.push([
        keyspace.into(),
        table.into(),
        measure.into(),
        p50.into(),
        p75.into(),
        p95.into(),
        p98.into(),
        p99.into(),
        min.into(),
        max.into(),
    ]);
}
