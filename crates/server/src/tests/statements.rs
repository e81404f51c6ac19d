//! Statements over the wire: prepared statements, keyspaces, events, virtual tables.

use std::io::{Read, Write};

use halcyon_protocol::client::{Answer, Page};
use halcyon_protocol::{
    BatchKind, BatchQuery, Compression, Consistency, QueryParameters, Value, Values, Version,
};

use super::{Peer, TestNode};

pub(super) const KEYSPACE: &str =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn one() -> QueryParameters<'static> {
    QueryParameters::new(Consistency::One)
}

fn with<'a>(values: &[&'a [u8]]) -> QueryParameters<'a> {
    let values = values.iter().map(|value| Value::Bytes(value)).collect();
    QueryParameters { values: Values::Positional(values), ..one() }
}

impl Peer {
    pub(super) fn query(&mut self, text: &str) -> Answer {
        self.client.query(1, text, &one());
        self.answer().1
    }

    pub(super) fn rows(&mut self, text: &str) -> Page {
        match self.query(text) {
            Answer::Rows(page) => page,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn prepare(&mut self, text: &str) -> (Vec<u8>, Vec<u8>) {
        self.client.prepare(2, text);
        match self.answer().1 {
            Answer::Prepared { id, result_metadata_id } => {
                (id, result_metadata_id.unwrap_or_default())
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    fn execute(&mut self, id: &(Vec<u8>, Vec<u8>), parameters: &QueryParameters<'_>) -> Answer {
        self.client.execute(3, &id.0, &id.1, parameters);
        self.answer().1
    }
}

/// A bigint.
fn number(value: &Option<Vec<u8>>) -> i64 {
    i64::from_be_bytes(value.as_deref().unwrap().try_into().unwrap())
}

fn table(node: &TestNode, version: Version) -> Peer {
    let mut peer = node.started_as(version, Compression::Lz4);
    assert_eq!(peer.query(KEYSPACE), Answer::SchemaChange("CREATED".to_owned()));
    peer.query("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    peer
}

/// Proves the way of a prepared statement: its id is for all connections; after a change of its columns all have to prepare it again, and
/// a client that knows the older columns gets the newer ones (v5).
#[test]
fn prepared_statements() {
    let node = TestNode::start("prepared", "");
    let mut first = table(&node, Version::V5);
    let insert = first.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let select = first.prepare("SELECT * FROM ks.t WHERE k = ?");
    let seven = 7i32.to_be_bytes();
    assert_eq!(first.execute(&insert, &with(&[&seven, b"x"])), Answer::Void);
    let mut others: Vec<Peer> =
        (0..8).map(|_| node.started_as(Version::V5, Compression::None)).collect();
    for other in &mut others {
        let Answer::Rows(page) = other.execute(&select, &with(&[&seven])) else { panic!() };
        assert_eq!(page.rows, [[Some(seven.to_vec()), Some(b"x".to_vec())]]);
        assert_eq!(page.changed_metadata_id, None);
    }
    let kept = "SELECT prepared_id FROM system.prepared_statements";
    assert_eq!(first.rows(kept).rows.len(), 2);
    first.query("ALTER TABLE ks.t WITH comment = 'x'");
    assert_eq!(first.execute(&insert, &with(&[&seven, b"x"])), Answer::Void);
    first.query("ALTER TABLE ks.t ADD w int");
    assert_eq!(first.rows(kept).rows.len(), 0);
    for other in &mut others {
        for id in [&select, &insert] {
            let answer = other.execute(id, &with(&[&seven]));
            assert!(matches!(answer, Answer::Error { code: 0x2500, .. }), "{answer:?}");
        }
    }
    let again = first.prepare("SELECT * FROM ks.t WHERE k = ?");
    assert_eq!(again.0, select.0);
    assert_ne!(again.1, select.1);
    for other in &mut others {
        let Answer::Rows(page) = other.execute(&select, &with(&[&seven])) else { panic!() };
        assert_eq!(page.columns, ["k", "v", "w"]);
        assert!(page.changed_metadata_id.is_some_and(|id| id == again.1));
    }
    let Answer::Error { code, message, .. } = first.execute(&(vec![1; 16], vec![2; 16]), &one())
    else {
        panic!()
    };
    assert_eq!(code, 0x2500);
    assert!(message.starts_with("Prepared query with ID 0101"), "{message}");
}

/// Proves that a prepared id outlives a restart, with and without a keyspace in force, and that one whose table has gone does not.
#[test]
fn prepared_statements_outlive_a_restart() {
    let mut node = TestNode::start("outlive", "");
    let mut peer = table(&node, Version::V4);
    peer.query("CREATE TABLE ks.gone (k int PRIMARY KEY)");
    let insert = peer.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    peer.query("USE ks");
    let select = peer.prepare("SELECT v FROM t WHERE k = ?");
    let gone = peer.prepare("SELECT * FROM gone");
    let text = "SELECT logged_keyspace, query_string FROM system.prepared_statements";
    assert_eq!(peer.rows(text).rows.len(), 3);
    peer.query("DROP TABLE ks.gone");
    assert_eq!(peer.rows(text).rows.len(), 2);
    node.stop().unwrap();
    let again = TestNode::start_in(node.directory.clone(), "").unwrap_or_else(|e| panic!("{e}"));
    let mut peer = again.started();
    let key = 7i32.to_be_bytes();
    assert_eq!(peer.execute(&insert, &with(&[&key, b"x"])), Answer::Void);
    let Answer::Rows(page) = peer.execute(&select, &with(&[&key])) else { panic!() };
    assert_eq!(page.rows, [[Some(b"x".to_vec())]]);
    assert!(matches!(peer.execute(&gone, &one()), Answer::Error { code: 0x2500, .. }));
    let mut rows = peer.rows(text).rows;
    rows.sort();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        rows,
        [
            [None, text("INSERT INTO ks.t (k, v) VALUES (?, ?)")],
            [text("ks"), text("SELECT v FROM t WHERE k = ?")],
        ]
    );
    let said = again.said.lock().unwrap();
    assert!(said.iter().any(|line| line == "preloaded 2 prepared statements"), "{said:?}");
}

/// Proves that what does not fit into `prepared_statements_cache_size` goes, from the table too, and that what never fits is
/// refused.
#[test]
fn prepared_statements_are_bounded() {
    let node = TestNode::start("bounded", "prepared_statements_cache_size: 1MiB\n");
    let mut peer = table(&node, Version::V4);
    let long = |n: usize| format!("SELECT v FROM ks.t WHERE k = {n} /*{}*/", "x".repeat(20 << 10));
    let ids: Vec<_> = (0..40).map(|n| peer.prepare(&long(n))).collect();
    assert!(matches!(peer.execute(&ids[0], &one()), Answer::Error { code: 0x2500, .. }));
    assert!(matches!(peer.execute(&ids[39], &one()), Answer::Rows(_)));
    let began = std::time::Instant::now();
    while peer.rows("SELECT prepared_id FROM system.prepared_statements").rows.len() > 24 {
        assert!(began.elapsed() < super::PATIENCE);
    }
    peer.client.prepare(2, &format!("SELECT v FROM ks.t /*{}*/", "x".repeat(600 << 10)));
    let (code, message) = peer.error();
    assert_eq!(code, 0x2200);
    assert!(message.starts_with("Prepared statement of size "), "{message}");
    assert!(
        message.contains(" bytes is larger than allowed maximum of 1 MB: SELECT v FROM ks.t /*xxx")
    );
}

/// Proves that logged batches over several shards leave no SSTable of `system.batches`, which Cassandra would not open.
#[test]
fn a_drain_leaves_no_batches() {
    let mut node = TestNode::start("batches", "");
    let mut peer = table(&node, Version::V4);
    for round in 0..20 {
        let insert = |k: i32| format!("INSERT INTO ks.t (k, v) VALUES ({k}, 'x');");
        let texts: String = (0..8).map(|k| insert(round * 8 + k)).collect();
        assert_eq!(peer.query(&format!("BEGIN BATCH {texts} APPLY BATCH")), Answer::Void);
    }
    node.stop().unwrap();
    let tables = std::fs::read_dir(node.directory.join("data/system")).unwrap();
    let batches = tables.map(|entry| entry.unwrap().path());
    let folder = batches.into_iter().find(|p| p.to_string_lossy().contains("/batches-")).unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

/// Proves that wrong numbers of values get the three texts that Cassandra has for them.
#[test]
fn wrong_numbers_of_values() {
    let node = TestNode::start("values", "");
    let mut peer = table(&node, Version::V4);
    let text = "SELECT * FROM ks.t WHERE k = ?";
    let error = |answer| match answer {
        Answer::Error { code, message, .. } => (code, message),
        other => panic!("{other:?}"),
    };
    assert_eq!(error(peer.query(text)), (0x2200, "Invalid amount of bind variables".to_owned()));
    let id = peer.prepare(text);
    let expected = "there were 1 markers(?) in CQL but 0 bound variables".to_owned();
    assert_eq!(error(peer.execute(&id, &one())), (0x2200, expected));
    let insert = "INSERT INTO ks.t (k) VALUES (?)";
    peer.client.batch(4, BatchKind::Logged, &[(BatchQuery::Text(insert), vec![])], &one());
    let expected = "There were 1 markers(?) in CQL but 0 bound variables".to_owned();
    assert_eq!(error(peer.answer().1), (0x2200, expected));
    let key = 1i32.to_be_bytes();
    let named = Values::Named(vec![("k", Value::Bytes(&key))]);
    peer.client.query(5, text, &QueryParameters { values: named, ..one() });
    assert!(matches!(peer.answer().1, Answer::Rows(_)));
}

/// Proves that USE is the connection's own, and that a prepared statement keeps the keyspace that it was prepared in.
#[test]
fn keyspaces_in_use() {
    let node = TestNode::start("use", "");
    let mut peer = table(&node, Version::V4);
    assert_eq!(peer.query("USE ks"), Answer::SetKeyspace("ks".to_owned()));
    let unqualified = peer.prepare("SELECT * FROM t");
    assert_eq!(peer.query("USE system"), Answer::SetKeyspace("system".to_owned()));
    assert!(matches!(peer.execute(&unqualified, &one()), Answer::Rows(_)));
    let mut other = node.started();
    assert!(matches!(other.query("SELECT * FROM t"), Answer::Error { code: 0x2200, .. }));
    // A text that names its keyspace has one id everywhere.
    assert_eq!(peer.prepare("SELECT * FROM ks.t").0, other.prepare("SELECT * FROM ks.t").0);
    assert_ne!(peer.prepare("SELECT * FROM local").0, unqualified.0);
}

/// Proves that an event that a version does not have is refused, with Cassandra's words.
#[test]
fn events_of_later_versions() {
    let node = TestNode::start("trace", "");
    let mut peer = node.started_as(Version::V3, Compression::None);
    peer.client.register(9, &["SCHEMA_CHANGE", "TRACE_COMPLETE"]);
    let words = "Event TRACE_COMPLETE not valid for protocol version 3/v3";
    assert_eq!(peer.error(), (0x000A, words.to_owned()));
    let mut peer = node.started();
    peer.client.register(9, &["TRACE_COMPLETE"]);
    assert_eq!(peer.answer(), (9, Answer::Ready));
}

/// Proves that connections of all shards that registered get events of schema changes and of the node's end.
#[test]
fn schema_events() {
    let mut node = TestNode::start("events", "");
    let mut listening: Vec<Peer> = (0..6).map(|_| node.started()).collect();
    for peer in &mut listening {
        peer.client.register(9, &["SCHEMA_CHANGE", "STATUS_CHANGE"]);
        assert_eq!(peer.answer(), (9, Answer::Ready));
    }
    assert!(matches!(node.started().query(KEYSPACE), Answer::SchemaChange(_)));
    for peer in &mut listening {
        assert_eq!(peer.answer(), (-1, Answer::Event("SCHEMA_CHANGE".to_owned())));
    }
    node.stop().unwrap();
    for peer in &mut listening {
        assert_eq!(peer.answer(), (-1, Answer::Event("STATUS_CHANGE".to_owned())));
        assert!(peer.is_closed());
    }
}

/// Proves that virtual tables have rows, that they can be read by key, and that the schema lists them.
#[test]
fn virtual_tables() {
    let node = TestNode::start("views", "");
    let mut peer = node.started();
    let value = peer.rows("SELECT value FROM system_views.settings WHERE name = 'shards'");
    assert_eq!(value.rows.len(), 1);
    assert_eq!(peer.rows("SELECT * FROM system_views.clients").rows.len(), 1);
    assert_eq!(peer.rows("SELECT * FROM halcyon_views.shards").rows.len(), 2);
    let caches = peer.rows("SELECT name FROM system_views.caches").rows;
    let names: Vec<_> = caches.iter().map(|row| row[0].as_deref().unwrap()).collect();
    let in_order: [&[u8]; 4] = [b"chunks", b"counters", b"keys", b"rows"];
    assert_eq!(names, in_order);
    assert_eq!(peer.rows("SELECT * FROM halcyon_views.io_operations").rows.len(), 7);
    let tables = peer.rows("SELECT * FROM system_virtual_schema.tables");
    assert_eq!(tables.rows.len(), 122);
    let waits = peer.rows("SELECT requests FROM halcyon_views.request_wait").rows;
    let waited: i64 = waits.iter().map(|row| number(&row[0])).sum();
    assert_eq!(waited, 7);
    let columns = peer.rows(
        "SELECT column_name, type FROM system_virtual_schema.columns \
         WHERE keyspace_name = 'system_views' AND table_name = 'settings'",
    );
    assert_eq!(columns.rows.len(), 2);
}

/// Proves that every table can be read: a filler that names a column which is not there, or leaves out one of the primary key, fails
/// its read.
#[test]
fn every_table_is_read() {
    let node = TestNode::start("every-view", "");
    let mut peer = node.started();
    let registry = crate::virtual_tables::registry().expect("understood");
    for keyspace in &registry.keyspaces {
        for table in keyspace.tables.values() {
            let name = table.full_name();
            let found = read_patiently(&mut peer, &format!("SELECT * FROM {name}"));
            let columns = table.schema.partition_key.len()
                + table.schema.clustering.len()
                + table.schema.regulars.len();
            assert!(found.rows.iter().all(|row| row.len() == columns), "{name}");
        }
    }
}

/// Retries while the doctor examines the node: its thread has idle priority, which gets little of a busy host.
fn read_patiently(peer: &mut Peer, text: &str) -> Page {
    loop {
        match peer.query(text) {
            Answer::Error { message, .. } if message.contains("read the table again") => {}
            Answer::Rows(page) => return page,
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// Proves that `default_compaction` is what a table gets that says nothing else.
#[test]
fn default_compaction() {
    let text = "default_compaction:\n  class_name: UnifiedCompactionStrategy\n  parameters:\n    scaling_parameters: T4\n";
    let node = TestNode::start("default-compaction", text);
    let mut peer = table(&node, Version::V4);
    peer.query("CREATE TABLE ks.other (k int PRIMARY KEY) WITH compaction = {'class': 'LeveledCompactionStrategy'}");
    for (table, class, size) in [("t", "Unified", 2), ("other", "Leveled", 3)] {
        let asked = format!(
            "SELECT compaction['class'], compaction FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = '{table}'"
        );
        let rows = peer.rows(&asked).rows;
        let expected = format!("org.apache.cassandra.db.compaction.{class}CompactionStrategy");
        assert_eq!(rows[0][0].as_deref(), Some(expected.as_bytes()));
        assert_eq!(rows[0][1].as_deref().unwrap()[..4], i32::to_be_bytes(size));
    }
}

/// Proves that a PREPARE is traced if its header asks for that.
#[test]
fn a_prepare_is_traced() {
    let node = TestNode::start("traced", "");
    let mut peer = node.started();
    let text = b"SELECT key FROM system.local";
    let mut message = vec![4, 2, 0, 1, 9];
    for length in [4 + text.len(), text.len()] {
        message.extend((length as i32).to_be_bytes());
    }
    message.extend(text);
    peer.stream.write_all(&message).unwrap();
    let mut head = [0; 9];
    peer.stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..5], [0x84, 2, 0, 1, 8]);
    let traced = node.started().rows("SELECT request FROM system_traces.sessions").rows;
    assert_eq!(traced, [[Some(b"Preparing CQL3 query".to_vec())]]);
}

/// Proves that NODE_LOCAL is refused in Cassandra's words.
#[test]
fn node_local() {
    let node = TestNode::start("node-local", "");
    let mut peer = table(&node, Version::V4);
    let parameters = QueryParameters::new(Consistency::NodeLocal);
    peer.client.query(1, "SELECT * FROM ks.t", &parameters);
    let expected = "NODE_LOCAL consistency level is highly dangerous and should be used only for debugging purposes";
    let (_, answer) = peer.answer();
    assert!(
        matches!(&answer, Answer::Error { code: 0x2200, message, .. } if message == expected),
        "{answer:?}"
    );
}

/// Proves that a keyspace that a v5 message names must be there, even if the statement does not need it.
#[test]
fn the_keyspace_of_a_message() {
    let node = TestNode::start("keyspace", "");
    let mut peer = table(&node, Version::V5);
    let ask = |peer: &mut Peer, keyspace: &'static str| {
        let parameters =
            QueryParameters { keyspace: Some(keyspace), ..QueryParameters::new(Consistency::One) };
        peer.client.query(1, "SELECT * FROM ks.t", &parameters);
        peer.answer().1
    };
    assert!(matches!(ask(&mut peer, "ks"), Answer::Rows(_)));
    let Answer::Error { code: 0x2200, message, .. } = ask(&mut peer, "nowhere") else {
        panic!("no such keyspace");
    };
    assert_eq!(message, "Keyspace 'nowhere' does not exist");
}

/// Proves that reads, writes and batches are counted by table, with their histograms, and that unused tables have zeros.
#[test]
fn metrics_of_tables() {
    let node = TestNode::start("metrics", "");
    let mut peer = table(&node, Version::V4);
    for k in 0..10 {
        peer.query(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, 'x')"));
    }
    peer.query("DELETE v FROM ks.t WHERE k = 3");
    peer.query("BEGIN UNLOGGED BATCH UPDATE ks.t SET v = 'y' WHERE k = 1; UPDATE ks.t SET v = 'y' WHERE k = 2; APPLY BATCH");
    for k in 0..4 {
        assert_eq!(peer.rows(&format!("SELECT * FROM ks.t WHERE k = {k}")).rows.len(), 1);
    }
    assert_eq!(peer.rows("SELECT * FROM ks.t").rows.len(), 10);
    let mut figures = |view: &str, columns: &str, table: &str| {
        let text = format!(
            "SELECT {columns} FROM system_views.{view} WHERE keyspace_name = 'ks' AND table_name = '{table}'"
        );
        let mut rows = peer.rows(&text).rows;
        assert_eq!(rows.len(), 1, "{view}");
        rows.remove(0)
    };
    let double =
        |value: &Option<Vec<u8>>| f64::from_be_bytes(value.as_deref().unwrap().try_into().unwrap());
    for (view, expected) in [
        ("local_read_latency", 4),
        ("local_scan_latency", 2),
        ("local_write_latency", 13),
        ("coordinator_read_latency", 4),
        ("coordinator_scan_latency", 1),
        ("coordinator_write_latency", 13),
    ] {
        let row = figures(view, "count, p50th_ms, p99th_ms, max_ms, per_second", "t");
        assert_eq!(number(&row[0]), expected, "{view}");
        assert!(double(&row[1]) <= double(&row[2]) && double(&row[2]) <= double(&row[3]), "{view}");
        assert!((double(&row[4]) - expected as f64 / 300.0).abs() < 0.01, "{view}");
    }
    let row = figures("rows_per_read", "count, p50th, max", "t");
    assert_eq!((number(&row[0]), double(&row[1])), (6, 1.0));
    let row = figures("tombstones_per_read", "count, p50th, max", "t");
    assert_eq!((number(&row[0]), double(&row[1]), double(&row[2])), (6, 0.0, 1.0));
    for view in ["disk_usage", "max_partition_size", "max_sstable_size"] {
        assert_eq!(number(&figures(view, "mebibytes", "t")[0]), 0, "{view}");
    }
    assert_eq!(number(&figures("max_sstable_duration", "max_sstable_duration", "t")[0]), 0);
    let batches = peer.rows(
        "SELECT max FROM system_views.batch_metrics WHERE name = 'partitions_per_unlogged_batch'",
    );
    assert_eq!(number(&batches.rows[0][0]), 2);
}

/// Proves that a table with `caching` for rows is answered from the row cache, and that the cache's figures say so.
#[test]
fn the_row_cache_over_the_wire() {
    let node = TestNode::start("rows", "row_cache_size: 8MiB\n");
    let mut peer = table(&node, Version::V4);
    peer.query("CREATE TABLE ks.c (k int, c int, v text, PRIMARY KEY (k, c)) WITH caching = {'keys': 'ALL', 'rows_per_partition': '2'}");
    for c in 0..5 {
        peer.query(&format!("INSERT INTO ks.c (k, c, v) VALUES (1, {c}, 'x')"));
    }
    let mut hits = |text: &str, rows: usize| {
        assert_eq!(peer.rows(text).rows.len(), rows, "{text}");
        let found = peer
            .rows("SELECT hit_count, entry_count FROM system_views.caches WHERE name = 'rows'")
            .rows;
        number(&found[0][0])
    };
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1 LIMIT 1", 1), 0);
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1 LIMIT 2", 2), 1);
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1", 5), 2);
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1 AND c = 1", 1), 3);
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1 AND c > 2", 2), 4);
    assert_eq!(hits("SELECT * FROM ks.c WHERE k = 1 ORDER BY c DESC LIMIT 2", 2), 5);
    peer.query("DELETE FROM ks.c WHERE k = 1 AND c = 0");
    let page = peer.rows("SELECT c FROM ks.c WHERE k = 1 LIMIT 1");
    assert_eq!(page.rows, [[Some(1i32.to_be_bytes().to_vec())]]);
}

/// Proves that a drain saves caches whose period is not 0, and that the next start warms them.
#[test]
fn caches_outlive_the_process() {
    let text = "row_cache_size: 8MiB\nrow_cache_save_period: 1h\n";
    let mut node = TestNode::start("warm", text);
    let mut peer = table(&node, Version::V4);
    peer.query("ALTER TABLE ks.t WITH caching = {'keys': 'ALL', 'rows_per_partition': 'ALL'}");
    peer.query("INSERT INTO ks.t (k, v) VALUES (1, 'x')");
    assert_eq!(peer.rows("SELECT * FROM ks.t WHERE k = 1").rows.len(), 1);
    drop(peer);
    node.stop().unwrap();
    let saved = node.directory.join("saved_caches");
    for name in ["RowCache-g.db", "RowCache-g.crc", "RowCache-g.metadata"] {
        assert!(saved.join(name).exists(), "{name}");
    }
    let again = TestNode::start_in(node.directory.clone(), text).unwrap_or_else(|e| panic!("{e}"));
    let mut peer = again.started();
    let cached = "SELECT entry_count FROM system_views.caches WHERE name = 'rows'";
    let one = Some(1i32.to_be_bytes().to_vec());
    // They are warmed while clients are served.
    while peer.rows(cached).rows[0][0] != one {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Proves that what was acknowledged is there after a drain and a new start.
#[test]
fn data_outlives_the_process() {
    let mut node = TestNode::start("outlive", "");
    let mut peer = table(&node, Version::V4);
    assert_eq!(peer.query("INSERT INTO ks.t (k, v) VALUES (1, 'kept')"), Answer::Void);
    drop(peer);
    node.stop().unwrap();
    let again = TestNode::start_in(node.directory.clone(), "").unwrap_or_else(|e| panic!("{e}"));
    let page = again.started().rows("SELECT v FROM ks.t WHERE k = 1");
    assert_eq!(page.rows, [[Some(b"kept".to_vec())]]);
}
