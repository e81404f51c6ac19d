use crate::virtual_tables::rows::{Rows, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.compaction_pace (
    name text PRIMARY KEY,
    value bigint
) WITH ID = fce23618-1239-36d3-9666-97942f1393a7
    AND comment = 'how fast compaction goes, and why';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["name", "value"]);
    let pace = node.engine.compactor().pace();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    for (name, value) in [
        ("bytes_per_second", pace.rate),
        ("compaction_throughput", pace.throughput),
        ("compaction_latency_target_us", pace.latency_target.map(micros)),
        ("read_p99_us", pace.read_p99.map(micros)),
        ("read_p99_at_rest_us", pace.read_p99_at_rest.map(micros)),
        ("concurrent_compactors", Some(count(pace.compactors))),
        ("running", Some(count(node.engine.compactor().tasks().len()))),
        ("waiting", Some(count(pace.waiting))),
        ("urgent", Some(u64::from(pace.urgent))),
    ] {
        rows.push([name.into(), value.into()]);
    }
}
