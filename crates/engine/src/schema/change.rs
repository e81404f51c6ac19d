//! Schema changes: one at a time, on disk first, then on all shards.
//!
//! 1. The owner shards write the rows of `system_schema`, like any other rows.
//! 2. Storage follows: new tables get folders; memtables of altered tables are flushed with their old columns, and their SSTables are
//!    reopened, so that the cells of dropped columns disappear.
//! 3. The catalog becomes current; each shard opens new tables and closes dropped ones.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::lock::MutexGuard;
use halcyon_io::{compute, drop_apart, panic_point};
use halcyon_model::schema::TableSchema;
use halcyon_schema::catalog::Catalog;
use halcyon_stream::Mutation;

use super::Schema;
use crate::at_once;
use crate::definition::Definition;
use crate::index::TableIndex;
use crate::shard::Shard;
use crate::tables::store::{Store, create_directories, has_storage, table_directories};
use crate::version::{Edit, LiveSSTable};
use crate::{Error, Result};

/// The right to change the schema. Who holds it reads the catalog, makes the next one and hands it over: nothing comes between.
#[derive(Debug)]
pub struct SchemaLock<'a> {
    _held: MutexGuard<'a, ()>,
}

/// What a catalog changes about storage.
struct Changes {
    altered: Vec<(Arc<Store>, Arc<Definition>)>,
    created: Vec<Arc<Definition>>,
    gone: Arc<[Arc<Store>]>,
}

impl Schema {
    /// Waits until no other schema change runs.
    pub async fn lock(&self) -> SchemaLock<'_> {
        SchemaLock { _held: self.changing.lock().await }
    }

    /// Persists a schema change (mutations of `system_schema`), creates or drops storage, and makes the catalog current on
    /// all shards. Changes are made one at a time.
    pub fn change<'a>(
        self: &'a Arc<Self>,
        _lock: &'a SchemaLock<'a>,
        to: Arc<Catalog>,
        rows: Vec<Mutation>,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let version = halcyon_schema::schema_version_row(to.version, self.tables.write_time());
            let known = |row: &Mutation| self.tables.stores.load().contains_key(&row.table);
            let (schema, wanted) = (self.clone(), to.clone());
            let Changes { altered, created, gone } =
                compute(move || schema.changes(&wanted)).await?;
            if self.storage.options.auto_snapshot {
                // Before the rows are durable: from then on nothing stops the DROP.
                at_once::each(&*gone, |store| self.flusher.flush(Some(store.id))).await?;
            }
            self.tables.persist(rows.into_iter().chain(version.filter(known)).collect()).await?;
            let made = self.make_current(to, Changes { altered, created, gone }).await;
            if matches!(made, Err(Error::JobLost(_))) {
                // The rows are durable: the next start has the new schema.
                self.reporter.broken("the schema");
            }
            made
        })
    }

    /// What follows the rows of a schema change.
    async fn make_current(self: &Arc<Self>, to: Arc<Catalog>, changes: Changes) -> Result<()> {
        let _changing = self.reporter.changing("the schema");
        panic_point("a schema change");
        let Changes { altered, created, gone } = changes;
        for (store, definition) in altered {
            self.alter(&store, definition).await?;
        }
        let mut opened = Vec::new();
        for definition in created {
            opened.push(self.create(definition).await?);
        }
        at_once::each(&*gone, |store| self.empty(store)).await?;
        let opened: Arc<[Arc<Store>]> = opened.into();
        let (schema, more, less) = (self.clone(), opened.clone(), gone.clone());
        compute(move || schema.replace_stores(&more, &less)).await?;
        // Before a statement can name them: a write to a table writes to its new view too, whose rows another shard may own.
        let open = move |shard: Rc<Shard>| {
            let opened = opened.clone();
            async move { opened.iter().for_each(|store| shard.open_table(store)) }
        };
        self.tables.mesh.on_each(open).await.into_iter().collect::<Result<(), _>>()?;
        let before = self.tables.catalog.swap(to);
        let less = gone.clone();
        let close = move |shard: Rc<Shard>| {
            let gone = less.clone();
            async move { shard.close_tables(&gone).await }
        };
        self.tables.mesh.on_each(close).await.into_iter().collect::<Result<(), _>>()?;
        at_once::each(&*gone, |store| self.discard(store)).await?;
        drop_apart((before, gone));
        Ok(())
    }

    /// Not for a shard: it takes a millisecond for a thousand tables.
    fn changes(&self, to: &Catalog) -> Changes {
        let (mut altered, mut created) = (Vec::new(), Vec::new());
        let mut gone = BTreeMap::clone(&self.tables.stores.load());
        for table in to.tables().filter(|table| has_storage(table)) {
            let definition = || Definition::of(table.clone(), to);
            match gone.remove(&table.id) {
                Some(store) if store.definition.load().is_of(table, to) => {}
                Some(store) => altered.push((store, definition())),
                None => created.push(definition()),
            }
        }
        Changes { altered, created, gone: gone.into_values().collect() }
    }

    /// Not for a shard either.
    fn replace_stores(&self, opened: &[Arc<Store>], gone: &[Arc<Store>]) {
        let mut stores = BTreeMap::clone(&self.tables.stores.load());
        gone.iter().for_each(|store| drop(stores.remove(&store.id)));
        stores.extend(opened.iter().map(|store| (store.id, store.clone())));
        self.tables.stores.store(Arc::new(stores));
    }

    async fn create(&self, definition: Arc<Definition>) -> Result<Arc<Store>> {
        let directories = table_directories(&self.storage.options, &definition.table)?;
        create_directories(&self.storage.disk, &directories).await?;
        Ok(Store::new(definition, directories, self.tables.shard_count()))
    }

    /// A read finds at any moment SSTables that its definition can read: the new schema becomes current when all of the live set are
    /// opened by it, and from then on no other is admitted.
    async fn alter(&self, store: &Arc<Store>, definition: Arc<Definition>) -> Result<()> {
        let current = store.definition.load_full();
        if current.durable == definition.durable && current.table == definition.table {
            return Ok(());
        }
        if current.table.layout == definition.table.layout
            && current.schema.dropped == definition.schema.dropped
        {
            store.definition.store(definition);
            return self.indexes_changed(store, &current).await;
        }
        loop {
            let version = store.version.load_full();
            self.reopen(store, &definition.schema, version.sstables()).await?;
            let _admission = store.lock_admission();
            let fits = |live: &Arc<LiveSSTable>| live.schema.has_columns_of(&definition.schema);
            if store.version.load().sstables().iter().all(fits) {
                store.definition.store(definition);
                break;
            }
        }
        match current.indexes == store.definition.load().indexes {
            true => self.flusher.flush(Some(store.id)).await,
            false => self.indexes_changed(store, &current).await,
        }
    }

    /// Dropped indexes are no longer known as built; new ones are built.
    async fn indexes_changed(&self, store: &Arc<Store>, before: &Definition) -> Result<()> {
        let now = store.definition.load_full();
        if before.indexes == now.indexes {
            return Ok(());
        }
        let stays = |index: &&TableIndex| now.indexes.iter().any(|other| other.name == index.name);
        let gone: Vec<TableIndex> =
            before.indexes.iter().filter(|index| !stays(index)).cloned().collect();
        self.indexes.write_built(&now.schema.keyspace, &gone, false).await?;
        // Memtables of before are flushed with the new indexes; then SSTables are what lacks them.
        self.flusher.flush(Some(store.id)).await?;
        self.tables.tend_indexes(store);
        Ok(())
    }

    async fn reopen(
        &self,
        store: &Arc<Store>,
        schema: &Arc<TableSchema>,
        sstables: &[Arc<LiveSSTable>],
    ) -> Result<()> {
        let mut reopened = Vec::new();
        for live in sstables.iter().filter(|live| !live.schema.has_columns_of(schema)) {
            reopened.push(live.reopen(&self.storage.disk, schema).await?);
        }
        if !reopened.is_empty() {
            self.tables.edit(store, &Edit::reopen(reopened));
        }
        Ok(())
    }

    /// Nothing of a table that is to be dropped is in memory, or on its way to the disk, any more.
    async fn empty(&self, store: &Arc<Store>) -> Result<()> {
        let definition = store.definition.load_full();
        let keyspace = &definition.schema.keyspace;
        self.indexes.write_built(keyspace, &definition.indexes, false).await?;
        let id = store.id;
        // A failure leaves records in the commit log, which a replay skips: their table is unknown then. The table must go all the
        // same: its memtables are thrown away already, and the schema on disk does not have it.
        let _ =
            self.tables.mesh.on_each(move |shard| async move { shard.empty_table(id).await }).await;
        Ok(())
    }

    /// Gives up a dropped table: its part of the log, its files.
    async fn discard(&self, store: &Arc<Store>) -> Result<()> {
        let id = store.id;
        let forgotten =
            self.tables.mesh.on_each(move |shard| async move { shard.forget_log(id) }).await;
        forgotten.into_iter().collect::<Result<(), _>>()?;
        if self.storage.options.auto_snapshot {
            self.snapshots.take_before(store, "dropped").await?;
        }
        let _compacting = self.compactor.stop_table(store).await;
        self.compactor.remove_all(store).await
    }
}
