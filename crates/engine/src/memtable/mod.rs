//! Memtables: the writes since the last flush, sorted, in memory.
//!
//! ```text
//!   Slot ── open:   Memtable, changed by its shard alone      BTreeMap (token, key) ─► Partition
//!        └─ sealed: Arc<Memtable>, read by shard and flush                             rows, ranges, static row
//! ```
//! 1. A write pins the memtable while its log record becomes durable, then changes it.
//! 2. A frozen memtable takes no new pins; when the last pin is dropped it is sealed, and never changes again.
//! 3. A read clones one partition at a time: it sees all of a mutation or none of it (`partition.rs`, `leaves.rs`).
//! 4. A large mutation is merged with a copy of its partition by another thread; then the copy takes the partition's place (`apart.rs`).
//! 5. Two writes to one cell are reconciled at once; cells that a deletion shadows stay until they are read or flushed, shards of counters
//!    until the next write to their row.

mod apart;
mod collect;
mod key;
mod leaves;
mod partition;
mod ranges;
mod rows;
mod slot;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use halcyon_commitlog::Hold;
use halcyon_schema::catalog::Table;
use halcyon_stream::{Layout, MergeError, Mutation, PartitionKey, RowBuf, RowMerger};

use crate::columns::ColumnMap;
use crate::index::{self, MemtableIndex, TableIndex};
pub(crate) use apart::{Apart, Merged};
pub(crate) use collect::Collector;
pub(crate) use key::RingBound;
use key::{Key, RingPosition};
pub(crate) use partition::Partition;
pub(crate) use slot::{Pin, Slot};
pub(crate) use stream::MemtableStream;

/// Bytes of which an index makes terms in some 500 µs.
const INDEXED: usize = 8 << 10;

/// The memtable of one table on one shard.
pub(crate) struct Memtable {
    table: Arc<Table>,
    partitions: BTreeMap<Key, Partition>,
    /// Of the table's indexes.
    indexes: Vec<MemtableIndex>,
    merger: RowMerger,
    bytes: usize,
    min_timestamp: i64,
    /// Whether a partition has a row that is to be merged apart.
    has_wide: bool,
    /// Of the logs that have its mutations in records of several shards, by shard and segment.
    holds: BTreeMap<(u32, u64), Hold>,
}

impl Memtable {
    pub(crate) fn new(table: Arc<Table>) -> Memtable {
        let merger = RowMerger::new(table.layout.clone());
        let indexes = index::of_table(&table).into_iter().map(MemtableIndex::new).collect();
        Memtable {
            table,
            partitions: BTreeMap::new(),
            indexes,
            merger,
            bytes: 0,
            min_timestamp: i64::MAX,
            has_wide: false,
            holds: BTreeMap::new(),
        }
    }

    pub(crate) fn hold(&mut self, hold: &Hold) {
        self.holds.entry((hold.shard, hold.segment)).or_insert_with(|| hold.clone());
    }

    /// Whose logs it holds.
    pub(crate) fn held_shards(&self) -> BTreeSet<usize> {
        self.holds.keys().map(|(shard, _)| *shard as usize).collect()
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn indexes(&self) -> &[MemtableIndex] {
        &self.indexes
    }

    /// What it has of an index; `None` if it was made before the index.
    pub(crate) fn index(&self, index: &TableIndex) -> Option<&MemtableIndex> {
        self.indexes
            .iter()
            .find(|own| own.of.name == index.name && own.of.fingerprint == index.fingerprint)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The oldest timestamp; `i64::MAX` if it is empty.
    pub(crate) fn min_timestamp(&self) -> i64 {
        self.min_timestamp
    }

    pub(crate) fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.partitions.iter().map(|(key, partition)| (&key.0, partition))
    }

    pub(crate) fn partition(&self, key: &PartitionKey) -> Option<&Partition> {
        self.partitions.get(key as &dyn RingPosition)
    }

    /// The first partition after a bound.
    pub(crate) fn first_behind(&self, edge: &RingBound) -> Option<(&PartitionKey, &Partition)> {
        let mut behind =
            self.partitions.range::<dyn RingPosition, _>((edge.bound(), Bound::Unbounded));
        behind.next().map(|(key, partition)| (&key.0, partition))
    }

    /// Merges another memtable of the same table into this one.
    pub(crate) fn absorb(&mut self, other: Memtable) -> Result<(), MergeError> {
        let (table, layout) = (self.table.id, self.table.layout.clone());
        for (Key(key), partition) in other.partitions {
            let mut mutation = Mutation::new(table, layout.clone(), key);
            partition.write_to(&mut mutation);
            self.apply(mutation)?;
        }
        Ok(())
    }

    /// Whether the mutation changes a row that is to be merged apart.
    pub(crate) fn is_wide(&self, mutation: &Mutation) -> bool {
        let clusterings = &self.table.layout.clusterings;
        let of = |partition: &Partition| partition.is_wide(mutation, clusterings);
        self.has_wide && self.partition(&mutation.key).is_some_and(of)
    }

    /// Whether what indexes make of the mutation's values takes long.
    pub(crate) fn indexes_much(&self, mutation: &Mutation) -> bool {
        let of_row = |row: &RowBuf| row.bytes.len();
        let rows = mutation.static_row.iter().chain(&mutation.rows);
        !self.indexes.is_empty()
            && rows.map(of_row).sum::<usize>().saturating_mul(self.indexes.len()) > INDEXED
    }

    /// Applies a mutation of any layout of the table; cells of columns that the table no longer has are dropped.
    pub(crate) fn apply(&mut self, mut mutation: Mutation) -> Result<(), MergeError> {
        to_layout(&self.table.layout, &mut mutation);
        if mutation.is_empty() {
            return Ok(());
        }
        self.min_timestamp = self.min_timestamp.min(oldest(&mutation));
        let mut grown: usize = self.indexes.iter_mut().map(|index| index.add(&mutation)).sum();
        grown += self.size_of_key(&mutation.key);
        let key = std::mem::replace(&mut mutation.key, PartitionKey::empty());
        let partition = self.partitions.entry(Key(key)).or_default();
        let applied = partition.apply(mutation, &self.table.layout.clusterings, &mut self.merger);
        self.has_wide |= partition.has_wide();
        self.bytes = (self.bytes + grown).saturating_add_signed(*applied.as_ref().unwrap_or(&0));
        applied.map(drop)
    }

    /// What a new partition takes besides its rows; 0 if it is there.
    fn size_of_key(&self, key: &PartitionKey) -> usize {
        match self.partitions.contains_key(key as &dyn RingPosition) {
            true => 0,
            false => size_of::<Key>() + size_of::<Partition>() + key.bytes.len() + 32,
        }
    }
}

/// Drops the cells of columns that a layout does not have.
fn to_layout(layout: &Arc<Layout>, mutation: &mut Mutation) {
    if !Arc::ptr_eq(&mutation.layout, layout) && mutation.layout != *layout {
        ColumnMap::between(&mutation.layout, layout).map_mutation(mutation);
    }
}

/// The oldest timestamp of a mutation's data. Deletions do not count: purging one tombstone cannot revive another.
pub(crate) fn oldest(mutation: &Mutation) -> i64 {
    let rows = mutation.static_row.iter().chain(&mutation.rows);
    let of_row = |row: &RowBuf| {
        let liveness = row.parts.liveness;
        let of_liveness = if liveness.is_empty() { i64::MAX } else { liveness.timestamp };
        row.parts.cells.iter().fold(of_liveness, |oldest, cell| oldest.min(cell.timestamp))
    };
    rows.map(of_row).min().unwrap_or(i64::MAX)
}
