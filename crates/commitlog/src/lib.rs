//! The commit log of one shard: preallocated segments, group commit, replay, discard.
//!
//! The crate does not decode records. The caller passes the tables of each record, so that a segment can be recycled once all its
//! tables are flushed.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

#[cfg(test)]
extern crate self as halcyon_commitlog;

mod chain;
mod compression;
mod error;
mod format;
#[cfg(test)]
mod fuzz_smoke;
mod group;
mod log;
mod manifest;
mod metrics;
mod pace;
mod ready;
mod replay;
mod scan;
mod shared;
mod state;
mod sync;
mod ticket;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use halcyon_io::AccessMode;

pub use chain::{ReplayOptions, Visited};
pub use error::{Error, Result};
pub use log::{Append, CommitLog};
pub use metrics::LogMetrics;
pub use pace::GroupGap;
pub use replay::{ReplayReport, replay};

/// A table's id in `system_schema.tables`.
pub type TableId = [u8; 16];

/// The position of a record. Segment ids increase, over restarts too; `offset` is the record's raw offset (see `format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReplayPosition {
    pub segment: u64,
    pub offset: u32,
}

/// When a write is acknowledged (`commitlog_sync`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// When it is durable; records that arrive while a write is in flight share the next one. On a device that does not keep up
    /// with a write after the other, they gather for longer, at most 8 ms.
    Batch,
    /// When it is durable; at most one write per window.
    Group { window: std::time::Duration },
    /// When it survives the process; the log is synced every `period`, and only a power failure loses what is not synced.
    Periodic { period: std::time::Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogCompression {
    None,
    Lz4,
    Snappy,
    Deflate,
    Zstd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub directory: PathBuf,
    pub sync: SyncMode,
    pub mode: AccessMode,
    /// Bytes of one segment (`commitlog_segment_size`, 32 MiB).
    pub segment_size: u32,
    /// Bytes of all segments of this shard (its share of `commitlog_total_space`); above it, tables of the oldest must be flushed.
    pub total_space: u64,
    pub compression: LogCompression,
}

/// How a replay treats corruption: damage to what was durable, or its loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCorruption {
    /// Refuse to start.
    #[default]
    Stop,
    /// Skip it, and report it in a note.
    Ignore,
}

/// The oldest segment, and the tables whose flush would free it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirty {
    pub segment: u64,
    pub tables: Vec<TableId>,
    /// Tables of all shards, if others hold the segment.
    pub held: Vec<TableId>,
}

/// Tables, each with the timestamp of its oldest write of some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oldest(BTreeMap<TableId, i64>);

impl Oldest {
    pub fn of(&self, table: &TableId) -> Option<i64> {
        self.0.get(table).copied()
    }

    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        self.0.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn lower_one(&mut self, table: TableId, oldest: i64) {
        let known = self.0.entry(table).or_insert(i64::MAX);
        *known = (*known).min(oldest);
    }

    fn lower(&mut self, by: &Oldest) {
        by.0.iter().for_each(|(table, oldest)| self.lower_one(*table, *oldest));
    }

    pub fn retain(&mut self, keep: impl Fn(&TableId) -> bool) {
        self.0.retain(|table, _| keep(table));
    }
}

/// Keeps a segment of a shard's log, for a part of one of its records that another shard's tables have: until they are flushed.
#[derive(Debug, Clone)]
pub struct Hold {
    pub shard: u32,
    pub segment: u64,
    _held: Arc<()>,
}

#[cfg(test)]
mod tests;
