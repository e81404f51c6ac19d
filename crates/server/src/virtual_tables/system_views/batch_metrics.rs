use halcyon_io::clock::now;
use halcyon_model::request::BatchKind;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.batch_metrics (
    name text PRIMARY KEY,
    max bigint,
    p50th double,
    p999th double,
    p99th double
) WITH ID = 310632c8-5cca-37bd-bf9f-9b73c4ffc4cb
    AND comment = 'Metrics specific to batch statements';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["name", "max", "p50th", "p99th", "p999th"]);
    for (name, kind) in [
        ("partitions_per_counter_batch", BatchKind::Counter),
        ("partitions_per_logged_batch", BatchKind::Logged),
        ("partitions_per_unlogged_batch", BatchKind::Unlogged),
    ] {
        let sizes = node.engine.shard_metrics().batch_sizes(kind, now());
        rows.push([
            name.into(),
            sizes.max().into(),
            (sizes.quantile(0.5) as f64).into(),
            (sizes.quantile(0.99) as f64).into(),
            (sizes.quantile(0.999) as f64).into(),
        ]);
    }
}
