use super::virtual_keyspaces;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_virtual_schema.tables (
    keyspace_name text,
    table_name text,
    comment text,
    PRIMARY KEY (keyspace_name, table_name)
) WITH ID = de8b2957-3de1-3570-8793-6dcbce2e5d6e
    AND comment = 'virtual table definitions';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name", "table_name", "comment"]);
    for keyspace in virtual_keyspaces(&node.engine.tables().catalog()) {
        for table in keyspace.tables.values() {
            rows.push([
                keyspace.name.as_str().into(),
                table.schema.name.as_str().into(),
                table.schema.options.comment.as_str().into(),
            ]);
        }
    }
}
