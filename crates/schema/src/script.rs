//! The result of a script of schema statements, read without a node: its tables, and notes on what was skipped.

use std::collections::BTreeMap;

use halcyon_model::schema::TableSchema;
use halcyon_syntax::lexer::Location;

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
    pub(crate) tables: BTreeMap<(String, String), TableSchema>,
    pub notes: Vec<Note>,
}

impl Schema {
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
