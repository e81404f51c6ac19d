//! `nodetool refresh`: SSTables that another program has put into a table's folders become part of it.
//!
//! What lies in a folder is new if the version does not have it and no transaction names it. Every SSTable of the node itself is in one
//! of both at any time: a log is deleted after the edit of the version. Compactions are stopped meanwhile, so that nothing leaves the
//! version; flushes only add to it, and are seen by the version that is taken last.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_compaction::txn_log;
use halcyon_sstable::Error as SSTableError;
use halcyon_sstable::format::listing::{self, ListedSSTable, UnreadableName};
use halcyon_stream::TableId;

use super::Schema;
use crate::Result;
use crate::compact::write_level;
use crate::shard::Shard;
use crate::start::set_apart::in_order;
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable};

impl Schema {
    /// Adds new SSTables to a table; how many. All or none: one that cannot be read leaves the table as it was.
    pub fn load_new_sstables(
        self: &Arc<Schema>,
        table: TableId,
    ) -> LocalBoxFuture<'_, Result<usize>> {
        Box::pin(async move {
            self.reporter.check()?;
            let store = self.tables.store_of(table)?;
            let compacting = self.compactor.stop_table(&store).await;
            let found = self.new_sstables(&store).await?;
            if found.is_empty() {
                return Ok(0);
            }
            let definition = store.definition.load_full();
            let mut added = Vec::with_capacity(found.len());
            for listed in &found {
                // Where it was is another table's order of levels.
                write_level(&self.storage.disk, &listed.descriptor, 0).await?;
                let mode = self.storage.options.read_mode;
                let live =
                    LiveSSTable::open_listed(&self.storage.disk, listed, &definition.schema, mode)
                        .await?;
                added.push(in_order(live, &definition.schema)?);
            }
            store.note_ids(found.iter().map(|listed| listed.descriptor.id));
            let count = added.len();
            self.tables.admit(&store, added.clone(), Edit::add).await;
            self.tables.back_up(&store, &added).await;
            // Heads of partitions that were read before.
            let forget = move |shard: Rc<Shard>| async move { shard.rows.forget_table(table) };
            self.tables.mesh.on_each(forget).await.into_iter().collect::<Result<(), _>>()?;
            drop(compacting);
            self.tables.tend_indexes(&store);
            self.indexes.wait(table).await;
            self.tables.schedule.consider(&store);
            Ok(count)
        })
    }

    async fn new_sstables(&self, store: &Arc<Store>) -> Result<Vec<ListedSSTable>> {
        let mut known = descriptors(store);
        let mut found = Vec::new();
        for directory in &store.directories {
            let entries = self.storage.disk.list(directory).await?;
            let names = entries.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.name);
            let listing = listing::group(directory, names);
            if let Some(UnreadableName { name, why }) = listing.unreadable.into_iter().next() {
                let path = directory.join(name);
                return Err(SSTableError::Unsupported { path, what: why }.into());
            }
            let named = txn_log::named_in_directory(&self.storage.disk, directory).await?;
            let is_ours = |listed: &ListedSSTable| named.contains(&listed.descriptor.file_prefix());
            found.extend(listing.sstables.into_iter().filter(|listed| !is_ours(listed)));
        }
        known.extend(descriptors(store));
        found.retain(|listed| !known.contains(&listed.descriptor.file_prefix()));
        Ok(found)
    }
}

/// The file-name prefixes of the SSTables of the version.
fn descriptors(store: &Store) -> BTreeSet<String> {
    store.version.load().sstables().iter().map(|live| live.descriptor().file_prefix()).collect()
}
