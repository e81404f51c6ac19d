//! An SSTable that serves reads: what every look-up needs is loaded once, everything else comes from a shard's caches
//! or from one direct read of exactly the chunks that are needed.
//!
//! ```text
//!  LiveSSTable (Arc, all shards)            ReadCaches (Rc, one shard)
//!    filter, summary or trie root             keys    (SSTable, key) ─► place of the partition
//!    open files                               chunks  (file, number) ─► decompressed chunk, or page of an index
//!
//!  find: key range ─► Bloom filter ─► keys ─► index through chunks ─► Found
//!  read: Found, slices ─► row index ─► chunks of Data.db ─► fragments
//! ```
//!
//! 1. A point read fetches the chunk that it needs; a read that goes on from chunk to chunk fetches more at a time.
//! 2. Range scans pass the cache by: they use what is there and leave nothing behind.
//! 3. The cache is a shard's own, so nothing in it is locked or counted atomically.

mod cached_data;
mod cached_index;
mod caches;
mod partition;
mod reversed;
mod row_blocks;
mod table;

pub use caches::{CacheSizes, CacheStats, ReadCaches};
pub use partition::{PartitionRows, RangeRows};
pub use reversed::ReversedRows;
pub use table::{Found, LiveSSTable, RangeStart};
