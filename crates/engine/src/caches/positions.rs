//! The positions of partitions are made when their SSTable becomes live, one SSTable after the other.

use std::sync::Arc;

use crate::Engine;
use crate::version::LiveSSTable;

impl Engine {
    /// Makes them some time. Until then a look-up that comes first makes those around it.
    pub(crate) fn walk_index(&self, live: &LiveSSTable) {
        // What is replaced before its turn comes is not kept for it.
        let table = Arc::downgrade(&live.table);
        let (disk, budget) = (self.disk.clone(), self.positions.clone());
        let mode = self.options.background_read_mode;
        self.walkers.later(move || async move {
            if let Some(table) = table.upgrade() {
                // Lookups report what is wrong with an index.
                let _ = table.make_positions(&disk, mode, &budget).await;
            }
        });
    }
}
