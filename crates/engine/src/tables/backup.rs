//! Incremental backups: each SSTable that a flush, a refresh or an import adds to a table gets a hard link in `backups/`, beside it. They
//! belong to the operator, who moves them away: the node never deletes one.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use halcyon_io::RateLimiter;

use super::Tables;
use super::store::{Store, create_directories};
use crate::Result;
use crate::snapshots::link_files;
use crate::version::LiveSSTable;

impl Tables {
    /// Of SSTables that are added from now on.
    pub fn set_incremental_backups(&self, enabled: bool) {
        self.backups.store(enabled, Relaxed);
    }

    /// Links what was added, if the node and the table have it. `disk_failure_policy` decides about a failure.
    pub(crate) async fn back_up(&self, store: &Store, added: &[Arc<LiveSSTable>]) {
        let of_table = store.definition.load().schema.options.incremental_backups;
        if !self.backups.load(Relaxed) || of_table == Some(false) {
            return;
        }
        for live in added {
            if let Err(e) = self.link_backup(live).await {
                self.reporter.disk_failed(format!("an incremental backup failed: {e}"));
            }
        }
    }

    async fn link_backup(&self, live: &LiveSSTable) -> Result<()> {
        let folder = live.descriptor().directory.join("backups");
        create_directories(&self.storage.disk, std::slice::from_ref(&folder)).await?;
        link_files(&self.storage.disk, live, &folder, &RateLimiter::unlimited()).await?;
        Ok(self.storage.disk.sync_dir(&folder).await?)
    }
}
