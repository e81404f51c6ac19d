//! Metrics of all tables, summed over their shards.

use std::sync::Arc;

use crate::metrics::stats::TableStats;
use crate::metrics::table::{Measure, Summary};
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::version::Version;

impl Tables {
    /// Counters of all tables; of their partitions, only those in memtables.
    pub fn stats(&self) -> Vec<TableStats> {
        self.collect(|_| 0)
    }

    /// The same with all partitions. The sketches of a new version's SSTables are merged, which takes long on a shard.
    pub(crate) fn stats_with_partitions(&self) -> Vec<TableStats> {
        self.collect(Version::partitions)
    }

    fn collect(&self, partitions: impl Fn(&Version) -> u64) -> Vec<TableStats> {
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
                totals,
                partitions: partitions(&version),
                compaction_bytes_written: store.compaction_bytes_written.get(),
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
        let now = self.storage.disk.clock().now();
        let summary = |store: &Arc<Store>| {
            let mut summary = Summary::nothing();
            store.metrics.iter().for_each(|shard| shard.add_to(&mut summary, measure, now));
            let table = store.table();
            (table.schema.keyspace.clone(), table.schema.name.clone(), summary)
        };
        self.stores.load().values().map(summary).collect()
    }
}
