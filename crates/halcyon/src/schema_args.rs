//! The arguments that say where a table's schema comes from.

use std::path::PathBuf;

use clap::Args;
use halcyon_tools::schema_source::SchemaSource;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// CREATE statements of the table, as DESCRIBE or a snapshot's schema.cql has them [default: the system_schema
    /// tables of the data directory that PATH is in, if they have a table with the folder's id; else the schema.cql
    /// of a snapshot]
    #[arg(long, value_name = "FILE.cql")]
    schema: Option<PathBuf>,
    /// The table of the schema, if the folder's name does not say which
    #[arg(long, value_name = "[KEYSPACE.]TABLE")]
    table: Option<String>,
}

impl SchemaArgs {
    pub(crate) fn source(&self) -> SchemaSource {
        SchemaSource { file: self.schema.clone(), table: self.table.clone() }
    }
}
