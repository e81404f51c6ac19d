//! Partition keys as Cassandra's tools spell them: components are between colons.

use halcyon_model::schema::ColumnKind;
use halcyon_model::types::CqlType;
use halcyon_model::value::from_string;
use halcyon_query::{Error, Result};
use halcyon_schema::catalog::Table;

pub(super) fn partition_key(table: &Table, text: &str) -> Result<Vec<u8>> {
    parsed(table, text).map_err(|why| {
        let name = table.full_name();
        Error::Invalid(format!("Unable to parse partition key '{text}' for table {name}; {why}"))
    })
}

fn parsed(table: &Table, text: &str) -> std::result::Result<Vec<u8>, String> {
    let columns = table.columns(ColumnKind::PartitionKey);
    let types: Vec<CqlType> = columns.iter().map(|column| column.cql_type.clone()).collect();
    let key = match types.as_slice() {
        [only] => from_string(only, text),
        _ => from_string(&CqlType::Composite(types), text),
    }?;
    match key.len() {
        0 => Err("Key may not be empty".to_owned()),
        1..=65_535 => Ok(key),
        length => Err(format!("Key length of {length} is longer than maximum of 65535")),
    }
}
