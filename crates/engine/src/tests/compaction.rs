//! Compaction in the background, on the simulated disk.

use halcyon_io::{Fault, FaultRule, Operation};

use halcyon_model::options::MapOption;

use super::*;
use crate::DiskFailurePolicy;

/// The table with other compaction options.
fn compacted_by(options: &[(&str, &str)], gc_grace: i32) -> Arc<Table> {
    let mut schema = table().schema.clone();
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    schema.options.compaction = Some(MapOption::lenient(options.iter().map(text).collect()));
    schema.options.gc_grace_seconds = Some(gc_grace);
    Arc::new(Table::new(ID, TableKind::Regular, schema))
}

pub(super) fn tiered(enabled: &str) -> Arc<Table> {
    let options = [
        ("class", "SizeTieredCompactionStrategy"),
        ("min_threshold", "2"),
        ("min_sstable_size", "1"),
        ("enabled", enabled),
    ];
    compacted_by(&options, 864_000)
}

/// Two compactors, and a throughput that makes them sleep, and so take turns, all the time.
async fn start_slowly(disk: Disk, policy: DiskFailurePolicy) -> Result<Node> {
    start_with(disk, |options| {
        options.concurrent_compactors = 2;
        options.compaction_throughput = Some(10_000);
        options.disk_failure_policy = policy;
    })
    .await
}

/// Rows of the larger SSTables.
const ROWS: i32 = 300;
/// Enough that a compaction of the smaller ones, a third of that, pauses more than twice while another one runs.
const MANY_ROWS: i32 = 39_000;

/// Two SSTables of a third of the rows, then two of all.
async fn two_tiers(node: &Node, table: &Arc<Table>, most: i32) {
    for (round, rows) in [(0, most / 3), (1, most / 3), (2, most), (3, most)] {
        for first in (0..rows).step_by(500) {
            let mut m = insert(table, first / 500, first, round, 10 + i64::from(round));
            for c in first + 1..(first + 500).min(rows) {
                m.rows.push(row(table, c, round, 10 + i64::from(round)));
            }
            node.shard.apply(vec![m]).await.expect("applied");
        }
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
    }
}

/// Has it compacted from now on.
pub(super) async fn enable(node: &Node, sim: &SimDisk) {
    // Of two schema changes at one time the first could win.
    sim.clock().advance(std::time::Duration::from_secs(1));
    change(node, &[tiered("true")]).await.expect("schema");
}

pub(super) fn sstables(node: &Node) -> usize {
    let stats = node.engine.tables().stats();
    stats.iter().find(|s| s.keyspace == "ks").expect("known").sstables
}

/// The control thread's minute has passed.
pub(super) async fn minute(node: &Node) {
    node.engine.compactor().consider_all();
    for _ in 0..1_000_000 {
        node.engine.disk().clock().sleep(std::time::Duration::from_millis(100)).await;
        if node.engine.compactor().is_idle() {
            return;
        }
    }
    panic!("compactions never end");
}

/// Proves that two compactions of one table run at a time on disjoint inputs, and that all rows remain.
#[test]
fn two_at_a_time() {
    simulate(async {
        let (disk, sim) = Disk::simulated(21);
        let node = start_slowly(disk, DiskFailurePolicy::Stop).await.expect("starts");
        change(&node, &[tiered("false")]).await.expect("schema");
        let table = user_table(&node);
        two_tiers(&node, &table, MANY_ROWS).await;
        let before = contents(&node, &table).await;
        assert_eq!((sstables(&node), before.len()), (4, MANY_ROWS as usize));
        enable(&node, &sim).await;
        let mut most = 0;
        let mut compacting = std::pin::pin!(minute(&node));
        std::future::poll_fn(|context| {
            let done = compacting.as_mut().poll(context);
            most = most.max(node.engine.compactor().tasks().len());
            done
        })
        .await;
        assert_eq!(most, 2);
        assert!(sstables(&node) <= 2);
        let text: Vec<String> =
            node.engine.reporter().take_events().iter().map(ToString::to_string).collect();
        assert_eq!(
            text.iter().filter(|line| line.contains("ks.t: 2 sstables to")).count()
                + sstables(&node),
            4
        );
        assert_eq!(contents(&node, &user_table(&node)).await, before);
    });
}

/// Proves that power loss at any operation of concurrent compactions loses no row, and that the node starts.
#[test]
fn power_loss_while_two_compact() {
    let (_, sim) = Disk::simulated(22);
    let simulated = sim.clone();
    life(&sim, |disk| async move {
        let node = start_slowly(disk, DiskFailurePolicy::Stop).await.expect("starts");
        change(&node, &[tiered("false")]).await.expect("schema");
        two_tiers(&node, &user_table(&node), MANY_ROWS).await;
        enable(&node, &simulated).await;
        node.engine.drain().await.expect("drained");
    });
    let begin = sim.snapshot();
    let compact = |disk| async move {
        let node = start_slowly(disk, DiskFailurePolicy::Stop).await?;
        minute(&node).await;
        let left = sstables(&node);
        eprintln!(
            "{:?} {:?}",
            node.engine.reporter().take_events(),
            user_table(&node).schema.options.compaction
        );
        node.engine.drain().await?;
        Ok::<usize, crate::Error>(left)
    };
    let first = sim.ops_count();
    assert!(life(&sim, compact).expect("undisturbed") <= 2);
    let last = sim.ops_count();
    let stride = usize::try_from(((last - first) / 12).max(1)).expect("small");
    for at in (first..last).step_by(stride) {
        sim.restore(&begin);
        sim.crash_at(at);
        let _ = life(&sim, compact);
        sim.restart();
        life(&sim, move |disk| async move {
            let node = start(disk).await.unwrap_or_else(|e| panic!("power lost at {at}: {e}"));
            let found = contents(&node, &user_table(&node)).await;
            assert_eq!(found.len(), MANY_ROWS as usize, "power lost at {at}");
            assert!(found.values().all(|v| *v == 3), "power lost at {at}");
        });
    }
}

/// Proves that a failed compaction is reported with table, inputs, cause and cure, that it is not tried again at once but later, and
/// that the node keeps running.
#[test]
fn a_failure_is_told_and_tried_again() {
    simulate(async {
        let (disk, sim) = Disk::simulated(23);
        let node = start_slowly(disk, DiskFailurePolicy::Ignore).await.expect("starts");
        change(&node, &[tiered("false")]).await.expect("schema");
        two_tiers(&node, &user_table(&node), ROWS).await;
        enable(&node, &sim).await;
        let fails = FaultRule {
            path_contains: "_txn_compaction_".into(),
            operation: Some(Operation::Write),
            times: 1000,
            ..FaultRule::any(Fault::DeviceError)
        };
        sim.fail_on(fails);
        minute(&node).await;
        sim.clear_faults();
        let told = warnings(&node);
        assert!(!told.is_empty() && told.len() <= 2, "{told:?}");
        for part in
            ["compaction of ks.t failed", "its 2 inputs [/halcyon/data/ks/t-", "check the device"]
        {
            assert!(told[0].contains(part), "{part}: {told:?}");
        }
        assert_eq!((sstables(&node), node.engine.reporter().failure()), (4, None));
        minute(&node).await;
        assert_eq!(sstables(&node), 4);
        sim.clock().advance(std::time::Duration::from_secs(121));
        minute(&node).await;
        assert_eq!(warnings(&node), Vec::<String>::new());
        assert!(sstables(&node) <= 2);
        assert_eq!(contents(&node, &user_table(&node)).await.len(), ROWS as usize);
    });
}

/// Proves that a corrupt SSTable is left out from then on while others are compacted, and that only `stop_paranoid` stops for it.
#[test]
fn a_corrupt_input() {
    for (policy, stops) in
        [(DiskFailurePolicy::Stop, false), (DiskFailurePolicy::StopParanoid, true)]
    {
        simulate(async {
            let (disk, sim) = Disk::simulated(24);
            let node = start_slowly(disk, policy).await.expect("starts");
            change(&node, &[tiered("false")]).await.expect("schema");
            two_tiers(&node, &user_table(&node), ROWS).await;
            let is_data = |path: &&std::path::PathBuf| {
                path.ends_with("Data.db") || path.to_string_lossy().ends_with("-Data.db")
            };
            let files = sim.files();
            let of_table = files.iter().filter(|p| p.to_string_lossy().contains("/ks/t-"));
            let largest = of_table
                .filter(is_data)
                .max_by_key(|path| sim.contents(path).map_or(0, |bytes| bytes.len()))
                .expect("there are some");
            assert!(sim.flip(largest, 1000, 3));
            enable(&node, &sim).await;
            minute(&node).await;
            let told = warnings(&node);
            let corrupt: Vec<_> = told.iter().filter(|text| text.contains("is corrupt")).collect();
            assert_eq!(corrupt.len(), 1, "{told:?}");
            assert!(corrupt[0].contains("it is left out of compactions until then"), "{told:?}");
            assert_eq!(node.engine.reporter().failure().is_some(), stops);
            if !stops {
                // The two small ones are one; the corrupt one and its neighbour stay.
                assert_eq!(sstables(&node), 3);
            }
        });
    }
}

/// A row that expires `ttl` seconds after the simulated clock's beginning.
fn expiring(table: &Table, c: i32, ttl: i32, now: i64) -> Mutation {
    let mut mutation = insert(table, 1, c, 7, now * 1_000_000);
    let dies = u32::try_from(now + i64::from(ttl)).expect("before 2106");
    let row = &mut mutation.rows[0];
    row.parts.liveness = Liveness { timestamp: now * 1_000_000, ttl, local_expiration_time: dies };
    row.parts.cells[0].ttl = ttl;
    row.parts.cells[0].local_deletion_time = dies;
    mutation
}

/// Proves that a fully expired SSTable is dropped after gc grace, without a write and without a merge.
#[test]
fn expired_sstables_are_dropped() {
    simulate(async {
        let (disk, sim) = Disk::simulated(25);
        let node = start_slowly(disk, DiskFailurePolicy::Stop).await.expect("starts");
        let windows = [
            ("class", "TimeWindowCompactionStrategy"),
            ("compaction_window_unit", "MINUTES"),
            ("compaction_window_size", "1"),
        ];
        let table = compacted_by(&windows, 3600);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        let now = node.engine.disk().clock().unix_seconds();
        for c in 0..3 {
            node.shard.apply(vec![expiring(&table, c, 100, now)]).await.expect("applied");
        }
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        for (pass, left) in [(200, 1), (3000, 1), (1000, 0)] {
            sim.clock().advance(std::time::Duration::from_secs(pass));
            minute(&node).await;
            assert_eq!(sstables(&node), left, "after {pass} s");
        }
        let merged = node
            .engine
            .reporter()
            .take_events()
            .iter()
            .any(|n| matches!(n, crate::Event::Compacted(_)));
        assert!(!merged);
        node.engine.drain().await.expect("drained");
        let left = sim.files().into_iter().filter(|p| p.to_string_lossy().contains("/ks/t-"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    });
}

/// Proves that an SSTable of which enough has expired is compacted alone: what lives stays, what is past its grace goes.
#[test]
fn tombstones_of_one_sstable() {
    simulate(async {
        let (disk, sim) = Disk::simulated(26);
        let node = start_slowly(disk, DiskFailurePolicy::Stop).await.expect("starts");
        let table = compacted_by(&[("class", "SizeTieredCompactionStrategy")], 10);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        let now = node.engine.disk().clock().unix_seconds();
        for c in 0..8 {
            node.shard.apply(vec![expiring(&table, c, 100, now)]).await.expect("applied");
        }
        node.shard.apply(vec![insert(&table, 1, 50, 1, now * 1_000_000)]).await.expect("applied");
        node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        sim.clock().advance(std::time::Duration::from_secs(86_500));
        assert_eq!(contents(&node, &table).await.len(), 9);
        minute(&node).await;
        assert_eq!(contents(&node, &table).await, BTreeMap::from([((1, 50), 1)]));
    });
}

/// Proves that `autocompaction_on_startup_enabled: false` holds for the tables that there are at the start, and no others, until it is
/// changed for a table.
#[test]
fn tables_are_not_compacted_after_a_start_that_forbids_it() {
    let (_, sim) = Disk::simulated(5);
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        change(&node, &[table()]).await.expect("schema");
        assert_eq!(node.engine.tables.store_of(ID).expect("known").automatic_compaction(), None);
    });
    life(&sim, |disk| async move {
        let forbid = |options: &mut Options| options.compacts_after_start = false;
        let node = start_with(disk, forbid).await.expect("starts");
        let is_on =
            |id: [u8; 16]| node.engine.tables.store_of(id).expect("known").automatic_compaction();
        assert_eq!(is_on(ID), Some(false));
        let later = [9; 16];
        change(&node, &[table(), table_named("later", later)]).await.expect("schema");
        assert_eq!(is_on(later), None);
        node.engine.compactor().set_automatic(ID, true).expect("set");
        assert_eq!(is_on(ID), Some(true));
    });
}
