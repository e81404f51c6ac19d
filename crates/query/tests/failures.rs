//! The errors that clients get when the disk fails: Cassandra's, with the file.

mod node;

use std::sync::Arc;

use halcyon_engine::{CommitFailurePolicy, DiskFailurePolicy, Options};
use halcyon_io::{Disk, Fault, FaultRule};
use halcyon_query::{Client, Coordinator, Error, Outcome, QueryOptions};
use node::code;

async fn execute(node: &Coordinator, text: &str) -> Result<Outcome, Error> {
    let client = Client::default();
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let statement = Arc::new(node.prepare(text, &client)?);
    node.execute(&statement, &options, &client).await
}

fn rule(path: &str) -> FaultRule {
    FaultRule {
        path_contains: path.to_owned(),
        times: u64::MAX,
        ..FaultRule::any(Fault::DeviceError)
    }
}

/// Proves that a read that fails is a ReadFailure, a write that fails a WriteFailure of its type, and that the client is told the
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
        node.shard().engine().flush(None).await.expect("flushed");

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
