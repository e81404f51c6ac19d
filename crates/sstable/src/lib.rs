//! Apache Cassandra's SSTables: readers for BIG `ma`…`pa` and BTI `da`, `ea`; writers for `nb`, `oa`, `pa`, `da`, `ea`.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(async_fn_in_trait, reason = "reads stay on one thread")]

pub mod attached;
pub mod big;
pub mod bti;
mod data;
mod error;
pub mod format;
pub mod read;
pub mod row_index;
pub mod verify;
mod write;

/// Assertions in pairs, at both sides of a seam, run in debug builds and with the feature `checks`. They are about our own state;
/// the contents of files are always checked, and yield errors.
const CHECKS: bool = cfg!(any(debug_assertions, feature = "checks"));

pub use data::Bases;
pub use data::read_ahead::{ReadAhead, scan_ahead};
pub use data::scanner::SSTableScanner;
pub use error::{Error, Result};
pub use format::descriptor::{Component, Descriptor, SSTableId};
pub use format::version::{Format, Version};
pub use halcyon_codec::Effort;
pub use read::keys::{IndexWalk, KeyEntry, Keys};
pub use read::sstable::{OpenOptions, SSTable, ScanOptions};
pub use write::carry::{Carried, Carry, Heat};
pub use write::options::{ExpirationOverflow, WriterOptions};
pub use write::sstable_writer::{SSTableWriter, Sealed};
pub use write::watch::Watch;
