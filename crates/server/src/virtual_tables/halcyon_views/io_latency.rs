use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.io_latency (
    purpose text,
    below_ns bigint,
    operations bigint,
    PRIMARY KEY (purpose, below_ns)
) WITH ID = 65cad422-2799-3769-b147-2643064d6e08
    AND comment = 'latency of I/O by purpose: operations that took less than below_ns, and not less than half of it';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["purpose", "below_ns", "operations"]);
    for stats in node.facts.disk.histograms() {
        for (bucket, operations) in stats.latency.filled() {
            let purpose = stats.purpose.to_string();
            rows.push([purpose.into(), bucket.below.into(), operations.into()]);
        }
    }
}
