//! Facts from the SSTables of a data directory, without reading their data: Statistics.db, CompressionInfo.db, file sizes.
//!
//! Only these two components of a table are opened, and the SSTables of `system_schema` for the tables' options. Nothing is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use halcyon_io::Disk;
use halcyon_sstable::format::listing::ListedSSTable;
use halcyon_sstable::format::statistics::cardinality::Cardinality;
use halcyon_sstable::format::statistics::histogram::EstimatedHistogram;
use halcyon_sstable::{Component, OpenOptions, SSTable};

use super::facts::{Facts, Quantiles, Table};
use crate::error::Result;
use crate::notices::Notices;
use crate::paths::{self, Folder};
use crate::schema_source::{self, SchemaSource};

/// Bytes of Filter.db before its bits.
const FILTER_HEADER: u64 = 8;

/// Reads the tables below `root`, or below `root/data` if `root` is a node's directory; returns any file there. System keyspaces are
/// skipped: their tables cannot be altered.
pub(super) async fn examine(
    disk: &Disk,
    root: &Path,
    facts: &mut Facts,
    notices: &dyn Notices,
) -> Result<Option<PathBuf>> {
    let data = root.join("data");
    let below = if disk.exists(&data).await? { data } else { root.to_owned() };
    let folders = paths::find(disk, &[below]).await?;
    for folder in folders.iter().filter(|folder| is_examined(folder)) {
        folder.warn_of_left_out(notices);
        let table = of_folder(disk, folder, &mut facts.unreadable, notices).await?;
        facts.tables.push(table);
    }
    let any = folders.iter().find_map(|folder| folder.sstables.first());
    Ok(any.map(|listed| listed.descriptor.component_path(Component::Data)))
}

fn is_examined(folder: &Folder) -> bool {
    let keyspace = folder.table.keyspace.as_deref().unwrap_or_default();
    let is_system = keyspace == "system" || keyspace.starts_with("system_");
    !is_system && folder.table.index.is_none() && !folder.sstables.is_empty()
}

async fn of_folder(
    disk: &Disk,
    folder: &Folder,
    unreadable: &mut Vec<(String, String)>,
    notices: &dyn Notices,
) -> Result<Table> {
    let nothing_said = SchemaSource::default();
    let schema = schema_source::of_folder(disk, &nothing_said, folder, notices).await?;
    let options = schema.map(|schema| schema.options.clone()).unwrap_or_default();
    let gc_grace = options.gc_grace_seconds();
    let now = u32::try_from(disk.clock().unix_seconds()).unwrap_or(u32::MAX);
    let mut gathered = Gathered {
        table: Table {
            keyspace: folder.table.keyspace.clone().unwrap_or_default(),
            name: folder.table.table.clone().unwrap_or_default(),
            folder: Some(folder.directory.clone()),
            options,
            ..Table::default()
        },
        sketch: None,
        sizes: BTreeMap::new(),
        drop_before: now.saturating_sub(gc_grace),
    };
    for listed in &folder.sstables {
        match SSTable::open_listed(disk, listed, OpenOptions::default()).await {
            Ok(sstable) => gathered.add(&sstable, filter_bytes(disk, listed).await),
            Err(error) => {
                unreadable.push((listed.descriptor.to_string(), error.to_string()));
            }
        }
    }
    Ok(gathered.finish())
}

async fn filter_bytes(disk: &Disk, listed: &ListedSSTable) -> u64 {
    let path = listed.descriptor.component_path(Component::Filter);
    let length = disk.stat(&path).await.map_or(0, |stat| stat.len);
    length.saturating_sub(FILTER_HEADER)
}

/// A table's sums over its SSTables.
struct Gathered {
    table: Table,
    /// The union of the SSTables' sketches of keys.
    sketch: Option<Cardinality>,
    /// Partitions by upper bound of their size.
    sizes: BTreeMap<i64, u64>,
    /// Deletions up to this time are past gc_grace.
    drop_before: u32,
}

impl Gathered {
    fn add(&mut self, sstable: &SSTable, filter_bytes: u64) {
        let (statistics, keys) = (sstable.statistics(), sstable.estimated_keys());
        let stats = &statistics.stats;
        let table = &mut self.table;
        table.sstables += 1;
        table.file_bytes += sstable.file_length();
        table.data_bytes += sstable.data_length();
        table.rows += u64::try_from(stats.total_rows).unwrap_or(0);
        table.key_entries += keys;
        table.filter_bits += 8 * filter_bytes;
        if filter_bytes == 0 {
            table.keys_without_filter += keys;
        }
        let asked = statistics.validation.as_ref().map(|v| v.bloom_filter_fp_chance);
        table.fp_chance_asked = asked.or(table.fp_chance_asked);
        let compression = sstable.compression();
        let length = compression.map_or(0, |info| info.chunk_length);
        let chunks = table.chunks.entry(length).or_default();
        chunks.sstables += 1;
        chunks.stored += sstable.file_length();
        chunks.count += compression.map_or(0, |info| info.chunk_count() as u64);
        let cells = &stats.cells_per_partition;
        table.cells += cells.mean() * cells.count() as f64;
        table.droppable += stats.tombstone_drop_times.sum(self.drop_before);
        self.add_sizes(&stats.partition_sizes);
        let sketch = statistics.compaction.as_ref().and_then(|c| c.cardinality().ok());
        match (&mut self.sketch, sketch) {
            (Some(all), Some(one)) => all.merge(&one),
            (all @ None, one) => *all = one,
            _ => {}
        }
    }

    fn add_sizes(&mut self, sizes: &EstimatedHistogram) {
        for (bound, count) in sizes.buckets() {
            if let Ok(count @ 1..) = u64::try_from(count) {
                *self.sizes.entry(bound.unwrap_or(i64::MAX)).or_default() += count;
            }
        }
    }

    fn finish(self) -> Table {
        let Gathered { mut table, sketch, sizes, .. } = self;
        let distinct = sketch.map_or(0, |sketch| sketch.estimate());
        // Sketches have an error of some per cent; a key is in at least one SSTable.
        table.keys = distinct.clamp(1.min(table.key_entries), table.key_entries);
        table.partition_bytes = quantiles(&sizes);
        table
    }
}

/// The quantiles of counts by bound.
fn quantiles(counts: &BTreeMap<i64, u64>) -> Quantiles {
    let all: u64 = counts.values().sum();
    let at = |share: f64| {
        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        let mut reached = counts.iter().filter(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.next().map_or(0.0, |(bound, _)| *bound as f64)
    };
    Quantiles { count: all, p50: at(0.5), p99: at(0.99), max: at(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves quantiles over counts by bound.
    #[test]
    fn quantiles_of_counts() {
        let counts = BTreeMap::from([(10, 50), (20, 49), (1000, 1)]);
        let expected = Quantiles { count: 100, p50: 10.0, p99: 20.0, max: 1000.0 };
        assert_eq!(quantiles(&counts), expected);
        assert_eq!(quantiles(&BTreeMap::new()), Quantiles::default());
    }
}
