use crate::virtual_tables::rows::{Rows, micros};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.shards (
    shard int PRIMARY KEY,
    commitlog_group_gap_us bigint,
    connections bigint,
    first_token bigint,
    last_token bigint,
    protocol_errors bigint,
    requests bigint,
    requests_in_flight bigint
) WITH ID = 8cecdf56-5196-349b-9d0b-1fb8601bf7b8
    AND comment = 'shards of Halcyon: tokens, connections, requests';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "shard",
        "first_token",
        "last_token",
        "connections",
        "requests",
        "requests_in_flight",
        "protocol_errors",
        "commitlog_group_gap_us",
    ]);
    for (index, metrics) in node.facts.metrics.iter().enumerate() {
        let (first, last) = node.engine.tables().tokens(index);
        rows.push([
            i32::try_from(index).unwrap_or(i32::MAX).into(),
            first.into(),
            last.into(),
            metrics.connections.get().into(),
            metrics.requests.get().into(),
            metrics.in_flight.get().into(),
            metrics.protocol_errors.get().into(),
            micros(node.engine.shard_metrics().group_gap(index)).into(),
        ]);
    }
}
