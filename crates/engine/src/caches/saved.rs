//! Saves and warms the key and row caches, in Cassandra's files, so that a directory taken over from Cassandra starts warm. (Cassandra
//! reads our files only under the schema version that it computes itself, and ignores them otherwise.)
//!
//! 1. A save collects the entries of each shard in turn and replaces the files. It deletes the old ones first and writes the `.db` file
//!    last: without it nothing is loaded.
//! 2. A load trusts no position: it looks each key up in its SSTable on the owner shard, and reads each partition of the row cache. So an
//!    old file, or one of another node, is useless but harmless.
//! 3. A damaged or unknown file is kept and reported in the log.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::Purpose;
use halcyon_io::clock::Instant;
use halcyon_model::Cursor;
use halcyon_sstable::format::saved_cache::{
    SavedMetadata, SavedSSTable, VERSION, crc_of, entries, put_position, put_row, read_position,
    read_row,
};
use halcyon_sstable::{Format, SSTableId};
use halcyon_stream::{PartitionKey, Slices, TableId};

use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::version::LiveSSTable;
use crate::{Error, Read, ReadTarget, Result, Shard};

/// Far larger than any saved cache.
const FILE_MAX: u64 = 1 << 30;
/// Keys that a shard looks up before it yields to other tasks.
const BATCH: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedCache {
    Keys,
    Rows,
}

impl SavedCache {
    fn name(self) -> &'static str {
        match self {
            SavedCache::Keys => "KeyCache",
            SavedCache::Rows => "RowCache",
        }
    }
}

impl fmt::Display for SavedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An entry to warm: a partition in one SSTable, or in the row cache.
enum Wanted {
    Position(Arc<LiveSSTable>, PartitionKey),
    Head(Arc<Store>, PartitionKey),
}

impl Wanted {
    fn key(&self) -> &PartitionKey {
        match self {
            Wanted::Position(_, key) | Wanted::Head(_, key) => key,
        }
    }
}

impl Shard {
    async fn warm(&self, wanted: Vec<Wanted>) {
        for wanted in wanted {
            // An unreadable entry is skipped here; a client's read reports it.
            match wanted {
                Wanted::Position(live, key) => {
                    let _ = live.table.find(&self.caches.uncounted(), &key).await;
                }
                Wanted::Head(store, key) => {
                    let target = ReadTarget::Partition(key);
                    let read = Read { table: store.table(), target, slices: Slices::all() };
                    let _ = self.read(read).await;
                }
            }
        }
    }
}

/// The files of the caches, and the tables whose caches they are.
pub struct SavedCaches<'a> {
    tables: &'a Tables,
    storage: &'a Storage,
}

impl<'a> SavedCaches<'a> {
    pub(crate) fn of(tables: &'a Tables) -> SavedCaches<'a> {
        SavedCaches { tables, storage: &tables.storage }
    }

    fn path(&self, cache: SavedCache, extension: &str) -> PathBuf {
        let name = format!("{}-{VERSION}.{extension}", cache.name());
        self.storage.options.saved_caches_directory.join(name)
    }

    /// Saves at most `most` entries of a cache over all shards; returns their number. Must not be called on a shard's thread.
    pub fn save(self, cache: SavedCache, most: usize) -> LocalBoxFuture<'a, Result<usize>> {
        Box::pin(async move {
            let version = self.tables.catalog().version;
            let (db, count, metadata) = match cache {
                SavedCache::Keys => self.saved_keys(version.to_vec(), most).await?,
                SavedCache::Rows => self.saved_rows(version.to_vec(), most).await?,
            };
            let disk = &self.storage.disk;
            let directory = &self.storage.options.saved_caches_directory;
            disk.create_dir_all(directory).await?;
            let files = [
                ("metadata", metadata.encode(cache == SavedCache::Keys)),
                ("crc", crc_of(&db)),
                ("db", db),
            ];
            for (extension, _) in files.iter().rev() {
                let path = self.path(cache, extension);
                if disk.exists(&path).await? {
                    disk.remove(&path).await?;
                }
            }
            if count == 0 {
                return Ok(0);
            }
            for (extension, bytes) in &files {
                let temporary = self.path(cache, &format!("{extension}.tmp"));
                if disk.exists(&temporary).await? {
                    disk.remove(&temporary).await?;
                }
                disk.write_new(&temporary, bytes, Purpose::Flush).await?;
                disk.rename(&temporary, &self.path(cache, extension)).await?;
            }
            disk.sync_dir(directory).await?;
            Ok(count)
        })
    }

    async fn saved_keys(
        &self,
        mut db: Vec<u8>,
        most: usize,
    ) -> Result<(Vec<u8>, usize, SavedMetadata)> {
        let mut metadata = SavedMetadata::default();
        let mut numbers = HashMap::new();
        for store in self.tables.stores.load().values() {
            let version = store.version.load();
            let big = |live: &&Arc<LiveSSTable>| live.descriptor().version.format == Format::Big;
            for live in version.sstables().iter().filter(big) {
                if metadata.tables.last().is_none_or(|(id, _)| *id != store.id) {
                    metadata.tables.push((store.id, String::new()));
                }
                numbers.insert(live.table.id(), metadata.sstables.len());
                metadata.sstables.push(SavedSSTable {
                    table: metadata.tables.len() - 1,
                    version: live.descriptor().version,
                    id: live.descriptor().id,
                });
            }
        }
        let numbers = Arc::new(numbers);
        let mut count = 0;
        // One shard after the other: the next one adds what the former have left of `most`.
        for index in 0..self.tables.shard_count() {
            let (numbers, left) = (numbers.clone(), most - count);
            let job = move |shard: std::rc::Rc<Shard>| async move {
                let (mut bytes, mut count) = (Vec::new(), 0);
                shard.caches.positions(|sstable, key, position| {
                    if let Some(number) = numbers.get(&sstable).filter(|_| count < left) {
                        put_position(*number, key, position, &mut bytes);
                        count += 1;
                    }
                });
                (bytes, count)
            };
            let (bytes, more) = self.tables.mesh.on(index, job).await?;
            db.extend(bytes);
            count += more;
        }
        Ok((db, count, metadata))
    }

    async fn saved_rows(
        &self,
        mut db: Vec<u8>,
        most: usize,
    ) -> Result<(Vec<u8>, usize, SavedMetadata)> {
        let tables: Vec<TableId> = self.tables.stores.load().keys().copied().collect();
        let numbers = tables.iter().copied().zip(0..).collect::<HashMap<TableId, usize>>();
        let tables = tables.into_iter().map(|id| (id, String::new())).collect();
        let metadata = SavedMetadata { tables, sstables: Vec::new() };
        let mut count = 0;
        // One shard after the other: the keys of all would be in memory at once.
        for index in 0..self.tables.shard_count() {
            let job = |shard: std::rc::Rc<Shard>| async move { shard.rows.keys() };
            for (table, key) in self.tables.mesh.on(index, job).await? {
                if let Some(number) = numbers.get(&table).filter(|_| count < most) {
                    put_row(*number, &key, &mut db);
                    count += 1;
                }
            }
        }
        Ok((db, count, metadata))
    }

    /// Warms a cache from its saved file until `deadline`; returns the number of entries, `None` without a file.
    pub fn load(
        self,
        cache: SavedCache,
        deadline: Instant,
    ) -> LocalBoxFuture<'a, Result<Option<usize>>> {
        Box::pin(async move {
            let mut files = Vec::new();
            for extension in ["metadata", "crc", "db"] {
                let path = self.path(cache, extension);
                if !self.storage.disk.exists(&path).await? {
                    return Ok(None);
                }
                files.push(self.storage.disk.read(&path, FILE_MAX).await?);
            }
            let [metadata, crc, db] = files.as_slice() else { return Ok(None) };
            let unusable = |extension: &str, e: halcyon_model::DecodeError| {
                let path = self.path(cache, extension);
                Error::Invalid(format!("{}: offset {}: {}", path.display(), e.offset, e.what))
            };
            let metadata = SavedMetadata::decode(metadata, cache == SavedCache::Keys)
                .map_err(|e| unusable("metadata", e))?;
            let cursor = entries(db, crc).map_err(|e| unusable("db", e))?;
            let (wanted, failure) = match cache {
                SavedCache::Keys => self.wanted_keys(&metadata, cursor),
                SavedCache::Rows => self.wanted_rows(&metadata, cursor),
            };
            let count = self.warm(wanted, deadline).await?;
            match failure {
                Some(e) if count == 0 => Err(unusable("db", e)),
                _ => Ok(Some(count)),
            }
        })
    }

    /// The live SSTables of the metadata, and their tables.
    fn saved_sstables(
        &self,
        metadata: &SavedMetadata,
    ) -> Vec<Option<(Arc<Store>, Arc<LiveSSTable>)>> {
        let stores = self.tables.stores.load();
        let by_id = |(id, index): &(TableId, String)| {
            let store = stores.get(id).filter(|_| index.is_empty())?;
            let version = store.version.load();
            let live = version.sstables().iter().map(|live| (live.descriptor().id, live.clone()));
            Some((store, live.collect::<BTreeMap<SSTableId, Arc<LiveSSTable>>>()))
        };
        let tables: Vec<_> = metadata.tables.iter().map(by_id).collect();
        let find = |saved: &SavedSSTable| {
            let (store, live) = tables.get(saved.table)?.as_ref()?;
            let live = live.get(&saved.id)?;
            (live.descriptor().version == saved.version).then(|| ((*store).clone(), live.clone()))
        };
        metadata.sstables.iter().map(find).collect()
    }

    /// The entries before the first invalid one.
    fn wanted_keys(
        &self,
        metadata: &SavedMetadata,
        mut cursor: Cursor<'_>,
    ) -> (Vec<Wanted>, Option<halcyon_model::DecodeError>) {
        let sstables = self.saved_sstables(metadata);
        let tables: Vec<_> = sstables.iter().map(|found| Some(found.as_ref()?.0.table())).collect();
        let mut wanted = Vec::new();
        while cursor.remaining() > 0 {
            let clusterings = |number: usize| {
                let table = tables.get(number).and_then(Option::as_ref);
                table.map(|table| &table.layout.clusterings)
            };
            let (number, key) = match read_position(&mut cursor, metadata, clusterings) {
                Ok(entry) => entry,
                Err(e) => return (wanted, Some(e)),
            };
            let found = sstables.get(number).and_then(Option::as_ref);
            if let Some((store, live)) = found
                && store.definition.load().caching.keys
            {
                wanted.push(Wanted::Position(live.clone(), PartitionKey::of(&key)));
            }
        }
        (wanted, None)
    }

    fn wanted_rows(
        &self,
        metadata: &SavedMetadata,
        mut cursor: Cursor<'_>,
    ) -> (Vec<Wanted>, Option<halcyon_model::DecodeError>) {
        let stores = self.tables.stores.load();
        let mut wanted = Vec::new();
        while cursor.remaining() > 0 {
            let (number, key) = match read_row(&mut cursor) {
                Ok(entry) => entry,
                Err(e) => return (wanted, Some(e)),
            };
            let store = metadata.tables.get(number).and_then(|(id, _)| stores.get(id));
            if let Some(store) = store
                && self.storage.options.row_cache_size > 0
                && store.definition.load().caching.rows.is_some()
            {
                wanted.push(Wanted::Head(store.clone(), PartitionKey::of(&key)));
            }
        }
        (wanted, None)
    }

    async fn warm(&self, mut wanted: Vec<Wanted>, deadline: Instant) -> Result<usize> {
        // Look up neighbouring keys of an index together.
        wanted.sort_by_key(|wanted| wanted.key().token);
        let mut count = 0;
        let mut wanted = wanted.into_iter();
        while self.storage.disk.clock().now() < deadline {
            let mut batch = Vec::new();
            let mut owner = None;
            // Shards own token ranges, so a batch of sorted keys is mostly of one shard.
            for wanted in wanted.by_ref().take(BATCH) {
                let index = self.tables.owner(wanted.key().token);
                if *owner.get_or_insert(index) != index {
                    self.tables
                        .mesh
                        .on(index, |shard| async move { shard.warm(vec![wanted]).await })
                        .await?;
                } else {
                    batch.push(wanted);
                }
                count += 1;
            }
            let Some(owner) = owner else { break };
            self.tables.mesh.on(owner, |shard| async move { shard.warm(batch).await }).await?;
        }
        Ok(count)
    }
}
