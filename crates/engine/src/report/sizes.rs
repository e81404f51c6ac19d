//! How many partitions ranges of tokens have, and how large they are, as far as SSTables tell: `system.size_estimates`.

use futures_util::future::LocalBoxFuture;
use halcyon_io::compute;

use crate::Result;
use crate::tables::Tables;
use crate::tables::store::Store;

/// Partitions and their mean size, of one table and one range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    pub partitions: u64,
    pub mean_bytes: u64,
}

/// A table, and an estimate for each range that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSizes {
    pub keyspace: String,
    pub table: String,
    pub estimates: Vec<SizeEstimate>,
}

impl Tables {
    /// Of all tables that have storage, by keyspace and name. Ranges are of tokens, without the first and with the last.
    pub fn size_estimates(
        &self,
        ranges: Vec<(i64, i64)>,
    ) -> LocalBoxFuture<'_, Result<Vec<TableSizes>>> {
        Box::pin(async move {
            let stores = self.stores.load_full();
            let all = move || {
                let mut all: Vec<_> =
                    stores.values().map(|store| of_store(store, &ranges)).collect();
                all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
                all
            };
            Ok(compute(all).await?)
        })
    }
}

fn of_store(store: &Store, ranges: &[(i64, i64)]) -> TableSizes {
    let schema = &store.table().schema;
    TableSizes {
        keyspace: schema.keyspace.clone(),
        table: schema.name.clone(),
        estimates: ranges.iter().map(|range| estimate(store, *range)).collect(),
    }
}

/// `SizeEstimatesRecorder`: an SSTable has at least one partition in a range that it overlaps; sizes are those of whole SSTables.
fn estimate(store: &Store, range: (i64, i64)) -> SizeEstimate {
    let mut partitions = 0;
    let (mut sizes, mut count) = (0.0, 0.0);
    for live in store.version.load().sstables() {
        let share = share(live.tokens(), range);
        if share == 0.0 {
            continue;
        }
        let sstable = live.sstable();
        partitions += ((sstable.estimated_keys() as f64 * share) as u64).max(1);
        let of_partitions = &sstable.statistics().stats.partition_sizes;
        let of_sstable = of_partitions.count() as f64;
        sizes += of_partitions.mean() * of_sstable;
        count += of_sstable;
    }
    let mean_bytes = if count > 0.0 { (sizes / count) as u64 } else { 0 };
    SizeEstimate { partitions, mean_bytes }
}

/// How much of the tokens from `first` to `last` is after `left` and not after `right`. Partitions are spread evenly over tokens.
fn share((first, last): (i64, i64), (left, right): (i64, i64)) -> f64 {
    let (from, to) = (first.max(left.saturating_add(1)), last.min(right));
    if from > to || left >= right {
        return 0.0;
    }
    let width = |from: i64, to: i64| (i128::from(to) - i128::from(from) + 1) as f64;
    width(from, to) / width(first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ranges leave out their first token, and that all of them together have everything once.
    #[test]
    fn shares() {
        assert_eq!(share((10, 19), (9, 19)), 1.0);
        assert_eq!(share((10, 19), (10, 14)), 0.4);
        assert_eq!(share((10, 19), (19, 30)), 0.0);
        assert_eq!(share((10, 10), (9, 10)), 1.0);
        let (min, max) = (i64::MIN, i64::MAX);
        assert_eq!(share((min + 1, max), (min, max)), 1.0);
        assert_eq!(share((min + 1, max), (min, 0)) + share((min + 1, max), (0, max)), 1.0);
    }
}
