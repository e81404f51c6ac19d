//! The row cache of one shard: heads of partitions, merged from memtables and SSTables.
//!
//! ```text
//!   partition   Start  Static  r1  [ r2 ]  r3 │ r4 …
//!   head        deletion, static row, rows, ranges │        up to the last cached row, or the whole partition
//! ```
//! 1. A table enables it with `caching = {'rows_per_partition': 'ALL' | N}`; `row_cache_size` is its size, 0 disables it.
//! 2. A read that misses registers a pending fill, reads the head and caches it. A write removes the partition and its pending fills
//!    in the same step in which it changes the memtable, so that no head from before the write is cached.
//! 3. A head keeps tombstones and expired cells, because expiry is decided at each read. Flushes and compactions do not change the result
//!    of a read, so they need not invalidate the cache.
//! 4. A head belongs to one definition of its table and is not found under another. A truncation removes all heads.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::yield_now;
use halcyon_model::BoundKind;
use halcyon_model::clustering::PositionBuf;
use halcyon_sstable::read::Cache;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Row, TableId};

use crate::definition::Definition;
use crate::memtable::{Collector, Partition};
use crate::{Error, Result};

/// Bytes of an entry's key, slot and counts.
const ENTRY_OVERHEAD: usize = 128;

/// The cached head of a partition.
pub(crate) struct Head {
    key: Vec<u8>,
    definition: Arc<Definition>,
    pub(crate) partition: Partition,
    /// The bound after the last row; `None` if the head is the whole partition.
    pub(crate) end: Option<PositionBuf>,
    bytes: usize,
}

/// The key is compared too: clients can choose keys whose hashes collide.
type Hashes = (i64, i64);
type CacheKey = (TableId, Hashes);

fn cache_key(table: TableId, key: &PartitionKey) -> CacheKey {
    (table, key.hashes)
}

pub(crate) struct RowCache {
    heads: RefCell<Cache<TableId, Hashes, Rc<Head>>>,
    /// Pending fills, each with a unique number.
    filling: RefCell<HashMap<CacheKey, u64>>,
    next: Cell<u64>,
    capacity: Cell<u64>,
    hits: Cell<u64>,
    misses: Cell<u64>,
}

/// Since the start, of one shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCacheStats {
    pub hits: u64,
    pub misses: u64,
    pub bytes: u64,
    pub entries: usize,
    pub capacity: u64,
}

/// The right to cache a head, unless a write to the partition comes first.
pub(crate) struct PendingFill<'a> {
    cache: &'a RowCache,
    entry: CacheKey,
    number: u64,
}

impl RowCache {
    pub(crate) fn new(capacity: u64) -> RowCache {
        RowCache {
            heads: RefCell::new(Cache::new(capacity, 1024)),
            filling: RefCell::default(),
            next: Cell::new(0),
            capacity: Cell::new(capacity),
            hits: Cell::new(0),
            misses: Cell::new(0),
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.capacity.get() == 0
    }

    /// The largest size of a head.
    pub(crate) fn head_max(&self) -> usize {
        usize::try_from(self.capacity.get() / 4).unwrap_or(usize::MAX)
    }

    /// Gives the cache another capacity, a little between two yields.
    pub(crate) async fn fit(&self, capacity: u64) {
        /// Some heads of a few rows.
        const BYTES_AT_ONCE: u64 = 64 << 10;
        while self.capacity.get() != capacity {
            let step = capacity.max(self.capacity.get().saturating_sub(BYTES_AT_ONCE));
            self.capacity.set(step);
            self.heads.borrow_mut().set_capacity(step);
            yield_now().await;
        }
    }

    pub(crate) fn stats(&self) -> RowCacheStats {
        let heads = self.heads.borrow();
        RowCacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            bytes: heads.weight(),
            entries: heads.len(),
            capacity: self.capacity.get(),
        }
    }

    pub(crate) fn get(&self, definition: &Arc<Definition>, key: &PartitionKey) -> Option<Rc<Head>> {
        let heads = self.heads.borrow();
        let found = heads
            .get(&cache_key(definition.table.id, key))
            .filter(|head| Arc::ptr_eq(&head.definition, definition) && head.key == key.bytes);
        let count = if found.is_some() { &self.hits } else { &self.misses };
        count.set(count.get() + 1);
        found.cloned()
    }

    /// `None` if another read is filling this entry.
    pub(crate) fn begin(&self, table: TableId, key: &PartitionKey) -> Option<PendingFill<'_>> {
        let entry = cache_key(table, key);
        let mut filling = self.filling.borrow_mut();
        if filling.contains_key(&entry) {
            return None;
        }
        let number = self.next.replace(self.next.get() + 1);
        filling.insert(entry, number);
        Some(PendingFill { cache: self, entry, number })
    }

    /// Removes the partition, because a write changes it.
    pub(crate) fn forget(&self, table: TableId, key: &PartitionKey) {
        if self.is_off() {
            return;
        }
        let entry = cache_key(table, key);
        self.heads.borrow_mut().remove(&entry);
        self.filling.borrow_mut().remove(&entry);
    }

    /// Removes all partitions of the table.
    pub(crate) fn forget_table(&self, table: TableId) {
        self.heads.borrow_mut().forget(table, usize::MAX);
        self.filling.borrow_mut().retain(|entry, _| entry.0 != table);
    }

    /// The cached partitions.
    pub(crate) fn keys(&self) -> Vec<(TableId, Vec<u8>)> {
        self.heads.borrow().iter().map(|(entry, head)| (entry.0, head.key.clone())).collect()
    }
}

impl PendingFill<'_> {
    pub(crate) fn keep(self, head: Rc<Head>) {
        if self.cache.filling.borrow().get(&self.entry) == Some(&self.number) {
            let weight = (head.bytes + head.key.len() + ENTRY_OVERHEAD) as u64;
            self.cache.heads.borrow_mut().insert(self.entry, head, weight);
        }
    }
}

impl Drop for PendingFill<'_> {
    fn drop(&mut self) {
        let mut filling = self.cache.filling.borrow_mut();
        if filling.get(&self.entry) == Some(&self.number) {
            filling.remove(&self.entry);
        }
    }
}

pub(crate) enum Gathered {
    Head(Rc<Head>),
    /// The partition does not exist.
    Nothing,
    TooLarge,
}

/// Reads the head of a partition: `rows` live rows and the tombstones between them, unless that exceeds `most` bytes.
pub(crate) async fn gather<S>(
    definition: &Arc<Definition>,
    key: &PartitionKey,
    stream: &mut S,
    (rows, most): (usize, usize),
    now: u32,
) -> Result<Gathered>
where
    S: FragmentStream,
    Error: From<S::Error>,
{
    let layout = definition.table.layout.clone();
    let count = layout.clusterings.len();
    let mut collector = Collector::new(definition.table.id, layout, key.clone());
    let (mut live, mut end, mut any) = (0, None, false);
    while end.is_none() && stream.advance().await? {
        any = true;
        let fragment = stream.fragment();
        collector.take(fragment);
        match fragment {
            Fragment::Row(row) => live += usize::from(is_live(&row, now)),
            Fragment::End => break,
            _ => {}
        }
        if live >= rows {
            end = collector.last_row().map(|row| {
                let serialized = row.row().clustering.to_vec();
                PositionBuf { kind: BoundKind::InclEnd, count, serialized }
            });
        }
        if collector.bytes() > most {
            return Ok(Gathered::TooLarge);
        }
    }
    if !any {
        return Ok(Gathered::Nothing);
    }
    if let Some(end) = &end {
        collector.close(end.clone());
    }
    let (partition, bytes) = Partition::of(collector.finish())?;
    let (key, definition) = (key.bytes.clone(), definition.clone());
    Ok(Gathered::Head(Rc::new(Head { key, definition, partition, end, bytes })))
}

/// `Row.hasLiveData`; the stream has no shadowed cells.
fn is_live(row: &Row<'_>, now: u32) -> bool {
    let liveness = &row.liveness;
    let expired = liveness.is_expiring() && now >= liveness.local_expiration_time;
    (!liveness.is_empty() && !expired) || row.cells.iter().any(|cell| cell.is_live(now))
}
