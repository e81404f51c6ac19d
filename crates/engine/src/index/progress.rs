//! An index build that runs: of what, and how far it is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A build that runs.
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

impl Running {
    pub(super) fn shown(&self) -> IndexBuild {
        IndexBuild {
            id: self.id,
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            sstables: self.sstables,
            directory: self.directory.clone(),
            total: self.total,
            done: self.done.load(Relaxed).min(self.total),
        }
    }
}
