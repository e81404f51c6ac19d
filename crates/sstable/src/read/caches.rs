//! One shard's caches of SSTable contents, each with a fixed budget.
//!
//! Entries that are read repeatedly stay, however many others are read once ([`Cache`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::yield_now;

use super::budget::Budget;
use super::cache::Cache;
use super::entry::{PartitionEntry, RowIndexRef};
use crate::Component;
use crate::data::compress::Decompressor;

/// Budgets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSizes {
    pub chunks: u64,
    pub keys: u64,
}

/// Since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub chunk_hits: u64,
    pub chunk_misses: u64,
    pub chunk_bytes: u64,
    pub chunk_entries: usize,
    pub chunk_capacity: u64,
    pub key_hits: u64,
    pub key_misses: u64,
    pub key_bytes: u64,
    pub key_entries: usize,
    pub key_capacity: u64,
    /// Bytes of Data.db and indexes fetched from the device by reads.
    pub bytes_read: u64,
    pub reads: u64,
}

/// A component of an SSTable, unique as long as the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId(u64);

impl FileId {
    /// `sstable` is the id of a reader.
    pub(crate) fn of(sstable: u64, component: Component) -> FileId {
        let number = match component {
            Component::Index => 1,
            Component::Rows => 2,
            Component::Partitions => 3,
            // Data.db: no other component is cached.
            _ => 0,
        };
        FileId(4 * sstable + number)
    }

    fn all_of(sstable: u64) -> impl Iterator<Item = FileId> {
        (0..4).map(move |number| FileId(4 * sstable + number))
    }
}

/// Decompressed bytes of a chunk, or a page of an index. Boxed, so that bytes from elsewhere become one without a copy, and so that
/// 4 KiB take 4 KiB: with the counts before them they would take a fifth more.
pub(crate) type Chunk = Rc<Box<[u8]>>;

/// The memory of an entry beside its bytes: key, slot, counts.
const ENTRY_OVERHEAD: u64 = 64;

pub(super) fn weight_of(chunk: &[u8]) -> u64 {
    chunk.len() as u64 + ENTRY_OVERHEAD
}

const MAX_DECOMPRESSORS: usize = 32;

/// Buffers of chunks that were displaced, for those that displace others next.
const SPARE_MAX: usize = 8;

/// What is removed, put in or displaced between two yields: some 20 µs.
pub(super) const AT_ONCE: usize = 16;
const BYTES_AT_ONCE: u64 = AT_ONCE as u64 * 4096;
/// Of the key cache.
const KEY_BYTES_AT_ONCE: u64 = AT_ONCE as u64 * 256;

type Chunks = Cache<FileId, u64, Chunk>;

/// An SSTable's partitions by the hashes of their keys; the key itself decides, since hashes can be made to collide.
type Keys = Cache<u64, (i64, i64), CachedKey>;

#[derive(Debug, Clone)]
struct CachedKey {
    key: Box<[u8]>,
    entry: PartitionEntry,
}

struct Inner {
    chunks: RefCell<Chunks>,
    spare: RefCell<Vec<Box<[u8]>>>,
    keys: RefCell<Keys>,
    positions: Arc<Budget>,
    /// By codec; one that needs a dictionary belongs to its SSTable.
    decompressors: RefCell<HashMap<(u64, String), Decompressor>>,
    hits: [Cell<u64>; 4],
    read: [Cell<u64>; 2],
}

/// A handle; clones are the same caches.
#[derive(Clone)]
pub struct ReadCaches {
    inner: Rc<Inner>,
    /// Whether the key cache is used (`caching = {'keys': …}`).
    keys: bool,
    /// Whether requests are counted.
    counts: bool,
}

const CHUNK_HIT: usize = 0;
const CHUNK_MISS: usize = 1;
const KEY_HIT: usize = 2;
const KEY_MISS: usize = 3;

impl ReadCaches {
    /// `positions` is common to all threads.
    pub fn new(sizes: CacheSizes, positions: Arc<Budget>) -> ReadCaches {
        let inner = Rc::new(Inner {
            chunks: RefCell::new(Cache::new(sizes.chunks, 4096)),
            spare: RefCell::default(),
            keys: RefCell::new(Cache::new(sizes.keys, 192)),
            positions,
            decompressors: RefCell::default(),
            hits: Default::default(),
            read: Default::default(),
        });
        ReadCaches { inner, keys: true, counts: true }
    }

    /// Small caches for one pass over an SSTable, as tools make it.
    pub fn of_one_pass() -> ReadCaches {
        let sizes = CacheSizes { chunks: 1 << 20, keys: 0 };
        ReadCaches::new(sizes, Budget::of(0)).without_keys()
    }

    /// The same caches without the key cache.
    pub fn without_keys(&self) -> ReadCaches {
        ReadCaches { keys: false, ..self.clone() }
    }

    /// The same caches for reads that only warm them: hits and misses are not counted.
    pub fn uncounted(&self) -> ReadCaches {
        ReadCaches { counts: false, ..self.clone() }
    }

    pub(super) fn positions_budget(&self) -> &Arc<Budget> {
        &self.inner.positions
    }

    /// Shows the key cache's partitions that have no row index: SSTable, key, position in the data.
    pub fn positions(&self, mut see: impl FnMut(u64, &[u8], u64)) {
        for ((sstable, _), cached) in self.inner.keys.borrow().iter() {
            if cached.entry.rows == RowIndexRef::None {
                see(*sstable, &cached.key, cached.entry.data_position);
            }
        }
    }

    pub fn stats(&self) -> CacheStats {
        let (chunks, keys) = (self.inner.chunks.borrow(), self.inner.keys.borrow());
        let count = |which: usize| self.inner.hits.get(which).map_or(0, Cell::get);
        CacheStats {
            chunk_hits: count(CHUNK_HIT),
            chunk_misses: count(CHUNK_MISS),
            chunk_bytes: chunks.weight(),
            chunk_entries: chunks.len(),
            chunk_capacity: chunks.capacity(),
            key_hits: count(KEY_HIT),
            key_misses: count(KEY_MISS),
            key_bytes: keys.weight(),
            key_entries: keys.len(),
            key_capacity: keys.capacity(),
            reads: self.device_reads(),
            bytes_read: self.inner.read[1].get(),
        }
    }

    /// How often the device was read, since the start.
    pub fn device_reads(&self) -> u64 {
        self.inner.read[0].get()
    }

    fn count(&self, which: usize) {
        if let Some(counter) = self.inner.hits.get(which).filter(|_| self.counts) {
            counter.set(counter.get() + 1);
        }
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        let [reads, total] = &self.inner.read;
        reads.set(reads.get() + 1);
        total.set(total.get() + bytes as u64);
    }

    pub(crate) fn chunk(&self, file: FileId, number: u64) -> Option<Chunk> {
        let chunk = self.inner.chunks.borrow().get(&(file, number)).cloned();
        self.count(if chunk.is_some() { CHUNK_HIT } else { CHUNK_MISS });
        chunk
    }

    /// The same without counting as a use, so it does not delay eviction.
    pub(super) fn peek_chunk(&self, file: FileId, number: u64) -> Option<Chunk> {
        self.inner.chunks.borrow().peek(&(file, number)).cloned()
    }

    pub(crate) fn keep_chunk(&self, file: FileId, number: u64, chunk: Chunk) {
        let weight = weight_of(&chunk);
        let displaced = self.inner.chunks.borrow_mut().insert((file, number), chunk, weight);
        self.spare(displaced);
    }

    /// A chunk that is read often: it does not have to prove that first, as one that was read once does.
    pub(super) fn keep_hot_chunk(&self, file: FileId, number: u64, chunk: Chunk) {
        let weight = weight_of(&chunk);
        let displaced = self.inner.chunks.borrow_mut().insert_used((file, number), chunk, weight);
        self.spare(displaced);
    }

    fn spare(&self, displaced: Option<Chunk>) {
        if let Some(buffer) = displaced.and_then(|chunk| Rc::try_unwrap(chunk).ok()) {
            let mut spare = self.inner.spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(buffer);
            }
        }
    }

    /// A buffer for a chunk, with any content.
    pub(super) fn buffer(&self, length: usize) -> Box<[u8]> {
        let spare = self.inner.spare.borrow_mut().pop();
        spare.filter(|buffer| buffer.len() == length).unwrap_or_else(|| vec![0; length].into())
    }

    /// Gives the chunks another capacity.
    pub async fn fit_chunks(&self, capacity: u64) {
        let now = self.inner.chunks.borrow().capacity();
        if capacity > now {
            self.inner.chunks.borrow_mut().set_capacity(capacity);
        }
        let shrink = |chunks: &mut Chunks, bytes| chunks.set_capacity(chunks.capacity() - bytes);
        self.take_back(now.saturating_sub(capacity), shrink).await;
    }

    /// Gives the keys another capacity, a little between two yields.
    pub async fn fit_keys(&self, capacity: u64) {
        loop {
            let now = self.inner.keys.borrow().capacity();
            let step = capacity.max(now.saturating_sub(KEY_BYTES_AT_ONCE));
            self.inner.keys.borrow_mut().set_capacity(step);
            if step == capacity {
                return;
            }
            yield_now().await;
        }
    }

    /// Empties the cache of keys.
    pub async fn forget_keys(&self) {
        let capacity = self.inner.keys.borrow().capacity();
        self.fit_keys(0).await;
        self.fit_keys(capacity).await;
    }

    /// Takes memory from the chunks, a little between two yields.
    async fn take_back(&self, bytes: u64, take: impl Fn(&mut Chunks, u64)) {
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(BYTES_AT_ONCE);
            take(&mut self.inner.chunks.borrow_mut(), bytes);
            left -= bytes;
            yield_now().await;
        }
    }

    /// Lends the chunks so much memory, until an SSTable is forgotten for it.
    pub(super) fn lend(&self, bytes: u64) {
        self.inner.chunks.borrow_mut().lend(bytes);
    }

    /// Removes what is cached of SSTables that are not read any more, and takes back what was lent for those that have replaced them.
    pub async fn forget(&self, sstables: &[u64], lent: u64) {
        for sstable in sstables {
            for file in FileId::all_of(*sstable) {
                while self.inner.chunks.borrow_mut().forget(file, AT_ONCE) {
                    yield_now().await;
                }
            }
            while self.inner.keys.borrow_mut().forget(*sstable, AT_ONCE) {
                yield_now().await;
            }
        }
        self.take_back(lent, Chunks::give_back).await;
    }

    /// The entry of a key that was found before.
    pub(super) fn key(
        &self,
        sstable: u64,
        hashes: (i64, i64),
        key: &[u8],
    ) -> Option<PartitionEntry> {
        if !self.keys {
            return None;
        }
        let keys = self.inner.keys.borrow();
        let cached = keys.get(&(sstable, hashes)).filter(|cached| *cached.key == *key);
        self.count(if cached.is_some() { KEY_HIT } else { KEY_MISS });
        cached.map(|cached| cached.entry.clone())
    }

    pub(super) fn keep_key(
        &self,
        sstable: u64,
        hashes: (i64, i64),
        found: impl FnOnce() -> (Box<[u8]>, PartitionEntry),
    ) {
        if !self.keys {
            return;
        }
        let (key, entry) = found();
        let weight = (key.len() + size_of::<CachedKey>()) as u64 + ENTRY_OVERHEAD;
        let cached = CachedKey { key, entry };
        self.inner.keys.borrow_mut().insert((sstable, hashes), cached, weight);
    }

    /// Runs `use_it` with the decompressor of a codec, made on first use.
    pub(super) fn with_decompressor<T>(
        &self,
        codec: &(u64, String),
        make: impl FnOnce() -> Result<Decompressor, String>,
        use_it: impl FnOnce(&mut Decompressor) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut decompressors = self.inner.decompressors.borrow_mut();
        if let Some(decompressor) = decompressors.get_mut(codec) {
            return use_it(decompressor);
        }
        // Decompressors with dictionaries of removed SSTables are removed too.
        if decompressors.len() >= MAX_DECOMPRESSORS {
            decompressors.clear();
        }
        use_it(decompressors.entry(codec.clone()).or_insert(make()?))
    }
}
