use super::by_table::mebibytes;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.max_sstable_size (
    keyspace_name text,
    table_name text,
    mebibytes bigint,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = b3a4a469-c91b-3120-99fd-9123f0dd3f55;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    mebibytes(node, |stats| stats.max_sstable_size, rows);
}
