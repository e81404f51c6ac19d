//! Apache Cassandra's SSTables: readers for BIG `ma`…`pa` and BTI `da`, `ea`; writers for `nb`, `oa`, `pa`, `da`, `ea`.
#![forbid(unsafe_code)]
#![allow(async_fn_in_trait, reason = "reads stay on one thread")]

pub mod big;
pub mod bti;
pub mod components;
mod data;
pub mod deletion_time;
mod error;
mod index_files;
pub mod live;
mod lookup;
pub mod row_index;
mod sealing;
mod sstable;
pub mod verify;
mod writer;

pub use components::descriptor::{Component, Descriptor, SSTableId};
pub use components::version::{Format, Version};
pub use data::Bases;
pub use data::scanner::SSTableScanner;
pub use error::{Error, Result};
pub use lookup::{Index, KeyEntry, Keys, Lookup};
pub use sstable::{OpenOptions, SSTable, ScanOptions};
pub use writer::{SSTableWriter, Sealed, WriterOptions};
