//! What is read often stays in memory when a flush or a compaction replaces its SSTables.

use halcyon_sstable::{Heat, Version};

use super::compaction::{enable, minute, sstables, tiered};
use super::point::one_row;
use super::*;
use crate::Adjustable;

const PARTITIONS: i32 = 3000;
const HOT: i32 = 50;

/// Rows of 200 columns' worth, so that few partitions share a chunk.
async fn write(node: &Node, table: &Arc<Table>, timestamp: i64) {
    for k in 0..PARTITIONS {
        let mut mutation = insert(table, k, 0, k, timestamp);
        for c in 1..60 {
            mutation.rows.push(row(table, c, k.wrapping_mul(c), timestamp));
        }
        node.shard.apply(vec![mutation]).await.expect("applied");
    }
    node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
}

/// A node with a table that was written and flushed once.
async fn written(disk: Disk) -> (Node, Arc<Table>) {
    let node = start(disk).await.expect("starts");
    change(&node, &[table()]).await.expect("schema");
    let table = user_table(&node);
    write(&node, &table, 1).await;
    (node, table)
}

/// What of partitions is read, and what was read from the device for it.
async fn read_hot(
    node: &Node,
    table: &Arc<Table>,
    keys: impl Iterator<Item = i32>,
    slices: Slices,
) -> (Vec<String>, u64) {
    let before = node.shard.cache_stats().reads;
    let mut rows = Vec::new();
    for k in keys {
        rows.extend(spell(&node.shard, read(table, k, slices.clone())).await);
    }
    (rows, node.shard.cache_stats().reads - before)
}

/// All SSTables became one.
async fn compacted(node: &Node, sim: &SimDisk) {
    enable(node, sim).await;
    minute(node).await;
    assert_eq!(sstables(node), 1, "not compacted");
}

/// Proves that hot partitions need no read of the device after a flush, nor after a compaction, that others do, and that what is read is
/// the same; and that what has not been read for long is not hot.
#[test]
fn hot_partitions_stay_in_memory() {
    simulate(async {
        let (disk, sim) = Disk::simulated(7);
        let node = start_with(disk, |_| ()).await.expect("starts");
        change(&node, &[tiered("false")]).await.expect("schema");
        let table = user_table(&node);
        write(&node, &table, 1).await;
        let store = node.engine.tables.store_of(table.id).expect("there");
        let (_, cold) = read_hot(&node, &table, 0..HOT, Slices::all()).await;
        assert!(cold >= HOT as u64 / 2, "{cold}");
        store.heat.advance(true, || u64::MAX >> 8, u64::MAX);
        read_hot(&node, &table, 0..HOT, Slices::all()).await;
        // A flush: the new SSTable has newer rows of the same partitions.
        write(&node, &table, 2).await;
        let (before, reads) = read_hot(&node, &table, 0..HOT, Slices::all()).await;
        assert_eq!(reads, 0, "after the flush");
        // A generation later they are hot still.
        store.heat.advance(true, || u64::MAX >> 8, u64::MAX);
        compacted(&node, &sim).await;
        let (after, reads) = read_hot(&node, &table, 0..HOT, Slices::all()).await;
        assert_eq!(reads, 0, "after the compaction");
        assert_eq!(before, after);
        // Nothing is left of what was replaced, and it takes room no longer.
        let stats = node.shard.cache_stats();
        assert!((1..150).contains(&stats.chunk_entries), "{stats:?}");
        assert_eq!(stats.key_entries, HOT as usize);
        let (_, reads) = read_hot(&node, &table, 1000..1000 + HOT, Slices::all()).await;
        assert!(reads >= HOT as u64 / 2, "{reads}");
        // What was read from the device is not hot, as long as it is not read again.
        let heat = || [0, 1000].map(|k| store.heat.hot().of(&key(k)));
        assert_eq!(heat(), [Heat::Whole, Heat::Cold]);
        read_hot(&node, &table, 1000..1000 + HOT, Slices::all()).await;
        assert_eq!(heat(), [Heat::Whole; 2]);
        // Two generations without a read.
        store.heat.advance(true, || 0, u64::MAX);
        store.heat.advance(true, || 0, u64::MAX);
        assert!(store.heat.hot().is_empty());
        assert_eq!(store.heat.advance(true, || 0, u64::MAX), 0);
    });
}

/// Proves the same of single rows of partitions with a row index: they need no read of the device, rows of other blocks do.
#[test]
fn hot_rows_of_wide_partitions_stay_in_memory() {
    for version in [Version::OA, Version::DA] {
        simulate(wide(version));
    }
}

const WIDE: i32 = 20;
const ROWS: i32 = 6000;

/// In mutations of 500 rows: larger ones are refused.
async fn write_wide(node: &Node, table: &Arc<Table>, timestamp: i64) {
    for (k, first) in (0..WIDE).flat_map(|k| (0..ROWS).step_by(500).map(move |first| (k, first))) {
        let mut mutation = insert(table, k, first, k, timestamp);
        let others = first + 1..first + 500;
        mutation.rows.extend(others.map(|c| row(table, c, k.wrapping_mul(c), timestamp)));
        node.shard.apply(vec![mutation]).await.expect("applied");
    }
    node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
}

async fn wide(version: Version) {
    let (disk, sim) = Disk::simulated(7);
    let set = |options: &mut Options| {
        options.version = Some(version);
        options.column_index_size = Adjustable::of(4 << 10);
    };
    let node = start_with(disk, set).await.expect("starts");
    change(&node, &[tiered("false")]).await.expect("schema");
    let table = user_table(&node);
    let (hot, other) = (one_row(&table, 4500), one_row(&table, 2500));
    write_wide(&node, &table, 1).await;
    let store = node.engine.tables.store_of(table.id).expect("there");
    store.heat.advance(true, || u64::MAX >> 8, u64::MAX);
    let (_, cold) = read_hot(&node, &table, 0..WIDE, hot.clone()).await;
    assert!(cold >= WIDE as u64, "{version:?}: {cold}");
    store.heat.advance(true, || u64::MAX >> 8, u64::MAX);
    read_hot(&node, &table, 0..WIDE, hot.clone()).await;
    write_wide(&node, &table, 2).await;
    let (before, reads) = read_hot(&node, &table, 0..WIDE, hot.clone()).await;
    assert_eq!(reads, 0, "{version:?}: after the flush");
    compacted(&node, &sim).await;
    let (after, reads) = read_hot(&node, &table, 0..WIDE, hot).await;
    assert_eq!(reads, 0, "{version:?}: after the compaction");
    assert!(before.len() >= WIDE as usize);
    assert_eq!(before, after);
    let (_, reads) = read_hot(&node, &table, 0..WIDE, other).await;
    assert!(reads >= WIDE as u64, "{version:?}: {reads}");
}

/// Proves that what is cached stays so where SSTables are opened again because columns were added.
#[test]
fn an_altered_table_stays_in_memory() {
    simulate(async {
        let (disk, sim) = Disk::simulated(7);
        let (node, table) = written(disk).await;
        let (before, _) = read_hot(&node, &table, 0..HOT, Slices::all()).await;
        let mut schema = table.schema.clone();
        schema.regulars.push(column("w", CqlType::Text));
        sim.clock().advance(std::time::Duration::from_secs(1));
        let wider = Arc::new(Table::new(ID, TableKind::Regular, schema));
        change(&node, &[wider]).await.expect("altered");
        let table = user_table(&node);
        assert_eq!(table.schema.regulars.len(), 2);
        let (after, reads) = read_hot(&node, &table, 0..HOT, Slices::all()).await;
        assert_eq!((after, reads), (before, 0));
    });
}

/// Proves that a truncated table leaves the caches.
#[test]
fn what_is_removed_leaves_the_caches() {
    simulate(async {
        let (disk, _) = Disk::simulated(7);
        let (node, table) = written(disk).await;
        let before = node.shard.cache_stats();
        read_hot(&node, &table, 0..HOT, Slices::all()).await;
        assert!(node.shard.cache_stats().chunk_entries > before.chunk_entries);
        node.engine.schema().truncate(table.id).await.expect("truncated");
        minute(&node).await;
        let after = node.shard.cache_stats();
        let of = |s: &halcyon_sstable::read::CacheStats| (s.chunk_bytes, s.key_entries);
        assert_eq!(of(&after), of(&before));
    });
}

/// Proves that chunks give way to filters, summaries and offsets of chunks, to what they are left at least, and come back.
#[test]
fn what_finds_data_has_its_memory_first() {
    simulate(async {
        let (disk, _) = Disk::simulated(7);
        let set = |options: &mut Options| {
            (options.chunk_cache_size, options.chunk_cache_least) = (12 << 10, 8 << 10);
        };
        let node = start_with(disk, set).await.expect("starts");
        change(&node, &[table()]).await.expect("schema");
        let table = user_table(&node);
        let capacity = async || {
            node.engine.disk().clock().sleep(std::time::Duration::from_secs(5)).await;
            node.shard.cache_stats().chunk_capacity
        };
        let empty = capacity().await;
        write(&node, &table, 1).await;
        let one = capacity().await;
        assert!((8 << 10..empty).contains(&one), "{empty} {one}");
        for timestamp in 2..5 {
            write(&node, &table, timestamp).await;
        }
        assert_eq!(capacity().await, 8 << 10);
        node.engine.schema().truncate(table.id).await.expect("truncated");
        assert_eq!(capacity().await, empty);
    });
}
