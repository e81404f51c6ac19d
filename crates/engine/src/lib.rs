//! The tables of a node: one shard's writes, reads and flushes; recovery; the live view.
//!
//! ```text
//!            Engine  (one; Arc): catalog, live views of all tables, options, compaction
//!     ┌────────┴────────┐
//!   Shard 0           Shard 1      (one per core; Rc): memtables, commit log, caches of its token range
//! ```
//!
//! 1. `Shard::apply` logs a mutation, then puts it into the memtable, then answers.
//! 2. `Shard::read` merges memtables and SSTables into one `FragmentStream`.
//! 3. A full memtable is frozen and flushed as an SSTable; the table's view is swapped; the log is discarded below it.
#![forbid(unsafe_code)]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod apply;
mod background;
mod batches;
mod columns;
mod compact;
mod directories;
mod distribution;
mod engine;
mod error;
mod flush;
mod health;
mod local;
mod lock;
mod memtable;
mod metrics;
mod news;
mod open;
mod options;
mod read;
mod record;
mod recover;
mod row_cache;
mod saved_caches;
mod schema;
mod schema_rows;
mod shard;
mod signal;
mod snapshot;
mod store;
mod truncate;
mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use halcyon_cql::catalog::Table;
use halcyon_stream::{PartitionKey, Slices};

pub use compact::{
    CompactionKind, CompactionPace, CompactionTask, MajorCompaction, MajorState, TableBacklog,
};
pub use distribution::Summary;
pub use engine::Engine;
pub use error::{Error, Result};
pub use halcyon_commitlog::{LogCompression, OnCorruption, Options as CommitLogOptions, SyncMode};
pub use halcyon_sstable::Version;
pub use health::FailurePolicy;
pub use lock::PartitionLock;
pub use metrics::{Measure, TableStats};
pub use news::News;
pub use open::RecoveryReport;
pub use options::{CommitFailurePolicy, DiskFailurePolicy, Options};
pub use read::ReadStream;
pub use record::{decode_mutations, encode_mutations};
pub use recover::Tell;
pub use row_cache::RowCacheStats;
pub use saved_caches::SavedCache;
pub use shard::Shard;

/// Partitions between two places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRange {
    pub start: RangeBound,
    pub end: RangeBound,
}

/// A place between partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeBound {
    /// The beginning or the end of the ring.
    Open,
    /// Before all keys with the token.
    BeforeToken(i64),
    /// After all keys with the token.
    AfterToken(i64),
    /// Before this key (a range then begins with it); used to go on after a page.
    BeforeKey(PartitionKey),
    AfterKey(PartitionKey),
}

#[derive(Debug, Clone)]
pub enum ReadTarget {
    Partition(PartitionKey),
    /// Only what this shard owns of the range.
    Range(TokenRange),
}

#[derive(Debug, Clone)]
pub struct Read {
    pub table: Arc<Table>,
    pub target: ReadTarget,
    pub slices: Slices,
}
