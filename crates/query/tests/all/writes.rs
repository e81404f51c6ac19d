//! Timestamps of conditional writes, logged batches that fail half-way, and writes of columns that were just added or dropped.

use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::{CommitFailurePolicy, Options, SyncMode};
use halcyon_io::{Disk, Fault, FaultRule, SimDisk, SimRuntime, clock};
use halcyon_model::access::Principal;
use halcyon_model::request::Value;
use halcyon_query::{Coordinator, Outcome, QueryOptions};

use crate::node::{self, HOUR, content, execute};

const KEYSPACE: &str =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn int(value: i32) -> Vec<u8> {
    [4i32, value].map(i32::to_be_bytes).concat()
}

const APPLIED: [u8; 5] = [0, 0, 0, 1, 1];

/// Proves that a column that is added while nothing of its table is in memory takes values, with and without rows on disk.
#[test]
fn added_columns_take_values_at_once() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (p int PRIMARY KEY, v int)",
            "ALTER TABLE k.t ADD x int",
            "INSERT INTO k.t (p, v, x) VALUES (1, 1, 2)",
        ] {
            execute(&node, text).await.expect(text);
        }
        assert_eq!(content(&node, "SELECT x FROM k.t WHERE p = 1").await, int(2));
        node.engine().flusher().flush(None).await.expect("flushes");
        execute(&node, "ALTER TABLE k.t ADD y int").await.expect("alters");
        execute(&node, "UPDATE k.t SET y = 3 WHERE p = 1").await.expect("writes");
        assert_eq!(content(&node, "SELECT y FROM k.t WHERE p = 1").await, int(3));
    });
}

/// Proves that a replay does not bring back cells of a column that was dropped and added again.
#[test]
fn dropped_cells_stay_hidden_after_a_replay() {
    let runtime = SimRuntime::seeded(1);
    let simulated = runtime.block_on(async {
        let (disk, simulated) = Disk::simulated(1);
        let node = node::start_on(disk, |_| ()).await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (p int PRIMARY KEY, v int, x int)",
            // The row of a dropped column has no microseconds.
            "INSERT INTO k.t (p, v, x) VALUES (1, 1, 2) USING TIMESTAMP 1000",
            "ALTER TABLE k.t DROP x USING TIMESTAMP 2000",
            "ALTER TABLE k.t ADD x int",
            "UPDATE k.t USING TIMESTAMP 3000 SET x = 4 WHERE p = 2",
        ] {
            execute(&node, text).await.expect(text);
        }
        simulated
    });
    simulated.kill();
    runtime.block_on(async {
        let node = node::start_again(&simulated, |_| ()).await;
        let null = (-1i32).to_be_bytes();
        assert_eq!(content(&node, "SELECT x FROM k.t WHERE p = 1").await, null);
        assert_eq!(content(&node, "SELECT x FROM k.t WHERE p = 2").await, int(4));
    });
}

/// Proves that a conditional write that says it was applied can be read, whatever timestamps its rows had: of cells, of deletions of the
/// row and of the partition, of the static row, and of a row that no condition reads. Other partitions keep the clock's timestamps.
#[test]
fn conditional_writes_are_later_than_what_they_replace() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (p int, c int, s int static, v int, PRIMARY KEY (p, c))",
            "INSERT INTO k.t (p, c, v) VALUES (1, 1, 1) USING TIMESTAMP 9000000000000000",
            "DELETE FROM k.t USING TIMESTAMP 9000000000000000 WHERE p = 2",
            "DELETE FROM k.t USING TIMESTAMP 9000000000000000 WHERE p = 3 AND c = 1",
            "UPDATE k.t USING TIMESTAMP 9000000000000000 SET s = 1 WHERE p = 4",
            "INSERT INTO k.t (p, c, v) VALUES (4, 1, 1) USING TIMESTAMP 9000000000000000",
        ] {
            execute(&node, text).await.expect(text);
        }
        for (write, read, expected) in [
            ("UPDATE k.t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1", "v FROM k.t WHERE p = 1", 2),
            ("UPDATE k.t SET v = 3 WHERE p = 1 AND c = 1 IF v = 2", "v FROM k.t WHERE p = 1", 3),
            (
                "INSERT INTO k.t (p, c, v) VALUES (2, 1, 4) IF NOT EXISTS",
                "v FROM k.t WHERE p = 2",
                4,
            ),
            (
                "INSERT INTO k.t (p, c, v) VALUES (3, 1, 5) IF NOT EXISTS",
                "v FROM k.t WHERE p = 3",
                5,
            ),
            ("UPDATE k.t SET s = 6 WHERE p = 4 IF s = 1", "s FROM k.t WHERE p = 4", 6),
            ("UPDATE k.t SET v = 7 WHERE p = 4 AND c = 1 IF s = 6", "v FROM k.t WHERE p = 4", 7),
        ] {
            assert_eq!(content(&node, write).await, APPLIED, "{write}");
            assert_eq!(content(&node, &format!("SELECT {read}")).await, int(expected), "{write}");
        }
        let other = "INSERT INTO k.t (p, c, v) VALUES (5, 1, 1) IF NOT EXISTS";
        assert_eq!(content(&node, other).await, APPLIED);
        let time = content(&node, "SELECT writetime(v) FROM k.t WHERE p = 5").await;
        let time = i64::from_be_bytes(time[4..].try_into().expect("a timestamp"));
        assert!(time < 9_000_000_000_000_000, "{time}");
    });
}

/// Proves that a conditional batch whose rows are merged in several passes keeps the rows that it writes, except one that a statement
/// of it deletes.
#[test]
fn a_large_conditional_batch_is_one_update() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        let table = "CREATE TABLE k.t (p int, c int, v int, e set<int>, PRIMARY KEY (p, c))";
        for text in [KEYSPACE, table] {
            execute(&node, text).await.expect(text);
        }
        let update = |n: i32| {
            let c = n % 2;
            format!("UPDATE k.t SET v = {n}, e = e + {{{n}}} WHERE p = 1 AND c = {c}; ")
        };
        let updates: String = (0..300).map(update).collect();
        let delete = "DELETE FROM k.t WHERE p = 1 AND c = 1 IF v = null";
        let batch = format!("BEGIN BATCH {updates} {delete}; APPLY BATCH");
        assert_eq!(content(&node, &batch).await, APPLIED);
        let rows = [int(0), int(298)].concat();
        assert_eq!(content(&node, "SELECT c, v FROM k.t WHERE p = 1").await, rows);
        let elements = content(&node, "SELECT e FROM k.t WHERE p = 1").await;
        assert_eq!(elements.len(), 4 + 4 + 150 * int(0).len());
    });
}

/// Proves that elements that requests append in one microsecond stand in the order of the requests.
#[test]
fn appends_keep_their_order() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        for text in [KEYSPACE, "CREATE TABLE k.l (k int PRIMARY KEY, l list<int>)"] {
            execute(&node, text).await.expect(text);
        }
        for element in 0..50 {
            let front = 100 + element;
            for text in [
                format!("UPDATE k.l SET l = l + [{element}] WHERE k = 1"),
                format!("UPDATE k.l SET l = [{front}] + l WHERE k = 1"),
            ] {
                execute(&node, &text).await.expect("written");
            }
        }
        let expected: Vec<u8> = (100..150).rev().chain(0..50).flat_map(int).collect();
        assert_eq!(content(&node, "SELECT l FROM k.l WHERE k = 1").await[8..], expected);
    });
}

fn ignore_failures(options: &mut Options) {
    options.commit_failure_policy = CommitFailurePolicy::Ignore;
}

/// Runs a logged batch of which the commit logs refuse one operation, after `skip` others: whether it is acknowledged, and how many of its
/// 20 rows are there then.
async fn refused_batch(disk: Disk, sim: &SimDisk, skip: u64) -> (bool, u64) {
    let node = node::start_on(disk, ignore_failures).await;
    for text in [KEYSPACE, "CREATE TABLE k.t (k int PRIMARY KEY, v int)"] {
        execute(&node, text).await.expect(text);
    }
    let inserts: String =
        (0..20).map(|k| format!("INSERT INTO k.t (k, v) VALUES ({k}, {k}); ")).collect();
    let path_contains = "commitlog".to_owned();
    sim.fail_on(FaultRule { path_contains, skip, ..FaultRule::any(Fault::NoSpace) });
    // Whether it fails depends on what the refused operation was for.
    let done = execute(&node, &format!("BEGIN BATCH {inserts} APPLY BATCH")).await.is_ok();
    sim.clear_faults();
    (done, count(&node, "k.t").await)
}

async fn count(node: &Coordinator, table: &str) -> u64 {
    let content = content(node, &format!("SELECT count(*) FROM {table}")).await;
    u64::from_be_bytes(content[4..].try_into().expect("a count"))
}

/// Proves that a logged batch over two shards of which a commit log refused any operation is whole or absent, before a restart and after.
#[test]
fn a_batch_that_failed_is_whole() {
    let mut refused = 0;
    for skip in 0..8 {
        let (disk, sim) = Disk::simulated(skip);
        let (done, before) = sim.runtime().clone().block_on(refused_batch(disk, &sim, skip));
        sim.restart();
        let after = sim.runtime().clone().block_on(async {
            let node = node::start_again(&sim, ignore_failures).await;
            count(&node, "k.t").await
        });
        refused += u32::from(!done);
        assert!(
            matches!((before, after), (0, 0 | 20) | (20, 20)),
            "skip {skip}: {before}, then {after}"
        );
        assert!(!done || before == 20, "skip {skip}: {before}");
    }
    assert!(refused > 0);
}

fn periodic(options: &mut Options) {
    options.commitlog.sync = SyncMode::Periodic { period: Duration::from_secs(10) };
    options.auto_snapshot = false;
}

/// Proves that under `periodic` logged batches over two shards are whole or absent after a power failure at any operation, whatever it
/// took of what was not synced, also where some of their parts were flushed.
#[test]
fn batches_are_whole_after_a_power_failure() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..40 {
        let (disk, sim) = Disk::simulated(seed);
        let mut done = 0;
        sim.runtime().clone().block_on(async {
            let node = node::start_on(disk, periodic).await;
            for text in [KEYSPACE, "CREATE TABLE k.t (b int, k int, PRIMARY KEY ((b, k)))"] {
                execute(&node, text).await.expect(text);
            }
            sim.crash_at(sim.ops_count() + 1 + seed);
            for batch in 0..20 {
                let inserts: String = (0..20)
                    .map(|k| format!("INSERT INTO k.t (b, k) VALUES ({batch}, {k}); "))
                    .collect();
                if execute(&node, &format!("BEGIN BATCH {inserts} APPLY BATCH")).await.is_err() {
                    break;
                }
                done += 1;
                if seed % 2 == 0 && batch % 3 == 2 {
                    let engine = node.engine();
                    let table = engine.tables().catalog().table("k", "t").expect("known").id;
                    let _ = engine.flusher().flush(Some(table)).await;
                }
            }
            assert!(sim.is_down() || seed % 2 == 1, "seed {seed}");
        });
        if !sim.is_down() {
            sim.crash();
        }
        sim.restart();
        sim.runtime().clone().block_on(async {
            let node = node::start_again(&sim, periodic).await;
            for batch in 0..done {
                let rows = count(&node, &format!("k.t WHERE b = {batch} ALLOW FILTERING")).await;
                assert!(rows == 0 || rows == 20, "seed {seed}, batch {batch}: {rows}");
                *(if rows == 20 { &mut kept } else { &mut lost }) += 1;
            }
        });
    }
    assert!(kept > 0 && lost > 0, "{kept} kept, {lost} lost");
}

/// Proves that a replay brings back nothing that was truncated after a logged batch, and all of another table's, whatever the clock did.
#[test]
fn a_replay_leaves_out_what_was_truncated() {
    let (disk, sim) = Disk::simulated(1);
    let insert =
        |k| format!("INSERT INTO k.t (k) VALUES ({k}); INSERT INTO k.u (k) VALUES ({k}); ");
    let batch = |from: i32| {
        let inserts: String = (from..from + 20).map(insert).collect();
        format!("BEGIN BATCH {inserts} APPLY BATCH")
    };
    sim.runtime().clone().block_on(async {
        let node = node::start_on(disk, periodic).await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (k int PRIMARY KEY)",
            "CREATE TABLE k.u (k int PRIMARY KEY)",
            &batch(0),
        ] {
            execute(&node, text).await.expect(text);
        }
        sim.runtime().clock().step_calendar(-HOUR);
        for text in ["TRUNCATE k.t", &batch(100)] {
            execute(&node, text).await.expect(text);
        }
    });
    sim.kill();
    sim.runtime().clone().block_on(async {
        let node = node::start_again(&sim, periodic).await;
        assert_eq!((count(&node, "k.t").await, count(&node, "k.u").await), (20, 40));
        execute(&node, "TRUNCATE k.t").await.expect("truncated");
    });
    sim.kill();
    sim.runtime().clone().block_on(async {
        let node = node::start_again(&sim, periodic).await;
        assert_eq!((count(&node, "k.t").await, count(&node, "k.u").await), (0, 40));
    });
}

/// Proves that what is there of logged batches after a truncation beside them is there after a restart too, and nothing else.
#[test]
fn batches_beside_a_truncation_stay_as_they_were() {
    for seed in 0..20 {
        let (disk, sim) = Disk::simulated(seed);
        let before = sim.runtime().clone().block_on(async {
            let node = node::start_on(disk, periodic).await;
            for text in [KEYSPACE, "CREATE TABLE k.t (b int, k int, PRIMARY KEY ((b, k)))"] {
                execute(&node, text).await.expect(text);
            }
            let batches = async {
                for batch in 0..20 {
                    let inserts: String = (0..10)
                        .map(|k| format!("INSERT INTO k.t (b, k) VALUES ({batch}, {k}); "))
                        .collect();
                    let batch = format!("BEGIN BATCH {inserts} APPLY BATCH");
                    execute(&node, &batch).await.expect("written");
                }
            };
            let truncate = async {
                clock::sleep(Duration::from_micros(seed * 100)).await;
                execute(&node, "TRUNCATE k.t").await.expect("truncated");
            };
            futures_util::join!(batches, truncate);
            content(&node, "SELECT b, k FROM k.t").await
        });
        sim.kill();
        let after = sim.runtime().clone().block_on(async {
            let node = node::start_again(&sim, periodic).await;
            content(&node, "SELECT b, k FROM k.t").await
        });
        assert_eq!(before, after, "seed {seed}");
    }
}

/// Proves that a conditional write takes a value that the shard has another thread bind.
#[test]
fn a_conditional_write_takes_a_large_value() {
    const ELEMENTS: i32 = 200_000;
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (p int PRIMARY KEY, l frozen<list<int>>)",
            "INSERT INTO k.t (p) VALUES (1)",
        ] {
            execute(&node, text).await.expect(text);
        }
        let elements = (0..ELEMENTS).map(int).collect::<Vec<_>>().concat();
        let list = [ELEMENTS.to_be_bytes().as_slice(), &elements].concat();
        let values = [Value::Bytes(&list)];
        let text = "UPDATE k.t SET l = ? WHERE p = 1 IF EXISTS";
        let statement = Arc::new(halcyon_query::prepare(&node, text, None).expect(text));
        let options =
            QueryOptions { protocol_version: 4, values: &values, ..QueryOptions::default() };
        match halcyon_query::execute(&node, &statement, &options, &Principal::Anonymous).await {
            Ok(Outcome::Rows(rows)) => assert_eq!(rows.content, APPLIED),
            other => panic!("{other:?}"),
        }
        assert!(content(&node, "SELECT l FROM k.t").await.ends_with(&list));
    });
}

/// Proves that a write of many rows, which is applied apart, is seen whole or not at all, loses no small write that comes meanwhile, is
/// found through an index, and survives a kill.
#[test]
fn large_writes_are_whole() {
    const LAST: i32 = 3;
    let runtime = SimRuntime::seeded(1);
    let simulated = runtime.block_on(async {
        let (disk, simulated) = Disk::simulated(1);
        let node = node::start_on(disk, |_| ()).await;
        for text in [
            KEYSPACE,
            "CREATE TABLE k.t (p int, a int, b int, v int, w int, PRIMARY KEY (p, a, b))",
            "CREATE INDEX v_of_t ON k.t (v) USING 'sai'",
            "CREATE TABLE k.wide (p int PRIMARY KEY, s set<int>)",
        ] {
            execute(&node, text).await.expect(text);
        }
        let (a, b) = (list(0..40), list(0..50));
        let large = async {
            for v in 0..=LAST {
                let text =
                    format!("UPDATE k.t SET v = {v} WHERE p = 1 AND a IN ({a}) AND b IN ({b})");
                execute(&node, &text).await.expect("written");
            }
        };
        let small = async {
            for n in 0..200 {
                let text =
                    format!("UPDATE k.t SET w = {n} WHERE p = 1 AND a = {} AND b = 0", n % 60);
                execute(&node, &text).await.expect("written");
            }
        };
        let reads = async {
            for _ in 0..200 {
                let text = "SELECT min(v), max(v), count(v) FROM k.t WHERE p = 1";
                let seen = content(&node, text).await;
                let values = seen.chunks_exact(4).collect::<Vec<_>>();
                match values.as_slice() {
                    [_, min, _, max, _, _, count] => {
                        assert_eq!((min, *count), (max, 2_000i32.to_be_bytes().as_slice()));
                    }
                    _ => assert_eq!(seen[..8], [[255; 4]; 2].concat(), "no values yet"),
                }
            }
        };
        let wide = async {
            let text = format!("INSERT INTO k.wide (p, s) VALUES (1, {{{}}})", list(0..10_001));
            execute(&node, &text).await.expect("written");
            let adds =
                (0..20).map(|n| format!("UPDATE k.wide SET s = s + {{{n}, -{n}}} WHERE p = 1"));
            let adds: Vec<String> = adds.collect();
            let added = adds.iter().map(|text| execute(&node, text));
            futures_util::future::join_all(added).await.into_iter().for_each(|added| {
                added.expect("written");
            });
            // Those of one partition are merged together, in their order.
            let batch: String = (100..150)
                .map(|n| {
                    format!(
                        "UPDATE k.wide SET s = s + {{-{n}}} WHERE p = 1; DELETE s[{}] FROM k.wide WHERE p = 1; \
                         INSERT INTO k.wide (p, s) VALUES (2, {{{n}}}); UPDATE k.wide SET s = s - {{{n}}} WHERE p = 1;",
                        -n + 1
                    )
                })
                .collect();
            let batch = format!("BEGIN UNLOGGED BATCH {batch} APPLY BATCH");
            execute(&node, &batch).await.expect("written");
        };
        futures_util::join!(large, small, reads, wide);
        simulated
    });
    simulated.kill();
    runtime.block_on(async {
        let node = node::start_again(&simulated, |_| ()).await;
        let number = |n: i64| [8i32.to_be_bytes().as_slice(), &n.to_be_bytes()].concat();
        for (text, expected) in [
            (format!("SELECT count(*) FROM k.t WHERE v = {LAST}"), 2_000),
            ("SELECT count(w) FROM k.t WHERE p = 1".to_owned(), 60),
        ] {
            assert_eq!(content(&node, &text).await, number(expected), "{text}");
        }
        let set = content(&node, "SELECT s FROM k.wide WHERE p = 1").await;
        // Of the batch's additions and deletions, all of one timestamp, the deletions win.
        assert_eq!(set[4..8], (10_001i32 + 19 + 1 - 50).to_be_bytes());
        let set = content(&node, "SELECT s FROM k.wide WHERE p = 2").await;
        assert_eq!(set[4..8], 50i32.to_be_bytes());
    });
}

fn list(numbers: std::ops::Range<i32>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}

/// Proves that no client writes rows of `system_schema`, however it asks, and that what a statement refuses changes nothing.
#[test]
fn the_schema_is_written_by_schema_statements_only() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        for text in [KEYSPACE, "CREATE TABLE k.t (p int PRIMARY KEY, v int)"] {
            execute(&node, text).await.expect(text);
        }
        let insert = "INSERT INTO system_schema.views (keyspace_name, view_name) VALUES ('k', '../x')";
        let batch = format!("BEGIN BATCH INSERT INTO k.t (p, v) VALUES (1, 1); {insert}; APPLY BATCH");
        let if_absent = format!("{insert} IF NOT EXISTS");
        for text in [
            insert,
            &if_absent,
            &batch,
            "INSERT INTO system_schema.tables JSON '{\"keyspace_name\": \"k\", \"table_name\": \"/\"}'",
            "UPDATE system_schema.tables SET comment = 'x' WHERE keyspace_name = 'k' AND table_name = 't'",
            "UPDATE system_schema.tables SET comment = 'x' WHERE keyspace_name = 'k' AND table_name = 't' IF EXISTS",
            "DELETE FROM system_schema.tables WHERE keyspace_name = 'k'",
            "DELETE comment FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
            "TRUNCATE system_schema.columns",
            "TRUNCATE TABLE system_schema.keyspaces",
        ] {
            let refused = execute(&node, text).await.err().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(node::code(&refused), "2100", "{text}: {refused}");
            assert_eq!(refused.to_string(), "system_schema keyspace is not user-modifiable.");
        }
        assert_eq!(content(&node, "SELECT v FROM k.t").await, []);
        assert!(!content(&node, "SELECT * FROM system_schema.columns").await.is_empty());
    });
}
