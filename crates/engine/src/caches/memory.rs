//! The memory that the caches of all shards share.
//!
//! 1. Filters, summaries and offsets of chunks stay in memory as long as their SSTables are open; the chunk caches get what those leave.
//!    For without them nothing of the data is found.
//! 2. The positions of partitions have their own budget. A thread makes them when their SSTable becomes live, one SSTable after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::{AccessMode, Disk, ThreadPriority};
use halcyon_sstable::attached::Segments;
use halcyon_sstable::read::Budget;
use halcyon_stream::TableId;

use crate::Options;
use crate::background::Background;
use crate::tables::store::Store;
use crate::version::LiveSSTable;

pub(crate) struct Memory {
    disk: Disk,
    read_mode: AccessMode,
    pub(super) shards: usize,
    /// `chunk_cache_size`, and what of it stays however much the open SSTables take.
    chunks: u64,
    chunks_least: u64,
    /// What the chunk caches of all shards may have now.
    chunk_share: AtomicU64,
    /// Of the positions of partitions, of all shards (`index_summary_capacity`).
    pub(crate) positions: Arc<Budget>,
    /// Makes them.
    walkers: Background,
    /// Of what all flushes and compactions carry on its way into the caches.
    pub(super) carry_room: Arc<Budget>,
    /// Of indexes on vectors.
    pub(crate) segments: Segments,
}

impl Memory {
    pub(crate) fn new(disk: &Disk, options: &Options) -> Arc<Memory> {
        Arc::new(Memory {
            disk: disk.clone(),
            read_mode: options.background_read_mode,
            shards: options.shards,
            chunks: options.chunk_cache_size,
            chunks_least: options.chunk_cache_least,
            chunk_share: options.chunk_cache_size.into(),
            positions: Budget::of(options.index_summary_capacity),
            walkers: Background::start(disk.runtime(), "index", 1, ThreadPriority::Idle),
            carry_room: Budget::of(options.chunk_cache_size / 3 * 2),
            segments: Segments::of_this_machine(),
        })
    }

    /// Leaves the chunk caches what open SSTables do not take.
    pub(crate) fn share(&self, stores: &BTreeMap<TableId, Arc<Store>>) {
        let taken: u64 = stores.values().map(|store| store.version.load().totals().memory()).sum();
        let left = self.chunks.saturating_sub(taken).max(self.chunks_least.min(self.chunks));
        self.chunk_share.store(left, Relaxed);
    }

    /// What the chunk cache of a shard may have.
    pub(crate) fn chunks_of_shard(&self) -> u64 {
        self.chunk_share.load(Relaxed) / self.shards as u64
    }

    /// Makes the positions of partitions of an SSTable some time. Until then a lookup that comes first makes those around it.
    pub(crate) fn walk_index(&self, live: &LiveSSTable) {
        // What is replaced before its turn comes is not kept for it.
        let table = Arc::downgrade(&live.table);
        let (disk, budget, mode) = (self.disk.clone(), self.positions.clone(), self.read_mode);
        self.walkers.later(move || async move {
            if let Some(table) = table.upgrade() {
                // A lookup reports a damaged index.
                let _ = table.make_positions(&disk, mode, &budget).await;
            }
        });
    }
}
