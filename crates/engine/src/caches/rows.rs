//! One shard's row cache: heads of partitions, merged from memtables and SSTables.
//!
//! ```text
//!   partition   Start  Static  r1  [ r2 ]  r3 │ r4 …
//!   head        deletion, static row, rows, ranges │        up to the last row that is kept, or the whole partition
//! ```
//! 1. A table asks for it with `caching = {'rows_per_partition': 'ALL' | N}`; `row_cache_size` is its size, 0: there is none.
//! 2. A read that misses announces that it will fill, reads the head and keeps it. A write takes the partition out, and with
//!    it every announcement, in the same step in which it changes the memtable: what was read before it is not kept.
//! 3. A head holds deletions and expired cells as a read does, so time passes for it as for a read. Flushes and compactions
//!    change where things lie, not what a read finds, so they need not know of it.
//! 4. A head belongs to one definition of its table, and is not found under another. A truncation takes all heads out.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{
    BoundBuf, Fragment, FragmentStream, Mutation, PartitionKey, RangeTombstone, Row, RowBuf,
    TableId,
};
use quick_cache::unsync::Cache;
use quick_cache::{DefaultHashBuilder, Weighter};

use crate::memtable::Partition;
use crate::store::Definition;
use crate::{Error, Result};

/// Key, slot and counts of an entry.
const ENTRY_OVERHEAD: usize = 128;

/// What is kept of a partition.
pub(crate) struct Head {
    key: Vec<u8>,
    definition: Arc<Definition>,
    pub(crate) partition: Partition,
    /// Behind the last row; `None`: this is the whole partition.
    pub(crate) end: Option<BoundBuf>,
    bytes: usize,
}

/// By table and hash; the key itself decides, since hashes can be made to collide.
type Place = (TableId, i64, i64);

fn place(table: TableId, key: &PartitionKey) -> Place {
    (table, key.hashes.0, key.hashes.1)
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Place, Rc<Head>> for ByBytes {
    fn weight(&self, _place: &Place, head: &Rc<Head>) -> u64 {
        (head.bytes + head.key.len() + ENTRY_OVERHEAD) as u64
    }
}

pub(crate) struct RowCache {
    heads: RefCell<Cache<Place, Rc<Head>, ByBytes, DefaultHashBuilder>>,
    /// Reads on their way to fill, each by a number of its own.
    filling: RefCell<HashMap<Place, u64>>,
    next: Cell<u64>,
    capacity: u64,
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

/// The right to keep what is read, unless a write comes first.
pub(crate) struct Filling<'a> {
    cache: &'a RowCache,
    place: Place,
    number: u64,
}

impl RowCache {
    pub(crate) fn new(capacity: u64) -> RowCache {
        let items = usize::try_from(capacity / 1024).unwrap_or(0).max(16);
        RowCache {
            heads: RefCell::new(Cache::with_weighter(items, capacity, ByBytes)),
            filling: RefCell::default(),
            next: Cell::new(0),
            capacity,
            hits: Cell::new(0),
            misses: Cell::new(0),
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.capacity == 0
    }

    /// The most that one head may take.
    pub(crate) fn head_max(&self) -> usize {
        usize::try_from(self.capacity / 4).unwrap_or(usize::MAX)
    }

    pub(crate) fn stats(&self) -> RowCacheStats {
        let heads = self.heads.borrow();
        RowCacheStats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            bytes: heads.weight(),
            entries: heads.len(),
            capacity: self.capacity,
        }
    }

    pub(crate) fn get(&self, definition: &Arc<Definition>, key: &PartitionKey) -> Option<Rc<Head>> {
        let heads = self.heads.borrow();
        let found = heads
            .get(&place(definition.table.id, key))
            .filter(|head| Arc::ptr_eq(&head.definition, definition) && head.key == key.bytes);
        let count = if found.is_some() { &self.hits } else { &self.misses };
        count.set(count.get() + 1);
        found.cloned()
    }

    /// `None` if another read fills this place already.
    pub(crate) fn begin(&self, table: TableId, key: &PartitionKey) -> Option<Filling<'_>> {
        let place = place(table, key);
        let mut filling = self.filling.borrow_mut();
        if filling.contains_key(&place) {
            return None;
        }
        let number = self.next.replace(self.next.get() + 1);
        filling.insert(place, number);
        Some(Filling { cache: self, place, number })
    }

    /// A write changes the partition.
    pub(crate) fn forget(&self, table: TableId, key: &PartitionKey) {
        if self.is_off() {
            return;
        }
        let place = place(table, key);
        self.heads.borrow_mut().remove(&place);
        self.filling.borrow_mut().remove(&place);
    }

    /// Everything of the table is changed, or gone.
    pub(crate) fn forget_table(&self, table: TableId) {
        self.heads.borrow_mut().retain(|place, _| place.0 != table);
        self.filling.borrow_mut().retain(|place, _| place.0 != table);
    }

    /// The partitions that are there.
    pub(crate) fn keys(&self) -> Vec<(TableId, Vec<u8>)> {
        self.heads.borrow().iter().map(|(place, head)| (place.0, head.key.clone())).collect()
    }
}

impl Filling<'_> {
    pub(crate) fn keep(self, head: Rc<Head>) {
        if self.cache.filling.borrow().get(&self.place) == Some(&self.number) {
            self.cache.heads.borrow_mut().insert(self.place, head);
        }
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut filling = self.cache.filling.borrow_mut();
        if filling.get(&self.place) == Some(&self.number) {
            filling.remove(&self.place);
        }
    }
}

/// Gathers a head from the stream of its partition.
struct Gathering {
    mutation: Mutation,
    open: Option<(BoundBuf, DeletionTime)>,
    bytes: usize,
}

impl Gathering {
    fn row(&mut self, row: Row<'_>) -> RowBuf {
        let mut copy = RowBuf::new();
        copy.copy_from(row);
        self.bytes += copy.bytes.len() + size_of::<RowBuf>();
        copy
    }

    fn close(&mut self, end: BoundBuf) {
        if let Some((start, time)) = self.open.take() {
            self.bytes += start.serialized.len() + end.serialized.len();
            self.mutation.range_tombstones.push(RangeTombstone { start, end, time });
        }
    }
}

pub(crate) enum Gathered {
    Head(Rc<Head>),
    /// There is no such partition.
    Nothing,
    TooLarge,
}

/// Reads the head of a partition: as many live rows as `rows`, with everything between them, if that takes no more than `most`
/// bytes.
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
    let mutation = Mutation::new(definition.table.id, layout, key.clone());
    let mut gathering = Gathering { mutation, open: None, bytes: 0 };
    let (mut live, mut end, mut any) = (0, None, false);
    while end.is_none() && stream.advance().await? {
        any = true;
        match stream.fragment() {
            Fragment::Start(start) => gathering.mutation.deletion = start.deletion,
            Fragment::Static(row) => {
                gathering.mutation.static_row = Some(gathering.row(row));
            }
            Fragment::Row(row) => {
                live += usize::from(is_live(&row, now));
                let copy = gathering.row(row);
                if live >= rows {
                    let serialized = copy.row().clustering.to_vec();
                    end = Some(BoundBuf { kind: BoundKind::InclEnd, count, serialized });
                }
                gathering.mutation.rows.push(copy);
            }
            Fragment::Marker(marker) => {
                let bound = |kind| BoundBuf {
                    kind,
                    count: marker.position.count,
                    serialized: marker.position.serialized.to_vec(),
                };
                gathering.close(bound(marker.position.kind.as_close()));
                let open = marker.open;
                gathering.open = open.map(|time| (bound(marker.position.kind.as_open()), time));
            }
            Fragment::End => break,
        }
        if gathering.bytes > most {
            return Ok(Gathered::TooLarge);
        }
    }
    if !any {
        return Ok(Gathered::Nothing);
    }
    if let Some(end) = &end {
        gathering.close(end.clone());
    }
    let (partition, bytes) = Partition::of(gathering.mutation)?;
    let (key, definition) = (key.bytes.clone(), definition.clone());
    Ok(Gathered::Head(Rc::new(Head { key, definition, partition, end, bytes })))
}

/// `Row.hasLiveData`; what deletions shadow is not in the stream.
fn is_live(row: &Row<'_>, now: u32) -> bool {
    let liveness = &row.liveness;
    let expired = liveness.is_expiring() && now >= liveness.local_expiration_time;
    (!liveness.is_empty() && !expired) || row.cells.iter().any(|cell| cell.is_live(now))
}
