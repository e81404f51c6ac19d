//! What all shards share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use halcyon_io::{DirLock, Disk, Inbox, Mesh};
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_schema::catalog::Catalog;
use halcyon_schema::rows::WriteTime;
use halcyon_sstable::Version;
use halcyon_sstable::attached::Segments;
use halcyon_sstable::format::deletion_time::LEGACY_LATEST;
use halcyon_sstable::read::Budget;
use halcyon_stream::TableId;

use crate::background::Background;
use crate::compact::Compactions;
use crate::flush::pace::Waits;
use crate::index::IndexBuilds;
use crate::metrics::shards::ShardMetrics;
use crate::metrics::table::{Measure, Summary, TableStats};
use crate::reporter::Reporter;
use crate::schema::NextExpiry;
use crate::shard::Shard;
use crate::store::Store;
use crate::times::WriteTimes;
use crate::version::Edit;
use crate::{Error, Options, Result};

pub struct Engine {
    pub(crate) disk: Disk,
    pub(crate) options: Options,
    /// Of the SSTables that are written.
    pub(crate) version: Version,
    pub(crate) catalog: ArcSwap<Catalog>,
    pub(crate) stores: ArcSwap<BTreeMap<TableId, Arc<Store>>>,
    pub(crate) mesh: Mesh<Shard>,
    /// Until the shards take them.
    pub(crate) inboxes: Mutex<Vec<Option<Inbox<Shard>>>>,
    pub(crate) flushers: Arc<Background>,
    pub(crate) flush_waits: Arc<Waits>,
    pub(crate) compactions: Compactions,
    pub(crate) snapshot_expiry: NextExpiry,
    pub(crate) indexes: IndexBuilds,
    /// Of indexes on vectors.
    pub(crate) segments: Segments,
    /// Of the positions of partitions, of all shards (`index_summary_capacity`).
    pub(crate) positions: Arc<Budget>,
    /// Makes them.
    pub(crate) walkers: Background,
    /// What the chunk caches of all shards may have.
    pub(crate) chunk_share: AtomicU64,
    /// Of what all flushes and compactions carry on its way into the caches.
    pub(crate) carry_room: Arc<Budget>,
    pub(crate) reporter: Arc<Reporter>,
    /// Since it joined its ring.
    pub(crate) host_id: OnceLock<[u8; 16]>,
    pub(crate) metrics: Arc<ShardMetrics>,
    /// Of the logs that shards open.
    pub(crate) first_segment: u64,
    /// Held by the schema change that runs.
    pub(crate) changing: futures_util::lock::Mutex<()>,
    pub(crate) times: WriteTimes,
    pub(crate) _locks: Vec<DirLock>,
}

impl Engine {
    pub fn shard_count(&self) -> usize {
        self.options.shards
    }

    /// The shard that owns a token: `((token + 2^63) * shards) >> 64`, as SCYLLA_SHARD drivers compute it.
    pub fn owner(&self, token: i64) -> usize {
        owner(token, self.options.shards)
    }

    /// First and last token of a shard.
    pub fn tokens(&self, shard: usize) -> (i64, i64) {
        tokens(shard, self.options.shards)
    }

    /// Events, health, warnings.
    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    pub fn shard_metrics(&self) -> &ShardMetrics {
        &self.metrics
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The last second at which something can expire, by the version that is written (`Cell.getVersionedMaxDeletiontionTime`).
    pub fn latest_expiration(&self) -> u32 {
        if self.version.has_uint_deletion_time() { MAX_DELETION_TIME } else { LEGACY_LATEST }
    }

    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The time for one write of the node's own accord, later than all before.
    pub fn write_time(&self) -> WriteTime {
        self.times.of(self.disk.clock())
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// A look at the catalog that writes nothing other shards read: for what every request does.
    pub fn with_catalog<R>(&self, look: impl FnOnce(&Catalog) -> R) -> R {
        look(&self.catalog.load())
    }

    /// The node's identity, whatever clients have since written into `system.local`; `None` before [`Engine::join`].
    pub fn host_id(&self) -> Option<[u8; 16]> {
        self.host_id.get().copied()
    }

    pub fn schema_version(&self) -> [u8; 16] {
        self.with_catalog(|catalog| catalog.version)
    }

    /// Applies an edit to a table's live set, and has each shard take the new version: one without requests would keep the files of what
    /// the edit has removed.
    pub(crate) fn edit(&self, store: &Store, edit: &Edit) {
        edit.apply(&store.version);
        if edit.gone.is_empty() && edit.reopened.is_empty() {
            return;
        }
        let id = store.id;
        for index in 0..self.shard_count() {
            self.mesh().post(index, move |shard| {
                if let Some(table) = shard.table_by_id(id) {
                    table.current();
                }
            });
        }
    }

    /// Jobs for other shards.
    pub fn mesh(&self) -> &Mesh<Shard> {
        &self.mesh
    }

    pub(crate) fn take_inbox(&self, index: usize) -> Result<Inbox<Shard>> {
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let inbox = inboxes.get_mut(index).and_then(Option::take);
        inbox.ok_or_else(|| Error::CannotStart(format!("shard {index} is open already")))
    }

    /// Counters of all tables.
    pub fn table_stats(&self) -> Vec<TableStats> {
        let stores = self.stores.load();
        let stats = |store: &Arc<Store>| {
            let table = store.table();
            let version = store.version.load();
            let totals = version.totals();
            let mut stats = TableStats {
                keyspace: table.schema.keyspace.clone(),
                table: table.schema.name.clone(),
                sstables: version.len(),
                disk_space: totals.disk_space,
                max_sstable_size: totals.max_sstable_size,
                max_partition_size: totals.max_partition_size,
                max_sstable_duration: totals.max_sstable_duration,
                ..TableStats::default()
            };
            store.metrics.iter().for_each(|shard| stats.add(shard));
            stats
        };
        let mut all: Vec<TableStats> = stores.values().map(stats).collect();
        all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        all
    }

    /// One measure of all tables, by keyspace and table.
    pub fn summaries(&self, measure: Measure) -> Vec<(String, String, Summary)> {
        let now = self.disk.clock().now();
        let summary = |store: &Arc<Store>| {
            let mut summary = Summary::nothing();
            store.metrics.iter().for_each(|shard| shard.add_to(&mut summary, measure, now));
            let table = store.table();
            (table.schema.keyspace.clone(), table.schema.name.clone(), summary)
        };
        self.stores.load().values().map(summary).collect()
    }
}

pub(crate) fn owner(token: i64, shards: usize) -> usize {
    let from_zero = (token as u64) ^ (1 << 63);
    ((u128::from(from_zero) * shards as u128) >> 64) as usize
}

/// First and last token of a shard.
pub(crate) fn tokens(index: usize, shards: usize) -> (i64, i64) {
    let boundary = |index: usize| (((index as u128) << 64).div_ceil(shards as u128)) as u64;
    let first = boundary(index) ^ (1 << 63);
    let last = if index + 1 == shards { u64::MAX } else { boundary(index + 1) - 1 } ^ (1 << 63);
    (first as i64, last as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the shards' token ranges are what `owner` says, without gaps.
    #[test]
    fn tokens_and_owner_agree() {
        for shards in [1, 2, 3, 7, 16, 48] {
            let mut next = i64::MIN;
            for index in 0..shards {
                let (first, last) = tokens(index, shards);
                assert_eq!(first, next);
                assert_eq!((owner(first, shards), owner(last, shards)), (index, index));
                next = last.wrapping_add(1);
            }
            assert_eq!(next, i64::MIN);
        }
    }
}
