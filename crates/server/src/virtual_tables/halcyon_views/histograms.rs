//! Percentiles for `nodetool tablehistograms`, `proxyhistograms` and `halcyon top`. Rows with empty names are of the whole node. Times are
//! in ns. Values of SSTables have no `count`: each is of a partition, not of a request.

use halcyon_engine::{Measure, Percentiles, Summary};
use halcyon_metrics::{Distribution, Source, Value};

use crate::virtual_tables::rows::{Inserted, Rows};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.histograms (
    keyspace_name text,
    table_name text,
    measure text,
    count bigint,
    max bigint,
    min bigint,
    p50th bigint,
    p75th bigint,
    p95th bigint,
    p98th bigint,
    p999th bigint,
    p99th bigint,
    PRIMARY KEY ((keyspace_name, table_name), measure)
) WITH ID = b22be0b1-bb8c-3b81-b63d-d07ea708466b
    AND comment = 'latencies in ns, partitions in bytes and cells, SSTables and tombstones of a read; empty names: the node';";

const OF_TABLES: [(Measure, &str); 3] = [
    (Measure::LocalRead, "read_ns"),
    (Measure::LocalWrite, "write_ns"),
    (Measure::SSTablesPerRead, "sstables"),
];
const OF_NODE: [(Measure, &str); 5] = [
    (Measure::CoordinatorRead, "read_ns"),
    (Measure::CoordinatorScan, "range_ns"),
    (Measure::CoordinatorWrite, "write_ns"),
    (Measure::SSTablesPerRead, "sstables"),
    (Measure::TombstonesPerRead, "tombstones"),
];

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let tables = node.engine.tables();
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "measure",
        "count",
        "p50th",
        "p75th",
        "p95th",
        "p98th",
        "p99th",
        "p999th",
        "min",
        "max",
    ]);
    for (measure, name) in OF_TABLES {
        for (keyspace, table, summary) in tables.summaries(measure) {
            of_requests(&mut rows, [&keyspace, &table, name], &summary);
        }
    }
    for shape in tables.shapes() {
        let names = |measure| [shape.keyspace.as_str(), shape.table.as_str(), measure];
        push(&mut rows, names("partition_bytes"), shape.partition_bytes, [None, None]);
        push(&mut rows, names("partition_cells"), shape.partition_cells, [None, None]);
    }
    let of_node = [("CASRead", "cas_read_ns"), ("CASWrite", "cas_write_ns")];
    node.facts.requests.walk(&mut |sample| {
        let measure = of_node.iter().find(|(scope, _)| sample.labels.scope == Some(*scope));
        if let (Value::Distribution(of), "Latency", Some((_, measure))) =
            (sample.value, sample.metric.name, measure)
        {
            of_conditions(&mut rows, measure, of);
        }
    });
    for (measure, name) in OF_NODE {
        let mut all = Summary::nothing();
        tables.summaries(measure).iter().for_each(|(_, _, summary)| all.merge(summary));
        of_requests(&mut rows, ["", "", name], &all);
    }
}

fn of_requests(rows: &mut Inserted<'_, '_, COLUMNS>, names: [&str; 3], of: &Summary) {
    let [half, quarters, most, more, all] = Percentiles::FRACTIONS.map(|p| of.quantile(p));
    let percentiles = Percentiles([half, quarters, most, more, all, of.quantile(0.0), of.max()]);
    push(rows, names, percentiles, [Some(of.count), Some(of.quantile(0.999))]);
}

/// Conditional requests, of which tables keep no histogram of their own.
fn of_conditions(rows: &mut Inserted<'_, '_, COLUMNS>, measure: &str, of: &dyn Distribution) {
    let [half, quarters, most, more, all] = Percentiles::FRACTIONS.map(|p| of.quantile(p));
    let (least, largest) = (of.quantile(0.0), of.quantile(1.0));
    let percentiles = Percentiles([half, quarters, most, more, all, least, largest]);
    push(rows, ["", "", measure], percentiles, [Some(of.count()), Some(of.quantile(0.999))]);
}

const COLUMNS: usize = 12;

fn push(
    rows: &mut Inserted<'_, '_, COLUMNS>,
    [keyspace, table, measure]: [&str; 3],
    percentiles: Percentiles,
    [count, p999]: [Option<u64>; 2],
) {
    let [p50, p75, p95, p98, p99, min, max] = percentiles.0;
    rows.push([
        keyspace.into(),
        table.into(),
        measure.into(),
        count.into(),
        p50.into(),
        p75.into(),
        p95.into(),
        p98.into(),
        p99.into(),
        p999.into(),
        min.into(),
        max.into(),
    ]);
}
