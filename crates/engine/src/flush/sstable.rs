//! Writes a sealed memtable as an SSTable of the live set.

use std::sync::Arc;

use halcyon_compaction::txn_log::Transaction;
use halcyon_io::{Purpose, panic_point};
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME};
use halcyon_sstable::format::deletion_time::LEGACY_LATEST;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{
    Bases, Carry, Descriptor, ExpirationOverflow, SSTableWriter, Version, WriterOptions,
};
use halcyon_stream::{Fragment, FragmentStream, Layout, PartitionKey, RowBuf};

use super::Flusher;
use crate::caches::carried::Carrier;
use crate::flush::pace::FlushPace;
use crate::guardrails::Watched;
use crate::memtable::{Memtable, MemtableStream};
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable};
use crate::{CHECKS, Error, Result};

/// An SSTable that is written, and its transaction.
pub(crate) struct Uncommitted {
    transaction: Transaction,
    live: Arc<LiveSSTable>,
}

impl Uncommitted {
    /// Deletes the SSTable.
    pub(crate) async fn abort(self) -> Result<()> {
        Ok(self.transaction.abort().await?)
    }
}

impl Flusher {
    /// Writes a memtable as an SSTable of the live set, and has its compaction considered.
    pub(crate) async fn write_memtable(
        &self,
        store: &Arc<Store>,
        memtable: Arc<Memtable>,
        pace: &FlushPace,
    ) -> Result<Option<Arc<LiveSSTable>>> {
        let live = self.write_live(store, memtable, Some(pace)).await?;
        if live.is_some() {
            self.tables.schedule.consider(store);
        }
        Ok(live)
    }

    /// Writes a memtable as an SSTable of the live set.
    pub(crate) async fn write_live(
        &self,
        store: &Arc<Store>,
        memtable: Arc<Memtable>,
        pace: Option<&FlushPace>,
    ) -> Result<Option<Arc<LiveSSTable>>> {
        match self.write_uncommitted(store, memtable, pace).await? {
            Some(written) => self.commit_written(store, written).await.map(Some),
            None => Ok(None),
        }
    }

    /// Writes a memtable as an SSTable. It is deleted at the next start, unless it is committed.
    pub(crate) async fn write_uncommitted(
        &self,
        store: &Arc<Store>,
        memtable: Arc<Memtable>,
        pace: Option<&FlushPace>,
    ) -> Result<Option<Uncommitted>> {
        if memtable.is_empty() {
            return Ok(None);
        }
        panic_point("a flush");
        let schema = store.definition.load().schema.clone();
        let disk = &self.storage.disk;
        let extremes = Extremes::of(&memtable);
        let version = extremes.version(self.storage.version);
        let folder = store.roomiest(disk).await?.to_path_buf();
        let id = halcyon_compaction::transaction_id(disk);
        let mut transaction =
            Transaction::begin(disk, [folder.clone()], "flush", &id, version).await?;
        let opened = async {
            let fresh = async || {
                let id = store.fresh_id(disk, &self.storage.options);
                Ok(Descriptor::new(folder.clone(), version, id))
            };
            let descriptor = transaction.add_fresh(fresh).await?;
            let ends = CHECKS.then(|| ends(&memtable));
            let rows = memtable.clone();
            let carrier = self.tables.memory.carrier(store, false);
            self.write_sstable(&descriptor, rows, extremes.bases(), carrier.clone(), pace)
                .await
                .inspect_err(|e| {
                    if let Error::SSTable(e) = e {
                        transaction.create_failed(&descriptor, e);
                    }
                })?;
            self.storage.write_indexes(&descriptor, &memtable).await?;
            let mode = self.storage.options.read_mode;
            let live = LiveSSTable::open(disk, &descriptor, &schema, mode).await?;
            let indexes: Vec<_> = memtable.indexes().iter().map(|index| index.of.clone()).collect();
            if let Some(problem) = live.open_indexes(disk, &indexes, mode).await.pop() {
                return Err(Error::Stopped(problem));
            }
            // A memtable that is older than an index.
            self.storage
                .build_indexes(&live, &store.definition.load_full().indexes, |_| true)
                .await?;
            if let Some((first, last)) = ends {
                let found = (live.table.first_key(), live.table.last_key());
                assert_eq!(found, (&first, &last), "the SSTable is not what the memtable was");
            }
            self.tables.hand_over(store, &live, carrier.as_ref()).await;
            Ok(live)
        };
        // Opened before the commit: an SSTable that cannot be opened is deleted, and the memtable stays.
        match opened.await {
            Ok(live) => Ok(Some(Uncommitted { transaction, live })),
            Err(e) => {
                // If the abort fails too, the log remains, and recovery at the next start finishes the abort.
                let _ = transaction.abort().await;
                Err(e)
            }
        }
    }

    /// Makes a written SSTable one of the live set. If its COMMIT is in doubt, it is live too, but the caller must keep what it was made
    /// of: an SSTable that the next start may find must not be unknown to purges and truncations until then.
    pub(crate) async fn commit_written(
        &self,
        store: &Arc<Store>,
        written: Uncommitted,
    ) -> Result<Arc<LiveSSTable>> {
        let Uncommitted { transaction, live } = written;
        let committed = transaction.commit().await;
        if matches!(committed, Ok(_) | Err(halcyon_compaction::Error::InDoubt(_))) {
            store.note_flush(live.sstable().file_length());
            self.tables.admit(store, vec![live.clone()], Edit::add).await;
            self.tables.back_up(store, std::slice::from_ref(&live)).await;
        }
        // Only the log is left; the next start deletes it if this fails.
        let _ = committed?.delete().await;
        Ok(live)
    }

    pub(crate) async fn write_sstable(
        &self,
        descriptor: &Descriptor,
        memtable: Arc<Memtable>,
        bases: Bases,
        carrier: Option<Arc<Carrier>>,
        pace: Option<&FlushPace>,
    ) -> Result<()> {
        let partitions = memtable.partition_count();
        let table = memtable.table().clone();
        let layout = flushed_layout(&table.layout, &memtable);
        let options = self.writer_options(&table.schema, &memtable)?;
        let mut writer =
            SSTableWriter::create(&self.storage.disk, descriptor.clone(), layout, bases, options)
                .await?;
        writer.carry(carrier.map(|carrier| carrier as Arc<dyn Carry>));
        writer.watched_by(Watched::of(&table, &self.storage.options, &self.reporter));
        let mut stream = MemtableStream::of_all(memtable);
        let written = async {
            let mut begun = 0;
            while stream.advance().await? {
                let fragment = stream.fragment();
                begun += usize::from(matches!(fragment, Fragment::Start(_)));
                writer.append(fragment)?;
                if writer.wants_drain() {
                    writer.drain().await?;
                    if let Some(pace) = pace {
                        let written = (begun - 1) as f64 / partitions as f64;
                        pace.keep(written, || self.background.waiting()).await;
                    }
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
        let fp_chance = schema.options.bloom_filter_fp_chance();
        let partitioner = halcyon_model::Partitioner::Murmur3.class_name();
        Ok(WriterOptions {
            mode: self.storage.options.background_write_mode,
            purpose: Purpose::Flush,
            buffer_size: self.storage.options.direct_write_buffer_size,
            expected_length: 0,
            compression: schema.options.compression(),
            effort: self.storage.options.short_lived_compression,
            estimated_keys: memtable.partition_count() as u64,
            min_index_interval: schema.options.min_index_interval(),
            column_index_size: self.storage.options.index_distance(),
            own_thread: false,
            read_back: false,
            expiration_overflow: ExpirationOverflow::Cap,
            provenance: Provenance::new(partitioner, fp_chance),
        })
    }
}

/// First and last key.
fn ends(memtable: &Memtable) -> (PartitionKey, PartitionKey) {
    let mut keys = memtable.partitions().map(|(key, _)| key);
    let first = keys.next().cloned().unwrap_or_else(PartitionKey::empty);
    let last = keys.last().cloned().unwrap_or_else(|| first.clone());
    (first, last)
}

/// The table's layout, without static columns if there is no static row: otherwise each partition would store an empty one.
fn flushed_layout(layout: &Arc<Layout>, memtable: &Memtable) -> Arc<Layout> {
    let any = || memtable.partitions().any(|(_, partition)| partition.static_row().is_some());
    if layout.statics.is_empty() || any() {
        return layout.clone();
    }
    Arc::new(Layout { statics: Vec::new(), ..Layout::clone(layout) })
}

/// What one walk over a memtable finds for the file's version and header.
pub(crate) struct Extremes {
    timestamp: i64,
    local_deletion_time: u32,
    ttl: i32,
    /// A partition or range is deleted at a timestamp below zero.
    negative_deletions: bool,
    /// Something expires after [`LEGACY_LATEST`].
    late_expirations: bool,
}

impl Extremes {
    pub(crate) fn of(memtable: &Memtable) -> Extremes {
        let mut found = Extremes {
            timestamp: i64::MAX,
            local_deletion_time: NO_DELETION_TIME,
            ttl: i32::MAX,
            negative_deletions: false,
            late_expirations: false,
        };
        for (_, partition) in memtable.partitions() {
            let ranges = partition.ranges().map(|range| range.time);
            for time in ranges.chain([partition.deletion()]) {
                found.deletion(&time);
                found.negative_deletions |= !time.is_live() && time.marked_for_delete_at < 0;
            }
            partition.static_row().into_iter().chain(partition.rows()).for_each(|r| found.row(r));
        }
        found
    }

    /// The version to write instead of `wanted` if that cannot hold the memtable. Where no version can (a deletion before 1970 beside an
    /// expiration after 2038), the expiration is capped.
    fn version(&self, wanted: Version) -> Version {
        wanted.holding(self.negative_deletions, self.late_expirations)
    }

    /// The minima, relative to which all values are stored (`EncodingStats`).
    pub(crate) fn bases(&self) -> Bases {
        let Extremes { timestamp, local_deletion_time, ttl, .. } = *self;
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

    /// Of a cell or a row's liveness.
    fn times(&mut self, timestamp: i64, local_deletion_time: u32, ttl: i32) {
        self.timestamp = self.timestamp.min(timestamp);
        self.local_deletion_time = self.local_deletion_time.min(local_deletion_time);
        self.ttl = self.ttl.min(ttl);
        self.late_expirations |=
            local_deletion_time > LEGACY_LATEST && local_deletion_time != NO_DELETION_TIME;
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
