use halcyon_model::schema::ColumnKind;
use halcyon_schema::catalog::Table;

use super::virtual_keyspaces;
use crate::virtual_tables::rows::{Inserted, Rows};
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_virtual_schema.columns (
    keyspace_name text,
    table_name text,
    column_name text,
    clustering_order text,
    column_name_bytes blob,
    kind text,
    position int,
    type text,
    PRIMARY KEY (keyspace_name, table_name, column_name)
) WITH ID = d30576e9-02a9-3735-8daf-ab45e4980183
    AND comment = 'virtual column definitions';";

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "keyspace_name",
        "table_name",
        "column_name",
        "clustering_order",
        "column_name_bytes",
        "kind",
        "position",
        "type",
    ]);
    for keyspace in virtual_keyspaces(&node.engine.tables().catalog()) {
        keyspace.tables.values().for_each(|table| push_columns(table, &mut rows));
    }
}

fn push_columns(table: &Table, rows: &mut Inserted<'_, '_, 8>) {
    let kinds = [
        (ColumnKind::PartitionKey, "partition_key"),
        (ColumnKind::Clustering, "clustering"),
        (ColumnKind::Static, "static"),
        (ColumnKind::Regular, "regular"),
    ];
    for (kind, name) in kinds {
        let order = if kind == ColumnKind::Clustering { "asc" } else { "none" };
        for (index, column) in table.columns(kind).iter().enumerate() {
            let index = i32::try_from(index).unwrap_or(i32::MAX);
            rows.push([
                table.schema.keyspace.as_str().into(),
                table.schema.name.as_str().into(),
                column.name.as_str().into(),
                order.into(),
                column.name.clone().into_bytes().into(),
                name.into(),
                if kind.is_key() { index } else { -1 }.into(),
                column.cql_type.cql_name().into(),
            ]);
        }
    }
}
