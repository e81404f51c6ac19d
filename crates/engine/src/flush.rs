//! Memtables become SSTables.
//!
//! 1. Freeze: a new memtable takes the writes; the old one keeps a place in the table's list of frozen ones and is read on.
//! 2. When its last pin is gone it is sealed. A flush thread writes it: transaction log, SSTable, commit, then the view.
//! 3. It leaves the list, and the commit log is discarded below the position at which it was frozen.
//!
//! A table's memtables are written one after the other, oldest first, so that the log is never discarded above one that is not
//! written yet. What cannot be written stays in memory and in the log; the disk failure policy says what else happens.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_io::{Purpose, spawn};
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME};
use halcyon_sstable::components::statistics::collector::Provenance;
use halcyon_sstable::{Bases, Compression, Descriptor, SSTableWriter, WriterOptions};
use halcyon_stream::{FragmentStream, Layout, RowBuf, TableId};

use crate::engine::Engine;
use crate::memtable::{Memtable, MemtableStream, Slot};
use crate::metrics::{add, subtract};
use crate::options::DiskFailurePolicy;
use crate::shard::{Shard, ShardTable};
use crate::store::Store;
use crate::view::{Live, swap};
use crate::{Error, Result};

/// How often the ages of memtables are looked at, at least.
const PERIOD_CHECK: Duration = Duration::from_secs(1);
/// After which a flush that failed is tried again, where the disk failure policy says so.
const RETRY: Duration = Duration::from_secs(5);

impl Shard {
    fn budget(&self) -> usize {
        let share = self.engine().options.memtable_space / self.engine().shard_count() as u64;
        usize::try_from(share).unwrap_or(usize::MAX).max(1 << 20)
    }

    /// Waits while frozen memtables leave no room for more; refuses while they cannot be written: nobody knows when they can.
    pub(crate) async fn wait_for_space(&self) -> Result<()> {
        while self.frozen_bytes.get() > 0
            && self.active_bytes.get() + self.frozen_bytes.get() >= self.budget()
        {
            if let Some(why) = self.flush_failure() {
                return Err(Error::Stopped(format!(
                    "memtables are full, and a flush of {why}; writes go on when one succeeds"
                )));
            }
            self.space.wait().await;
            self.engine().health.check()?;
        }
        Ok(())
    }

    /// Of which table the last flush failed, and why.
    fn flush_failure(&self) -> Option<String> {
        let failure = |table: &Rc<ShardTable>| {
            let why = table.failed.borrow();
            Some(format!("{} failed: {}", table.store.table().full_name(), why.as_ref()?))
        };
        self.tables.borrow().values().find_map(failure)
    }

    /// Counts new bytes, and freezes the largest memtable when all together have reached their half of the budget.
    pub(crate) fn note_growth(&self, grown: isize) {
        self.active_bytes.set(self.active_bytes.get().saturating_add_signed(grown));
        if self.active_bytes.get() >= self.budget() / 2 && self.frozen_bytes.get() == 0 {
            let largest = self.tables.borrow().values().max_by_key(|t| size(t)).cloned();
            if let Some(largest) = largest {
                self.freeze(&largest);
            }
        }
    }

    /// Counts the memtables' bytes anew: writes that were on their way to a memtable when it was frozen grew it afterwards.
    pub(crate) fn recount(&self) {
        let (mut active, mut frozen) = (0, 0);
        for table in self.tables.borrow().values() {
            active += size(table);
            let slots = table.frozen.borrow();
            frozen += slots.iter().map(|(slot, _)| slot.with(Memtable::bytes)).sum::<usize>();
        }
        self.active_bytes.set(active);
        self.frozen_bytes.set(frozen);
    }

    /// Begins to flush a table's memtable; `None` if there is nothing in it.
    pub(crate) fn freeze(&self, table: &Rc<ShardTable>) -> Option<Rc<Slot>> {
        if table.held.get() {
            return None;
        }
        let position = self.log.position();
        if table.active().is_idle() {
            if table.frozen.borrow().is_empty() {
                self.log.discard_below(table.store.id, position);
            }
            return None;
        }
        let slot = table.replace_active(self.now());
        add(&table.metrics().pending_flushes, 1);
        table.frozen.borrow_mut().push((slot.clone(), position));
        self.recount();
        self.flush_frozen(table);
        Some(slot)
    }

    /// Writes a table's frozen memtables, unless that is being done.
    fn flush_frozen(&self, table: &Rc<ShardTable>) {
        let Some(shard) = self.handle().filter(|_| !table.flushing.replace(true)) else { return };
        let table = table.clone();
        let flushing = async move {
            let outcome = shard.flush_all_frozen(&table).await;
            table.flushing.set(false);
            let failed = outcome.is_err();
            if let Err(e) = &outcome {
                shard.engine().flush_failed(&table.store, e);
            }
            table.failed.replace(outcome.err().map(|e| e.to_string()));
            table.flushed.notify();
            shard.space.notify();
            if failed && shard.engine().failure().is_none() {
                shard.engine().disk.clock().sleep(RETRY).await;
                shard.flush_frozen(&table);
            }
        };
        spawn(flushing).detach();
    }

    async fn flush_all_frozen(&self, table: &Rc<ShardTable>) -> Result<()> {
        loop {
            let oldest = table.frozen.borrow().first().cloned();
            let Some((slot, position)) = oldest else { return Ok(()) };
            let memtable = slot.seal().await;
            let (engine, store) = (self.engine().clone(), table.store.clone());
            let written = self
                .engine()
                .flushers
                .run(move || async move { engine.write_memtable(&store, memtable).await });
            written.await??;
            table.frozen.borrow_mut().remove(0);
            table.note_memtables();
            self.log.discard_below(table.store.id, position);
            self.recount();
            subtract(&table.metrics().pending_flushes, 1);
            add(&table.metrics().flushes, 1);
            table.flushed.notify();
            self.space.notify();
        }
    }

    /// Flushes what this shard has of a table, and waits for it.
    pub(crate) async fn flush_table(&self, table: &Rc<ShardTable>) -> Result<()> {
        let frozen = self.freeze(table);
        let last = frozen.or_else(|| table.frozen.borrow().last().map(|(slot, _)| slot.clone()));
        let Some(last) = last else { return Ok(()) };
        self.flush_frozen(table);
        loop {
            if !table.frozen.borrow().iter().any(|(slot, _)| Rc::ptr_eq(slot, &last)) {
                return Ok(());
            }
            if !table.flushing.get() {
                let why = table.failed.borrow().clone().unwrap_or_default();
                return Err(Error::Stopped(format!(
                    "flush of {} failed: {why}",
                    table.store.table().full_name()
                )));
            }
            table.flushed.wait().await;
        }
    }
}

impl Shard {
    /// Flushes what holds the oldest segment of the log whenever its space runs short.
    pub(crate) fn watch_log(&self) {
        let (log, this) = (self.log.clone(), self.handle().map(|shard| Rc::downgrade(&shard)));
        let Some(this) = this else { return };
        let watching = async move {
            loop {
                log.short_of_space().await;
                let Some(shard) = this.upgrade() else { return };
                let tables = log.oldest_dirty().map(|dirty| dirty.tables).unwrap_or_default();
                let mut failed = tables.is_empty();
                for id in tables {
                    match shard.table_by_id(id) {
                        Some(table) => failed |= shard.flush_table(&table).await.is_err(),
                        None => shard.forget_log(id),
                    }
                }
                if failed {
                    // Nothing is gained by trying again before another flush has ended.
                    shard.space.wait().await;
                }
            }
        };
        spawn(watching).detach();
    }

    /// Flushes tables whose memtable has grown older than `memtable_flush_period_in_ms` allows, for as long as the shard lives.
    /// A simulated clock does not pass by itself: whoever moves it calls `flush_expired`.
    pub(crate) fn watch_periods(&self) {
        let (clock, this) = (self.engine().disk.clock().clone(), self.handle());
        let Some(this) = this.filter(|_| !self.engine().disk.is_simulated()) else { return };
        let this = Rc::downgrade(&this);
        let watching = async move {
            let mut pause = PERIOD_CHECK;
            loop {
                clock.sleep(pause).await;
                let Some(shard) = this.upgrade() else { return };
                let shortest = shard.flush_expired();
                pause = shortest.map_or(PERIOD_CHECK, |period| period.min(PERIOD_CHECK));
            }
        };
        spawn(watching).detach();
    }

    /// Returns the shortest period that any table has. An empty memtable begins its period anew; one whose predecessor is not written yet
    /// waits for that, or they would pile up where the period is shorter than a flush.
    pub(crate) fn flush_expired(&self) -> Option<Duration> {
        let tables: Vec<Rc<ShardTable>> = self.tables.borrow().values().cloned().collect();
        let now = self.now();
        let mut shortest = None;
        for table in tables {
            let Some(period) = table.store.definition.load().flush_period else { continue };
            shortest = Some(shortest.map_or(period, |shortest: Duration| shortest.min(period)));
            let slot = table.active();
            let waits = table.held.get() || !table.frozen.borrow().is_empty();
            if now - slot.made() < period || waits {
                continue;
            }
            if slot.is_idle() {
                drop(table.replace_active(now));
            } else {
                self.freeze(&table);
            }
        }
        shortest
    }

    /// A table that is gone needs no records.
    pub(crate) fn forget_log(&self, table: TableId) {
        self.log.discard_below(table, self.log.position());
    }
}

fn size(table: &Rc<ShardTable>) -> usize {
    table.active().with(Memtable::bytes)
}

impl Engine {
    /// Flushes a table's memtables on all shards; all tables if none is named.
    pub async fn flush(&self, table: Option<TableId>) -> Result<()> {
        let mut outcome = Ok(());
        for index in 0..self.shard_count() {
            let flushed = self.mesh.on(index, move |shard| async move {
                let tables: Vec<Rc<ShardTable>> = match table {
                    Some(id) => shard.table_by_id(id).into_iter().collect(),
                    None => shard.tables.borrow().values().cloned().collect(),
                };
                let mut outcome = Ok(());
                for table in tables {
                    outcome = outcome.and(shard.flush_table(&table).await);
                }
                outcome
            });
            outcome = outcome.and(flushed.await?);
        }
        self.catch_up().await;
        outcome
    }

    fn flush_failed(&self, store: &Store, error: &Error) {
        let table = store.table().full_name();
        let tolerant = matches!(
            self.options.disk_failure_policy,
            DiskFailurePolicy::BestEffort | DiskFailurePolicy::Ignore
        );
        self.disk_failed(match tolerant {
            true => format!("a flush of {table} failed ({error}); it is tried again"),
            false => format!(
                "writes are refused since a flush of {table} failed ({error}); nothing acknowledged is lost, the commit log has \
                 it. Free space or repair the disk, then restart"
            ),
        });
    }

    /// Writes a memtable as an SSTable, puts it into the view, and has the table looked at.
    pub(crate) async fn write_memtable(
        &self,
        store: &Arc<Store>,
        memtable: Arc<Memtable>,
    ) -> Result<Option<Arc<Live>>> {
        let live = self.write_live(store, memtable).await?;
        if live.is_some() {
            self.consider(store);
        }
        Ok(live)
    }

    /// Writes a memtable as an SSTable and puts it into the view.
    pub(crate) async fn write_live(
        &self,
        store: &Arc<Store>,
        memtable: Arc<Memtable>,
    ) -> Result<Option<Arc<Live>>> {
        if memtable.is_empty() {
            return Ok(None);
        }
        let schema = store.definition.load().schema.clone();
        let disk = &self.disk;
        let version = self.options.version;
        let folder = store.roomiest(disk).await?.to_path_buf();
        let id = halcyon_compaction::transaction_id(disk);
        let mut transaction = halcyon_compaction::txn_log::Transaction::begin(
            disk,
            [folder.clone()],
            "flush",
            &id,
            version,
        )
        .await?;
        let descriptor = Descriptor::new(folder, version, store.fresh_id(disk, &self.options));
        let written = async {
            transaction.add(&descriptor).await?;
            self.write_sstable(&descriptor, memtable).await
        };
        match written.await {
            Ok(()) => transaction.commit().await?,
            Err(e) => {
                // Where even the cleaning fails, the log stays and the next start finishes it.
                let _ = transaction.abort().await;
                return Err(e);
            }
        }
        let live = Live::open(disk, &descriptor, &schema, self.options.read_mode).await?;
        swap(&store.view, &[], std::slice::from_ref(&live));
        self.match_schema(store).await?;
        store.note_flush(live.sstable().file_length());
        Ok(Some(live))
    }

    async fn write_sstable(&self, descriptor: &Descriptor, memtable: Arc<Memtable>) -> Result<()> {
        let table = memtable.table().clone();
        let layout = flushed_layout(&table.layout, &memtable);
        let options = self.writer_options(&table.schema, &memtable)?;
        let bases = bases(&memtable);
        let mut writer =
            SSTableWriter::create(&self.disk, descriptor.clone(), layout, bases, options).await?;
        let mut stream = MemtableStream::of_all(memtable);
        let written = async {
            while stream.advance().await? {
                writer.append(stream.fragment())?;
                if writer.wants_drain() {
                    writer.drain().await?;
                }
            }
            Ok::<(), Error>(())
        };
        if let Err(e) = written.await {
            writer.abandon().await;
            return Err(e);
        }
        writer.seal().await?;
        Ok(())
    }

    fn writer_options(
        &self,
        schema: &halcyon_model::schema::TableSchema,
        memtable: &Memtable,
    ) -> Result<WriterOptions> {
        let compression = match &schema.options.compression {
            Some(map) => Compression::of_table(map).map_err(|what| {
                Error::SSTable(halcyon_sstable::Error::Invalid(format!(
                    "table {}.{}: {what}",
                    schema.keyspace, schema.name
                )))
            })?,
            None => Some(Compression::default_of_tables()),
        };
        let fp_chance = schema.options.bloom_filter_fp_chance.unwrap_or(0.01);
        let partitioner = halcyon_model::Partitioner::Murmur3.class_name();
        Ok(WriterOptions {
            mode: self.options.background_write_mode,
            purpose: Purpose::Flush,
            buffer_size: self.options.direct_write_buffer_size,
            expected_length: 0,
            compression,
            estimated_keys: memtable.partition_count() as u64,
            min_index_interval: schema.options.min_index_interval.unwrap_or(128),
            column_index_size: self.options.column_index_size,
            own_thread: false,
            provenance: Provenance::new(partitioner, fp_chance),
        })
    }
}

/// The table's layout, without static columns if no static row is there: each partition would pay for an empty one.
fn flushed_layout(layout: &Arc<Layout>, memtable: &Memtable) -> Arc<Layout> {
    let any = || memtable.partitions().any(|(_, partition)| partition.static_row().is_some());
    if layout.statics.is_empty() || any() {
        return layout.clone();
    }
    Arc::new(Layout { statics: Vec::new(), ..Layout::clone(layout) })
}

/// The least values, which all others are stored relative to (`EncodingStats`).
fn bases(memtable: &Memtable) -> Bases {
    let mut least = Least { timestamp: i64::MAX, local_deletion_time: u32::MAX, ttl: i32::MAX };
    for (_, partition) in memtable.partitions() {
        least.deletion(&partition.deletion());
        partition.ranges().iter().for_each(|range| least.deletion(&range.time));
        partition.static_row().into_iter().chain(partition.rows()).for_each(|row| least.row(row));
    }
    let Least { timestamp, local_deletion_time, ttl } = least;
    Bases {
        timestamp: if timestamp == i64::MAX { Bases::NONE.timestamp } else { timestamp },
        local_deletion_time: if local_deletion_time == NO_DELETION_TIME {
            Bases::NONE.local_deletion_time
        } else {
            i64::from(local_deletion_time)
        },
        ttl: if ttl == i32::MAX { Bases::NONE.ttl } else { ttl },
    }
}

struct Least {
    timestamp: i64,
    local_deletion_time: u32,
    ttl: i32,
}

impl Least {
    fn times(&mut self, timestamp: i64, local_deletion_time: u32, ttl: i32) {
        self.timestamp = self.timestamp.min(timestamp);
        self.local_deletion_time = self.local_deletion_time.min(local_deletion_time);
        self.ttl = self.ttl.min(ttl);
    }

    fn deletion(&mut self, time: &DeletionTime) {
        if !time.is_live() {
            self.timestamp = self.timestamp.min(time.marked_for_delete_at);
            self.local_deletion_time = self.local_deletion_time.min(time.local_deletion_time);
        }
    }

    fn row(&mut self, row: &RowBuf) {
        let Liveness { timestamp, ttl, local_expiration_time } = row.parts.liveness;
        if !row.parts.liveness.is_empty() {
            self.times(timestamp, local_expiration_time, ttl);
        }
        self.deletion(&row.parts.deletion.time);
        row.parts.complex_deletions.iter().for_each(|d| self.deletion(&d.time));
        for cell in &row.parts.cells {
            self.times(cell.timestamp, cell.local_deletion_time, cell.ttl);
        }
    }
}
