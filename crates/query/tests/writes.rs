//! Timestamps of conditional writes, and logged batches that fail half-way.

mod node;

use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::{CommitFailurePolicy, Options};
use halcyon_io::{Disk, Fault, FaultRule, block_on};
use halcyon_query::{Client, Coordinator, Error, Outcome, QueryOptions, RequestLimits};

const KEYSPACE: &str =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

async fn execute(node: &Coordinator, text: &str) -> Result<Outcome, Error> {
    let client = Client::default();
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let statement = Arc::new(node.prepare(text, &client)?);
    node.execute(&statement, &options, &client).await
}

/// The content of a result's rows: lengths and values.
async fn content(node: &Coordinator, text: &str) -> Vec<u8> {
    match execute(node, text).await {
        Ok(Outcome::Rows(rows)) => rows.content,
        other => panic!("{text}: {other:?}"),
    }
}

fn int(value: i32) -> Vec<u8> {
    [4i32, value].map(i32::to_be_bytes).concat()
}

const APPLIED: [u8; 5] = [0, 0, 0, 1, 1];

/// Proves that a conditional write that says it was applied can be read, whatever timestamps its rows had: of cells, of deletions of the
/// row and of the partition, of the static row, and of a row that no condition reads. Timestamps of other partitions stay those of the clock.
#[test]
fn conditional_writes_are_later_than_what_they_replace() {
    block_on(async {
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

/// Proves that elements that requests append in one microsecond stand in the order of the requests.
#[test]
fn appends_keep_their_order() {
    block_on(async {
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

/// Proves that a logged batch of which a shard could not write its part is whole after a replay, and that its entry is gone then.
#[test]
fn a_batch_that_failed_is_replayed() {
    let (disk, sim) = Disk::simulated(1);
    block_on(async {
        let ignore =
            |options: &mut Options| options.commit_failure_policy = CommitFailurePolicy::Ignore;
        let limits =
            RequestLimits { write_request_timeout: Duration::ZERO, ..RequestLimits::default() };
        let node = node::start_with(disk, ignore, limits).await;
        for text in [KEYSPACE, "CREATE TABLE k.t (k int PRIMARY KEY, v int)"] {
            let _ = execute(&node, text).await;
        }
        let inserts: String =
            (0..20).map(|k| format!("INSERT INTO k.t (k, v) VALUES ({k}, {k}); ")).collect();
        // The first write stores the batch.
        let rule = FaultRule {
            path_contains: "commitlog".to_owned(),
            skip: 1,
            times: 1,
            ..FaultRule::any(Fault::DeviceError)
        };
        sim.fail_on(rule);
        execute(&node, &format!("BEGIN BATCH {inserts} APPLY BATCH")).await.expect_err("fails");
        sim.clear_faults();
        let replayed = node.replay_late_batches().await.expect("replays");
        assert_eq!((replayed.batches, replayed.warnings), (1, Vec::new()));
        let count = [8i32.to_be_bytes().to_vec(), 20i64.to_be_bytes().to_vec()].concat();
        assert_eq!(content(&node, "SELECT count(*) FROM k.t").await, count);
        let left = content(&node, "SELECT count(*) FROM system.batches").await;
        assert_eq!(left, [8i32.to_be_bytes().to_vec(), vec![0; 8]].concat());
    });
}
