//! The tables of a node: one shard's writes, reads and flushes; recovery; the versions of tables.
//!
//! ```text
//!            Engine  (one; Arc): the services of all shards, and what they share (`engine.rs`)
//!     ┌────────┴────────┐
//!   Shard 0           Shard 1      (one per core; Rc): memtables, commit log, caches of its token range
//! ```
//!
//! 1. `Shard::apply` logs a mutation, then puts it into the memtable, then answers.
//! 2. `Shard::read` merges memtables and SSTables into one `FragmentStream`.
//! 3. A full memtable is frozen and flushed as an SSTable; an edit makes the table's next version; the log is discarded below it.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod at_once;
mod background;
mod caches;
mod columns;
mod compact;
mod control;
mod current;
mod definition;
mod engine;
mod error;
mod flush;
mod guardrails;
mod heat;
mod index;
mod memtable;
mod metrics;
mod options;
mod ownership;
mod read;
mod report;
mod reporter;
mod schema;
mod shard;
mod snapshots;
mod start;
mod storage;
mod tables;
mod version;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_stream::{PartitionKey, Slices};

pub use caches::{RowCacheStats, SavedCache, SavedCaches};
pub use compact::{
    CompactionKind, CompactionPace, CompactionTask, Compactor, MajorCompaction, MajorState,
    Rewrite, Selection, TableBacklog,
};
pub use engine::Engine;
pub use error::{Error, Result};
pub use flush::Flusher;
pub use halcyon_commitlog::{LogCompression, OnCorruption, Options as CommitLogOptions, SyncMode};
pub use halcyon_compaction::UsableSpace;
pub use halcyon_sstable::attached::{Neighbour, Neighbours};
pub use halcyon_sstable::verify::{Damage, ScrubOptions};
pub use halcyon_sstable::{Effort, Version};
pub use index::{Candidates, IndexBuild, Indexes};
pub use metrics::declared::DECLARED;
pub use metrics::samplers::Sampler;
pub use metrics::shards::ShardMetrics;
pub use metrics::stats::TableStats;
pub use metrics::table::{Measure, Summary};
pub use options::{Adjustable, CommitFailurePolicy, DiskFailurePolicy, LatencyTarget, Options};
pub use read::ReadStream;
pub use report::{Percentiles, SizeEstimate, TableDetails, TableShape, TableSizes, Verified};
pub use reporter::{Compacted, CompactionFailed, Event, FailurePolicy, Reporter, Severity};
pub use schema::{ImportOptions, Imported, Schema, SchemaLock};
pub use shard::Shard;
pub use snapshots::{Snapshot, SnapshotOptions, Snapshots, remove_folder};
pub use start::{RecoveryReport, StartProgress};
pub use tables::Tables;
pub use tables::read_samples::ReadSamples;
pub use tables::samples::{Sampled, Sampling};
pub use tables::set_apart::SetApart;
pub use write::{HeldWrites, PartitionLock, Parts, RunningWrite, WriteGate};

/// Whether invariants are asserted that cost more than a comparison: of versions, of the streams of reads, of what a flush has written.
const CHECKS: bool = cfg!(any(debug_assertions, feature = "checks"));

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
    /// Before this key (a range then begins with it); used to continue after a page.
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
