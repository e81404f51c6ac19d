//! An SSTable of the live set.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use halcyon_compaction::Kind;
use halcyon_compaction::txn_log::ReplacedFiles;
use halcyon_io::{AccessMode, Disk, Mutex};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::read::SSTableReader;
use halcyon_sstable::{Component, Descriptor, OpenOptions, SSTable};

use super::hotness::Hotness;
use crate::Result;
use crate::background::{Background, Job};
use crate::index::{Attached, files_of};

/// An SSTable that is open by one schema. Immutable but for its [`Identity`].
pub(crate) struct LiveSSTable {
    pub(crate) table: Arc<SSTableReader>,
    /// By which it is read.
    pub(crate) schema: Arc<TableSchema>,
    /// When its data was written, milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Of all its components.
    pub(crate) bytes_on_disk: u64,
    pub(crate) kind: Kind,
    pub(crate) identity: Arc<Identity>,
}

/// What stays the same when an SSTable is opened again, by an altered schema or with another level: compactions that have claimed it
/// and caches know it by its serial number.
pub(crate) struct Identity {
    /// Unique in the node.
    pub(crate) serial: u64,
    /// Not compacted until the next start: it is corrupt, or a transaction that replaces it may or may not have been committed.
    pub(crate) suspect: AtomicBool,
    pub(crate) hotness: Hotness,
    /// The files of its indexes.
    pub(crate) attached: Attached,
    obsolete: OnceLock<Arc<Obsolete>>,
}

impl Identity {
    fn fresh(disk: &Disk, sstable: &SSTable) -> Arc<Identity> {
        Arc::new(Identity {
            serial: disk.next_id(),
            suspect: AtomicBool::new(false),
            hotness: Hotness::default(),
            attached: files_of(sstable.listed()),
            obsolete: OnceLock::new(),
        })
    }
}

/// When the last holder drops SSTables that a committed transaction has made obsolete, a background thread does the rest.
struct Obsolete {
    rest: Mutex<Option<Job>>,
    background: Arc<Background>,
}

/// SSTables that a committed transaction has replaced: their files are deleted when the last holder drops them, and what was known of them
/// and cached is freed.
pub(crate) fn replaced(
    sstables: &[Arc<LiveSSTable>],
    leftovers: ReplacedFiles,
    forget: Job,
    background: Arc<Background>,
) {
    // The last holder is a shard as a rule. Filters and positions of partitions are many allocations: it would stand still meanwhile.
    let readers: Vec<_> = sstables.iter().map(|live| live.table.clone()).collect();
    let rest = async move || {
        forget().await;
        // The log stays if a file cannot be deleted, so that the next start deletes it.
        let _ = leftovers.delete().await;
        drop(readers);
    };
    let rest: Job = Box::new(move || Box::pin(rest()));
    let obsolete = Arc::new(Obsolete { rest: Mutex::new(Some(rest)), background });
    for live in sstables {
        // A second one could only say the same.
        let _ = live.identity.obsolete.set(obsolete.clone());
    }
}

impl Drop for Obsolete {
    fn drop(&mut self) {
        let rest = self.rest.get_mut();
        if let Some(rest) = rest.take() {
            self.background.later(rest);
        }
    }
}

impl LiveSSTable {
    pub(crate) async fn open_listed(
        disk: &Disk,
        listed: &ListedSSTable,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<LiveSSTable>> {
        let options = OpenOptions { schema: Some(schema.clone()) };
        let sstable = SSTable::open_listed(disk, listed, options).await?;
        LiveSSTable::of(disk, sstable, schema, mode).await
    }

    pub(crate) async fn open(
        disk: &Disk,
        descriptor: &Descriptor,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<LiveSSTable>> {
        let options = OpenOptions { schema: Some(schema.clone()) };
        let sstable = SSTable::open(disk, descriptor, options).await?;
        LiveSSTable::of(disk, sstable, schema, mode).await
    }

    /// The same SSTable by another schema, or after its statistics have changed.
    pub(crate) async fn reopen(
        &self,
        disk: &Disk,
        schema: &Arc<TableSchema>,
    ) -> Result<Arc<LiveSSTable>> {
        let options = OpenOptions { schema: Some(schema.clone()) };
        let sstable = Arc::new(self.sstable().reopen(disk, options).await?);
        let (schema, kind) = (schema.clone(), halcyon_compaction::kind(&sstable));
        let (created_ms, bytes_on_disk) = (self.created_ms, self.bytes_on_disk);
        let (table, identity) = (Arc::new(self.table.reopened(sstable)), self.identity.clone());
        Ok(Arc::new(LiveSSTable { table, schema, created_ms, bytes_on_disk, kind, identity }))
    }

    async fn of(
        disk: &Disk,
        sstable: SSTable,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<LiveSSTable>> {
        let identity = Identity::fresh(disk, &sstable);
        let data = sstable.descriptor().component_path(Component::Data);
        let created_ms = disk.stat(&data).await?.modified_ms;
        let bytes_on_disk = bytes_on_disk(disk, &sstable).await?;
        let kind = halcyon_compaction::kind(&sstable);
        let table =
            Arc::new(SSTableReader::open(disk, Arc::new(sstable), identity.serial, mode).await?);
        let schema = schema.clone();
        Ok(Arc::new(LiveSSTable { table, schema, created_ms, bytes_on_disk, kind, identity }))
    }

    pub(crate) fn sstable(&self) -> &Arc<SSTable> {
        self.table.sstable()
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.sstable().descriptor()
    }

    pub(crate) fn serial(&self) -> u64 {
        self.identity.serial
    }

    pub(crate) fn max_timestamp(&self) -> i64 {
        self.sstable().statistics().stats.max_timestamp
    }

    pub(crate) fn min_timestamp(&self) -> i64 {
        self.sstable().statistics().stats.min_timestamp
    }

    /// First and last token.
    pub(crate) fn tokens(&self) -> (i64, i64) {
        (self.table.first_key().token, self.table.last_key().token)
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.identity.suspect.load(Relaxed)
    }

    pub(crate) fn suspect(&self) {
        self.identity.suspect.store(true, Relaxed);
    }
}

async fn bytes_on_disk(disk: &Disk, sstable: &SSTable) -> Result<u64> {
    let descriptor = sstable.descriptor();
    let mut bytes = 0;
    for component in &sstable.listed().components {
        bytes += disk.stat(&descriptor.component_path(*component)).await?.len;
    }
    Ok(bytes)
}
