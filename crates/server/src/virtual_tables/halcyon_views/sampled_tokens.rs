//! Tokens of partitions that index summaries sample (`nodetool rangekeysample`). A read names a table.

use halcyon_query::Error;
use halcyon_schema::catalog::TableKind;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Applied, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::of_key(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.sampled_tokens (
    keyspace_name text,
    table_name text,
    token_value bigint,
    PRIMARY KEY ((keyspace_name, table_name), token_value)
) WITH ID = 426429b8-80f9-3292-89a3-766e016a7227
    AND comment = 'SELECT with the whole partition key: tokens of partitions that the index summaries of a table sample';";

fn fill<'a>(node: &'a Node, asked: Vec<String>, rows: &'a mut Rows<'_>) -> Applied<'a> {
    Box::pin(async move {
        let [keyspace, name] = asked.as_slice() else { return Ok(()) };
        let catalog = node.engine.tables().catalog();
        let table = catalog.table(keyspace, name).filter(|table| table.kind != TableKind::Virtual);
        let Some(table) = table else {
            return Err(Error::Invalid(format!("table {keyspace}.{name} does not exist")));
        };
        let tokens = node.engine.tables().sampled_tokens(table.id).await?;
        let mut rows = rows.with(["keyspace_name", "table_name", "token_value"]);
        for token in tokens {
            rows.push([keyspace.as_str().into(), name.as_str().into(), token.into()]);
        }
        Ok(())
    })
}
