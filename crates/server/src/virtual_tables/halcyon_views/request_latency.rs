//! How long statements of clients took, in the buckets of `halcyon_client_request_latency_seconds`.

use halcyon_metrics::{Origin, Source, Value};

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.request_latency (
    operation text,
    below_ns bigint,
    requests bigint,
    PRIMARY KEY (operation, below_ns)
) WITH ID = a8c9453b-80ea-347b-826f-a41e7474e19e
    AND comment = 'statements of clients since the start: those that took less than below_ns, and not less than the bound before';";

/// Sums over consistencies, and what has none.
const OPERATIONS: [&str; 5] = ["Read", "Write", "RangeSlice", "CASRead", "CASWrite"];

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["operation", "below_ns", "requests"]);
    node.facts.requests.walk(&mut |sample| {
        let (Origin::Halcyon, "Latency") = (sample.metric.origin, sample.metric.name) else {
            return;
        };
        let operation = sample.labels.scope.filter(|scope| OPERATIONS.contains(scope));
        if let (Some(operation), Value::Distribution(values)) = (operation, sample.value) {
            values.since_start(&mut |bucket, requests| {
                if requests > 0 {
                    rows.push([operation.into(), bucket.below.into(), requests.into()]);
                }
            });
        }
    });
}
