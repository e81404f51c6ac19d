//! The start.
//!
//! 1. Directories are locked (`halcyon_compaction::claim` says against whom); what cannot be taken over is refused, before anything is
//!    touched. Where Cassandra's commit log lies, all its SSTables are opened once for that.
//! 2. Transactions that were cut short are finished or undone.
//! 3. Cassandra's own tables are opened, and with them the schema is read: from SSTables and the commit log.
//! 4. The other tables are opened, the commit log is replayed into SSTables (`recover`), and its segments are deleted.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, Inbox};
use halcyon_model::NO_TIMESTAMP;
use halcyon_schema::catalog::Catalog;
use halcyon_schema::rows::difference;
use halcyon_stream::TableId;

use super::directories::{refuse_foreign, table_folders};
use super::opening::{Opening, RecoveryReport, refuse_running, take, take_links};
use super::recover::StartProgress;
use super::wire::wire;
use crate::engine::Engine;
use crate::flush::Flusher;
use crate::memtable::Memtable;
use crate::shard::{Seat, Shard};
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::set_apart::of_schema;
use crate::tables::store::Store;
use crate::{Options, Result};

impl Engine {
    /// Takes the directories, finishes transactions, opens SSTables, replays commit logs into SSTables, reads the schema.
    /// A fresh directory gets Cassandra's system tables. Shards are opened afterwards, one on each thread.
    pub fn open(
        disk: Disk,
        options: Options,
    ) -> LocalBoxFuture<'static, Result<(Arc<Engine>, RecoveryReport)>> {
        Engine::open_reporting(disk, options, Arc::new(|_| ()))
    }

    /// As `open`, reporting the progress of a long start.
    pub fn open_reporting(
        disk: Disk,
        options: Options,
        progress: StartProgress,
    ) -> LocalBoxFuture<'static, Result<(Arc<Engine>, RecoveryReport)>> {
        Box::pin(async move {
            let mut locks = take(&disk, &options).await?;
            let mut report = RecoveryReport::default();
            report.notes.extend(refuse_running(&disk, &options).await?);
            let emptied = refuse_foreign(&disk, &options).await?;
            let folders = table_folders(&disk, &options).await?;
            take_links(&disk, &options, &folders, &mut locks).await?;
            let stores = BTreeMap::new();
            let mut opening = Opening { disk, options, folders, stores, report };
            opening.sync_folders().await?;
            opening.finish_transactions().await?;
            if !emptied.is_empty() {
                opening.refuse_unreadable().await?;
            }
            for path in emptied {
                opening.disk.remove(&path).await?;
                let note =
                    format!("{}: Cassandra's, without a write in it: removed", path.display());
                opening.report.notes.push(note);
            }
            let (catalog, truncations, log) = opening.catalog().await?;
            let unusable = of_schema(&catalog).map(|table| table.note());
            opening.report.warnings.extend(unusable);
            opening.open_tables(&catalog, |_| true).await?;
            opening.note_orphans().await?;
            let disk = opening.disk.clone();
            let version = opening.version_to_write();
            let Opening { options, stores, mut report, .. } = opening;
            let storage = Storage { disk: disk.clone(), options, version, _locks: locks };
            let engine = wire(storage, catalog, stores, log.next_segment);
            let (tables, flusher) = (&engine.tables, &engine.flusher);
            let (counts, log) = flusher.replay_all(truncations, &progress).await?;
            report.segments_replayed = log.segments;
            report.mutations_replayed = counts.replayed;
            report.mutations_skipped = counts.skipped;
            report.notes.extend(log.notes.iter().cloned());
            if counts.set_apart == 0 {
                log.delete(&disk, &engine.options().commitlog.directory).await?;
            } else {
                report.notes.push(format!(
                    "the commit log is kept: it has {} writes to tables that are set apart",
                    counts.set_apart
                ));
            }
            if counts.replayed > 0 {
                engine.compactor.consider_all();
            }
            tables.times.note(newest_own_write(tables));
            install_schema(flusher).await?;
            tables.stores.load().values().for_each(|store| tables.tend_indexes(store));
            Ok((engine, report))
        })
    }

    /// Opens shard `index` on the calling thread; the inbox is then to be served on it.
    pub fn open_shard(
        self: &Arc<Engine>,
        index: usize,
    ) -> LocalBoxFuture<'static, Result<(Rc<Shard>, Inbox<Shard>)>> {
        let engine = self.clone();
        Box::pin(async move {
            let inbox = engine.unopened.take_inbox(index)?;
            let seat = Seat {
                index,
                tables: engine.tables.clone(),
                flusher: engine.flusher.clone(),
                metrics: engine.metrics.clone(),
                first_segment: engine.unopened.first_segment,
            };
            Ok((Shard::open(seat).await?, inbox))
        })
    }
}

/// The newest timestamp in the keyspaces that only nodes write to. All that was replayed is in SSTables.
fn newest_own_write(tables: &Tables) -> i64 {
    let stores = tables.stores.load();
    let is_own = |store: &&Arc<Store>| {
        matches!(store.definition.load().schema.keyspace.as_str(), "system" | "system_schema")
    };
    let newest = |store: &Arc<Store>| {
        store.version.load().sstables().iter().map(|live| live.max_timestamp()).max()
    };
    stores.values().filter(is_own).filter_map(newest).max().unwrap_or(NO_TIMESTAMP)
}

/// Writes the schema of Cassandra's system tables into a fresh directory.
async fn install_schema(flusher: &Flusher) -> Result<()> {
    let catalog = flusher.tables.catalog();
    let Some(keyspaces) = catalog.table("system_schema", "keyspaces") else { return Ok(()) };
    let store = flusher.tables.stores.load().get(&keyspaces.id).cloned();
    if store.is_none_or(|store| !store.version.load().is_empty()) {
        return Ok(());
    }
    let at = flusher.tables.write_time();
    let mut memtables: BTreeMap<TableId, Memtable> = BTreeMap::new();
    for mutation in difference(&Catalog::default(), &catalog, at) {
        let Some(table) = catalog.tables().find(|t| t.id == mutation.table) else { continue };
        let memtable = memtables.entry(table.id).or_insert_with(|| Memtable::new(table.clone()));
        memtable.apply(mutation)?;
    }
    // The keyspaces come last: without them a start that was cut short here does it again.
    let last = memtables.remove(&keyspaces.id);
    flusher.flush_replayed(memtables).await?;
    flusher.flush_replayed(last.into_iter().map(|m| (keyspaces.id, m)).collect()).await
}
