//! The SSTables that have a partition (`nodetool getsstables`). A read names it by the whole partition key: `key` is spelled as Cassandra's
//! tools spell it, or in hexadecimal digits if `format` is `hex`.

use halcyon_model::hex;
use halcyon_query::Error;
use halcyon_schema::catalog::TableKind;
use halcyon_stream::PartitionKey;

use super::partition_key::partition_key;
use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Applied, Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::of_key(CQL, fill);

const CQL: &str = "CREATE TABLE halcyon_views.sstables_of_partition (
    keyspace_name text,
    table_name text,
    format text,
    key text,
    file text,
    level int,
    PRIMARY KEY ((keyspace_name, table_name, format, key), file)
) WITH ID = d9e9ac91-6345-3ae5-99cf-17414e6ae162
    AND comment = 'SELECT with the whole partition key: the SSTables that have a partition; format: text or hex';";

fn fill<'a>(node: &'a Node, asked: Vec<String>, rows: &'a mut Rows<'_>) -> Applied<'a> {
    Box::pin(async move {
        let [keyspace, name, format, text] = asked.as_slice() else { return Ok(()) };
        let catalog = node.engine.tables().catalog();
        let table = catalog.table(keyspace, name).filter(|table| table.kind != TableKind::Virtual);
        let Some(table) = table else {
            let what = format!("ColumnFamilyStore for {keyspace}/{name} not found.");
            return Err(Error::Invalid(what));
        };
        let key = match format.as_str() {
            "text" => partition_key(table, text)?,
            "hex" => hex::decode(text)
                .ok_or_else(|| Error::Invalid(format!("'{text}' is not in hexadecimal digits")))?,
            other => {
                return Err(Error::Invalid(format!(
                    "unknown format '{other}'; expected one of text, hex"
                )));
            }
        };
        let found = node.engine.tables().sstables_of(table.id, PartitionKey::of(&key)).await?;
        let mut rows = rows.with(["keyspace_name", "table_name", "format", "key", "file", "level"]);
        for (path, level) in found {
            rows.push([
                keyspace.as_str().into(),
                name.as_str().into(),
                format.as_str().into(),
                text.as_str().into(),
                path.display().to_string().into(),
                i32::try_from(level).unwrap_or(i32::MAX).into(),
            ]);
        }
        Ok(())
    })
}
