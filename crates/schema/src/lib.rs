//! What tables there are, and the statements and rows that change and describe them.
//!
//! ```text
//!  text of CQL ──► Schema (offline: a script's tables)
//!  statement + Catalog ──► change ──► Catalog ──► rows of system_schema
//!  rows of system_schema ──► Catalog ──► DESCRIBE
//! ```
//!
//! The catalog is an immutable snapshot. `change` gives the next one, `rows` writes and reads it as Cassandra 5.0 stores it.
#![forbid(unsafe_code)]
// Text and rows come from outside.
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod apply;
pub mod catalog;
pub mod change;
pub mod describe;
mod draft;
mod edit;
mod local;
mod options;
pub mod rows;
mod system;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeMap;

use halcyon_model::schema::TableSchema;
use halcyon_syntax::lexer::Location;
use halcyon_syntax::parse_statements;
pub use halcyon_syntax::{Error, Result};

pub use draft::{ColumnDraft, DraftError, DroppedDraft, TableDraft};
pub use local::{
    CQL_VERSION, DATA_CENTER, LocalNode, NATIVE_PROTOCOL_VERSION, PARTITIONER, RACK,
    RELEASE_VERSION, local_row, schema_version_row,
};
pub use system::{is_local, is_replicated_system, system_tables, virtual_keyspace};
pub use types::{FieldTexts, UserTypeCatalog};

/// A remark on the text that is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub location: Location,
    pub text: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} {}", self.location, self.text)
    }
}

/// Keyspaces with their tables, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    tables: BTreeMap<(String, String), TableSchema>,
    pub notes: Vec<Note>,
}

impl Schema {
    /// Runs a script. Tables named without a keyspace belong to the one in `USE`, or else to `keyspace`.
    pub fn parse(text: &str, keyspace: &str) -> Result<Schema> {
        let mut drafts = apply::Drafts::new(keyspace);
        for statement in parse_statements(text)? {
            drafts.apply(statement)?;
        }
        drafts.finish()
    }

    pub fn table(&self, keyspace: &str, name: &str) -> Option<&TableSchema> {
        self.tables.get(&(keyspace.to_owned(), name.to_owned()))
    }

    pub fn tables(&self) -> impl Iterator<Item = &TableSchema> {
        self.tables.values()
    }

    pub fn insert(&mut self, table: TableSchema) {
        self.tables.insert((table.keyspace.clone(), table.name.clone()), table);
    }
}

fn invalid(location: Location, what: impl Into<String>) -> Error {
    Error::Invalid { location, what: what.into() }
}
