//! Caches that have what is hot of an SSTable before it is read first (`write::carry`).

use std::rc::Rc;

use halcyon_io::yield_now;

use super::caches::{AT_ONCE, FileId, ReadCaches, weight_of};
use super::reader::SSTableReader;
use crate::write::carry::Carried;
use crate::write::spans::CarriedChunk;
use crate::{Component, Format};

impl SSTableReader {
    /// Puts what the writer has carried over into a shard's caches.
    ///
    /// If it `replaces` others that are about to be forgotten, it displaces nothing until then: the chunks get lent the memory, which they
    /// had before they came here. How much is to be taken back ([`ReadCaches::forget`]).
    pub async fn keep_carried(&self, caches: &ReadCaches, carried: Carried, replaces: bool) -> u64 {
        let Carried { keys, data, index } = carried;
        let chunks = || data.iter().chain(&index);
        let lent = if replaces { chunks().map(|chunk| weight_of(&chunk.bytes)).sum() } else { 0 };
        caches.lend(lent);
        let row_index = match self.sstable().descriptor().version.format {
            Format::Big => Component::Index,
            Format::Bti => Component::Rows,
        };
        let index = index.into_iter().map(|page| (FileId::of(self.id(), row_index), page));
        let data = data.into_iter().map(|chunk| (self.data().id(), chunk));
        for (count, (file, CarriedChunk { number, bytes, .. })) in (1..).zip(index.chain(data)) {
            caches.keep_hot_chunk(file, number, Rc::new(bytes));
            if count % AT_ONCE == 0 {
                yield_now().await;
            }
        }
        for (count, (key, entry)) in (1..).zip(keys) {
            caches.keep_key(self.id(), key.hashes, || (key.bytes.into(), entry));
            if count % AT_ONCE == 0 {
                yield_now().await;
            }
        }
        lent
    }
}
