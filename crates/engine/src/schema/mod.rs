//! Storage follows the schema: tables created, altered, truncated, dropped, and their snapshots.

mod change;
pub(crate) mod rows;
mod snapshot;
mod truncate;

pub use change::SchemaLock;
