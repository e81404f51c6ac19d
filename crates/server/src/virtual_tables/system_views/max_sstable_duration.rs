use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.max_sstable_duration (
    keyspace_name text,
    table_name text,
    max_sstable_duration bigint,
    PRIMARY KEY ((keyspace_name, table_name))
) WITH ID = f2097f5e-b699-3534-99f5-7e5a30eaa8b5;";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "max_sstable_duration"]);
    for stats in node.engine.tables().stats() {
        let max = stats.max_sstable_duration;
        rows.push([stats.keyspace.into(), stats.table.into(), max.into()]);
    }
}
