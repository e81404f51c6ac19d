//! Materialized views have what their bases have: under concurrent writes, beside a build, after a power failure at any operation.

use std::collections::BTreeSet;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use halcyon_engine::{Options, SyncMode};
use halcyon_io::{Disk, Random, SimRuntime, clock};
use halcyon_query::{Coordinator, Outcome, resume_view_builds};

use crate::node::{self, HOUR, execute};

const SCHEMA: [&str; 2] = [
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE k.t (p int, c int, v int, w int, PRIMARY KEY (p, c))",
];
/// One with a column of its own in the key, one with the base's key and not all columns, one of some rows only.
const VIEWS: [(&str, &str); 3] = [
    (
        "k.by_v",
        "CREATE MATERIALIZED VIEW k.by_v AS SELECT * FROM k.t WHERE p IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, p, c)",
    ),
    (
        "k.turned",
        "CREATE MATERIALIZED VIEW k.turned AS SELECT p, c, w FROM k.t WHERE p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, p)",
    ),
    (
        "k.some",
        "CREATE MATERIALIZED VIEW k.some AS SELECT p, c, v FROM k.t WHERE p IN (0, 1) AND c > 1 AND v IS NOT NULL PRIMARY KEY ((v, c), p)",
    ),
];

fn allow_views(options: &mut Options) {
    options.views.is_creation_allowed = true;
    options.auto_snapshot = false;
    options.commitlog.sync = SyncMode::Periodic { period: Duration::from_secs(10) };
}

/// Rows of integers.
async fn rows(node: &Coordinator, text: &str) -> BTreeSet<Vec<Option<i32>>> {
    let Ok(Outcome::Rows(rows)) = execute(node, text).await else { panic!("{text}") };
    let (mut left, mut all) = (rows.content.as_slice(), BTreeSet::new());
    for _ in 0..rows.count {
        let mut row = Vec::new();
        for _ in 0..rows.columns.len() {
            let (len, rest) = left.split_first_chunk::<4>().expect("a length");
            left = rest;
            row.push((i32::from_be_bytes(*len) == 4).then(|| {
                let (value, rest) = left.split_first_chunk::<4>().expect("a value");
                left = rest;
                i32::from_be_bytes(*value)
            }));
        }
        all.insert(row);
    }
    all
}

async fn check(node: &Coordinator, what: &str) {
    let base = rows(node, "SELECT p, c, v, w FROM k.t").await;
    let at = |row: &[Option<i32>], index: usize| row[index];
    let by_v: BTreeSet<_> = base.iter().filter(|row| at(row, 2).is_some()).cloned().collect();
    assert_eq!(rows(node, "SELECT p, c, v, w FROM k.by_v").await, by_v, "{what}: by_v");
    let turned = base.iter().map(|row| vec![at(row, 0), at(row, 1), at(row, 3)]).collect();
    assert_eq!(rows(node, "SELECT p, c, w FROM k.turned").await, turned, "{what}: turned");
    let is_some = |row: &&Vec<Option<i32>>| row[0] < Some(2) && row[1] > Some(1);
    let some = by_v.iter().filter(is_some).map(|row| row[..3].to_vec()).collect();
    assert_eq!(rows(node, "SELECT p, c, v FROM k.some").await, some, "{what}: some");
}

async fn wait_until_built(node: &Coordinator) {
    while rows_of_text(node, "SELECT view_name FROM system.built_views").await < VIEWS.len() {
        clock::sleep(Duration::from_millis(100)).await;
    }
}

async fn rows_of_text(node: &Coordinator, text: &str) -> usize {
    match execute(node, text).await {
        Ok(Outcome::Rows(rows)) => rows.count as usize,
        other => panic!("{text}: {other:?}"),
    }
}

fn write(random: &mut Random) -> String {
    let mut below = |most: u64| random.next_u64() % most;
    let (p, c, v, w) = (below(3), below(4), below(4), below(100));
    // Some times are those of other writes.
    let using =
        if below(3) == 0 { format!("USING TIMESTAMP {}", 1 + below(5)) } else { String::new() };
    match below(10) {
        0..=2 => format!("INSERT INTO k.t (p, c, v, w) VALUES ({p}, {c}, {v}, {w}) {using}"),
        3..=4 => format!("UPDATE k.t {using} SET v = {v} WHERE p = {p} AND c = {c}"),
        5 => format!("DELETE v FROM k.t {using} WHERE p = {p} AND c = {c}"),
        6 => format!("DELETE FROM k.t {using} WHERE p = {p} AND c = {c}"),
        7 => format!("DELETE FROM k.t {using} WHERE p = {p} AND c > {c}"),
        8 => format!("INSERT INTO k.t (p, c, v) VALUES ({p}, {c}, {v}) IF NOT EXISTS"),
        _ => format!(
            "BEGIN UNLOGGED BATCH UPDATE k.t SET w = {w} WHERE p = {p} AND c = {c}; UPDATE k.t SET v = {v} WHERE p = {} AND c = {c}; \
             DELETE FROM k.t WHERE p = {p} AND c = {w}; APPLY BATCH",
            (p + 1) % 3
        ),
    }
}

async fn run<const N: usize>(node: &Coordinator, texts: [&str; N]) {
    for text in texts {
        execute(node, text).await.expect(text);
    }
}

/// One client writes so often.
async fn fill(node: &Coordinator, seed: u64, writes: usize) {
    let mut random = Random::seeded(seed);
    for _ in 0..writes {
        execute(node, &write(&mut random)).await.expect("writes");
    }
}

/// Four clients at once; views come when the first writes have begun. Whether nothing failed.
async fn load(node: &Rc<Coordinator>, seed: u64) -> bool {
    for text in SCHEMA {
        if execute(node, text).await.is_err() {
            return false;
        }
    }
    let client = |number: u64| async move {
        let mut random = Random::seeded(seed * 8 + number);
        for _ in 0..60 {
            if execute(node, &write(&mut random)).await.is_err() {
                return false;
            }
        }
        true
    };
    let views = async {
        clock::sleep(Duration::from_millis(seed % 5)).await;
        for (_, text) in VIEWS {
            if execute(node, text).await.is_err() {
                return false;
            }
        }
        true
    };
    let (written, made) = futures_util::join!(join_all((0..4).map(client)), views);
    made && written.into_iter().all(|written| written)
}

/// Proves that views which are made beside writes, and kept up to date by several clients at once, have what their base has, before and
/// after a flush, and after a truncation.
#[test]
fn views_follow_their_base() {
    for seed in 0..40 {
        SimRuntime::seeded(seed).block_on(async {
            let node = Rc::new(node::start_on(Disk::simulated(seed).0, allow_views).await);
            assert!(load(&node, seed).await, "seed {seed}");
            wait_until_built(&node).await;
            check(&node, &format!("seed {seed}")).await;
            node.engine().flusher().flush(None).await.expect("flushes");
            check(&node, &format!("seed {seed}, flushed")).await;
            execute(&node, "TRUNCATE k.t").await.expect("truncates");
            assert!(rows(&node, "SELECT p, c, v, w FROM k.by_v").await.is_empty());
            fill(&node, seed, 20).await;
            check(&node, &format!("seed {seed}, truncated")).await;
        });
    }
}

/// Proves that a view of a truncated base is built at once after the clock was set back, though the truncation seems to be to come.
#[test]
fn views_are_built_after_the_clock_was_set_back() {
    let runtime = SimRuntime::seeded(1);
    let clock = runtime.clock().clone();
    runtime.block_on(async {
        let node = Rc::new(node::start_on(Disk::simulated(1).0, allow_views).await);
        run(&node, SCHEMA).await;
        run(&node, ["TRUNCATE k.t"]).await;
        clock.step_calendar(-HOUR);
        fill(&node, 1, 20).await;
        run(&node, VIEWS.map(|(_, text)| text)).await;
        let (built, patience) = (wait_until_built(&node), clock::sleep(Duration::from_secs(10)));
        if let Either::Right(_) = select(pin!(built), pin!(patience)).await {
            panic!("they are not built");
        }
        check(&node, "set back").await;
    });
}

/// Proves that a view which is made beside a truncation has nothing of the rows that were truncated.
#[test]
fn views_beside_a_truncation_have_what_is_left() {
    for seed in 0..40 {
        SimRuntime::seeded(seed).block_on(async {
            let node = Rc::new(node::start_on(Disk::simulated(seed).0, allow_views).await);
            run(&node, SCHEMA).await;
            fill(&node, seed, 60).await;
            let views = async {
                clock::sleep(Duration::from_micros(seed * 50)).await;
                run(&node, VIEWS.map(|(_, text)| text)).await;
            };
            let (truncated, ()) = futures_util::join!(execute(&node, "TRUNCATE k.t"), views);
            truncated.expect("truncates");
            wait_until_built(&node).await;
            check(&node, &format!("seed {seed}")).await;
        });
    }
}

/// Proves that after a power failure at any operation, and the replay of what it cut short, views have what their base has.
#[test]
fn views_survive_power_failures() {
    let mut downs = 0;
    for seed in 0..40 {
        let (disk, sim) = Disk::simulated(seed);
        sim.runtime().clone().block_on(async {
            let node = Rc::new(node::start_on(disk, allow_views).await);
            sim.crash_at(sim.ops_count() + 40 + seed * 17);
            let _ = load(&node, seed).await;
        });
        downs += u32::from(sim.is_down());
        sim.restart();
        sim.runtime().clone().block_on(async {
            let node = node::start_again(&sim, allow_views).await;
            resume_view_builds(node.shard()).await.expect("resumes");
            let catalog = node.shard().tables().catalog();
            let known = VIEWS.iter().filter(|(name, _)| catalog.table("k", &name[2..]).is_some());
            if known.count() < VIEWS.len() {
                return;
            }
            wait_until_built(&node).await;
            check(&node, &format!("seed {seed}")).await;
        });
    }
    assert!(downs > 5, "{downs} failures of power");
}

/// Proves that a view which is said to be built has all its rows after a power failure that leaves nothing unsynced.
#[test]
fn built_views_survive_a_power_failure() {
    let (disk, sim) = Disk::simulated(1);
    sim.runtime().clone().block_on(async {
        let node = node::start_on(disk, allow_views).await;
        run(&node, SCHEMA).await;
        fill(&node, 1, 60).await;
        node.engine().flusher().flush(None).await.expect("flushes");
        run(&node, VIEWS.map(|(_, text)| text)).await;
        wait_until_built(&node).await;
    });
    sim.crash_to_synced();
    sim.runtime().clone().block_on(async {
        let node = node::start_again(&sim, allow_views).await;
        resume_view_builds(node.shard()).await.expect("resumes");
        wait_until_built(&node).await;
        check(&node, "after the failure").await;
    });
}

const MANY: i32 = 4_000;

/// A partition of very many rows, with views that are built.
async fn fill_widely(node: &Coordinator) {
    run(node, SCHEMA).await;
    run(node, VIEWS.map(|(_, text)| text)).await;
    wait_until_built(node).await;
    for from in (0..MANY).step_by(200) {
        let rows = (from..from + 200)
            .map(|c| format!("INSERT INTO k.t (p, c, v, w) VALUES (0, {c}, {}, 1);", c % 50));
        let batch = format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.collect::<String>());
        execute(node, &batch).await.expect("writes");
    }
    run(node, ["INSERT INTO k.t (p, c, v, w) VALUES (1, 2, 3, 4)"]).await;
}

/// What a record of the log holds is less than a deletion of all these rows changes in views.
fn with_small_records(options: &mut Options) {
    allow_views(options);
    options.commitlog.segment_size = 1 << 20;
    options.commitlog.sync = SyncMode::Batch;
}

/// Proves that a partition, and a range of it, can be deleted however much that changes in views.
#[test]
fn deletions_of_any_number_of_rows_reach_views() {
    for deletion in [
        "DELETE FROM k.t WHERE p = 0",
        "DELETE FROM k.t WHERE p = 0 AND c >= 100",
        "BEGIN BATCH DELETE FROM k.t WHERE p = 0 AND c < 1900; DELETE FROM k.t WHERE p = 0 AND c >= 1800; APPLY BATCH",
    ] {
        SimRuntime::seeded(1).block_on(async {
            let node = node::start_on(Disk::simulated(1).0, with_small_records).await;
            fill_widely(&node).await;
            run(&node, [deletion]).await;
            let left = if deletion.ends_with("c >= 100") { 101 } else { 1 };
            assert_eq!(rows(&node, "SELECT p, c FROM k.t").await.len(), left, "{deletion}");
            check(&node, deletion).await;
            run(&node, ["INSERT INTO k.t (p, c, v, w) VALUES (0, 7, 8, 9)"]).await;
            check(&node, "written again").await;
        });
    }
}

/// Proves that a power failure in such a deletion leaves views that have what their base has, and that it can be made again.
#[test]
fn cut_deletions_leave_views_as_their_base() {
    let mut cut = 0;
    for seed in 0..12 {
        let (disk, sim) = Disk::simulated(seed);
        sim.runtime().clone().block_on(async {
            let node = node::start_on(disk, with_small_records).await;
            fill_widely(&node).await;
            sim.crash_at(sim.ops_count() + 1 + seed * 2);
            let _ = execute(&node, "DELETE FROM k.t WHERE p = 0").await;
        });
        sim.restart();
        sim.runtime().clone().block_on(async {
            let node = node::start_again(&sim, with_small_records).await;
            resume_view_builds(node.shard()).await.expect("resumes");
            wait_until_built(&node).await;
            let left = rows(&node, "SELECT p, c FROM k.t").await.len();
            cut += u32::from(left > 1 && left < MANY as usize);
            check(&node, &format!("seed {seed}, {left} rows")).await;
            run(&node, ["DELETE FROM k.t WHERE p = 0"]).await;
            check(&node, &format!("seed {seed}, made again")).await;
        });
    }
    assert!(cut > 0, "a failure between two pieces");
}

/// Proves that `materialized_views_enabled`, which is off by default, is obeyed.
#[test]
fn views_are_refused_where_they_are_off() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        run(&node, SCHEMA).await;
        let refused = execute(&node, VIEWS[0].1).await.expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "Materialized views are disabled. Enable in cassandra.yaml to use."
        );
    });
}
