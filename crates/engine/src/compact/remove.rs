//! The removal of SSTables without outputs: those that have expired as a whole, and all of a table that is truncated or dropped.

use std::sync::Arc;

use halcyon_compaction::txn_log::Transaction;

use super::Compactor;
use crate::Result;
use crate::tables::store::Store;
use crate::version::{Edit, LiveSSTable, replaced};

impl Compactor {
    /// Removes all SSTables; their files are deleted when the last reader drops them.
    pub(crate) async fn remove_all(&self, store: &Arc<Store>) -> Result<()> {
        self.remove(store, store.version.load_full().sstables()).await
    }

    /// Removes SSTables, in one transaction.
    pub(super) async fn remove(
        &self,
        store: &Arc<Store>,
        sstables: &[Arc<LiveSSTable>],
    ) -> Result<()> {
        if sstables.is_empty() {
            return Ok(());
        }
        let id = halcyon_compaction::transaction_id(self.disk());
        let mut transaction = Transaction::begin(
            self.disk(),
            sstables.iter().map(|live| live.descriptor().directory.clone()),
            "unknown",
            &id,
            self.storage.version,
        )
        .await?;
        for live in sstables {
            if let Err(e) = transaction.remove(live.descriptor()).await {
                // Where even the cleaning fails, the next start finds no COMMIT and keeps the files.
                let _ = transaction.abort().await;
                return Err(e.into());
            }
        }
        let leftovers = transaction.commit().await?;
        replaced(sstables, leftovers, self.tables.forget(sstables, None), self.background.clone());
        self.tables.edit(store, &Edit::replace(sstables, Vec::new()));
        Ok(())
    }
}
