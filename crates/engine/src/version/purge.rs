//! The purge bound of a running compaction, by the live set's own intervals and filters.

use std::collections::HashSet;
use std::sync::Arc;

use halcyon_compaction::PurgeBound;
use halcyon_stream::PartitionKey;

use crate::tables::store::Store;

/// Asked whenever a tombstone could be purged, so it takes the version of that moment: what was flushed since the compaction began is
/// in it, and a compaction beside this one changes which SSTables hold the data, not whether one does.
pub(crate) struct LiveSetBound {
    store: Arc<Store>,
    /// Serial numbers.
    inputs: HashSet<u64>,
}

impl LiveSetBound {
    pub(crate) fn new(store: Arc<Store>, inputs: HashSet<u64>) -> LiveSetBound {
        LiveSetBound { store, inputs }
    }
}

impl PurgeBound for LiveSetBound {
    fn min_timestamp(&self, key: &PartitionKey) -> i64 {
        // Their contents are unknown.
        if !self.store.apart().is_empty() {
            return i64::MIN;
        }
        // The memtables are read first: data that is flushed between the two reads is then in the version.
        let mut least = self.store.oldest_unflushed();
        let version = self.store.version.load();
        version.visit_overlapping(key.token, key.token, |live| {
            let older = live.min_timestamp() < least;
            if older && !self.inputs.contains(&live.serial()) && live.table.may_contain(key) {
                least = live.min_timestamp();
            }
        });
        least
    }
}
