//! A compaction that runs: why, of what, and how far it is.

use std::sync::Arc;

use halcyon_compaction::{Progress, Snapshot};
use halcyon_io::clock::Instant;
use halcyon_sstable::Effort;

use crate::tables::store::Store;

/// Why there is a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionKind {
    /// Picked by the strategy.
    #[default]
    Background,
    /// Requested by an operator.
    Major,
    /// Of one SSTable, for its tombstones.
    Tombstone,
    /// Requested by an operator: of one SSTable, without what is corrupt.
    Scrub,
}

impl CompactionKind {
    /// As Cassandra's `OperationType`.
    pub fn name(self) -> &'static str {
        match self {
            CompactionKind::Background => "Compaction",
            CompactionKind::Major => "Major compaction",
            CompactionKind::Tombstone => "Tombstone Compaction",
            CompactionKind::Scrub => "Scrub",
        }
    }
}

/// A compaction that runs.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) number: u64,
    /// A timeuuid.
    pub(super) id: [u8; 16],
    pub(super) store: Arc<Store>,
    pub(super) keyspace: String,
    pub(super) table: String,
    pub(super) kind: CompactionKind,
    pub(super) effort: Effort,
    pub(super) level: i32,
    pub(super) sstables: usize,
    /// Of the inputs, as stored.
    pub(super) bytes: u64,
    pub(super) directory: String,
    pub(super) began: Instant,
    pub(super) progress: Progress,
}

/// A compaction that runs, as `system_views.sstable_tasks` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionTask {
    /// A timeuuid.
    pub id: [u8; 16],
    pub keyspace: String,
    pub table: String,
    pub kind: CompactionKind,
    pub sstables: usize,
    /// Of the inputs, as stored.
    pub bytes: u64,
    pub directory: String,
    pub progress: Snapshot,
}

impl Running {
    pub(super) fn shown(&self) -> CompactionTask {
        CompactionTask {
            id: self.id,
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
            kind: self.kind,
            sstables: self.sstables,
            bytes: self.bytes,
            directory: self.directory.clone(),
            progress: self.progress.snapshot(),
        }
    }
}
