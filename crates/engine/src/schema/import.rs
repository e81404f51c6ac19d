//! `nodetool import`: SSTables of other directories become part of a table.
//!
//! 1. The SSTables of each directory are checked before anything is written. A directory with one that is not sound is left as it is;
//!    the others are imported all the same.
//! 2. The files of a directory get second names (hard links; on another device, copies) with fresh ids in a folder of the table. A
//!    transaction log names them before they are there.
//! 3. COMMIT makes all of the directory part of the table. Only then are the files in the directory deleted, if they are moved.
//!
//! A kill before COMMIT leaves the table without and the directory with all of its files; after COMMIT, the table with them. Files that
//! are still in the directory then are second names.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_compaction::txn_log::Transaction;
use halcyon_io::{AccessMode, Disk, Purpose, StreamOptions, ThreadPriority};
use halcyon_schema::index::IndexKind;
use halcyon_sstable::format::listing::{self, ListedSSTable, UnreadableName};
use halcyon_sstable::format::statistics::mutation::{Mutation, RepairState};
use halcyon_sstable::verify::{Extent, VerifyOptions};
use halcyon_sstable::{Component, Descriptor, Error as SSTableError};
use halcyon_stream::TableId;

use super::Schema;
use crate::background::{Background, JobKind};
use crate::compact::mutated_statistics;
use crate::report::verify::problems_of;
use crate::shard::Shard;
use crate::start::set_apart::in_order;
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable};
use crate::{Error, Result};

/// What is done to SSTables that are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportOptions {
    /// Else it is only tried whether they can be opened.
    pub verifies: bool,
    /// Each row is decoded, and index and filter are compared with it.
    pub is_extended: bool,
    /// Else they are of level 0.
    pub keeps_level: bool,
    /// Else they are unrepaired.
    pub keeps_repaired: bool,
    /// Reads that the row cache answers do not know the new rows otherwise.
    pub invalidates_caches: bool,
    /// The directories keep their files.
    pub copies: bool,
    /// SSTables without the files of each attached index are refused.
    pub needs_indexes: bool,
}

/// What became of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub sstables: usize,
    /// Directories that were left as they are, and why.
    pub failed: Vec<(PathBuf, String)>,
}

impl Schema {
    /// Imports the SSTables of directories; those of one directory all or none.
    pub fn import(
        self: &Arc<Schema>,
        table: TableId,
        directories: Vec<PathBuf>,
        options: ImportOptions,
    ) -> LocalBoxFuture<'_, Result<Imported>> {
        Box::pin(async move {
            self.reporter.check()?;
            let store = self.tables.store_of(table)?;
            for directory in &directories {
                if !self.storage.disk.exists(directory).await? {
                    let directory = directory.display();
                    return Err(Error::Invalid(format!("Directory {directory} does not exist")));
                }
            }
            let mut imported = Imported::default();
            let mut sound = Vec::new();
            for directory in directories {
                let found = self.importable(&store, &directory, options).await;
                match found {
                    Ok(found) => sound.push((directory, found)),
                    Err(why) => imported.failed.push((directory, why.to_string())),
                }
            }
            for (directory, found) in sound {
                match self.import_directory(&store, &directory, &found, options).await {
                    Ok(()) => imported.sstables += found.len(),
                    Err(why) => imported.failed.push((directory, why.to_string())),
                }
            }
            if options.invalidates_caches && imported.sstables > 0 {
                let forget = move |shard: Rc<Shard>| async move { shard.rows.forget_table(table) };
                self.tables.mesh.on_each(forget).await.into_iter().collect::<Result<(), _>>()?;
            }
            self.tables.tend_indexes(&store);
            self.indexes.wait(table).await;
            self.tables.schedule.consider(&store);
            Ok(imported)
        })
    }

    /// The SSTables of a directory, if all are sound.
    async fn importable(
        &self,
        store: &Arc<Store>,
        directory: &Path,
        options: ImportOptions,
    ) -> Result<Vec<ListedSSTable>> {
        let disk = &self.storage.disk;
        let real = disk.real_path(directory).await?;
        for other in self.tables.stores.load().values().flat_map(|store| &store.directories) {
            if disk.real_path(other).await.is_ok_and(|other| other == real) {
                return Err(Error::Invalid(format!(
                    "{} is a folder of a table of this node; `nodetool refresh` takes in what is put there",
                    directory.display()
                )));
            }
        }
        let entries = disk.list(directory).await?;
        let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
        let listing = listing::group(directory, names);
        if let Some(UnreadableName { name, why }) = listing.unreadable.into_iter().next() {
            return Err(SSTableError::Unsupported { path: directory.join(name), what: why }.into());
        }
        for listed in listing.sstables.iter().filter(|_| options.needs_indexes) {
            check_indexes(store, listed)?;
        }
        if options.verifies {
            let extent = if options.is_extended { Extent::Rows } else { Extent::Digest };
            self.check(store, &listing.sstables, extent).await?;
        }
        Ok(listing.sstables)
    }

    /// A thread of idle priority reads the files.
    async fn check(
        &self,
        store: &Arc<Store>,
        found: &[ListedSSTable],
        extent: Extent,
    ) -> Result<()> {
        let disk = self.storage.disk.clone();
        let background = Background::start(disk.runtime(), "verify", 1, ThreadPriority::Idle);
        let schema = Some(store.definition.load().schema.clone());
        let mode = self.storage.options.background_read_mode;
        let descriptors: Vec<Descriptor> =
            found.iter().map(|listed| listed.descriptor.clone()).collect();
        let job = move || async move {
            let options = VerifyOptions { extent, schema, mode };
            for descriptor in descriptors {
                if let Some(problem) = problems_of(&disk, &descriptor, &options).await.first() {
                    let path = descriptor.component_path(Component::Data);
                    return Err(Error::Invalid(format!("{}: {problem}", path.display())));
                }
            }
            Ok(())
        };
        background.run(JobKind::Long, job).await?
    }

    async fn import_directory(
        &self,
        store: &Arc<Store>,
        directory: &Path,
        found: &[ListedSSTable],
        options: ImportOptions,
    ) -> Result<()> {
        let disk = &self.storage.disk;
        if found.is_empty() {
            return Ok(());
        }
        let folder = store.roomiest(disk).await?.to_path_buf();
        let id = halcyon_compaction::transaction_id(disk);
        let version = self.storage.version;
        let mut transaction =
            Transaction::begin(disk, [folder.clone()], "import", &id, version).await?;
        let placed = self.link(store, &folder, found, options, &mut transaction).await;
        let added = match placed {
            Ok(added) => added,
            Err(e) => {
                // If the abort fails too, the log remains, and recovery at the next start finishes the abort.
                let _ = transaction.abort().await;
                return Err(e);
            }
        };
        let committed = transaction.commit().await;
        if matches!(committed, Ok(_) | Err(halcyon_compaction::Error::InDoubt(_))) {
            self.tables.admit(store, added.clone(), Edit::add).await;
            self.tables.back_up(store, &added).await;
        }
        // Only the log is left; the next start deletes it if this fails.
        let _ = committed?.delete().await;
        if !options.copies {
            for name in found.iter().flat_map(names) {
                disk.remove(&directory.join(name)).await?;
            }
            disk.sync_dir(directory).await?;
        }
        Ok(())
    }

    /// Gives the files their second names, durably, and opens them.
    async fn link(
        &self,
        store: &Arc<Store>,
        folder: &Path,
        found: &[ListedSSTable],
        options: ImportOptions,
        transaction: &mut Transaction,
    ) -> Result<Vec<Arc<LiveSSTable>>> {
        let disk = &self.storage.disk;
        let schema = store.definition.load().schema.clone();
        let mut added = Vec::with_capacity(found.len());
        for listed in found {
            let version = listed.descriptor.version;
            let fresh = async || {
                let id = store.fresh_id(disk, &self.storage.options);
                Ok(Descriptor::new(folder.to_path_buf(), version, id))
            };
            let descriptor = transaction.add_fresh(fresh).await?;
            let prefix = listed.descriptor.file_prefix();
            for name in names(listed) {
                let component = name.strip_prefix(&prefix).unwrap_or_default();
                let from = listed.descriptor.directory.join(&name);
                let to = folder.join(descriptor.file_prefix() + component);
                match component == Component::Statistics.to_string() {
                    true => self.write_statistics(&from, &to, &descriptor, options).await?,
                    false => link_file(disk, &from, &to, options.copies).await?,
                }
            }
            let mode = self.storage.options.read_mode;
            let live = LiveSSTable::open(disk, &descriptor, &schema, mode).await?;
            added.push(in_order(live, &schema)?);
        }
        disk.sync_dir(folder).await?;
        Ok(added)
    }

    async fn write_statistics(
        &self,
        from: &Path,
        to: &Path,
        descriptor: &Descriptor,
        options: ImportOptions,
    ) -> Result<()> {
        let unrepaired = RepairState { repaired_at: 0, pending_repair: None, is_transient: false };
        let mutation = Mutation {
            level: (!options.keeps_level).then_some(0),
            repair: (!options.keeps_repaired).then_some(unrepaired),
        };
        let disk = &self.storage.disk;
        let new = mutated_statistics(disk, from, descriptor.version, mutation).await?;
        Ok(disk.write_new(to, &new, Purpose::Stream).await?)
    }
}

/// The names of all files of an SSTable.
fn names(listed: &ListedSSTable) -> Vec<String> {
    let prefix = listed.descriptor.file_prefix();
    let known = listed.components.iter().map(ToString::to_string);
    known.chain(listed.extra.iter().cloned()).map(|name| prefix.clone() + &name).collect()
}

async fn link_file(disk: &Disk, from: &Path, to: &Path, copies: bool) -> Result<()> {
    if !copies && disk.hard_link(from, to).await.is_ok() {
        // Its writer may not have synced it.
        if disk.append_sync(to, &[]).await.is_ok() {
            return Ok(());
        }
        disk.remove(to).await?;
    }
    let (mode, options) = (AccessMode::Auto, StreamOptions::default());
    let mut reader = disk.open_sequential(from, mode, Purpose::Stream, options).await?;
    let mut writer = disk.create(to, mode, Purpose::Stream, reader.len()).await?;
    loop {
        let bytes = reader.fill(1).await?;
        if bytes.is_empty() {
            break;
        }
        writer.write(bytes).await?;
        let length = bytes.len();
        reader.consume(length);
    }
    writer.finish().await?;
    Ok(())
}

/// Whether Cassandra's files of each attached index are there, by their names.
fn check_indexes(store: &Store, listed: &ListedSSTable) -> Result<()> {
    let table = store.table();
    for index in table.indexes.iter().filter(|index| matches!(index.kind, IndexKind::Sai)) {
        let wanted = format!("+{}+ColumnComplete.db", index.name);
        if !listed.extra.iter().any(|name| name.starts_with("SAI+") && name.ends_with(&wanted)) {
            return Err(Error::Invalid(format!(
                "Missing SAI index to import for index {} on {}",
                index.name,
                table.full_name()
            )));
        }
    }
    Ok(())
}
