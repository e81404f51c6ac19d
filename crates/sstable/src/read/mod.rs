//! Reading of SSTables, for the node and for the tools alike.
//!
//! An [`SSTable`](crate::SSTable) is open for scans: its small components are in memory. An [`SSTableReader`] finds partitions too: it
//! loads filter and index summary once; everything else comes from a shard's caches, or from one direct read of exactly
//! the chunks that are needed. Tools walk an index with an [`IndexWalk`](crate::IndexWalk), which needs neither filter nor summary.
//!
//! ```text
//!  SSTableReader (Arc, all shards)          ReadCaches (Rc, one shard)
//!    filter, summary or trie root             keys    (SSTable, key) ─► entry of the partition
//!    positions between samples
//!    open files                               chunks  (file, number) ─► decompressed chunk, or page of an index
//!
//!  may_contain: key range ─► Bloom filter
//!  find:        key cache ─► positions, or index through chunks ─► PartitionEntry
//!  rows:        PartitionEntry, slices ─► row index ─► chunks of Data.db ─► fragments
//! ```
//!
//! 1. A point read fetches the chunk that it needs; a read that continues from chunk to chunk fetches more at a time.
//! 2. Range scans use the chunk cache but do not fill it: a scan would evict what point reads need.
//! 3. A cache belongs to one shard, so nothing in it is locked or counted atomically. It is not borrowed across an `await`: a shard
//!    may look into several SSTables at once.

mod budget;
mod cache;
mod cached_data;
pub(crate) mod cached_index;
pub(crate) mod caches;
mod carried;
mod data_file;
pub(crate) mod entries;
pub(crate) mod entry;
pub(crate) mod index_files;
pub(crate) mod keys;
mod partition;
mod positions;
mod range_start;
mod reader;
mod reversed;
mod row_blocks;
pub(crate) mod sstable;
pub(crate) mod summary_search;
mod walked;

pub use budget::Budget;
pub use cache::Cache;
pub use caches::{CacheSizes, CacheStats, ReadCaches};
pub use entry::PartitionEntry;
pub use index_files::IndexSources;
pub use partition::{PartitionRows, RangeRows};
pub use range_start::RangeStart;
pub use reader::{ReaderMemory, SSTableReader};
pub use reversed::ReversedRows;
