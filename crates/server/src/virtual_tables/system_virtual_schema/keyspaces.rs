use super::virtual_keyspaces;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_virtual_schema.keyspaces (
    keyspace_name text PRIMARY KEY
) WITH ID = 8943287a-b42b-3f26-a2b2-31a1a8cb2a9a
    AND comment = 'virtual keyspace definitions';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with(["keyspace_name"]);
    for keyspace in virtual_keyspaces(&node.engine.tables().catalog()) {
        rows.push([keyspace.name.as_str().into()]);
    }
}
