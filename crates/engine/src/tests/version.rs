//! Versions and their edits.

use std::collections::BTreeMap as Map;

use halcyon_io::Random;

use super::bookkeeping::lives;
use super::*;
use crate::version::{Edit, LiveSSTable, Version};

/// Proves that after random edits a version has what a plain list would have, in its order, and finds by tokens what a scan finds.
#[test]
fn edits_keep_order_and_index() {
    simulate(async {
        let seed = halcyon_io::random().next_u64();
        println!("seed {seed}");
        let mut random = Random::seeded(seed);
        let (disk, _) = Disk::simulated(1);
        let node = start(disk).await.expect("starts");
        let all = lives(&node, 40).await;
        let mut version = Version::default();
        let mut model: Map<u64, Arc<LiveSSTable>> = Map::new();
        for _ in 0..200 {
            let gone: Vec<Arc<LiveSSTable>> =
                model.values().filter(|_| random.chance(1, 8)).cloned().collect();
            gone.iter().for_each(|live| drop(model.remove(&live.serial())));
            let new = |live: &&Arc<LiveSSTable>| !gone.iter().any(|g| Arc::ptr_eq(g, live));
            let added: Vec<Arc<LiveSSTable>> = all
                .iter()
                .filter(|live| !model.contains_key(&live.serial()))
                .filter(new)
                .filter(|_| random.chance(1, 8))
                .cloned()
                .collect();
            model.extend(added.iter().map(|live| (live.serial(), live.clone())));
            version = version.edited(&Edit::replace(&gone, added));
            version.check();
            let mut expected: Vec<_> = model.values().cloned().collect();
            expected.sort_by(|a, b| {
                let by_time = a.max_timestamp().cmp(&b.max_timestamp());
                by_time.then_with(|| a.descriptor().cmp(b.descriptor()))
            });
            let serials =
                |lives: &[Arc<LiveSSTable>]| lives.iter().map(|l| l.serial()).collect::<Vec<_>>();
            assert_eq!(serials(version.sstables()), serials(&expected));
            let token = random.next_u64() as i64;
            let (first, last) = (token.saturating_sub(1 << 61), token.saturating_add(1 << 61));
            let overlaps =
                |live: &Arc<LiveSSTable>| live.tokens().0 <= last && first <= live.tokens().1;
            expected.retain(overlaps);
            let found = version.overlapping(first, last).into_iter();
            let found: Vec<_> = found.filter_map(|at| version.get(at)).cloned().collect();
            assert_eq!(serials(&found), serials(&expected));
        }
    });
}

/// Proves that an SSTable that was opened again takes the place of its former self, and that a removed one does not come back.
#[test]
fn reopened_sstables_keep_their_place() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start(disk.clone()).await.expect("starts");
        let all = lives(&node, 3).await;
        let version = Version::of(all.clone());
        let again = all[1].reopen(&disk, &all[1].schema).await;
        let again = again.expect("opens");
        let next = version.edited(&Edit::reopen([again.clone()]));
        next.check();
        let at =
            |version: &Version, live| version.sstables().iter().position(|l| Arc::ptr_eq(l, live));
        assert_eq!(at(&next, &again), at(&version, &all[1]));
        let gone = version.edited(&Edit::replace([&all[1]], Vec::new()));
        assert_eq!(gone.edited(&Edit::reopen([again])).len(), 2);
    });
}

/// Proves that a shard keeps its copy of a definition through edits, gives up a version that an edit makes obsolete even without reads,
/// and tells a layout of another shard's copy from a different one.
#[test]
fn a_shard_keeps_what_is_current() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start(disk).await.expect("starts");
        let table = table();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        // Fewer than a compaction begins with by itself.
        for round in 0..3 {
            node.shard.apply(vec![insert(&table, 1, round, 5, 20)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        assert_eq!(contents(&node, &table).await.len(), 3);
        let own = node.shard.table(&table).expect("known");
        let before = own.current();
        let inputs: Vec<_> = before.version.sstables().iter().map(Arc::downgrade).collect();
        let definition = Arc::downgrade(&before.definition);
        assert_eq!(inputs.len(), 3);
        drop(before);
        node.engine.compactor().compact(table.id).await.expect("compacted");
        yield_now().await;
        assert!(inputs.iter().all(|live| live.upgrade().is_none()), "the inputs are kept");
        let after = own.current();
        assert!(definition.upgrade().is_some_and(|kept| Arc::ptr_eq(&kept, &after.definition)));
        assert!(Arc::ptr_eq(&node.shard.own_table(&table), &after.definition.table));
        let copy = Arc::new(halcyon_stream::Layout::clone(&table.layout));
        assert!(after.has_layout(&copy) && after.has_layout(&copy));
        assert!(!after.has_layout(&Arc::new(table.layout.reversed())));
        let mut mutation = Mutation::new(table.id, copy, key(1));
        after.adopt(&mut mutation);
        assert!(Arc::ptr_eq(&mutation.layout, after.layout()));
    });
}
