//! The row cache against the same reads without it; other table options that a shard honours.

use std::time::Duration;

use halcyon_io::Random;
use halcyon_model::options::MapOption;
use halcyon_stream::RowDeletion;

use super::*;
use crate::{ReadStream, SavedCache};

/// `t` with another name, identifier and options.
fn table_with(name: &str, caching: &[(&str, &str)], flush_period_ms: i32) -> Arc<Table> {
    let mut schema = table().schema.clone();
    schema.options.memtable_flush_period_in_ms = flush_period_ms;
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let mut id = ID;
    id[..name.len()].copy_from_slice(name.as_bytes());
    schema.name = name.to_owned();
    schema.id = Some(id);
    schema.options.caching = Some(MapOption::lenient(map(caching)));
    Arc::new(Table::new(id, TableKind::Regular, schema))
}

async fn start_with(disk: Disk, row_cache_size: u64) -> Node {
    let mut options = Options::in_directory(Path::new("/halcyon"), 1);
    options.row_cache_size = row_cache_size;
    options.auto_snapshot = false;
    let (engine, report) = Engine::open(disk, options).await.expect("opens");
    let (shard, inbox) = engine.open_shard(0).await.expect("opens");
    spawn(inbox.serve(shard.clone())).detach();
    Node { engine, shard, report }
}

/// What a client would see, row by row, from a stream that may pause.
pub(super) struct Client {
    stream: ReadStream,
    partition: DeletionTime,
    range: DeletionTime,
}

impl Client {
    pub(super) async fn open(shard: &Shard, read: Read) -> Client {
        let stream = shard.read(read).await.expect("read");
        Client { stream, partition: DeletionTime::LIVE, range: DeletionTime::LIVE }
    }

    /// At most `most` rows more, with their live cells; the static row is one too.
    pub(super) async fn rows(&mut self, most: usize, now: u32, out: &mut Vec<String>) {
        let until = out.len() + most;
        while out.len() < until && self.stream.advance().await.expect("advance") {
            match self.stream.fragment() {
                Fragment::Start(start) => self.partition = start.deletion,
                Fragment::Marker(marker) => {
                    self.range = marker.open.unwrap_or(DeletionTime::LIVE);
                }
                Fragment::Static(row) | Fragment::Row(row) => {
                    let deletion = self.partition.max(self.range).max(row.deletion.time);
                    let cells: Vec<_> = row
                        .cells
                        .iter()
                        .filter(|cell| cell.is_live(now) && !deletion.deletes(cell.timestamp))
                        .map(|cell| (cell.timestamp, cell.value.of(row.bytes).to_vec()))
                        .collect();
                    let live = row.liveness;
                    let there = !live.is_empty() && !deletion.deletes(live.timestamp);
                    let there = there && !(live.is_expiring() && now >= live.local_expiration_time);
                    if there || !cells.is_empty() {
                        out.push(format!("{:?} {there} {cells:?}", row.clustering));
                    }
                }
                Fragment::End => {}
            }
        }
    }
}

/// A write to any place of a few, of any kind.
pub(super) fn any_write(table: &Table, random: &mut Random, step: i64, now: u32) -> Mutation {
    let k = random.below(3) as i32;
    let c = random.below(12) as i32;
    // Some come late.
    let timestamp = step - if random.chance(1, 5) { random.below(50) as i64 } else { 0 };
    let time = DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: now };
    let mut mutation = Mutation::new(table.id, table.layout.clone(), key(k));
    match random.below(12) {
        0 => mutation.deletion = time,
        1 | 2 => {
            let (a, b) = (random.below(12) as i32, random.below(12) as i32);
            mutation.range_tombstones.push(RangeTombstone {
                start: bound(table, BoundKind::InclStart, a.min(b)),
                end: bound(table, BoundKind::ExclEnd, a.max(b)),
                time,
            });
        }
        3 => {
            let mut row = RowBuf::new();
            row.parts.clustering = row.store(&clustering(table, c));
            row.parts.deletion = RowDeletion { time, shadowable: false };
            mutation.rows.push(row);
        }
        4 => {
            let mut statics = row(table, 0, c, timestamp);
            statics.parts.clustering = Span::default();
            statics.parts.liveness = Liveness::EMPTY;
            mutation.static_row = Some(statics);
        }
        5 | 6 => {
            let mut expiring = row(table, c, c, timestamp);
            let (ttl, until) = (20, now + 20);
            expiring.parts.liveness.ttl = ttl;
            expiring.parts.liveness.local_expiration_time = until;
            expiring.parts.cells[0].ttl = ttl;
            expiring.parts.cells[0].local_deletion_time = until;
            mutation.rows.push(expiring);
        }
        _ => mutation.rows.push(row(table, c, step as i32, timestamp)),
    }
    mutation
}

/// The same mutation for the other table.
pub(super) fn for_table(mutation: &Mutation, table: &Table) -> Mutation {
    Mutation { table: table.id, layout: table.layout.clone(), ..mutation.clone() }
}

pub(super) fn any_slices(table: &Table, random: &mut Random) -> Slices {
    let mut cuts: Vec<i32> = (0..4).map(|_| random.below(13) as i32).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let slice = |from: Option<i32>, to: Option<i32>| Slice {
        start: from.map(|c| bound(table, BoundKind::InclStart, c)),
        end: to.map(|c| bound(table, BoundKind::ExclEnd, c)),
    };
    let slices = match (random.below(5), cuts.as_slice()) {
        (0, _) => vec![slice(None, None)],
        (1, [.., to]) => vec![slice(None, Some(*to))],
        (2, [a, b, c, d]) => vec![slice(Some(*a), Some(*b)), slice(Some(*c), Some(*d))],
        (3, [from, ..]) => vec![slice(Some(*from), None)],
        (_, [.., to]) => vec![slice(Some(to - 1), Some(*to))],
        _ => vec![],
    };
    Slices { slices: slices.into(), reversed: random.chance(1, 4), statics: random.chance(1, 2) }
}

async fn history(seed: u64) -> u64 {
    let mut random = Random::seeded(seed);
    let (disk, sim) = Disk::simulated(seed);
    // Now and then so small that entries drive each other out.
    let node = start_with(disk.clone(), if random.chance(1, 4) { 6 << 10 } else { 1 << 20 }).await;
    let caching = ["ALL", "1", "3", "7"];
    let cached = |rows: &str| table_with("t", &[("keys", "ALL"), ("rows_per_partition", rows)], 0);
    let mut table = cached(caching[random.below(4) as usize]);
    let plain = table_with("u", &[("keys", "NONE"), ("rows_per_partition", "NONE")], 0);
    change(&node, &[table.clone(), plain.clone()]).await.expect("schema");
    for step in 1..300 {
        let now = u32::try_from(disk.clock().unix_seconds()).expect("now");
        match random.below(40) {
            0..=9 => {
                let write = any_write(&plain, &mut random, 100 + step, now);
                let both = vec![for_table(&write, &table), write];
                node.shard.apply(both).await.expect("applied");
            }
            17 | 18 => node.engine.flusher().flush(None).await.expect("flushed"),
            19 => drop(node.engine.compactor().compact(table.id).await.expect("compacted")),
            20 | 21 => disk.clock().sleep(Duration::from_secs(random.below(15))).await,
            22 if random.chance(1, 4) => {
                node.engine.schema().truncate(table.id).await.expect("truncated");
                node.engine.schema().truncate(plain.id).await.expect("truncated");
            }
            23 if random.chance(1, 2) => {
                table = cached(caching[random.below(4) as usize]);
                change(&node, &[table.clone(), plain.clone()]).await.expect("schema");
            }
            _ => compare(&node, [&table, &plain], &mut random, (seed, step), now).await,
        }
    }
    drop(sim);
    node.shard.row_cache_stats().hits
}

async fn compare(
    node: &Node,
    [table, plain]: [&Arc<Table>; 2],
    random: &mut Random,
    (seed, step): (u64, i64),
    now: u32,
) {
    let k = random.below(3) as i32;
    let slices = any_slices(plain, random);
    let mut clients = [
        Client::open(&node.shard, read(table, k, slices.clone())).await,
        Client::open(&node.shard, read(plain, k, slices.clone())).await,
    ];
    let mut rows = [Vec::new(), Vec::new()];
    let page = random.below(6) as usize;
    // A read that is under way sees nothing of what is written meanwhile.
    for most in [page, usize::MAX / 2] {
        for (client, rows) in clients.iter_mut().zip(&mut rows) {
            client.rows(most, now, rows).await;
        }
        if random.chance(1, 6) {
            let write = any_write(plain, random, 100 + step, now);
            node.shard.apply(vec![for_table(&write, table), write]).await.expect("applied");
        }
    }
    assert_eq!(rows[0], rows[1], "seed {seed}, step {step}, key {k}, {slices:?}");
}

/// Proves that with the row cache every read finds what it finds without it: under writes of all kinds, late ones too, flushes,
/// compactions, truncations, schema changes and time that passes.
#[test]
fn a_row_cache_changes_no_answer() {
    let hits: u64 = (0..10).map(|seed| simulate(history(seed))).sum();
    assert!(hits > 150, "{hits} hits: too few to prove anything");
}

/// Proves that a head is not kept when its partition is written to while it is read.
#[test]
fn what_is_written_meanwhile_is_not_kept() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start_with(disk, 1 << 20).await;
        let table = table_with("t", &[("keys", "ALL"), ("rows_per_partition", "ALL")], 0);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        node.shard.apply(vec![insert(&table, 1, 1, 1, 1)]).await.expect("applied");
        let rows = &node.shard.rows;
        let filling = rows.begin(table.id, &key(1)).expect("the first");
        assert!(rows.begin(table.id, &key(1)).is_none());
        let before = spell(&node.shard, read(&table, 1, Slices::all())).await;
        assert_eq!((before.len(), node.shard.row_cache_stats().entries), (2, 0));
        node.shard.apply(vec![insert(&table, 1, 2, 2, 2)]).await.expect("applied");
        // Announced again by another read; the first must not end it.
        let second = rows.begin(table.id, &key(1)).expect("the first was withdrawn");
        drop(filling);
        assert!(rows.begin(table.id, &key(1)).is_none());
        drop(second);
        assert_eq!(spell(&node.shard, read(&table, 1, Slices::all())).await.len(), 3);
        assert_eq!(node.shard.row_cache_stats().entries, 1);
        assert_eq!(spell(&node.shard, read(&table, 1, Slices::all())).await.len(), 3);
        assert_eq!(node.shard.row_cache_stats().hits, 1);
    });
}

/// Proves that `caching = {'keys': 'NONE'}` keeps a table out of the key cache, and `ALL` puts it in.
#[test]
fn the_key_cache_is_asked_for() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start_with(disk, 0).await;
        for (keys, found) in [("NONE", 0), ("ALL", 1)] {
            let table = table_with("t", &[("keys", keys), ("rows_per_partition", "NONE")], 0);
            change(&node, std::slice::from_ref(&table)).await.expect("schema");
            node.shard.apply(vec![insert(&table, 1, 1, 1, 1)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            let before = node.shard.cache_stats().key_entries;
            spell(&node.shard, read(&table, 1, Slices::all())).await;
            let after = node.shard.cache_stats().key_entries;
            assert!(if found == 0 { after == before } else { after > before }, "{keys}");
        }
    });
}

/// Proves that a memtable is flushed when it is older than `memtable_flush_period_in_ms`, and not before, among more tables than a
/// shard looks at in one step.
#[test]
fn old_memtables_are_flushed() {
    simulate(async {
        let (disk, _) = Disk::simulated(1);
        let node = start_with(disk.clone(), 0).await;
        let table = table_with("t", &[("keys", "ALL")], 5000);
        let others = (100..200).map(|i| table_with(&format!("s{i}"), &[("keys", "ALL")], 0));
        let all: Vec<_> = others.chain([table.clone()]).collect();
        change(&node, &all).await.expect("schema");
        let sstables = || {
            let stats = node.engine.tables().stats();
            stats.iter().find(|s| s.table == "t").map_or(0, |s| s.sstables)
        };
        // An empty one starts its period again: wait for that, so that the next starts here.
        let of_shard = node.shard.table(&table).expect("there");
        let first = of_shard.active().made();
        for _ in 0..1000 {
            if of_shard.active().made() > first {
                break;
            }
            disk.clock().sleep(Duration::from_millis(10)).await;
        }
        assert!(of_shard.active().made() > first && sstables() == 0);
        node.shard.apply(vec![insert(&table, 1, 1, 1, 1)]).await.expect("applied");
        for (seconds, expected) in [(4, 0), (2, 1)] {
            disk.clock().sleep(Duration::from_secs(seconds)).await;
            while of_shard.flushing.get() {
                of_shard.flushed.notified().await;
            }
            assert_eq!(sstables(), expected);
        }
        // While one cannot be written yet, because a write is on its way to it, no more pile up behind it.
        let mut pins = Vec::new();
        for c in 0..3 {
            node.shard.apply(vec![insert(&table, 1, c, 1, 1)]).await.expect("applied");
            pins.push(of_shard.active().pin());
            disk.clock().sleep(Duration::from_secs(6)).await;
            assert_eq!(of_shard.frozen.borrow().len(), 1);
        }
    });
}

/// Proves that saved caches are warm after a start without a request being counted, that a file with a flipped bit is refused, and
/// that what is no longer there is passed over.
#[test]
fn caches_are_saved_and_warmed() {
    let (_, sim) = Disk::simulated(3);
    let cached = || table_with("t", &[("keys", "ALL"), ("rows_per_partition", "ALL")], 0);
    let far = |node: &Node| node.shard.now() + Duration::from_secs(3600);
    life(&sim, move |disk| async move {
        let node = start_with(disk, 1 << 20).await;
        let table = cached();
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        for k in 0..20 {
            node.shard.apply(vec![insert(&table, k, 1, k, 1)]).await.expect("applied");
        }
        node.engine.flusher().flush(None).await.expect("flushed");
        for k in 0..5 {
            spell(&node.shard, read(&table, k, Slices::all())).await;
        }
        assert_eq!(node.engine.saved_caches().save(SavedCache::Rows, 100).await.expect("saved"), 5);
        let keys = node.shard.cache_stats().key_entries;
        assert!(
            node.engine.saved_caches().save(SavedCache::Keys, 100).await.expect("saved") >= 5,
            "{keys}"
        );
        assert_eq!(node.engine.saved_caches().save(SavedCache::Rows, 3).await.expect("saved"), 3);
        node.engine.drain().await.expect("drained");
    });
    life(&sim, move |disk| async move {
        let node = start_with(disk, 1 << 20).await;
        let before = node.shard.cache_stats();
        let keys =
            node.engine.saved_caches().load(SavedCache::Keys, far(&node)).await.expect("sound");
        let after = node.shard.cache_stats();
        assert!(keys >= Some(5), "{keys:?}");
        assert!(after.key_entries >= before.key_entries + 5);
        assert_eq!((before.key_hits, before.key_misses), (after.key_hits, after.key_misses));
        let rows =
            node.engine.saved_caches().load(SavedCache::Rows, far(&node)).await.expect("sound");
        assert_eq!((rows, node.shard.row_cache_stats().entries), (Some(3), 3));
        let none = node.engine.saved_caches().load(SavedCache::Rows, node.shard.now()).await;
        assert_eq!(none.expect("sound"), Some(0));
        let table = user_table(&node);
        node.engine.schema().truncate(table.id).await.expect("truncated");
        let rows =
            node.engine.saved_caches().load(SavedCache::Rows, far(&node)).await.expect("sound");
        assert_eq!((rows, node.shard.row_cache_stats().entries), (Some(3), 0));
        let path = Path::new("/halcyon/saved_caches/RowCache-g.db");
        let disk = node.engine.disk();
        let mut bytes = disk.read(path, 1 << 20).await.expect("read");
        bytes[20] ^= 1;
        disk.remove(path).await.expect("removed");
        disk.write_new(path, &bytes, halcyon_io::Purpose::Flush).await.expect("written");
        let refused = node.engine.saved_caches().load(SavedCache::Rows, far(&node)).await;
        let text = refused.expect_err("damaged").to_string();
        assert!(text.contains("RowCache-g.db: offset 0: checksum"), "{text}");
    });
}
