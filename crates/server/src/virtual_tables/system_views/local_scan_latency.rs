use halcyon_engine::Measure;

use super::by_table::latencies;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.local_scan_latency (
    keyspace_name text,
    table_name text,
    count bigint,
    max_ms double,
    p50th_ms double,
    p99th_ms double,
    per_second double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 871478a6-dd43-3303-b868-b9e92d39444a;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    latencies(node, Measure::LocalScan, rows);
}
