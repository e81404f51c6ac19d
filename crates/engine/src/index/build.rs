//! Indexes of what has none yet: after CREATE INDEX, and of SSTables that came without.
//!
//! 1. Memtables that were made before the index are flushed.
//! 2. Each SSTable without the index is claimed, as by a compaction, read, and gets its file. One that is being compacted is left: the
//!    output has it. Files of dropped indexes are deleted.
//! 3. When nothing lacks it, the index is in `system."IndexInfo"`, until the node drains: Cassandra builds its own at its next start.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_io::Mutex;
use halcyon_schema::rows::built_index;
use halcyon_stream::TableId;

use super::TableIndex;
use super::progress::{IndexBuild, Running};
use crate::compact::{Claim, Schedule};
use crate::flush::Flusher;
use crate::memtable::Memtable;
use crate::reporter::Reporter;
use crate::shard::Shard;
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::version::LiveSSTable;
use crate::{Error, Event, Result};

/// How long CREATE INDEX waits for the index: one of a small table can be searched at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// Until SSTables that are being compacted are looked at again.
const PAUSE: Duration = Duration::from_millis(20);

/// After a build that failed.
const RETRY: Duration = Duration::from_secs(10);

/// What is to be done next.
enum Next {
    Build(Claim, Arc<LiveSSTable>),
    /// What lacks an index is being compacted.
    Wait,
    Nothing,
}

/// Builds the indexes that SSTables lack.
pub struct Indexes {
    storage: Arc<Storage>,
    tables: Arc<Tables>,
    reporter: Arc<Reporter>,
    schedule: Arc<Schedule>,
    flusher: Arc<Flusher>,
    running: Mutex<Vec<Arc<Running>>>,
}

impl Indexes {
    pub(crate) fn new(flusher: &Arc<Flusher>) -> Arc<Indexes> {
        let tables = flusher.tables.clone();
        Arc::new(Indexes {
            storage: tables.storage.clone(),
            reporter: tables.reporter.clone(),
            schedule: tables.schedule.clone(),
            tables,
            flusher: flusher.clone(),
            running: Mutex::default(),
        })
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<Running>>> {
        self.running.lock()
    }

    /// The builds that run.
    pub fn builds(&self) -> Vec<IndexBuild> {
        self.running().iter().map(|running| running.shown()).collect()
    }

    /// Makes an index again from the rows, and returns when it can be searched; meanwhile it cannot.
    pub fn rebuild<'a>(&'a self, table: TableId, name: &'a str) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let store = self.tables.store_of(table)?;
            let definition = store.definition.load_full();
            if !definition.indexes.iter().any(|index| index.name == name) {
                let table = store.table().full_name();
                return Err(Error::Invalid(format!("No defined index {name} on {table}")));
            }
            store.version.load().sstables().iter().for_each(|live| live.close_index(name));
            self.schedule.complete_indexes(&store);
            while self.lacks_indexes(&store).await && !self.schedule.is_stopped() {
                self.storage.disk.clock().sleep(PAUSE).await;
            }
            Ok(())
        })
    }

    /// Builds what the table lacks; after a failure, it is queued again.
    pub(crate) async fn complete(&self, store: &Arc<Store>) {
        if let Err(e) = self.complete_indexes(store).await {
            self.build_failed(store, &e);
            self.storage.disk.clock().sleep(RETRY).await;
            self.schedule.complete_indexes(store);
        }
    }

    fn build_failed(&self, store: &Store, error: &Error) {
        let stopped = matches!(error, Error::Compaction(halcyon_compaction::Error::Cancelled));
        if !stopped && !self.schedule.is_stopped() {
            let table = store.table().full_name();
            self.reporter.report(Event::IndexNotBuilt { table, why: error.to_string() });
        }
    }

    /// Returns when the indexes of a table are complete, or after a while.
    pub fn wait(&self, table: TableId) -> LocalBoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(store) = self.tables.stores.load().get(&table).cloned() else { return };
            let until = self.storage.disk.clock().now() + PATIENCE;
            while self.lacks_indexes(&store).await && self.storage.disk.clock().now() < until {
                self.storage.disk.clock().sleep(PAUSE).await;
            }
        })
    }

    async fn lacks_indexes(&self, store: &Arc<Store>) -> bool {
        let lacks = {
            let definition = store.definition.load();
            let version = store.version.load();
            !version.sstables().iter().all(|live| live.has_all(&definition.indexes))
        };
        lacks || self.memtables_lack_indexes(store).await
    }

    async fn memtables_lack_indexes(&self, store: &Arc<Store>) -> bool {
        let id = store.id;
        let lack =
            self.tables.mesh.on_each(move |shard| async move { shard.lacks_indexes(id) }).await;
        lack.contains(&Ok(true))
    }

    async fn complete_indexes(&self, store: &Arc<Store>) -> Result<()> {
        if self.memtables_lack_indexes(store).await {
            self.flusher.flush(Some(store.id)).await?;
        }
        while !self.schedule.is_stopped() && self.tables.stores.load().contains_key(&store.id) {
            let definition = store.definition.load_full();
            match next(store, &definition.indexes) {
                Next::Nothing => return self.note_built(store, &definition.indexes).await,
                Next::Wait => self.storage.disk.clock().sleep(PAUSE).await,
                Next::Build(_claim, live) => {
                    for name in live.strangers(&definition.indexes) {
                        live.remove_index(&self.storage.disk, &name).await?;
                    }
                    self.build_shown(store, &live, &definition.indexes).await?;
                }
            }
        }
        Ok(())
    }

    async fn build_shown(
        &self,
        store: &Arc<Store>,
        live: &Arc<LiveSSTable>,
        indexes: &[TableIndex],
    ) -> Result<()> {
        let table = store.table();
        let running = Arc::new(Running {
            id: self.storage.fresh_timeuuid(),
            keyspace: table.schema.keyspace.clone(),
            table: table.schema.name.clone(),
            sstables: store.version.load().len(),
            directory: live.descriptor().directory.display().to_string(),
            total: live.sstable().data_length(),
            done: AtomicU64::new(0),
        });
        self.running().push(running.clone());
        let go_on = |bytes| {
            running.done.fetch_add(bytes, Relaxed);
            !self.schedule.is_stopped()
        };
        let built = self.storage.build_indexes(live, indexes, go_on).await;
        self.running().retain(|other| !Arc::ptr_eq(other, &running));
        built
    }

    /// `system."IndexInfo"` has the index.
    async fn note_built(&self, store: &Store, indexes: &[TableIndex]) -> Result<()> {
        self.write_built(&store.table().schema.keyspace, indexes, true).await
    }

    pub(crate) async fn write_built(
        &self,
        keyspace: &str,
        indexes: &[TableIndex],
        built: bool,
    ) -> Result<()> {
        let at = self.tables.write_time();
        let row = |index: &TableIndex| built_index(keyspace, &index.name, built, at);
        self.tables.persist(indexes.iter().filter_map(row).collect()).await
    }

    /// Before the data goes to others: Cassandra would take an index that is named there for complete, and not build its own.
    pub(crate) async fn forget_built(&self) -> Result<()> {
        for store in self.tables.stores.load().values() {
            let definition = store.definition.load_full();
            self.write_built(&definition.schema.keyspace, &definition.indexes, false).await?;
        }
        Ok(())
    }
}

fn next(store: &Store, indexes: &[TableIndex]) -> Next {
    let version = store.version.load_full();
    let mut due = version.sstables().iter().filter(|live| !live.has_just(indexes)).peekable();
    if due.peek().is_none() {
        return Next::Nothing;
    }
    let choose = |taken: &HashSet<u64>| {
        let live = due.find(|live| !taken.contains(&live.serial()))?;
        Some((vec![live.serial()], live.clone()))
    };
    store.claims.claim(choose).map_or(Next::Wait, |(claim, live)| Next::Build(claim, live))
}

impl Shard {
    /// A damaged file of an index is made again from the rows.
    pub(super) fn index_damaged(
        &self,
        store: &Arc<Store>,
        live: &LiveSSTable,
        index: &TableIndex,
        error: &halcyon_sstable::Error,
    ) {
        live.close_index(&index.name);
        self.reporter().report(Event::IndexDamaged { why: error.to_string() });
        self.tables().schedule.complete_indexes(store);
    }

    /// Whether a memtable of the table does not have all of its indexes. An empty one too: its rows would not have entries either.
    fn lacks_indexes(&self, id: TableId) -> bool {
        let Some(table) = self.table_by_id(id) else { return false };
        let current = table.current();
        let lacks = |memtable: &Memtable| {
            let has = |index: &TableIndex| memtable.index(index).is_some();
            !current.definition.indexes.iter().all(has)
        };
        table.slots().iter().any(|slot| slot.with(lacks))
    }
}
