//! One core's part of all tables: memtables, commit log, locks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use halcyon_commitlog::{CommitLog, ReplayPosition};
use halcyon_io::clock::{Instant, nanos};
use halcyon_io::{Disk, Notify, yield_now};
use halcyon_model::request::BatchKind;
use halcyon_model::time::Timestamps;
use halcyon_schema::catalog::Table;
use halcyon_sstable::read::{CacheSizes, CacheStats, ReadCaches};
use halcyon_stream::{PartitionKey, TableId};

use crate::caches::rows::{RowCache, RowCacheStats};
use crate::current::Current;
use crate::flush::Flusher;
use crate::flush::pace::Filling;
use crate::memtable::Slot;
use crate::metrics::samplers::Sampler;
use crate::metrics::shards::ShardMetrics;
use crate::metrics::table::{Measure, TableMetrics};
use crate::reporter::Reporter;
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::read_samples::ReadSamples;
use crate::tables::store::Store;
use crate::version::SAMPLE;
use crate::write::{HeldWrites, Locks, PartitionLock, RecordWriter, WriteGate, lock};
use crate::{Error, Options, Result};

/// A step over this many takes some tens of microseconds.
const TABLES_AT_ONCE: usize = 64;

pub struct Shard {
    this: Weak<Shard>,
    index: usize,
    storage: Arc<Storage>,
    tables: Arc<Tables>,
    reporter: Arc<Reporter>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) metrics: Arc<ShardMetrics>,
    /// Its part of each table that has storage.
    pub(crate) opened: RefCell<BTreeMap<TableId, Rc<ShardTable>>>,
    pub(crate) locks: Locks,
    /// Of partitions that a large mutation is being applied to.
    pub(crate) changing: Locks,
    writes: Rc<WriteGate>,
    /// Writes to several shards.
    pub(crate) spanning: Rc<WriteGate>,
    /// By truncations.
    pub(crate) spanning_held: RefCell<Vec<HeldWrites>>,
    /// Tables whose tombstones are kept for what a replay may apply.
    pub(crate) replayable: RefCell<BTreeSet<TableId>>,
    pub(crate) caches: ReadCaches,
    /// The same without the key cache, for tables that do not enable it.
    pub(crate) caches_without_keys: ReadCaches,
    pub(crate) rows: RowCache,
    pub(crate) log: CommitLog,
    /// Point reads until the next one whose SSTables are counted (`version/hotness.rs`).
    pub(crate) until_sample: Cell<u32>,
    pub(crate) record: RefCell<RecordWriter>,
    /// Bytes in memtables that take writes, and in those that are being flushed.
    pub(crate) filling: Arc<Filling>,
    pub(crate) frozen_bytes: Cell<usize>,
    /// A memtable's space is free again.
    pub(crate) space: Notify,
    timestamps: Timestamps,
}

/// One table's memtables on this shard.
pub(crate) struct ShardTable {
    pub(crate) store: Arc<Store>,
    shard: usize,
    current: RefCell<Rc<Current>>,
    active: RefCell<Rc<Slot>>,
    /// Oldest first, each with the position in the log below which all its records are.
    pub(crate) frozen: RefCell<Vec<(Rc<Slot>, ReplayPosition)>>,
    /// Bytes of `active` and of `frozen` that the shard's `filling` and `frozen_bytes` contain; `None` of a closed table.
    pub(crate) counted: Cell<Option<(usize, usize)>>,
    /// Nothing may be frozen: the table is being truncated.
    pub(crate) held: Cell<bool>,
    /// A flush of `frozen` is running.
    pub(crate) flushing: Cell<bool>,
    /// Why the last flush failed.
    pub(crate) failed: RefCell<Option<String>>,
    /// A flush is over, whether well or not.
    pub(crate) flushed: Notify,
    /// It has writes of records in other shards' logs.
    pub(crate) has_parts: Cell<bool>,
}

impl ShardTable {
    fn new(store: Arc<Store>, shard: usize, now: Instant) -> Rc<ShardTable> {
        let current = Current::of(store.common(), None);
        let active = RefCell::new(Slot::new(current.definition.table.clone(), now));
        Rc::new(ShardTable {
            store,
            shard,
            current: RefCell::new(current),
            active,
            frozen: RefCell::default(),
            counted: Cell::new(Some((0, 0))),
            held: Cell::new(false),
            flushing: Cell::new(false),
            failed: RefCell::default(),
            flushed: Notify::default(),
            has_parts: Cell::new(false),
        })
    }

    pub(crate) fn metrics(&self) -> &TableMetrics {
        &self.store.metrics[self.shard]
    }

    pub(crate) fn active(&self) -> Rc<Slot> {
        self.active.borrow().clone()
    }

    /// Definition and version, as they belong together.
    pub(crate) fn current(&self) -> Rc<Current> {
        let mut kept = self.current.borrow_mut();
        if !kept.is_of(self.store.common()) {
            *kept = Current::of(self.store.common(), Some(&kept));
        }
        kept.clone()
    }

    /// Replaces the active memtable by a new one, and returns the old one.
    pub(crate) fn replace_active(&self, now: Instant) -> Rc<Slot> {
        self.active.replace(Slot::new(self.current().definition.table.clone(), now))
    }

    /// Publishes the oldest timestamp in memory, for compactions, and the memtables' size, for metrics.
    pub(crate) fn note_memtables(&self) {
        let (mut oldest, mut bytes, mut partitions, mut active) = (i64::MAX, 0, 0, 0);
        for slot in self.slots() {
            slot.with(|memtable| {
                oldest = oldest.min(memtable.min_timestamp());
                bytes += memtable.bytes() as u64;
                active = memtable.partition_count() as u64;
                partitions += active;
            });
        }
        let metrics = self.metrics();
        metrics.min_timestamp.store(oldest, Release);
        metrics.memtable_bytes.set(bytes);
        // The last memtable is the one that takes writes.
        metrics.active_partitions.set(active);
        metrics.frozen_partitions.set(partitions - active);
    }

    /// All memtables, oldest first.
    pub(crate) fn slots(&self) -> Vec<Rc<Slot>> {
        let frozen = self.frozen.borrow();
        let slots = frozen.iter().map(|(slot, _)| slot.clone());
        slots.chain([self.active()]).collect()
    }
}

/// The services that a shard needs, and what it is opened with.
pub(crate) struct Seat {
    pub(crate) index: usize,
    pub(crate) tables: Arc<Tables>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) metrics: Arc<ShardMetrics>,
    /// Of the log.
    pub(crate) first_segment: u64,
}

impl Shard {
    /// Opens a shard on the calling thread.
    pub(crate) async fn open(seat: Seat) -> Result<Rc<Shard>> {
        let Seat { index, tables, flusher, metrics, first_segment } = seat;
        let storage = tables.storage.clone();
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let (disk, options) = (storage.disk.clone(), storage.options.commitlog.clone());
        let log = CommitLog::open(disk, options, number, first_segment).await?;
        if let Some(metrics) = metrics.of(index) {
            // A shard is opened once.
            let _ = metrics.log.set(log.metrics());
            if let Some(gap) = log.group_gap() {
                let _ = metrics.group_gap.set(gap);
            }
        }
        let shards = storage.options.shards as u64;
        let keys = storage.options.key_cache_size / shards;
        let sizes = CacheSizes { chunks: tables.memory.chunks_of_shard(), keys };
        let caches = ReadCaches::new(sizes, tables.memory.positions.clone());
        let shard = Rc::new_cyclic(|this| Shard {
            this: this.clone(),
            index,
            opened: RefCell::default(),
            locks: Locks::default(),
            changing: Locks::default(),
            writes: Rc::default(),
            spanning: Rc::default(),
            spanning_held: RefCell::default(),
            replayable: RefCell::default(),
            caches_without_keys: caches.without_keys(),
            caches,
            rows: RowCache::new(storage.options.row_cache_size / shards),
            filling: Arc::default(),
            frozen_bytes: Cell::new(0),
            space: Notify::default(),
            timestamps: Timestamps::default(),
            log,
            until_sample: Cell::new(SAMPLE),
            record: RefCell::default(),
            reporter: tables.reporter.clone(),
            storage,
            tables,
            flusher,
            metrics,
        });
        shard.tables.stores.load().values().for_each(|store| shard.open_table(store));
        shard.watch_log();
        shard.watch_periods();
        Ok(shard)
    }

    /// The tables of the node.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    pub fn options(&self) -> &Options {
        &self.storage.options
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.storage.disk
    }

    /// Whether background work is to end.
    pub fn is_stopping(&self) -> bool {
        self.tables.schedule.is_stopped()
    }

    /// Waits until no other conditional or counter write runs on the partition.
    pub async fn lock(&self, table: TableId, key: &PartitionKey) -> PartitionLock {
        lock(&self.locks, table, key).await
    }

    /// Where this shard's write timestamps come from.
    pub fn timestamps(&self) -> &Timestamps {
        &self.timestamps
    }

    /// The writes of clients that run on it.
    pub fn writes(&self) -> &Rc<WriteGate> {
        &self.writes
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn cache_stats(&self) -> CacheStats {
        self.caches.stats()
    }

    pub fn row_cache_stats(&self) -> RowCacheStats {
        self.rows.stats()
    }

    pub(crate) fn now(&self) -> Instant {
        self.storage.disk.clock().now()
    }

    /// Records a finished read of this shard, with its live rows and tombstones.
    pub fn observe_read(
        &self,
        table: TableId,
        measure: Measure,
        (began, ended): (Instant, Instant),
        (rows, tombstones): (u64, u64),
    ) {
        let Some(table) = self.table_by_id(table) else { return };
        let metrics = table.metrics();
        metrics.record_time(measure, began, ended);
        metrics.record(Measure::RowsPerRead, rows, ended);
        metrics.record(Measure::TombstonesPerRead, tombstones, ended);
    }

    pub fn observe_batch(&self, kind: BatchKind, partitions: usize) {
        if let Some(metrics) = self.metrics.of(self.index) {
            metrics.batches.of(kind).record(partitions as u64, self.now());
        }
    }

    /// Counts what was measured outside: what the shard does for other tables than its own is counted here all the same.
    pub fn observe(&self, table: TableId, measure: Measure, began: Instant, ended: Instant) {
        if let Some(table) = self.table_by_id(table) {
            table.metrics().record_time(measure, began, ended);
        }
    }

    /// Whether anything may be sampled (`nodetool profileload`).
    #[inline]
    pub fn is_profiled(&self) -> bool {
        self.tables.samples.load(Relaxed)
    }

    /// Adds a sample of a table, if the sampler runs: a partition key, or a command.
    pub fn sample(&self, table: TableId, sampler: Sampler, key: &[u8], count: u64) {
        if let Some(table) = self.table_by_id(table) {
            table.metrics().samplers.add(sampler, key, count);
        }
    }

    /// Takes the samples of what reads found of partitions. `None`: no sampler runs.
    pub fn read_samples(&self, table: TableId) -> Option<ReadSamples> {
        let table = self.table_by_id(table)?;
        ReadSamples::of(&table.store, self.index)
    }

    /// Whether the SSTables of this point read are counted, for all of its sample.
    pub(crate) fn samples(&self) -> bool {
        let left = self.until_sample.get() - 1;
        self.until_sample.set(if left == 0 { SAMPLE } else { left });
        left == 0
    }

    /// What a reader of the table is to be warned of.
    pub fn read_warning(&self, table: TableId) -> Option<String> {
        let table = self.table_by_id(table)?;
        let apart = table.store.apart();
        apart.first().map(|found| found.answer(apart.len()))
    }

    /// How long a client waited for a read of single partitions.
    pub fn note_read(&self, took: Duration) {
        if let Some(metrics) = self.metrics.of(self.index) {
            metrics.reads.record(nanos(took));
        }
    }

    /// For tasks beside the caller. The caller of a method holds the shard, so the upgrade succeeds.
    pub(crate) fn handle(&self) -> Option<Rc<Shard>> {
        self.this.upgrade()
    }

    /// First and last token that it owns.
    pub fn tokens(&self) -> (i64, i64) {
        self.tables.tokens(self.index)
    }

    pub(crate) fn table(&self, table: &Table) -> Result<Rc<ShardTable>> {
        let found = self.opened.borrow().get(&table.id).cloned();
        found.ok_or_else(|| Error::UnknownTable(table.schema.name.clone()))
    }

    /// The shard's own copy of a table of the catalog, for plans that it executes often; the table itself if it has none.
    pub fn own_table(&self, table: &Arc<Table>) -> Arc<Table> {
        let own = self.table_by_id(table.id).and_then(|own| own.current().own(table));
        own.unwrap_or_else(|| table.clone())
    }

    pub(crate) fn all_tables(&self) -> Vec<Rc<ShardTable>> {
        self.opened.borrow().values().cloned().collect()
    }

    pub(crate) fn table_by_id(&self, table: TableId) -> Option<Rc<ShardTable>> {
        self.opened.borrow().get(&table).cloned()
    }

    /// Tables in the order of their ids, from the one that follows `after` on: no more than fit into one step, for there may be thousands.
    pub(crate) fn some_tables(&self, after: Option<TableId>) -> Vec<Rc<ShardTable>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let opened = self.opened.borrow();
        opened
            .range((from, Bound::Unbounded))
            .map(|(_, table)| table.clone())
            .take(TABLES_AT_ONCE)
            .collect()
    }

    pub(crate) fn open_table(&self, store: &Arc<Store>) {
        let table = ShardTable::new(store.clone(), self.index, self.now());
        self.opened.borrow_mut().insert(store.id, table);
    }

    /// Drops removed tables, one at a time: a keyspace may have had thousands.
    pub(crate) async fn close_tables(&self, gone: &[Arc<Store>]) {
        for store in gone {
            let closed = self.opened.borrow_mut().remove(&store.id);
            if let Some(closed) = closed {
                self.discount(&closed);
            }
            self.rows.forget_table(store.id);
            yield_now().await;
        }
    }
}
