//! What a table's files and memtables are, for `nodetool tablestats`: counted when it is asked for.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::compute;
use halcyon_model::options::Strategy;
use halcyon_sstable::format::statistics::cardinality::Cardinality;
use halcyon_stream::TableId;

use crate::Result;
use crate::memtable::Memtable;
use crate::shard::Shard;
use crate::tables::Tables;
use crate::tables::store::Store;
use crate::version::LiveSSTable;

/// A table at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableDetails {
    pub keyspace: String,
    pub table: String,
    pub auto_compaction: bool,
    /// Written in another version than what is written now.
    pub old_sstables: usize,
    /// Estimated, by the sketches of SSTables; those of memtables are added.
    pub partitions: u64,
    pub memtable_bytes: u64,
    /// Uncompressed, of all SSTables, and by their repair state.
    pub data: u64,
    pub repaired: u64,
    pub pending_repair: u64,
    /// Of compressed SSTables, as stored and uncompressed.
    compressed: (u64, u64),
    /// Of partitions, by the histograms of SSTables.
    pub partition_min: Option<u64>,
    pub partition_max: u64,
    pub partition_mean: u64,
    pub filter_memory: u64,
    /// Of Filter.db.
    pub filter_bytes: u64,
    pub summary_memory: u64,
    pub compression_memory: u64,
    pub droppable_tombstones: f64,
    /// By level, if the strategy has levels: numbers of SSTables, and their bytes as stored.
    pub level_sstables: Vec<u64>,
    pub level_bytes: Vec<u64>,
    /// How much larger a level is than the one before; 0 without levels.
    pub level_fanout: u64,
}

/// `LeveledManifest.MAX_LEVEL_COUNT`
const LEVELS: usize = 9;

impl TableDetails {
    /// `None`: nothing is compressed.
    pub fn compression_ratio(&self) -> Option<f64> {
        let (stored, data) = self.compressed;
        (data > 0).then(|| stored as f64 / data as f64)
    }
}

/// Partitions and bytes of a table's memtables.
type InMemory = BTreeMap<TableId, (u64, u64)>;

fn in_memory(shard: &Shard) -> InMemory {
    let count = |memtable: &Memtable| (memtable.partition_count() as u64, memtable.bytes() as u64);
    let of_table = |(id, table): (&TableId, &Rc<_>)| {
        let table: &Rc<crate::shard::ShardTable> = table;
        let slots = table.slots();
        let sums =
            slots.iter().map(|slot| slot.with(count)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        (*id, sums)
    };
    shard.opened.borrow().iter().map(of_table).collect()
}

impl Tables {
    /// Of all tables that have storage, by keyspace and name.
    pub fn details(self: &Arc<Tables>) -> LocalBoxFuture<'_, Result<Vec<TableDetails>>> {
        Box::pin(async move {
            let mut memory = InMemory::new();
            for of_shard in self.mesh.on_each(|shard| async move { in_memory(&shard) }).await {
                for (id, (partitions, bytes)) in of_shard? {
                    let sums = memory.entry(id).or_default();
                    *sums = (sums.0 + partitions, sums.1 + bytes);
                }
            }
            let tables = self.clone();
            Ok(compute(move || tables.all_details(&memory)).await?)
        })
    }

    /// Merges a sketch for each SSTable.
    fn all_details(&self, memory: &InMemory) -> Vec<TableDetails> {
        let stores = self.stores.load_full();
        let of_store = |store: &Arc<Store>| {
            let mut details = self.details_of(store);
            let (partitions, bytes) = memory.get(&store.id).copied().unwrap_or_default();
            details.partitions += partitions;
            details.memtable_bytes = bytes;
            details
        };
        let mut all: Vec<TableDetails> = stores.values().map(of_store).collect();
        all.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        all
    }

    fn details_of(&self, store: &Store) -> TableDetails {
        let table = store.table();
        let mut details = TableDetails {
            keyspace: table.schema.keyspace.clone(),
            table: table.schema.name.clone(),
            ..TableDetails::default()
        };
        let strategy = crate::compact::strategy_of(store);
        details.auto_compaction = strategy.enabled;
        if let Strategy::Leveled(options) = &strategy.strategy {
            (details.level_sstables, details.level_bytes) = (vec![0; LEVELS], vec![0; LEVELS]);
            details.level_fanout = options.fanout;
        }
        let version = store.version.load_full();
        let now = u32::try_from(self.storage.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        let gc_before = now.saturating_sub(table.schema.options.gc_grace_seconds());
        let mut keys = Cardinality::default();
        let (mut size_sum, mut size_count, mut droppable, mut cells) = (0.0, 0.0, 0.0, 0.0);
        for live in version.sstables() {
            details.add(live);
            details.old_sstables += usize::from(live.descriptor().version != self.storage.version);
            let statistics = live.sstable().statistics();
            match statistics.compaction.as_ref().and_then(|c| c.cardinality().ok()) {
                Some(sketch) => keys.merge(&sketch),
                None => details.partitions += live.sstable().estimated_keys(),
            }
            let stats = &statistics.stats;
            let count = stats.partition_sizes.count() as f64;
            size_sum += stats.partition_sizes.mean() * count;
            size_count += count;
            droppable += stats.tombstone_drop_times.sum(gc_before);
            cells += stats.cells_per_partition.mean() * stats.cells_per_partition.count() as f64;
        }
        details.partitions += keys.estimate();
        details.partition_mean = if size_count > 0.0 { (size_sum / size_count) as u64 } else { 0 };
        details.droppable_tombstones = if cells > 0.0 { droppable / cells } else { 0.0 };
        details
    }
}

impl TableDetails {
    fn add(&mut self, live: &LiveSSTable) {
        let sstable = live.sstable();
        let stats = &sstable.statistics().stats;
        let data = sstable.data_length();
        self.data += data;
        let level = usize::try_from(stats.level).unwrap_or(0);
        if let Some(count) = self.level_sstables.get_mut(level) {
            *count += 1;
        }
        if let Some(bytes) = self.level_bytes.get_mut(level) {
            *bytes += sstable.file_length();
        }
        match (stats.pending_repair, stats.repaired_at) {
            (Some(_), _) => self.pending_repair += data,
            (None, 0) => {}
            (None, _) => self.repaired += data,
        }
        if sstable.compression().is_some() {
            self.compressed.0 += sstable.file_length();
            self.compressed.1 += data;
        }
        if let Some((smallest, largest)) = stats.partition_sizes.extremes() {
            let positive = |value: i64| u64::try_from(value).unwrap_or(0);
            let smallest = positive(smallest);
            self.partition_min = Some(self.partition_min.map_or(smallest, |min| min.min(smallest)));
            self.partition_max = self.partition_max.max(positive(largest));
        }
        let memory = live.table.memory();
        self.filter_memory += memory.filter;
        // The file begins with the numbers of hashes and of words. An SSTable without a filter has none of it.
        self.filter_bytes += if memory.filter > 0 { memory.filter + 8 } else { 0 };
        self.summary_memory += memory.summary + memory.positions;
        self.compression_memory += memory.offsets;
    }
}
