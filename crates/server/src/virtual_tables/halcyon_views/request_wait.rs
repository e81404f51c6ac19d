use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.request_wait (
    shard int,
    below_ns bigint,
    requests bigint,
    PRIMARY KEY (shard, below_ns)
) WITH ID = 7e0f1e22-ac74-3564-9aae-a25555a030a5
    AND comment = 'time from the moment when a shard had read a request off its socket to the start of its statement: requests that waited less than below_ns, and not less than half of it';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["shard", "below_ns", "requests"]);
    for (shard, metrics) in (0i32..).zip(node.facts.metrics.iter()) {
        for (bucket, requests) in metrics.waits.counts().filled() {
            rows.push([shard.into(), bucket.below.into(), requests.into()]);
        }
    }
}
