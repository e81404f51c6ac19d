use super::by_table::mebibytes;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.disk_usage (
    keyspace_name text,
    table_name text,
    mebibytes bigint,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = 8622af8c-9c2f-3604-bc8f-6df90fff8531;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    mebibytes(node, |stats| stats.disk_space, rows);
}
