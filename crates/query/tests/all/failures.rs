//! The errors that clients get when the disk fails: Cassandra's, with the file.

use halcyon_engine::{CommitFailurePolicy, DiskFailurePolicy, Options};
use halcyon_io::{Disk, Fault, FaultRule};
use halcyon_query::Error;

use crate::node::{self, code, content, execute};

fn rule(path: &str) -> FaultRule {
    FaultRule {
        path_contains: path.to_owned(),
        times: u64::MAX,
        ..FaultRule::any(Fault::DeviceError)
    }
}

/// Proves that a read that fails is a ReadFailure, a write that fails a WriteFailure of its type, and that the client gets the
/// table, the operator the file.
#[test]
fn reads_and_writes_that_fail() {
    let (disk, sim) = Disk::simulated(1);
    sim.runtime().clone().block_on(async {
        let ignore = |options: &mut Options| {
            options.disk_failure_policy = DiskFailurePolicy::Ignore;
            options.commit_failure_policy = CommitFailurePolicy::Ignore;
        };
        let node = node::start_on(disk, ignore).await;
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE k.t (k int PRIMARY KEY, v int)",
            "INSERT INTO k.t (k, v) VALUES (1, 1)",
        ] {
            execute(&node, text).await.expect(text);
        }
        node.engine().flusher().flush(None).await.expect("flushed");

        sim.fail_on(rule("-Data.db"));
        let error = execute(&node, "SELECT v FROM k.t WHERE k = 1").await.expect_err("fails");
        assert_eq!(code(&error), "1300");
        let text = error.to_string();
        let expected = "Operation failed - received 0 responses and 1 failures: UNKNOWN from localhost/127.0.0.1:7000 \
                        (cannot read data of k.t; the log of the server says more)";
        assert_eq!(text, expected);
        assert!(error.detail().is_some_and(|detail| detail.contains("-Data.db")), "{error:?}");

        sim.clear_faults();
        sim.fail_on(rule("commitlog"));
        let batch = "BEGIN UNLOGGED BATCH INSERT INTO k.t (k, v) VALUES (2, 2); APPLY BATCH";
        for (text, expected) in [
            ("INSERT INTO k.t (k, v) VALUES (2, 2)", "SIMPLE"),
            (batch, "UNLOGGED_BATCH"),
            ("INSERT INTO k.t (k, v) VALUES (2, 2) IF NOT EXISTS", "CAS"),
        ] {
            let error = execute(&node, text).await.expect_err("fails");
            let Error::WriteFailure { write_type, .. } = &error else { panic!("{error:?}") };
            assert_eq!((*write_type, code(&error)), (expected, "1500"));
            let text = error.to_string();
            assert!(!text.contains("commitlog/"), "{text}");
        }
    });
}

/// Proves that the rows of a truncated table do not come back, whichever operation on a compaction's transaction log failed and kept
/// failing: where the outcome is in doubt until the next start, a truncation is refused.
#[test]
fn truncated_rows_stay_away_after_a_doubtful_compaction() {
    let mut refused = 0;
    let ignore = |options: &mut Options| options.disk_failure_policy = DiskFailurePolicy::Ignore;
    // Earlier operations are long before the COMMIT.
    for skip in 10..22 {
        let (disk, sim) = Disk::simulated(skip);
        let runtime = sim.runtime().clone();
        let truncated = runtime.block_on(async {
            let node = node::start_on(disk, ignore).await;
            for text in [
                "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE k.t (k int PRIMARY KEY, v int)",
            ] {
                execute(&node, text).await.expect(text);
            }
            let engine = node.engine().clone();
            for v in 0..2 {
                let text = format!("INSERT INTO k.t (k, v) VALUES (1, {v})");
                execute(&node, &text).await.expect("written");
                engine.flusher().flush(None).await.expect("flushed");
            }
            let table = engine.tables().catalog().table("k", "t").expect("there").id;
            sim.fail_on(FaultRule { skip, ..rule("_txn_compaction") });
            let compacted = engine.compactor().compact(table).await;
            sim.clear_faults();
            let truncated = execute(&node, "TRUNCATE k.t").await;
            if let Err(error) = &truncated {
                assert!(compacted.is_err(), "{error}");
                assert!(error.to_string().contains("is decided at the next start"), "{error}");
                assert_eq!(code(error), "1003");
                refused += 1;
            }
            truncated.is_ok()
        });
        sim.restart();
        runtime.block_on(async {
            let node = node::start_again(&sim, ignore).await;
            let row = content(&node, "SELECT v FROM k.t WHERE k = 1").await;
            let expected =
                if truncated { vec![] } else { [4i32, 1].map(i32::to_be_bytes).concat() };
            assert_eq!(row, expected, "skip {skip}");
        });
    }
    assert!(refused > 0);
}
