//! One shard's commit log: preallocated segments, group commit, replay, discard.
//!
//! A record is bytes to this crate; which tables it touches is told beside it, so that a segment can be recycled when
//! none of them needs it any more.
#![forbid(unsafe_code)]
#![allow(async_fn_in_trait, reason = "everything stays on one thread")]

mod compression;
mod error;
mod format;
mod group;
mod log;
mod ready;
mod replay;
mod scan;
mod signal;
mod state;
mod writer;

use std::path::PathBuf;

use halcyon_io::AccessMode;

pub use error::{Error, Result};
pub use log::{Append, CommitLog};
pub use replay::{ReplayOptions, ReplayReport, Visited, replay};

/// A table's id, as `system_schema.tables` has it.
pub type TableId = [u8; 16];

/// Where a record stands: segment ids grow, also from one start of the server to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ReplayPosition {
    pub segment: u64,
    pub offset: u32,
}

/// When a write is acknowledged (`commitlog_sync`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// When it is durable; while one write is in flight the next gathers.
    Batch,
    /// When it is durable; one write per window.
    Group { window: std::time::Duration },
    /// At once; made durable every `period`.
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
    /// Bytes of all segments of this shard (its part of `commitlog_total_space`); beyond it the oldest must be freed.
    pub total_space: u64,
    pub compression: LogCompression,
}

/// What is to be done about a record that is damaged although records were acknowledged after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCorruption {
    /// Refuse to start.
    #[default]
    Stop,
    /// Skip it, and say so in a note.
    Ignore,
}

/// The tables that keep the oldest segment from being recycled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirty {
    pub segment: u64,
    pub tables: Vec<TableId>,
}

#[cfg(test)]
mod tests;
