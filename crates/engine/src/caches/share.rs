//! What finds data has its memory before the data: filters, summaries and offsets of chunks are held as long as their SSTables are open.

use std::sync::atomic::Ordering::Relaxed;

use crate::engine::Engine;
use crate::shard::Shard;

impl Engine {
    /// Leaves the chunk caches what those do not take.
    pub(crate) fn share_memory(&self) {
        let stores = self.stores.load();
        let taken: u64 = stores.values().map(|store| store.version.load().totals().memory).sum();
        let (all, least) = (self.options.chunk_cache_size, self.options.chunk_cache_least);
        self.chunk_share.store(all.saturating_sub(taken).max(least.min(all)), Relaxed);
    }

    /// What the chunk cache of a shard may have.
    pub(crate) fn chunks_of_shard(&self) -> u64 {
        self.chunk_share.load(Relaxed) / self.shard_count() as u64
    }
}

impl Shard {
    pub(crate) async fn fit_caches(&self) {
        self.caches.fit_chunks(self.engine().chunks_of_shard()).await;
    }
}
