//! What the live set costs with 10, 1,000 and 10,000 SSTables.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use halcyon_compaction::strategy::{History, PickContext, debt, pick};
use halcyon_io::Random;
use halcyon_model::options::MapOption;
use halcyon_sstable::Descriptor;

use super::*;
use crate::compact::{candidates, groups, strategy_of};
use crate::flush::Extremes;
use crate::memtable::Memtable;
use crate::version::{Edit, LiveSSTable, Version};

/// SSTables of one table, each with one partition, none in its version.
pub(super) async fn lives(node: &Node, count: i32) -> Vec<Arc<LiveSSTable>> {
    change(node, &[table()]).await.expect("schema");
    let (engine, table) = (&node.engine, user_table(node));
    let store = engine.tables.stores.load().get(&table.id).expect("known").clone();
    let mut lives = Vec::new();
    for k in 0..count {
        let mut memtable = Memtable::new(table.clone());
        memtable.apply(insert(&table, k, 1, k, i64::from(k))).expect("applied");
        let id = store.fresh_id(&engine.tables.storage.disk, &engine.tables.storage.options);
        let descriptor = Descriptor::new(&store.directories[0], engine.tables.storage.version, id);
        let bases = Extremes::of(&memtable).bases();
        engine
            .flusher()
            .write_sstable(&descriptor, Arc::new(memtable), bases, None, None)
            .await
            .expect("written");
        let schema = store.definition.load().schema.clone();
        let live = LiveSSTable::open(
            &engine.tables.storage.disk,
            &descriptor,
            &schema,
            engine.tables.storage.options.read_mode,
        )
        .await;
        lives.push(live.expect("opens"));
    }
    lives
}

fn timed(what: &str, count: usize, times: u32, mut body: impl FnMut()) {
    let began = Instant::now();
    (0..times).for_each(|_| body());
    println!(
        "{count:>6} {what:<32} {:>12.1} us",
        began.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    );
}

async fn measure(count: i32) {
    let (disk, _) = Disk::simulated(1);
    let node = start(disk).await.expect("starts");
    let mut all = lives(&node, count).await;
    let table = user_table(&node);
    let store = node.engine.tables.stores.load().get(&table.id).expect("known").clone();
    let added = all.split_off(all.len() - 1);
    let version = Arc::new(Version::of(all.clone()));
    store.version.store(version.clone());
    let (n, times) = (all.len() + 1, 20);
    timed("edit: four go, one comes", n, times, || {
        drop(black_box(version.edited(&Edit::replace(&all[..4], added.clone()))));
    });
    let now = node.engine.tables.storage.disk.clock().now();
    for class in ["SizeTiered", "Leveled", "TimeWindow", "Unified"] {
        let mut schema = table.schema.clone();
        let class = format!("{class}CompactionStrategy");
        let options = BTreeMap::from([("class".to_owned(), class.clone())]);
        schema.options.compaction = Some(MapOption::lenient(options));
        let altered = Arc::new(Table::new(table.id, TableKind::Regular, schema));
        let definition =
            crate::definition::Definition::of(altered, &node.engine.tables().catalog());
        store.definition.store(definition);
        let strategy = strategy_of(&store);
        let moment = PickContext {
            now_ms: 1_700_000_000_000,
            gc_before: 1_600_000_000,
            compacting: &BTreeSet::new(),
            memtable_min_timestamp: None,
            flush_size: 1 << 20,
        };
        timed(&format!("pick: {class}"), n, times, || {
            for lives in groups(version.sstables()) {
                let mut history = History::new(Random::seeded(1));
                let candidates = candidates(&lives, moment.gc_before, now);
                drop(black_box(pick(&strategy, &candidates, &moment, &mut history)));
            }
        });
        timed(&format!("debt: {class}"), n, times, || {
            for lives in groups(version.sstables()) {
                let candidates = candidates(&lives, moment.gc_before, now);
                black_box(debt(&strategy, candidates, &moment));
            }
        });
    }
    timed("table_stats", n, times, || drop(black_box(node.engine.tables().stats())));
    let began = Instant::now();
    let reads = 500;
    for k in 0..reads {
        let mut stream =
            node.shard.read(read(&table, k % (count - 1), Slices::all())).await.expect("read");
        while stream.advance().await.expect("advance") {}
    }
    let took = began.elapsed().as_secs_f64() * 1e6 / f64::from(reads);
    println!("{n:>6} {:<32} {took:>12.1} us", "point read, one SSTable fits");
}

/// Prints the cost of edits, picks, debt, statistics and point reads: `cargo test -p halcyon-engine --release -- --ignored
/// bookkeeping --nocapture`.
#[test]
#[ignore = "a measurement"]
fn bookkeeping() {
    [10, 1_000, 10_000].into_iter().for_each(|count| simulate(measure(count)));
}
