//! Counters that are deleted and incremented again, in every order of timestamps.

use std::sync::Arc;

use halcyon_io::{Disk, SimRuntime};
use halcyon_model::access::Principal;
use halcyon_query::{Coordinator, QueryOptions};

use crate::node::{self, content, execute};

const KEYSPACE: &str =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// Statements with the client's timestamps, and what `n` of row 1 and `s` are after them.
struct Case {
    statements: &'static [(i64, &'static str)],
    n: Option<i64>,
    s: Option<i64>,
}

const ADD_5: &str = "UPDATE k.t SET n = n + 5, s = s + 5 WHERE p = 1 AND c = 1";
const ADD_1: &str = "UPDATE k.t SET n = n + 1, s = s + 1 WHERE p = 1 AND c = 1";
const PARTITION: &str = "DELETE FROM k.t WHERE p = 1";
const RANGE: &str = "DELETE FROM k.t WHERE p = 1 AND c > 0 AND c < 3";
const ROW: &str = "DELETE FROM k.t WHERE p = 1 AND c = 1";
const COLUMNS: &str = "DELETE n, s FROM k.t WHERE p = 1 AND c = 1";
const BATCH: &str = "BEGIN COUNTER BATCH UPDATE k.t SET n = n + 1, s = s + 1 WHERE p = 1 AND c = 1; DELETE FROM k.t WHERE p = 1; APPLY BATCH";

const CASES: [Case; 14] = [
    Case { statements: &[(1, ADD_5), (2, PARTITION), (3, ADD_1)], n: Some(1), s: Some(1) },
    Case { statements: &[(1, ADD_5), (2, RANGE), (3, ADD_1)], n: Some(1), s: Some(6) },
    Case { statements: &[(1, ADD_5), (2, ROW), (3, ADD_1)], n: Some(1), s: Some(6) },
    Case { statements: &[(1, ADD_5), (2, COLUMNS), (3, ADD_1)], n: None, s: None },
    Case {
        statements: &[(1, COLUMNS), (2, ADD_5), (3, PARTITION), (4, ADD_1)],
        n: Some(1),
        s: Some(1),
    },
    // A deletion that is older than the counter takes nothing, and one that is newer than an increment takes it.
    Case { statements: &[(3, ADD_5), (2, PARTITION), (4, ADD_1)], n: Some(6), s: Some(6) },
    Case { statements: &[(1, ADD_5), (3, RANGE), (2, ADD_1)], n: None, s: Some(6) },
    Case {
        statements: &[(1, ADD_5), (3, PARTITION), (2, ADD_1), (4, ADD_1)],
        n: Some(1),
        s: Some(1),
    },
    // An increment that is older than what it adds to is not lost.
    Case { statements: &[(4, ADD_5), (1, ADD_1), (2, PARTITION)], n: Some(6), s: Some(6) },
    Case {
        statements: &[(1, ADD_5), (2, PARTITION), (4, ADD_5), (2, ADD_1)],
        n: Some(6),
        s: Some(6),
    },
    Case { statements: &[(4, ADD_5), (1, COLUMNS), (2, PARTITION)], n: None, s: None },
    Case { statements: &[(1, ADD_5), (2, BATCH), (3, ADD_1)], n: Some(1), s: Some(1) },
    // A column's tombstone that a deletion covers has no effect.
    Case {
        statements: &[(1, ADD_5), (3, RANGE), (2, COLUMNS), (5, ADD_1), (4, ROW)],
        n: Some(1),
        s: None,
    },
    Case {
        statements: &[
            (10, ADD_1),
            (20, PARTITION),
            (30, RANGE),
            (22, "DELETE n FROM k.t WHERE p = 1 AND c = 1"),
            (
                50,
                "BEGIN COUNTER BATCH UPDATE k.t SET n = n + 2 WHERE p = 1 AND c = 1; UPDATE k.t SET n = n + 3 WHERE p = 1 AND c = 2 APPLY BATCH",
            ),
            (39, ROW),
            (70, "DELETE FROM k.t WHERE p = 1 AND c = 2"),
        ],
        n: Some(2),
        s: None,
    },
];

async fn execute_at(node: &Coordinator, timestamp: i64, text: &str) {
    let timestamp = Some(timestamp);
    let options = QueryOptions { protocol_version: 4, timestamp, ..QueryOptions::default() };
    let statement = Arc::new(halcyon_query::prepare(node, text, None).expect(text));
    halcyon_query::execute(node, &statement, &options, &Principal::Anonymous).await.expect(text);
}

async fn counters(node: &Coordinator) -> Vec<u8> {
    content(node, "SELECT n, s FROM k.t WHERE p = 1 AND c = 1").await
}

fn row(case: &Case) -> Vec<u8> {
    let value = |value: Option<i64>| match value {
        Some(value) => [&8i32.to_be_bytes()[..], &value.to_be_bytes()].concat(),
        None => (-1i32).to_be_bytes().to_vec(),
    };
    // A row that does not live is not shown.
    if case.n.is_none() { Vec::new() } else { [value(case.n), value(case.s)].concat() }
}

/// Proves that a deletion of a partition, range, row or column takes of a counter what was counted before it, and nothing else: in one
/// memtable, with a flush after each statement, and after a replay; and that what is read stays the same when it is flushed.
#[test]
fn counters_start_anew_after_a_deletion() {
    for (number, case) in CASES.iter().enumerate() {
        for flushed in [false, true] {
            let runtime = SimRuntime::seeded(1);
            let simulated = runtime.block_on(async {
                let (disk, simulated) = Disk::simulated(1);
                let node = node::start_on(disk, |_| ()).await;
                node::join(&node).await;
                let table = "CREATE TABLE k.t (p int, c int, n counter, s counter static, PRIMARY KEY (p, c))";
                for text in [KEYSPACE, table] {
                    execute(&node, text).await.expect(text);
                }
                for (timestamp, text) in case.statements {
                    execute_at(&node, *timestamp, text).await;
                    if flushed {
                        node.engine().flusher().flush(None).await.expect("flushes");
                    }
                }
                assert_eq!(counters(&node).await, row(case), "case {number}, flushed: {flushed}");
                simulated
            });
            simulated.kill();
            runtime.block_on(async {
                let node = node::start_again(&simulated, |_| ()).await;
                assert_eq!(counters(&node).await, row(case), "case {number}, replayed");
                node.engine().flusher().flush(None).await.expect("flushes");
                assert_eq!(counters(&node).await, row(case), "case {number}, flushed after it");
            });
        }
    }
}
