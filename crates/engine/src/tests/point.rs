//! Reads of one partition from many SSTables: what they leave out changes no answer, and they leave out what they can.

use halcyon_io::Random;
use halcyon_model::options::MapOption;
use halcyon_stream::RowDeletion;

use super::row_cache::{Client, any_slices, any_write, for_table};
use super::*;

pub(super) fn one_row(table: &Table, c: i32) -> Slices {
    let bound = |kind| Some(bound(table, kind, c));
    let slice = Slice { start: bound(BoundKind::InclStart), end: bound(BoundKind::InclEnd) };
    Slices { slices: vec![slice].into(), reversed: false, statics: false }
}

async fn rows(node: &Node, table: &Arc<Table>, k: i32, slices: Slices) -> Vec<String> {
    let mut rows = Vec::new();
    let mut client = Client::open(&node.shard, read(table, k, slices)).await;
    client.rows(usize::MAX / 2, 1_600_000_000, &mut rows).await;
    rows
}

fn sstables_read(node: &Node) -> u64 {
    let stats = node.engine.tables().stats();
    stats.iter().find(|s| s.keyspace == "ks" && s.table == "t").expect("known").sstables_read
}

/// A table that nothing compacts.
pub(super) fn uncompacted(name: &str, id: [u8; 16]) -> Arc<Table> {
    let mut schema = table_named(name, id).schema.clone();
    let options = [("class", "SizeTieredCompactionStrategy"), ("enabled", "false")];
    let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let options = MapOption::lenient(options.into_iter().map(text).collect());
    schema.options.compaction = Some(options);
    Arc::new(Table::new(id, TableKind::Regular, schema))
}

async fn history(seed: u64) {
    let mut random = Random::seeded(seed);
    let (disk, _) = Disk::simulated(seed);
    let node = start(disk.clone()).await.expect("starts");
    let flushed = uncompacted("t", ID);
    let in_memory = uncompacted("u", *b"fedcba9876543210");
    change(&node, &[flushed.clone(), in_memory.clone()]).await.expect("schema");
    for step in 1..300 {
        let now = u32::try_from(disk.clock().unix_seconds()).expect("now");
        match random.below(40) {
            0..=14 => {
                let write = any_write(&in_memory, &mut random, 100 + step, now);
                let both = vec![for_table(&write, &flushed), write];
                node.shard.apply(both).await.expect("applied");
            }
            15..=18 => node.engine.flusher().flush(Some(flushed.id)).await.expect("flushed"),
            _ => {
                let k = random.below(3) as i32;
                let slices = match random.below(3) {
                    0 => any_slices(&in_memory, &mut random),
                    _ => Slices {
                        reversed: random.chance(1, 4),
                        statics: random.chance(1, 3),
                        ..one_row(&in_memory, random.below(12) as i32)
                    },
                };
                let mut found = [Vec::new(), Vec::new()];
                for (table, found) in [&flushed, &in_memory].into_iter().zip(&mut found) {
                    let read = read(table, k, slices.clone());
                    let mut client = Client::open(&node.shard, read).await;
                    client.rows(usize::MAX / 2, now, found).await;
                }
                assert_eq!(found[0], found[1], "seed {seed}, step {step}, key {k}, {slices:?}");
            }
        }
    }
}

/// Proves that a read of many SSTables, which leaves out what is older than what it found, finds what a memtable with all the writes
/// has: writes of all kinds, late ones too, in rows named one by one and in slices, in both directions.
#[test]
fn what_is_left_out_changes_no_answer() {
    (0..20).for_each(|seed| simulate(history(seed)));
}

/// Proves that a named row is read from the newest SSTable alone when that has all of it, or its deletion; and from all of them when a
/// column or the liveness is missing.
#[test]
fn a_complete_row_ends_the_read() {
    simulate(async {
        let (disk, _) = Disk::simulated(31);
        let node = start(disk).await.expect("starts");
        let table = uncompacted("t", ID);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for round in 0..6 {
            let write = insert(&table, 1, 1, round, 10 + i64::from(round));
            node.shard.apply(vec![write]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        let mut before = sstables_read(&node);
        let mut read_now = || {
            let now = sstables_read(&node);
            now - std::mem::replace(&mut before, now)
        };
        assert_eq!(rows(&node, &table, 1, one_row(&table, 1)).await.len(), 1);
        assert_eq!(read_now(), 1);
        // Another row of the partition may be in each.
        assert_eq!(rows(&node, &table, 1, one_row(&table, 2)).await.len(), 0);
        assert_eq!(read_now(), 0, "the SSTables' clusterings leave it out");
        assert_eq!(rows(&node, &table, 1, Slices::all()).await.len(), 1);
        assert_eq!(read_now(), 6);
        // Without a liveness, as UPDATE writes it.
        let mut update = insert(&table, 1, 1, 9, 30);
        update.rows[0].parts.liveness = Liveness::EMPTY;
        node.shard.apply(vec![update]).await.expect("applied");
        assert_eq!(rows(&node, &table, 1, one_row(&table, 1)).await.len(), 1);
        assert_eq!(read_now(), 1, "the liveness is in the newest SSTable");
        let mut delete = insert(&table, 1, 1, 0, 40);
        delete.rows[0].parts.liveness = Liveness::EMPTY;
        delete.rows[0].parts.cells.clear();
        delete.rows[0].parts.deletion = RowDeletion { time: deletion(40), shadowable: false };
        node.shard.apply(vec![delete]).await.expect("applied");
        assert_eq!(rows(&node, &table, 1, one_row(&table, 1)).await.len(), 0);
        assert_eq!(read_now(), 0, "the memtable has the row's deletion");
    });
}

/// Proves that a partition deletion in an SSTable ends the read of a slice: what is older is not read.
#[test]
fn a_partition_deletion_ends_the_read() {
    simulate(async {
        let (disk, _) = Disk::simulated(32);
        let node = start(disk).await.expect("starts");
        let table = uncompacted("t", ID);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for round in 0..20 {
            let write = insert(&table, 1, 1, round, 10 + i64::from(round));
            node.shard.apply(vec![write]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        let mut delete = Mutation::new(table.id, table.layout.clone(), key(1));
        delete.deletion = deletion(100);
        node.shard.apply(vec![delete]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        let before = sstables_read(&node);
        assert_eq!(rows(&node, &table, 1, Slices::all()).await.len(), 0);
        let read = sstables_read(&node) - before;
        assert!(read <= 8, "{read} SSTables were read at once");
        let before = sstables_read(&node);
        assert_eq!(rows(&node, &table, 1, one_row(&table, 1)).await.len(), 0);
        assert_eq!(sstables_read(&node) - before, 1);
    });
}
