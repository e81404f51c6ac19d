//! Partition sizes and cell counts of a table's SSTables, and the SSTables that have a partition: for `nodetool tablehistograms`,
//! `getsstables`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use halcyon_sstable::Component;
use halcyon_sstable::format::statistics::histogram::EstimatedHistogram;
use halcyon_stream::{PartitionKey, TableId};

use crate::Result;
use crate::shard::Shard;
use crate::tables::Tables;
use crate::tables::store::Store;

/// Of the fractions 50, 75, 95, 98 and 99 %, the smallest value and the largest, as Cassandra's tools show them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Percentiles(pub [u64; 7]);

impl Percentiles {
    pub const FRACTIONS: [f64; 5] = [0.5, 0.75, 0.95, 0.98, 0.99];
}

/// What partitions of a table are like, by the statistics of its SSTables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableShape {
    pub keyspace: String,
    pub table: String,
    pub partition_bytes: Percentiles,
    pub partition_cells: Percentiles,
}

/// Histograms of several SSTables, added up by the bounds of their buckets.
#[derive(Default)]
struct Sum {
    /// By the bound of a bucket: its count, and its least value.
    buckets: BTreeMap<i64, (i64, i64)>,
}

impl Sum {
    fn add(&mut self, histogram: &EstimatedHistogram) {
        let mut least = 0;
        for (bound, count) in histogram.buckets() {
            let bound = bound.unwrap_or(i64::MAX);
            if count > 0 {
                let sum = self.buckets.entry(bound).or_insert((0, least));
                sum.0 = sum.0.saturating_add(count);
            }
            least = bound.saturating_add(1);
        }
    }

    fn percentiles(&self) -> Percentiles {
        let total = self.buckets.values().fold(0i64, |sum, (count, _)| sum.saturating_add(*count));
        let value = |wanted: i64| {
            let mut seen = 0i64;
            let reached = self.buckets.iter().find(|(_, (count, _))| {
                seen = seen.saturating_add(*count);
                seen >= wanted
            });
            reached.map_or(0, |(bound, _)| *bound)
        };
        let [half, quarters, most, more, all] =
            Percentiles::FRACTIONS.map(|p| value((total as f64 * p).ceil() as i64));
        let min = self.buckets.values().next().map_or(0, |(_, least)| *least);
        let max = self.buckets.keys().next_back().copied().unwrap_or(0);
        let positive = |value: i64| u64::try_from(value).unwrap_or(0);
        Percentiles([half, quarters, most, more, all, min, max].map(positive))
    }
}

impl Tables {
    /// Empties the row cache.
    pub async fn forget_rows(&self) -> Result<()> {
        let tables: Vec<TableId> = self.stores.load().keys().copied().collect();
        let forget = move |shard: Rc<Shard>| {
            let tables = tables.clone();
            async move { tables.into_iter().for_each(|table| shard.rows.forget_table(table)) }
        };
        self.mesh.on_each(forget).await.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(())
    }

    /// Empties the key cache.
    pub async fn forget_keys(&self) -> Result<()> {
        let forget = move |shard: Rc<Shard>| async move { shard.caches.forget_keys().await };
        self.mesh.on_each(forget).await.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(())
    }

    /// Gives the caches of all shards together other sizes, in bytes.
    pub async fn fit_caches(&self, keys: u64, rows: u64) -> Result<()> {
        let shards = self.storage.options.shards as u64;
        let (keys, rows) = (keys / shards, rows / shards);
        let fit = move |shard: Rc<Shard>| async move {
            shard.caches.fit_keys(keys).await;
            shard.rows.fit(rows).await;
        };
        self.mesh.on_each(fit).await.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(())
    }

    /// Of all tables that have storage, by keyspace and name.
    pub fn shapes(&self) -> Vec<TableShape> {
        let stores = self.stores.load();
        let mut all: Vec<TableShape> = stores.values().map(|store| shape_of(store)).collect();
        all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        all
    }

    /// The files and levels of the SSTables that have a partition.
    pub fn sstables_of(
        &self,
        table: TableId,
        key: PartitionKey,
    ) -> LocalBoxFuture<'_, Result<Vec<(PathBuf, u32)>>> {
        Box::pin(async move {
            let store = self.store_of(table)?;
            let look = move |shard: Rc<Shard>| async move {
                let version = store.version.load_full();
                let mut found = Vec::new();
                for live in version.sstables().iter().filter(|live| live.table.may_contain(&key)) {
                    if live.table.find(&shard.caches_without_keys, &key).await?.is_some() {
                        let level = live.sstable().statistics().stats.level;
                        let path = live.descriptor().component_path(Component::Data);
                        found.push((path, u32::try_from(level).unwrap_or(0)));
                    }
                }
                Result::Ok(found)
            };
            self.mesh.on(0, look).await?
        })
    }
}

fn shape_of(store: &Store) -> TableShape {
    let (mut bytes, mut cells) = (Sum::default(), Sum::default());
    for live in store.version.load().sstables() {
        let stats = &live.sstable().statistics().stats;
        bytes.add(&stats.partition_sizes);
        cells.add(&stats.cells_per_partition);
    }
    let table = store.table();
    TableShape {
        keyspace: table.schema.keyspace.clone(),
        table: table.schema.name.clone(),
        partition_bytes: bytes.percentiles(),
        partition_cells: cells.percentiles(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that histograms add up to what Cassandra shows of one histogram: bounds of buckets, and the least value of the first.
    #[test]
    fn histograms_add_up() {
        assert_eq!(Sum::default().percentiles(), Percentiles::default());
        let mut sum = Sum::default();
        for values in [[24, 24, 20], [0, 1, 100]] {
            let mut histogram = EstimatedHistogram::of_partition_sizes();
            values.into_iter().for_each(|value| histogram.add(value));
            sum.add(&histogram);
        }
        assert_eq!(sum.percentiles(), Percentiles([20, 24, 103, 103, 103, 0, 103]));
        let mut one = Sum::default();
        let mut histogram = EstimatedHistogram::of_partition_sizes();
        (0..100).for_each(|_| histogram.add(23));
        one.add(&histogram);
        assert_eq!(one.percentiles(), Percentiles([24, 24, 24, 24, 24, 21, 24]));
    }
}
