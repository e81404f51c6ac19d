//! Caches that have what is hot of an SSTable before it is read first (`write::carry`).

use std::rc::Rc;

use halcyon_io::yield_now;

use super::caches::{FileId, ReadCaches};
use super::reader::SSTableReader;
use crate::write::carry::Carried;
use crate::write::spans::CarriedChunk;
use crate::{Component, Format};

/// What is put into the caches between two yields: some 20 µs.
const AT_ONCE: usize = 16;

impl SSTableReader {
    /// Puts what the writer has carried over into a shard's caches.
    pub async fn keep_carried(&self, caches: &ReadCaches, carried: Carried) {
        let Carried { keys, data, index } = carried;
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
    }
}
