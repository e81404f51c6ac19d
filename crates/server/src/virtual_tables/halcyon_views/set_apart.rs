use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.set_apart (
    keyspace_name text,
    table_name text,
    sstable text,
    reason text,
    PRIMARY KEY (keyspace_name, table_name, sstable)
) WITH ID = 5f3c1d6a-7c0e-3b52-9d2f-6a1b8e4c0f37
    AND comment = 'tables and SSTables that the start could not use; of a table, the SSTable is empty';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "sstable", "reason"]);
    for apart in node.engine.tables().set_apart() {
        let sstable = apart.sstable.unwrap_or_default();
        rows.push([apart.keyspace.into(), apart.table.into(), sstable.into(), apart.why.into()]);
    }
}
