use halcyon_engine::Measure;

use super::by_table::latencies;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.coordinator_read_latency (
    keyspace_name text,
    table_name text,
    count bigint,
    max_ms double,
    p50th_ms double,
    p99th_ms double,
    per_second double,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 86b6b059-d735-3549-a969-5a63557a061c;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    latencies(node, Measure::CoordinatorRead, rows);
}
