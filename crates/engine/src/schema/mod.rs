//! Storage follows the schema: tables created, altered, truncated, dropped, and their snapshots.

mod change;
mod refresh;
pub(crate) mod rows;
mod snapshot;
mod truncate;
mod views;

pub use change::SchemaLock;
pub use snapshot::Snapshot;
