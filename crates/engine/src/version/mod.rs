//! The live SSTables of a table: one immutable view, replaced as a whole.
//!
//! 1. Whoever reads takes the view and keeps it until it is done. With it it holds the SSTables.
//! 2. A flush or compaction makes the next view. What is replaced is marked with the transaction that replaced it.
//! 3. When nobody holds any of the replaced ones any more, their files are deleted, then the transaction's log.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use halcyon_compaction::txn_log::Leftovers;
use halcyon_io::{AccessMode, Disk};
use halcyon_model::schema::TableSchema;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::read::SSTableReader;
use halcyon_sstable::{Component, Descriptor, OpenOptions, SSTable};

use crate::Result;
use crate::background::Background;

/// One SSTable of a view.
pub(crate) struct Live {
    pub(crate) table: Arc<SSTableReader>,
    /// By which it is read.
    pub(crate) schema: Arc<TableSchema>,
    /// When its data was written, milliseconds since 1970.
    pub(crate) created_ms: i64,
    /// Of all its components.
    pub(crate) bytes_on_disk: u64,
    /// A compaction has found it corrupt: it is compacted no more.
    pub(crate) suspect: AtomicBool,
    obsolete: OnceLock<Arc<Obsolete>>,
}

/// Deletes replaced files when the last of those that share this is gone.
pub(crate) struct Obsolete {
    leftovers: Option<Leftovers>,
    background: Arc<Background>,
}

impl Obsolete {
    pub(crate) fn new(leftovers: Leftovers, background: Arc<Background>) -> Arc<Obsolete> {
        Arc::new(Obsolete { leftovers: Some(leftovers), background })
    }
}

impl Drop for Obsolete {
    fn drop(&mut self) {
        if let Some(leftovers) = self.leftovers.take() {
            self.background.later(move || async move {
                // What cannot be deleted now is by the next start: the log stays.
                let _ = leftovers.delete().await;
            });
        }
    }
}

impl Live {
    pub(crate) async fn open_listed(
        disk: &Disk,
        listed: &ListedSSTable,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<Live>> {
        let options = OpenOptions { schema: Some(schema.clone()) };
        Live::of(disk, SSTable::open_listed(disk, listed, options).await?, schema, mode).await
    }

    pub(crate) async fn open(
        disk: &Disk,
        descriptor: &Descriptor,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<Live>> {
        let options = OpenOptions { schema: Some(schema.clone()) };
        Live::of(disk, SSTable::open(disk, descriptor, options).await?, schema, mode).await
    }

    async fn of(
        disk: &Disk,
        sstable: SSTable,
        schema: &Arc<TableSchema>,
        mode: AccessMode,
    ) -> Result<Arc<Live>> {
        let data = sstable.descriptor().component_path(Component::Data);
        let created_ms = disk.stat(&data).await?.modified_ms;
        let bytes_on_disk = bytes_on_disk(disk, &sstable).await?;
        let table = Arc::new(SSTableReader::open(disk, Arc::new(sstable), mode).await?);
        Ok(Arc::new(Live {
            table,
            schema: schema.clone(),
            created_ms,
            bytes_on_disk,
            suspect: AtomicBool::new(false),
            obsolete: OnceLock::new(),
        }))
    }

    pub(crate) fn sstable(&self) -> &Arc<SSTable> {
        self.table.sstable()
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.sstable().descriptor()
    }

    /// Its files go when its last holder goes.
    pub(crate) fn replaced_by(&self, transaction: &Arc<Obsolete>) {
        // A second one could only say the same.
        let _ = self.obsolete.set(transaction.clone());
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

#[derive(Default)]
pub(crate) struct View {
    /// Oldest first, by newest timestamp, as a merge wants them.
    pub(crate) sstables: Vec<Arc<Live>>,
}

impl View {
    pub(crate) fn of(mut sstables: Vec<Arc<Live>>) -> View {
        let age = |live: &Arc<Live>| {
            (live.sstable().statistics().stats.max_timestamp, live.descriptor().clone())
        };
        sstables.sort_by_key(age);
        View { sstables }
    }

    /// The view without `gone` and with `added`.
    pub(crate) fn replace(&self, gone: &[Arc<Live>], added: &[Arc<Live>]) -> View {
        let stays = |live: &&Arc<Live>| !gone.iter().any(|g| g.descriptor() == live.descriptor());
        let kept = self.sstables.iter().filter(stays);
        View::of(kept.chain(added).cloned().collect())
    }
}

/// Replaces a part of a view, whatever else happens to it at the same time.
pub(crate) fn swap(view: &ArcSwap<View>, gone: &[Arc<Live>], added: &[Arc<Live>]) {
    view.rcu(|current| Arc::new(current.replace(gone, added)));
}
