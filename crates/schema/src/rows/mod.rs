//! The schema as rows of `system_schema`, in both directions.
//!
//! ```text
//!                    read                      described              write
//!  SchemaRows  ───────────────►  Catalog  ───────────────►  rows  ───────────────►  mutations
//!  (live rows)                      two of them: changed rows are written, missing rows are deleted
//! ```
//!
//! Rows are those that Cassandra 5.0 writes: the same cells, nulls where it leaves a cell out.

mod described;
mod read;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use std::collections::BTreeMap;

pub(crate) use described::set_version;
pub use read::table;
pub use write::{WriteTime, built_index, built_view, difference};

/// One live row: its columns by name, those of the key too; `None` is null.
pub type SchemaRow = BTreeMap<String, Option<Vec<u8>>>;

/// The live rows of each table of `system_schema`, by the table's name.
pub type SchemaRows = BTreeMap<String, Vec<SchemaRow>>;
