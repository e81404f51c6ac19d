//! Secondary indexes of a table: attached to each memtable and SSTable (`halcyon_sstable::attached`).
//!
//! ```text
//!  write ─► memtable: rows, and the entries of each index ─► flush: SSTable, and a file for each index
//!  compaction: outputs are read once more, before they are committed (`write.rs`)
//!  CREATE INDEX, SSTables from elsewhere: what lacks a file gets one in the background (`build.rs`)
//!  search: places from all memtables and SSTables of the shard, merged (`search.rs`); of vectors, the nearest (`nearest.rs`)
//! ```
//! An index can be searched when all memtables and SSTables have it. That is looked up at each search, so nothing has to be kept for it:
//! a directory that Cassandra wrote, or an SSTable that was put into it, makes the index unavailable until it is built.

mod build;
mod memtable;
mod nearest;
mod progress;
mod search;
mod table_index;
mod write;

pub use build::Indexes;
pub(crate) use memtable::MemtableIndex;
pub use progress::IndexBuild;
pub use search::Candidates;
pub(crate) use table_index::{Attached, TableIndex, files_of, of_table};
