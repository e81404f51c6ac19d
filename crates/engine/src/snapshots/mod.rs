//! Snapshots: hard links to a table's files in `snapshots/<name>/`, with `manifest.json`, and `schema.cql` for a table of users.
//!
//! They belong to the operator: they stay when their table is dropped, and are found by their folders, whether this node made them or not.

mod expiry;
mod manifest;
mod next_expiry;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::{Disk, Purpose, RateLimiter};
use halcyon_model::path_component;
use halcyon_schema::describe::snapshot_script;
use halcyon_schema::{is_local, is_replicated_system};
use halcyon_sstable::Component;
use halcyon_sstable::attached::index_of_component;
use halcyon_stream::TableId;

use crate::flush::Flusher;
use crate::start::directories::table_folders;
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::store::{Store, create_directories};
use crate::version::LiveSSTable;
use crate::{Error, Result};
use next_expiry::NextExpiry;

/// The names of what a snapshot has beside the files of SSTables.
const MANIFEST: &str = "manifest.json";
const SCHEMA: &str = "schema.cql";
/// How releases before 4.1 marked an ephemeral snapshot.
const EPHEMERAL: &str = "ephemeral.snapshot";
/// Far larger than any real manifest.
const MANIFEST_MAX: u64 = 64 << 20;
/// Cassandra's `cassandra.snapshot.min_allowed_ttl_seconds`.
const TTL_MIN_SECONDS: u64 = 60;

/// A snapshot of one table, over all data directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub name: String,
    pub keyspace: String,
    pub table: String,
    /// Milliseconds since 1970, as its manifest says it, or else the age of its folder.
    pub created_ms: i64,
    pub expires_ms: Option<i64>,
    /// For a moment only: Cassandra deletes it when it starts.
    pub ephemeral: bool,
    /// Of all its files.
    pub size_on_disk: u64,
    /// Of those that the table does not have any more: what its removal would free.
    pub true_size: u64,
    folders: Vec<PathBuf>,
}

/// How snapshots are to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotOptions {
    /// What is only in memtables will not be in them.
    pub skip_flush: bool,
    /// After this many seconds the node removes them.
    pub ttl_seconds: Option<u64>,
}

/// What a snapshot is to be called, when it was taken, and until when it is kept.
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    pub(crate) created_ms: i64,
    pub(crate) expires_ms: Option<i64>,
    /// Whether a table without SSTables gets one too.
    pub(crate) of_nothing: bool,
}

/// Takes, lists and removes snapshots, and removes those that have expired (`expiry.rs`).
pub struct Snapshots {
    storage: Arc<Storage>,
    tables: Arc<Tables>,
    flusher: Arc<Flusher>,
    next_expiry: NextExpiry,
    /// `snapshot_links_per_second`
    links: RateLimiter,
}

/// Gives all files of an SSTable second names in a folder.
pub(crate) async fn link_files(
    disk: &Disk,
    live: &LiveSSTable,
    folder: &Path,
    links: &RateLimiter,
) -> Result<()> {
    let (descriptor, listed) = (live.descriptor(), live.sstable().listed());
    let known = listed.components.iter().map(|c| c.file_suffix().to_owned());
    let is_index = |name: &str| index_of_component(name).is_some();
    let extra = listed.extra.iter().filter(|name| !is_index(name)).cloned();
    for component in known.chain(extra).chain(live.index_files()) {
        let path = descriptor.path_of(&component);
        let name = descriptor.file_prefix() + &component;
        links.acquire(1).await;
        match disk.hard_link(&path, &folder.join(name)).await {
            // Of an index that is just dropped or built again.
            Err(e) if e.is_not_found() && is_index(&component) => {}
            linked => linked?,
        }
    }
    Ok(())
}

impl Snapshots {
    pub(crate) fn new(flusher: &Arc<Flusher>) -> Arc<Snapshots> {
        let tables = flusher.tables.clone();
        let (disk, options) = (&tables.storage.disk, &tables.storage.options);
        let rate = Some(options.snapshot_links_per_second).filter(|rate| *rate > 0);
        Arc::new(Snapshots {
            links: RateLimiter::bytes_per_second(disk.clock().clone(), rate),
            storage: tables.storage.clone(),
            tables,
            flusher: flusher.clone(),
            next_expiry: NextExpiry::default(),
        })
    }

    /// How many links a second snapshots make from now on; 0: unlimited.
    pub fn set_links_per_second(&self, links: u64) {
        self.links.set_rate(Some(links).filter(|links| *links > 0));
    }

    /// One that no snapshot has yet: the clock may have been set back.
    async fn snapshot_name(&self, store: &Store, why: &str) -> Result<(String, i64)> {
        let mut millis = self.storage.disk.clock().unix_micros() / 1000;
        loop {
            let name = format!("{why}-{millis}-{}", store.table().schema.name);
            if !self.has_snapshot(store, &name).await? {
                return Ok((name, millis));
            }
            millis += 1;
        }
    }

    async fn has_snapshot(&self, store: &Store, name: &str) -> Result<bool> {
        for directory in &store.directories {
            if self.storage.disk.exists(&directory.join("snapshots").join(name)).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a snapshot of a table before it is dropped or truncated: `<why>-<ms>-<table>`.
    pub(crate) async fn take_before(&self, store: &Arc<Store>, why: &str) -> Result<()> {
        let (name, created_ms) = self.snapshot_name(store, why).await?;
        self.link(store, &Tag { name: &name, created_ms, expires_ms: None, of_nothing: false })
            .await
    }

    /// Takes snapshots of tables under one name, after a flush of each unless it is to be skipped (`nodetool snapshot`).
    pub fn take<'a>(
        &'a self,
        tables: &'a [TableId],
        name: &'a str,
        options: SnapshotOptions,
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if options.ttl_seconds.is_some_and(|seconds| seconds < TTL_MIN_SECONDS) {
                return Err(Error::Invalid(format!(
                    "ttl for snapshot must be at least {TTL_MIN_SECONDS} seconds"
                )));
            }
            check_name(name)?;
            let stores: Vec<Arc<Store>> =
                tables.iter().map(|table| self.tables.store_of(*table)).collect::<Result<_>>()?;
            for store in &stores {
                if self.has_snapshot(store, name).await? {
                    return Err(Error::Invalid(format!("Snapshot {name} already exists.")));
                }
            }
            let created_ms = self.storage.disk.clock().unix_micros() / 1000;
            let millis =
                |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
            let expires_ms =
                options.ttl_seconds.map(|seconds| created_ms.saturating_add(millis(seconds)));
            if let Some(expires_ms) = expires_ms {
                self.next_expiry.add(expires_ms);
            }
            for store in &stores {
                if !options.skip_flush {
                    self.flusher.flush(Some(store.id)).await?;
                }
                self.link(store, &Tag { name, created_ms, expires_ms, of_nothing: true }).await?;
            }
            Ok(())
        })
    }

    async fn link(&self, store: &Arc<Store>, tag: &Tag<'_>) -> Result<()> {
        let version = store.version.load_full();
        if version.is_empty() && !tag.of_nothing {
            return Ok(());
        }
        for (at, directory) in store.directories.iter().enumerate() {
            let folder = directory.join("snapshots").join(tag.name);
            let mut files = Vec::new();
            for live in version.sstables() {
                let descriptor = live.descriptor();
                if descriptor.directory != *directory {
                    continue;
                }
                if files.is_empty() {
                    create_directories(&self.storage.disk, std::slice::from_ref(&folder)).await?;
                }
                link_files(&self.storage.disk, live, &folder, &self.links).await?;
                files.push(format!("\"{}\"", descriptor.file_name(Component::Data)));
            }
            if files.is_empty() && (at > 0 || !tag.of_nothing) {
                continue;
            }
            create_directories(&self.storage.disk, std::slice::from_ref(&folder)).await?;
            self.describe_snapshot(store, &folder, tag, &files).await?;
        }
        Ok(())
    }

    async fn describe_snapshot(
        &self,
        store: &Store,
        folder: &Path,
        tag: &Tag<'_>,
        files: &[String],
    ) -> Result<()> {
        let manifest = manifest::text(files, tag.created_ms, tag.expires_ms);
        self.storage
            .disk
            .write_new(&folder.join(MANIFEST), manifest.as_bytes(), Purpose::Flush)
            .await?;
        let table = store.table();
        let keyspace = &table.schema.keyspace;
        let of_users = !is_local(keyspace) && !is_replicated_system(keyspace);
        if let Some(keyspace) = self.tables.catalog().keyspace(keyspace).filter(|_| of_users) {
            let script = snapshot_script(keyspace, &table);
            self.storage
                .disk
                .write_new(&folder.join(SCHEMA), script.as_bytes(), Purpose::Flush)
                .await?;
        }
        Ok(self.storage.disk.sync_dir(folder).await?)
    }

    /// The folders of a table's snapshots in one data directory.
    async fn snapshot_folders(&self, table: &Path) -> Result<Vec<PathBuf>> {
        let snapshots = table.join("snapshots");
        let entries =
            unless_not_found(self.storage.disk.list(&snapshots).await)?.unwrap_or_default();
        let folders = entries.into_iter().filter(|entry| entry.is_dir);
        Ok(folders.map(|entry| snapshots.join(entry.name)).collect())
    }

    /// All snapshots, those of dropped tables too.
    pub fn all(&self) -> LocalBoxFuture<'_, Result<Vec<Snapshot>>> {
        Box::pin(async move {
            let mut found: Vec<Snapshot> = Vec::new();
            for table in table_folders(&self.storage.disk, &self.storage.options).await? {
                let folders = self.snapshot_folders(&table.path).await?;
                if folders.is_empty() {
                    continue;
                }
                let live: HashSet<String> = self
                    .storage
                    .disk
                    .list(&table.path)
                    .await?
                    .into_iter()
                    .map(|entry| entry.name)
                    .collect();
                for folder in folders {
                    // One that is being removed does not count.
                    let read = match self.read_snapshot(&folder, &live).await {
                        Err(Error::Disk(e)) if e.is_not_found() => continue,
                        read => read?,
                    };
                    let same = |known: &&mut Snapshot| {
                        (&known.name, &known.keyspace, &known.table)
                            == (&read.name, &read.keyspace, &read.table)
                    };
                    match found.iter_mut().find(same) {
                        None => found.push(read),
                        Some(known) => {
                            known.size_on_disk += read.size_on_disk;
                            known.true_size += read.true_size;
                            known.folders.extend(read.folders);
                        }
                    }
                }
            }
            Ok(found)
        })
    }

    /// `folder` is `<keyspace>/<table>-<id>/snapshots/<name>`.
    async fn read_snapshot(&self, folder: &Path, live: &HashSet<String>) -> Result<Snapshot> {
        let names: Vec<String> = folder
            .ancestors()
            .take(4)
            .filter_map(|part| Some(part.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let [name, _, table, keyspace] = names.as_slice() else {
            return Err(Error::Invalid(format!("{} is not a snapshot", folder.display())));
        };
        let (mut size_on_disk, mut true_size) = (0, 0);
        let (mut manifest, mut marked) = (String::new(), false);
        for entry in self.storage.disk.list(folder).await?.into_iter().filter(|entry| !entry.is_dir)
        {
            let path = folder.join(&entry.name);
            let length = self.storage.disk.stat(&path).await?.len;
            size_on_disk += length;
            if !live.contains(&entry.name) {
                true_size += length;
            }
            match entry.name.as_str() {
                MANIFEST => manifest = self.manifest_of(folder).await?,
                EPHEMERAL => marked = true,
                _ => {}
            }
        }
        let by_age = self.storage.disk.stat(folder).await?.modified_ms;
        Ok(Snapshot {
            name: name.clone(),
            keyspace: keyspace.clone(),
            table: table.rsplit_once('-').map_or(table.as_str(), |(table, _)| table).to_owned(),
            created_ms: manifest::time(&manifest, "created_at").unwrap_or(by_age),
            expires_ms: manifest::time(&manifest, "expires_at"),
            ephemeral: marked || manifest::is_ephemeral(&manifest),
            size_on_disk,
            true_size,
            folders: vec![folder.to_path_buf()],
        })
    }

    /// Deletes the snapshots that are wanted, each with its folders.
    pub async fn clear(&self, wanted: impl Fn(&Snapshot) -> bool) -> Result<()> {
        for snapshot in self.all().await?.into_iter().filter(|snapshot| wanted(snapshot)) {
            for folder in &snapshot.folders {
                remove_folder(&self.storage.disk, folder).await?;
            }
        }
        Ok(())
    }

    async fn manifest_of(&self, folder: &Path) -> Result<String> {
        let bytes = self.storage.disk.read(&folder.join(MANIFEST), MANIFEST_MAX).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Milliseconds since 1970; `None` if the snapshot is to be kept, or if its manifest does not say when it was taken.
    async fn expiry_of(&self, folder: &Path) -> Result<Option<i64>> {
        let manifest = match self.manifest_of(folder).await {
            Err(Error::Disk(e)) if e.is_not_found() => return Ok(None),
            manifest => manifest?,
        };
        let time = |field| manifest::time(&manifest, field);
        Ok(time("created_at").and(time("expires_at")))
    }
}

/// Removes a folder with what is in it: folders of indexes, too. The manifest of a snapshot goes last: after a crash it still says when the
/// rest expires.
pub async fn remove_folder(disk: &Disk, folder: &Path) -> Result<()> {
    let mut entries = unless_not_found(disk.list(folder).await)?.unwrap_or_default();
    entries.sort_by_key(|entry| entry.name == MANIFEST);
    for entry in entries {
        let path = folder.join(&entry.name);
        match entry.is_dir {
            true => Box::pin(remove_folder(disk, &path)).await?,
            false => drop(unless_not_found(disk.remove(&path).await)?),
        }
    }
    unless_not_found(disk.remove(folder).await)?;
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let refusal = match name {
        "" => "You must supply a snapshot name.".to_owned(),
        "." | ".." => format!("Snapshot {name} already exists."),
        name if name.contains(['/', '\0']) => "Snapshot name cannot contain /".to_owned(),
        name => match path_component(name) {
            Ok(_) => return Ok(()),
            // Of what it refuses, only the length is left.
            Err(_) => "Snapshot name has more than 255 bytes".to_owned(),
        },
    };
    Err(Error::Invalid(refusal))
}

/// Two concurrent removals of one snapshot both succeed.
fn unless_not_found<T>(done: halcyon_io::Result<T>) -> Result<Option<T>> {
    match done {
        Err(e) if e.is_not_found() => Ok(None),
        done => Ok(Some(done?)),
    }
}
