use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.io_operations (
    purpose text PRIMARY KEY,
    bytes bigint,
    errors bigint,
    operations bigint,
    overlapped bigint,
    p50_ns bigint,
    p999_ns bigint,
    p99_ns bigint,
    queue_depth bigint,
    queue_depth_max bigint
) WITH ID = b3b11baa-47a3-3ae6-a7e8-e391f803a765
    AND comment = 'I/O of Halcyon by purpose';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "purpose",
        "operations",
        "bytes",
        "errors",
        "overlapped",
        "queue_depth",
        "queue_depth_max",
        "p50_ns",
        "p99_ns",
        "p999_ns",
    ]);
    for stats in node.facts.disk.histograms() {
        rows.push([
            stats.purpose.to_string().into(),
            stats.operations.into(),
            stats.bytes.into(),
            stats.errors.into(),
            stats.overlapped.into(),
            stats.queue_depth.into(),
            stats.queue_depth_max.into(),
            stats.quantile_ns(0.5).into(),
            stats.quantile_ns(0.99).into(),
            stats.quantile_ns(0.999).into(),
        ]);
    }
}
