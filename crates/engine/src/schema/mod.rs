//! Storage follows the schema: tables created, altered, truncated, dropped, and given SSTables from elsewhere.

mod change;
mod import;
mod refresh;
pub(crate) mod rows;
mod truncate;

use std::sync::Arc;

use crate::compact::Compactor;
use crate::flush::Flusher;
use crate::index::Indexes;
use crate::reporter::Reporter;
use crate::snapshots::Snapshots;
use crate::storage::Storage;
use crate::tables::Tables;

pub use change::SchemaLock;
pub use import::{ImportOptions, Imported};

/// Changes what tables there are, and takes all rows from one.
pub struct Schema {
    storage: Arc<Storage>,
    tables: Arc<Tables>,
    reporter: Arc<Reporter>,
    flusher: Arc<Flusher>,
    compactor: Arc<Compactor>,
    indexes: Arc<Indexes>,
    snapshots: Arc<Snapshots>,
    /// Held by the schema change that runs.
    changing: futures_util::lock::Mutex<()>,
}

impl Schema {
    pub(crate) fn new(
        flusher: &Arc<Flusher>,
        compactor: &Arc<Compactor>,
        indexes: &Arc<Indexes>,
        snapshots: &Arc<Snapshots>,
    ) -> Arc<Schema> {
        let tables = flusher.tables.clone();
        Arc::new(Schema {
            storage: tables.storage.clone(),
            reporter: tables.reporter.clone(),
            tables,
            flusher: flusher.clone(),
            compactor: compactor.clone(),
            indexes: indexes.clone(),
            snapshots: snapshots.clone(),
            changing: futures_util::lock::Mutex::default(),
        })
    }
}
