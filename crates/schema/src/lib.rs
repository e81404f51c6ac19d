//! The schema: keyspaces, tables and types, and the statements and rows that change and describe them.
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

#[cfg(test)]
extern crate self as halcyon_schema;

mod apply;
pub mod catalog;
pub mod change;
mod checks;
pub mod describe;
mod describe_functions;
mod draft;
mod edit;
mod element;
pub mod function;
#[cfg(test)]
mod fuzz_smoke;
pub mod index;
mod java_hash;
mod local;
pub mod mask;
mod options;
pub mod rows;
mod script;
mod system;
#[cfg(test)]
mod tests;
mod types;
pub mod view;

pub use halcyon_syntax::{Error, Result};

pub use catalog::DATA_CENTER;
pub use draft::{ColumnDraft, DraftError, DroppedDraft, TableDraft};
pub use local::{
    CQL_VERSION, LocalNode, NATIVE_PROTOCOL_VERSION, PARTITIONER, RACK, RELEASE_VERSION, local_row,
    schema_version_row,
};
pub use script::{Note, Schema};
pub use system::{
    is_local, is_replicated_system, refuse_modification, system_tables, virtual_keyspace,
};
pub use types::{FieldTexts, UserTypeCatalog};
