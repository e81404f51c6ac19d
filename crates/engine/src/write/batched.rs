//! Logged batches that may be applied again: tombstones that are newer than their writes are kept until then.
//!
//! Otherwise a deletion could be purged (a short `gc_grace_seconds`, a clock that steps), and a batch of before it bring back what it has
//! deleted. Cassandra does not replay a batch that is older than the `gc_grace_seconds` of its tables; a part of it can then be missing.

use std::sync::atomic::Ordering::Release;

use halcyon_stream::{Mutation, TableId};

use crate::engine::Engine;
use crate::memtable::oldest;
use crate::shard::Shard;

impl Shard {
    /// The oldest write to a table in the batches of this shard's coordinator that may be applied again; `i64::MAX`: there is none.
    pub fn note_batched(&self, table: TableId, since: i64) {
        if let Some(table) = self.table_by_id(table) {
            table.metrics().batched_since.store(since, Release);
        }
    }

    /// The tables of a batch, each with its oldest write.
    pub fn oldest_writes(batch: &[Mutation]) -> Vec<(TableId, i64)> {
        batch.iter().map(|mutation| (mutation.table, oldest(mutation))).collect()
    }
}

impl Engine {
    /// Until the batches of the last run are replayed, which nobody has looked into, no tombstone is purged.
    pub(crate) fn expect_batches(&self) {
        self.note_first_shard(i64::MIN);
    }

    /// All batches of the last run are replayed.
    pub fn batches_replayed(&self) {
        self.note_first_shard(i64::MAX);
    }

    fn note_first_shard(&self, since: i64) {
        for store in self.stores.load().values() {
            if let Some(metrics) = store.metrics.first() {
                metrics.batched_since.store(since, Release);
            }
        }
    }
}
