use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.cql_metrics (
    name text PRIMARY KEY,
    value double
) WITH ID = 6a8821b8-7dca-37ce-8970-a61ebb4e7ca5
    AND comment = 'Metrics specific to CQL prepared statement caching';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["name", "value"]);
    let executed = node.sum(|shard| shard.prepared_executed.get());
    let regular = node.sum(|shard| shard.regular_executed.get());
    let prepared = node.facts.prepared.metrics();
    let all = executed + regular;
    let ratio = if all == 0 { 0.0 } else { executed as f64 / all as f64 };
    for (name, value) in [
        ("prepared_statements_count", prepared.count as f64),
        ("prepared_statements_evicted", prepared.evictions as f64),
        ("prepared_statements_executed", executed as f64),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", regular as f64),
    ] {
        rows.push([name.into(), value.into()]);
    }
}
