//! Prepared statements over changes of the schema.

use std::sync::Arc;

use halcyon_io::SimRuntime;
use halcyon_query::{Coordinator, PreparedStatement};

use crate::node::{self, execute};

async fn make(node: &Coordinator, statements: &[&str]) {
    for text in statements {
        execute(node, text).await.unwrap_or_else(|e| panic!("{text}: {e}"));
    }
}

fn current(node: &Coordinator, statements: &[Arc<PreparedStatement>]) -> Vec<bool> {
    statements.iter().map(|statement| statement.is_current(node.shard().tables())).collect()
}

/// Proves that a statement stays prepared while others' tables come, change and go, and that it is prepared again after a change of its
/// own table or of a type.
#[test]
fn a_statement_outlives_changes_of_other_tables() {
    SimRuntime::seeded(1).block_on(async {
        let node = node::start().await;
        make(
            &node,
            &[
                "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
                "CREATE TABLE ks.u (k int PRIMARY KEY, v int)",
            ],
        )
        .await;
        let texts = [
            "SELECT v FROM ks.t WHERE k = ?",
            "INSERT INTO ks.t (k, v) VALUES (?, ?)",
            "BEGIN BATCH INSERT INTO ks.t (k) VALUES (1); DELETE FROM ks.u WHERE k = ?; APPLY BATCH",
            "TRUNCATE ks.t",
        ];
        let prepare = || texts.map(|text| Arc::new(halcyon_query::prepare(&node, text, None).expect(text)));
        let all = [
            // Of others.
            ("CREATE TABLE ks.other (k int PRIMARY KEY)", [true; 4]),
            ("ALTER TABLE ks.other ADD v int", [true; 4]),
            ("DROP TABLE ks.other", [true; 4]),
            ("CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", [true; 4]),
            ("ALTER TABLE ks.u WITH comment = 'another'", [true, true, false, true]),
            ("ALTER KEYSPACE ks WITH durable_writes = false", [true; 4]),
            // Any statement may name it.
            ("CREATE TYPE ks.pair (a int, b int)", [false, false, false, true]),
            // Of its own table.
            ("ALTER TABLE ks.t ADD w int", [false, false, false, true]),
            ("CREATE INDEX ON ks.t (v)", [false, false, false, true]),
        ];
        for (text, expected) in all {
            let statements = prepare();
            assert_eq!(current(&node, &statements), [true; 4], "before {text}");
            make(&node, &[text]).await;
            assert_eq!(current(&node, &statements), expected, "{text}");
            // Asked again, when its answer may be known.
            assert_eq!(current(&node, &statements), expected, "{text}");
        }
        // The same name is another table.
        let statements = prepare();
        make(&node, &["DROP TABLE ks.u", "CREATE TABLE ks.u (k int PRIMARY KEY, v int)"]).await;
        assert_eq!(current(&node, &statements), [true, true, false, true]);
    });
}
