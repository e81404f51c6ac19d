//! Storage follows the schema: tables created, altered, truncated, dropped, and their snapshots.

mod change;
mod next_expiry;
mod refresh;
pub(crate) mod rows;
mod snapshot;
mod snapshot_expiry;
mod truncate;
mod views;

pub use change::SchemaLock;
pub(crate) use next_expiry::NextExpiry;
pub use snapshot::{Snapshot, SnapshotOptions};
