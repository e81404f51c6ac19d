use super::by_table::mebibytes;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.max_partition_size (
    keyspace_name text,
    table_name text,
    mebibytes bigint,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = de38f0c6-9a95-37fe-8376-24a396e1554a;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    mebibytes(node, |stats| stats.max_partition_size, rows);
}
