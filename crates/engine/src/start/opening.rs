//! The steps of a start, up to the tables as their files are found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use halcyon_commitlog::ReplayReport;
use halcyon_compaction::{refuse_cassandra, txn_log};
use halcyon_io::{DirLock, Disk};
use halcyon_model::Partitioner;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_schema::system_tables;
use halcyon_sstable::Error as SSTableError;
use halcyon_sstable::SSTableId;
use halcyon_sstable::Version as SSTableVersion;
use halcyon_sstable::format::listing::{self, UnreadableName};
use halcyon_sstable::read::{Budget, CacheSizes, ReadCaches};
use halcyon_stream::TableId;

use crate::at_once;
use crate::definition::Definition;
use crate::memtable::Memtable;
use crate::schema::rows::schema_rows;
use crate::start::batches;
use crate::start::directories::TableFolder;
use crate::start::recover::{Truncations, replay_schema};
use crate::start::set_apart;
use crate::tables::set_apart::SetApart;
use crate::tables::store::{Store, create_directories, has_storage, table_directories};
use crate::version::{LiveSSTable, Version};
use crate::{Error, Options, Result};

/// What the start found and did; `serve` prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    pub sstables: usize,
    pub segments_replayed: usize,
    pub mutations_replayed: u64,
    /// Records of dropped tables.
    pub mutations_skipped: u64,
    /// Sentences for the log: torn tails, transactions finished, files not used.
    pub notes: Vec<String>,
    /// The same of what is not served.
    pub warnings: Vec<String>,
}

/// A start on its way.
pub(super) struct Opening {
    pub(super) disk: Disk,
    pub(super) options: Options,
    pub(super) folders: Vec<TableFolder>,
    pub(super) stores: BTreeMap<TableId, Arc<Store>>,
    pub(super) report: RecoveryReport,
}

/// The files in a table's folders.
#[derive(Default)]
struct TableFiles {
    opened: Vec<Arc<LiveSSTable>>,
    ids: Vec<SSTableId>,
    temporary: Vec<PathBuf>,
    set_apart: Vec<SetApart>,
    notes: Vec<String>,
}

impl Opening {
    pub(super) async fn finish_transactions(&mut self) -> Result<()> {
        let paths = self.folders.iter().map(|folder| &folder.path);
        for prefixes in at_once::in_order(paths, |path| txn_log::recover(&self.disk, path)).await {
            for prefix in prefixes? {
                let note = format!("{prefix}: what an unfinished operation had left was removed");
                self.report.notes.push(note);
            }
        }
        Ok(())
    }

    /// The catalog as SSTables and commit log say it.
    pub(super) async fn catalog(&mut self) -> Result<(Arc<Catalog>, Truncations, ReplayReport)> {
        let system = system_tables();
        self.open_tables(&system, |table| table.schema.keyspace == "system_schema").await?;
        set_apart::refuse_partial_schema(self.stores.values())?;
        let (replayed, truncations, log) =
            replay_schema(&self.disk, &self.options, self.tables()).await?;
        let mut merged: BTreeMap<TableId, Memtable> = BTreeMap::new();
        for (id, memtable) in replayed.into_iter().flatten() {
            match merged.entry(id) {
                std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(memtable)),
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    place.get_mut().absorb(memtable)?;
                }
            }
        }
        Ok((Arc::new(self.schema(merged).await?), truncations, log))
    }

    /// The catalog by the SSTables of the schema that are open, and by what is newer than they.
    async fn schema(&self, newer: BTreeMap<TableId, Memtable>) -> Result<Catalog> {
        let caches = ReadCaches::new(CacheSizes { chunks: 1 << 20, keys: 1 << 16 }, Budget::of(0));
        let now = u32::try_from(self.disk.clock().unix_seconds()).unwrap_or(0);
        let rows = schema_rows(self.stores.values(), newer, &caches, now).await?;
        let mut catalog = Catalog::from_rows(&rows);
        set_apart::unusable_options(&mut catalog);
        for keyspace in &self.options.virtual_keyspaces {
            catalog.keyspaces.insert(keyspace.name.clone(), keyspace.clone());
        }
        Ok(catalog)
    }

    /// Opens everything as a start does, changes nothing, and forgets it.
    pub(super) async fn refuse_unreadable(&mut self) -> Result<()> {
        let system = system_tables();
        for table in system.tables().filter(|table| table.schema.keyspace == "system_schema") {
            let definition = Definition::of(table.clone(), &system);
            let found = self.open_sstables(&definition, &self.folders_of(table.id)).await?;
            let store = Store::new(definition, Vec::new(), self.options.shards);
            store.version.store(Arc::new(Version::of(found.opened)));
            self.stores.insert(table.id, store);
        }
        let catalog = self.schema(BTreeMap::new()).await?;
        self.stores.clear();
        let tables: Vec<_> = catalog.tables().filter(|table| has_storage(table)).collect();
        for table in tables {
            let definition = Definition::of(table.clone(), &catalog);
            self.open_sstables(&definition, &self.folders_of(table.id)).await?;
        }
        Ok(())
    }

    fn tables(&self) -> BTreeMap<TableId, Arc<Table>> {
        self.stores.iter().map(|(id, store)| (*id, store.table())).collect()
    }

    /// Options in the rows of the schema that no statement could say: the table is served, with what can be honoured.
    fn note_problems(&mut self, table: &Table) {
        let name = table.full_name();
        let notes = table.schema.options.problems();
        let note =
            |problem| format!("{name} is served without an option that it states: {problem}");
        self.report.notes.extend(notes.into_iter().map(note));
    }

    /// Makes the names of tables' folders durable: a start that was killed may have made them, and no later step would.
    pub(super) async fn sync_folders(&self) -> Result<()> {
        let parents = |folder: &TableFolder| {
            let keyspace = folder.path.parent()?;
            Some([keyspace.to_path_buf(), keyspace.parent()?.to_path_buf()])
        };
        let parents: BTreeSet<_> = self.folders.iter().filter_map(parents).flatten().collect();
        for parent in parents {
            self.disk.sync_dir(&parent).await?;
        }
        Ok(())
    }

    /// Opens what is not open yet.
    pub(super) async fn open_tables(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&Table) -> bool,
    ) -> Result<()> {
        let wanted = |table: &&Arc<Table>| has_storage(table) && wanted(table);
        let known: BTreeSet<_> = self.folders.iter().map(|folder| &folder.path).collect();
        let mut missing = Vec::new();
        for table in catalog.tables().filter(wanted) {
            let directories = table_directories(&self.options, table)?;
            missing.extend(directories.into_iter().filter(|path| !known.contains(path)));
        }
        create_directories(&self.disk, &missing).await?;
        let mut unopened = Vec::new();
        for table in catalog.tables().filter(wanted) {
            let definition = Definition::of(table.clone(), catalog);
            self.note_problems(table);
            match self.stores.get(&table.id) {
                Some(store) => store.definition.store(definition),
                None => unopened.push(definition),
            }
        }
        for opened in at_once::in_order(unopened, |table| self.open_table(table)).await {
            let (store, found) = opened?;
            self.report.sstables += found.sstables;
            self.report.notes.extend(found.notes);
            self.report.warnings.extend(found.warnings);
            self.stores.insert(store.id, store);
        }
        Ok(())
    }

    async fn open_table(
        &self,
        definition: Arc<Definition>,
    ) -> Result<(Arc<Store>, RecoveryReport)> {
        let mut directories = table_directories(&self.options, &definition.table)?;
        // A table that was renamed on disk by hand, or made by an old version, may have other folders too.
        directories.extend(self.folders_of(definition.table.id));
        let mut seen = Vec::new();
        directories.retain(|path| {
            !seen.contains(path) && {
                seen.push(path.clone());
                true
            }
        });
        let found = self.open_sstables(&definition, &directories).await?;
        for path in &found.temporary {
            self.disk.remove(path).await?;
        }
        let report = RecoveryReport {
            sstables: found.opened.len(),
            notes: found.notes,
            warnings: found.set_apart.iter().map(SetApart::note).collect(),
            ..RecoveryReport::default()
        };
        let store = Store::new(definition, directories, self.options.shards);
        if !self.options.compacts_after_start {
            store.set_automatic_compaction(false);
        }
        store.note_ids(found.ids.into_iter());
        store.set_apart(found.set_apart);
        store.version.store(Arc::new(Version::of(found.opened)));
        Ok((store, report))
    }

    fn folders_of(&self, id: TableId) -> Vec<PathBuf> {
        let of_table = self.folders.iter().filter(|folder| folder.id == id);
        of_table.map(|folder| folder.path.clone()).collect()
    }

    /// Opens the SSTables in a table's folders.
    async fn open_sstables(&self, of: &Definition, directories: &[PathBuf]) -> Result<TableFiles> {
        let mut found = TableFiles::default();
        let mut local = Vec::new();
        for directory in directories {
            let entries = self.disk.list(directory).await?;
            let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
            let listing = listing::group(directory, names);
            found.temporary.extend(listing.temporary.iter().map(|name| directory.join(name)));
            let policy = self.options.disk_failure_policy;
            let mut apart = |name: &str, e: Error| {
                if !set_apart::tolerated(policy, &e) {
                    return Err(set_apart::refusal(&e));
                }
                found.set_apart.push(SetApart::sstable(&of.schema, name, &e));
                Ok(())
            };
            for UnreadableName { name, why } in listing.unreadable {
                let path = directory.join(&name);
                apart(&name, SSTableError::Unsupported { path, what: why }.into())?;
            }
            let mode = self.options.read_mode;
            let open = |listed| async move {
                let opened = LiveSSTable::open_listed(&self.disk, listed, &of.schema, mode).await;
                let live = opened.and_then(|live| set_apart::in_order(live, &of.schema))?;
                let notes = live.open_indexes(&self.disk, &of.indexes, mode).await;
                Ok((live, notes))
            };
            let opened = at_once::in_order(&listing.sstables, open).await;
            for (listed, opened) in listing.sstables.iter().zip(opened) {
                found.ids.push(listed.descriptor.id);
                let (live, notes) = match opened {
                    Ok(opened) => opened,
                    Err(e) => {
                        apart(&listed.descriptor.file_prefix(), e)?;
                        continue;
                    }
                };
                found.notes.extend(notes);
                match live.sstable().layout().partitioner {
                    Partitioner::Murmur3 => found.opened.push(live),
                    _ => local.push(live),
                }
            }
        }
        if batches::has_batches(&of.schema) {
            batches::refuse_unfinished(&self.disk, &of.table, &local).await?;
        }
        Ok(found)
    }

    /// Folders of tables that the schema does not know are ignored: of dropped tables they have the snapshots. Only
    /// where there are SSTables too, they may be missed.
    pub(super) async fn note_orphans(&mut self) -> Result<()> {
        for folder in &self.folders {
            if self.stores.contains_key(&folder.id) {
                continue;
            }
            let entries = self.disk.list(&folder.path).await?;
            let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
            let listing = listing::group(&folder.path, names);
            let sstables = listing.sstables.len() + listing.unreadable.len();
            if sstables > 0 {
                self.report.notes.push(format!(
                    "{}: ignoring {sstables} SSTables of no table in the schema",
                    folder.path.display()
                ));
            }
        }
        Ok(())
    }

    /// See `Options::version`.
    pub(super) fn version_to_write(&self) -> SSTableVersion {
        let newer = |live: &Arc<LiveSSTable>| live.descriptor().version.has_uint_deletion_time();
        let any = |store: &Arc<Store>| store.version.load().sstables().iter().any(newer);
        self.options.version.unwrap_or_else(|| {
            let any = self.stores.values().any(any);
            if any { SSTableVersion::OA } else { SSTableVersion::NB }
        })
    }
}

/// Makes and locks the directories.
pub(super) async fn take(disk: &Disk, options: &Options) -> Result<Vec<DirLock>> {
    if options.shards == 0 || options.data_directories.is_empty() {
        return Err(Error::CannotStart(
            "at least one shard and one data directory are needed".to_owned(),
        ));
    }
    let log = std::slice::from_ref(&options.commitlog.directory);
    let mut locks = Vec::new();
    for directories in [&options.data_directories[..], log] {
        create_directories(disk, directories).await?;
        for directory in directories {
            locks.push(disk.lock_dir(directory).await?);
        }
    }
    Ok(locks)
}

/// Locks the folders that are not below their data directory, because they, or those of their keyspaces, are links to elsewhere: a tool
/// that is given the other path does not come by the data directory's lock.
pub(super) async fn take_links(
    disk: &Disk,
    options: &Options,
    folders: &[TableFolder],
    locks: &mut Vec<DirLock>,
) -> Result<()> {
    let mut linked = BTreeSet::new();
    for data in &options.data_directories {
        let real_data = disk.real_path(data).await?;
        for folder in folders.iter().filter(|folder| folder.path.starts_with(data)) {
            let real = disk.real_path(&folder.path).await?;
            if !real.starts_with(&real_data) {
                linked.insert(real);
            }
        }
    }
    for directory in &linked {
        locks.push(disk.lock_dir(directory).await?);
    }
    Ok(())
}

/// Refuses a start beside a Cassandra. A note about each whose open files cannot be listed.
pub(super) async fn refuse_running(disk: &Disk, options: &Options) -> Result<Vec<String>> {
    let unseen = refuse_cassandra(disk, &options.data_directories).await.map_err(|e| match e {
        halcyon_compaction::Error::InUse { process, file } => Error::CannotStart(format!(
            "{process} works in this data directory: it has {} open. Run `nodetool drain`, stop it, and start again; nothing has been \
             touched",
            file.display()
        )),
        other => other.into(),
    })?;
    let note = |process| {
        format!(
            "{process} belongs to another user: whether it works in these directories cannot be seen; stop it if it does"
        )
    };
    Ok(unseen.iter().map(note).collect())
}
