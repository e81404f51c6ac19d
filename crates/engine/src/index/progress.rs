//! The index builds that run.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use halcyon_stream::TableId;

#[derive(Default)]
pub(crate) struct IndexBuilds {
    /// Tables that are to be looked at.
    due: Mutex<BTreeSet<TableId>>,
    running: Mutex<Vec<Arc<Running>>>,
}

pub(super) struct Running {
    pub(super) id: [u8; 16],
    pub(super) keyspace: String,
    pub(super) table: String,
    pub(super) sstables: usize,
    pub(super) directory: String,
    pub(super) total: u64,
    pub(super) done: AtomicU64,
}

/// The build of the indexes of one SSTable, as `system_views.sstable_tasks` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBuild {
    /// A timeuuid.
    pub id: [u8; 16],
    pub keyspace: String,
    pub table: String,
    pub sstables: usize,
    pub directory: String,
    /// Bytes of rows.
    pub total: u64,
    pub done: u64,
}

impl IndexBuilds {
    pub(super) fn due(&self) -> MutexGuard<'_, BTreeSet<TableId>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
