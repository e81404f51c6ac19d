//! Writes to two shards: one record, which is kept as long as a shard may need it.

use std::time::Duration;

use halcyon_commitlog::SyncMode;

use super::*;

/// A node of two shards: with the first, and the second.
async fn start_two(disk: Disk, set: impl FnOnce(&mut Options)) -> (Node, Rc<Shard>) {
    let mut options = Options::in_directory(Path::new("/halcyon"), 2);
    options.commitlog.segment_size = 64 << 10;
    set(&mut options);
    let (engine, report) = Engine::open(disk, options).await.expect("opens");
    let mut shards = Vec::new();
    for index in 0..2 {
        let (shard, inbox) = engine.open_shard(index).await.expect("opens");
        spawn(inbox.serve(shard.clone())).detach();
        shards.push(shard);
    }
    let second = shards.pop().expect("two");
    (Node { engine, shard: shards.pop().expect("two"), report }, second)
}

fn periodic(options: &mut Options) {
    // The log of a shard is synced only by its own requests.
    options.commitlog.sync = SyncMode::Periodic { period: Duration::from_secs(3_600) };
}

/// A key of the first shard's, and one of the second's.
fn keys(node: &Node) -> [i32; 2] {
    let of = |shard| {
        (0..).find(|k| node.engine.tables().owner(key(*k).token) == shard).expect("some key")
    };
    [of(0), of(1)]
}

/// The rows of both shards.
async fn all_rows(node: Node, second: Rc<Shard>, table: &Arc<Table>) -> BTreeMap<(i32, i32), i32> {
    let mut rows = contents(&node, table).await;
    rows.extend(contents(&Node { shard: second, ..node }, table).await);
    rows
}

/// Inserts a row under a key of each shard.
async fn write_both(node: &Node, table: &Table, timestamp: i64) {
    let parts =
        (0..2).zip(keys(node)).map(|(shard, k)| (shard, vec![insert(table, k, 1, 1, timestamp)]));
    node.shard.apply_spanning(parts.collect()).await.expect("applied");
}

/// The deletion of a partition whose `gc_grace_seconds` are long over.
fn long_deleted(table: &Table, k: i32, timestamp: i64) -> Mutation {
    let mut delete = Mutation::new(table.id, table.layout.clone(), key(k));
    delete.deletion =
        DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 1_000_000_000 };
    delete
}

async fn flush_on(shard: &Shard, table: &Table) {
    let table = shard.table_by_id(table.id).expect("known");
    shard.flush_table(&table).await.expect("flushed");
}

/// Fills several segments of a shard's log with a table that is flushed then.
async fn fill_log(shard: &Shard, filler: &Table, k: i32) {
    for _ in 0..12 {
        let mut mutation = insert(filler, k, 0, 0, 1);
        mutation.rows.extend((1..800).map(|c| row(filler, c, c, 1)));
        shard.apply(vec![mutation]).await.expect("applied");
    }
    flush_on(shard, filler).await;
}

fn oldest_segment(shard: &Shard) -> Option<u64> {
    shard.log.oldest_dirty().map(|dirty| dirty.segment)
}

fn sstables(node: &Node, table: &Table) -> usize {
    let stats = node.engine.tables().stats();
    stats.iter().find(|s| s.table == table.schema.name).expect("known").sstables
}

async fn create(node: &Node) -> (Arc<Table>, Arc<Table>) {
    let filler = table_named("filler", *b"fedcba9876543210");
    change(node, &[table(), filler.clone()]).await.expect("schema");
    node.engine.flusher().flush(None).await.expect("flushed");
    (user_table(node), filler)
}

/// Proves that a record is there until each shard has flushed its part, and no longer.
#[test]
fn a_part_is_kept_until_it_is_flushed() {
    for flushes_second in [false, true] {
        let (_, sim) = Disk::simulated(51);
        life(&sim, |disk| async move {
            let (node, second) = start_two(disk, |_| ()).await;
            let (table, filler) = create(&node).await;
            write_both(&node, &table, 10).await;
            let segment = oldest_segment(&node.shard);
            flush_on(&node.shard, &table).await;
            if flushes_second {
                flush_on(&second, &table).await;
            }
            fill_log(&node.shard, &filler, keys(&node)[0]).await;
            node.shard.release_spanning();
            assert!(segment.is_some());
            assert_eq!(oldest_segment(&node.shard) == segment, !flushes_second);
        });
        sim.crash_to_synced();
        life(&sim, |disk| async move {
            let (node, second) = start_two(disk, |_| ()).await;
            let expected = keys(&node).map(|k| ((k, 1), 1));
            let table = user_table(&node);
            assert_eq!(all_rows(node, second, &table).await, BTreeMap::from(expected));
        });
    }
}

/// Proves that a replay does not bring back what was deleted after it on a shard whose own log has the deletion no more: its tombstone is
/// purged only once the record is discarded.
#[test]
fn a_replay_does_not_undo_deletions() {
    let (_, sim) = Disk::simulated(52);
    life(&sim, |disk| async move {
        let (node, second) = start_two(disk, |_| ()).await;
        let (table, filler) = create(&node).await;
        let [here, k] = keys(&node);
        // A table that is not flushed keeps the record.
        let kept = insert(&filler, here, 1, 1, 10);
        let parts = vec![(0, vec![kept]), (1, vec![insert(&table, k, 1, 1, 10)])];
        node.shard.apply_spanning(parts).await.expect("applied");
        flush_on(&second, &table).await;
        let segment = second.log.position().segment;
        second.apply(vec![long_deleted(&table, k, 20)]).await.expect("applied");
        flush_on(&second, &table).await;
        fill_log(&second, &filler, k).await;
        assert_ne!(oldest_segment(&second), Some(segment));
        node.engine.compactor().compact(table.id).await.expect("compacted");
        assert_eq!(sstables(&node, &table), 1);
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let (node, second) = start_two(disk, |_| ()).await;
        let table = user_table(&node);
        let there = read(&table, keys(&node)[1], Slices::all());
        assert_eq!(spell(&second, there).await, ["3 20"]);
        node.engine.flusher().flush(None).await.expect("flushed");
        node.engine.compactor().compact(table.id).await.expect("compacted");
        assert_eq!(sstables(&node, &table), 0);
    });
}

/// Proves that a replay of a shard's own log does not bring back what a record of another log has deleted, when that is discarded.
#[test]
fn a_replay_does_not_undo_deletions_of_other_logs() {
    let (_, sim) = Disk::simulated(55);
    life(&sim, |disk| async move {
        let (node, second) = start_two(disk, |_| ()).await;
        let (table, filler) = create(&node).await;
        let [here, k] = keys(&node);
        second.apply(vec![insert(&table, k, 1, 1, 10)]).await.expect("applied");
        flush_on(&second, &table).await;
        let segment = node.shard.log.position().segment;
        let parts =
            vec![(0, vec![insert(&table, here, 1, 1, 20)]), (1, vec![long_deleted(&table, k, 20)])];
        node.shard.apply_spanning(parts).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        fill_log(&node.shard, &filler, here).await;
        node.shard.release_spanning();
        assert_ne!(oldest_segment(&node.shard), Some(segment));
        second.release_spanning();
        node.engine.compactor().compact(table.id).await.expect("compacted");
        assert_eq!(spell(&second, read(&table, k, Slices::all())).await, ["3 20"]);
        // Without what a replay would bring back, the tombstone may go.
        // The compaction has written to its history.
        node.engine.flusher().flush(None).await.expect("flushed");
        fill_log(&second, &filler, k).await;
        second.release_spanning();
        node.engine.compactor().compact(table.id).await.expect("compacted");
        assert_eq!(spell(&second, read(&table, k, Slices::all())).await, [""; 0]);
    });
}

/// Proves that under `periodic` no shard's part of a record outlives a power failure that takes the record.
#[test]
fn a_flush_makes_the_record_durable() {
    for flushed in [None, Some(0), Some(1)] {
        let (_, sim) = Disk::simulated(53);
        life(&sim, |disk| async move {
            let (node, second) = start_two(disk, periodic).await;
            let (table, _) = create(&node).await;
            write_both(&node, &table, 10).await;
            match flushed {
                Some(0) => flush_on(&node.shard, &table).await,
                Some(_) => flush_on(&second, &table).await,
                None => {}
            }
        });
        sim.crash_to_synced();
        life(&sim, |disk| async move {
            let (node, second) = start_two(disk, periodic).await;
            let table = user_table(&node);
            let rows = all_rows(node, second, &table).await.len();
            assert_eq!(rows, if flushed.is_some() { 2 } else { 0 }, "{flushed:?}");
        });
    }
}

/// Proves the same of the tables of one shard.
#[test]
fn a_flush_makes_other_tables_writes_durable() {
    let (_, sim) = Disk::simulated(56);
    life(&sim, |disk| async move {
        let (node, _) = start_two(disk, periodic).await;
        let (table, filler) = create(&node).await;
        let k = keys(&node)[0];
        let both = vec![insert(&table, k, 1, 1, 10), insert(&filler, k, 1, 1, 10)];
        node.shard.apply(both).await.expect("applied");
        flush_on(&node.shard, &table).await;
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let (node, _) = start_two(disk, periodic).await;
        let filler = node.engine.tables().catalog().table("ks", "filler").expect("known").clone();
        assert_eq!(contents(&node, &filler).await.len(), 1);
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 1);
    });
}

/// Proves that a log whose space is held by another shard's part has it flushed, and that a drain leaves no record of several shards.
#[test]
fn a_log_short_of_space_has_others_flush() {
    let (_, sim) = Disk::simulated(54);
    let small = |options: &mut Options| options.commitlog.total_space = 256 << 10;
    life(&sim, |disk| async move {
        let (node, _) = start_two(disk, small).await;
        let (table, filler) = create(&node).await;
        write_both(&node, &table, 10).await;
        let segment = oldest_segment(&node.shard);
        for _ in 0..12 {
            fill_log(&node.shard, &filler, keys(&node)[0]).await;
            node.engine.disk().clock().sleep(Duration::from_secs(1)).await;
        }
        assert_ne!(oldest_segment(&node.shard), segment);
        write_both(&node, &table, 30).await;
        node.engine.drain().await.expect("drained");
    });
    life(&sim, |disk| async move {
        let (node, second) = start_two(disk, small).await;
        assert_eq!(node.report.mutations_replayed, 0);
        let table = user_table(&node);
        assert_eq!(all_rows(node, second, &table).await.len(), 2);
    });
}
