//! A panic of each kind of thread and task, with a client that waits for it: the request fails, the node lives. Or the node ends in order,
//! where memory may be half-changed, and its next start has everything.
//!
//! The places of panics are the process's, and so is what tells them: each of the two tests runs in a process of its own.

use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use halcyon_io::{panic_at, tell_panics};
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Compression, Version};

use super::statements::KEYSPACE;
use super::{PATIENCE, Peer, TestNode};

/// Runs an ignored test of this program, and nothing else.
fn alone(test: &str) {
    let program = std::env::current_exe().unwrap();
    let name = format!("tests::panics::{test}");
    let arguments = ["--ignored", "--exact", "--nocapture", &name];
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{:?}: {said}", output.status);
}

/// The panics of this process, each with its thread.
#[derive(Clone, Default)]
struct RecentLines(Arc<Mutex<Vec<String>>>);

impl RecentLines {
    fn begin() -> RecentLines {
        let told = RecentLines::default();
        let kept = told.0.clone();
        tell_panics(move |what| {
            let thread = std::thread::current();
            let what = what.lines().next().unwrap_or_default();
            let line = format!("[{}] {what}", thread.name().unwrap_or("main"));
            eprintln!("{line}");
            kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(line);
        });
        told
    }

    /// How often it has panicked there.
    fn count(&self, place: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(place) && line.contains(".rs:")).count()
    }

    fn until(&self, place: &'static str, count: usize) {
        until(place, || self.count(place) >= count);
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn command(verb: &str) -> String {
    format!(
        "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES ('{verb}', 'ks', 't', '')"
    )
}

const MAJOR: &str =
    "INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name) VALUES ('ks', 't')";
const INSERT: &str = "INSERT INTO ks.t (k, v) VALUES (1, 'x')";
const ALL: &str = "SELECT * FROM ks.t";
const NEW_TABLE: &str = "CREATE TABLE ks.n (k int PRIMARY KEY)";

fn with_table(node: &TestNode) -> Peer {
    let mut peer = node.started();
    assert!(matches!(peer.query(KEYSPACE), Answer::SchemaChange(_)));
    let table = "CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH compaction = {'class': 'SizeTieredCompactionStrategy', \
                 'min_threshold': '2'}";
    assert!(matches!(peer.query(table), Answer::SchemaChange(_)));
    assert_eq!(peer.query(INSERT), Answer::Void);
    peer
}

/// The client's error: a server error, in words that lead to the log.
fn fails(peer: &mut Peer, text: &str, words: &str) {
    match peer.query(text) {
        Answer::Error { code: 0, message, .. } if message.contains(words) => {}
        other => panic!("{other:?} to {}", &text[..text.len().min(80)]),
    }
}

#[test]
fn what_panics_ends_alone() {
    alone("every_kind");
}

#[test]
#[ignore = "run by what_panics_ends_alone in a process of its own"]
fn every_kind() {
    let told = RecentLines::begin();
    let settings = "commitlog_total_space: 4MiB\nuser_defined_functions_enabled: true\n\
                    native_transport_idle_timeout: 100s\nmaterialized_views_enabled: true\n";
    let node = TestNode::start("panics", settings);
    let mut peer = with_table(&node);
    requests(&node, &mut peer, &told);
    connections(&node, &told);
    what_is_always_there(&node, &told);
    flushes_and_compactions(&node, &mut peer, &told);
    background(&node, &mut peer, &told);
    node.is_well();
    assert_eq!(peer.rows(ALL).rows.len(), 1);
}

/// What a request waits for fails the request.
fn requests(node: &TestNode, peer: &mut Peer, told: &RecentLines) {
    let long =
        format!("SELECT v FROM ks.t WHERE k = 1 AND v = '{}' ALLOW FILTERING", "x".repeat(9_000));
    for (place, text, words) in [
        ("a request", ALL, "an internal error stopped this request"),
        ("a job for another shard", ALL, "the log of the node has more"),
        ("a computation", &long, "the log of the node has more"),
    ] {
        for _ in 0..3 {
            panic_at(place);
            let mut other = node.started();
            fails(&mut other, text, words);
            assert!(matches!(other.query(text), Answer::Rows(_)), "{place}");
        }
        assert_eq!(told.count(place), 3);
    }
    let function = "CREATE FUNCTION ks.same (n int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE wasm AS \
                    '(module (memory (export \"memory\") 1) (global (export \"_scylla_abi\") i32 (i32.const 16)) \
                    (data (i32.const 16) \"\\01\\00\\00\\00\") (func (export \"same\") (param i32) (result i32) (local.get 0)))'";
    let made = peer.query(function);
    assert!(matches!(made, Answer::SchemaChange(_)), "{made:?}");
    panic_at("a WebAssembly function");
    let called = peer.query("SELECT ks.same(k) FROM ks.t");
    let Answer::Error { code: 0x1400, message, .. } = called else { panic!("{called:?}") };
    assert!(message.contains("the log of the node has more"), "{message}");
    assert_eq!(peer.rows("SELECT ks.same(k) FROM ks.t").rows.len(), 1);
}

/// A connection's own tasks are its end, and no other's.
fn connections(node: &TestNode, told: &RecentLines) {
    for place in ["the reader of a connection", "the writer of a connection"] {
        let mut other = node.started();
        panic_at(place);
        other.client.options(5);
        other.send();
        assert!(other.is_closed(), "{place}");
        assert_eq!(told.count(place), 1);
        node.is_well();
    }
    // The other shard's acceptor may take a connection that comes meanwhile.
    for count in 1..=2 {
        panic_at("the acceptor of connections");
        let mut lost =
            Peer::over(TcpStream::connect(node.address).unwrap(), Version::V4, Compression::None);
        assert!(lost.is_closed());
        told.until("the acceptor of connections", count);
    }
    node.is_well();
}

/// A task that runs by the clock is started again.
fn what_is_always_there(node: &TestNode, told: &RecentLines) {
    for place in [
        "the watch of stalled connections",
        "the watch of idle connections",
        "the watch of periods",
        "the control of compactions",
    ] {
        // There are two shards: at the third time it has restarted on one of them.
        for count in 1..=3 {
            panic_at(place);
            told.until(place, count);
        }
    }
    node.is_well();
}

fn failure(peer: &mut Peer) -> String {
    let state = "SELECT state, failure FROM halcyon_views.major_compactions WHERE keyspace_name = 'ks' AND table_name = 't'";
    let began = Instant::now();
    loop {
        let row = peer.rows(state).rows.remove(0);
        let text =
            |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone().unwrap_or_default()).unwrap();
        if text(&row[0]) != "running" {
            return text(&row[1]);
        }
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A flush keeps its memtable and a compaction its inputs; both are tried again.
fn flushes_and_compactions(node: &TestNode, peer: &mut Peer, told: &RecentLines) {
    for place in ["a flush", "a background job"] {
        assert_eq!(peer.query(INSERT), Answer::Void);
        panic_at(place);
        let failed = peer.query(&command("flush"));
        assert!(matches!(failed, Answer::Error { .. }), "{place}: {failed:?}");
        until(place, || told.count(place) == 1);
        assert_eq!(peer.query(INSERT), Answer::Void);
        assert_eq!(peer.query(&command("flush")), Answer::Void);
    }
    panic_at("a compaction");
    for _ in 0..2 {
        assert_eq!(peer.query(INSERT), Answer::Void);
        assert_eq!(peer.query(&command("flush")), Answer::Void);
    }
    told.until("a compaction", 1);
    let said = || node.said.lock().unwrap().iter().any(|line| line.contains("tried again in 60 s"));
    until("the failure of a compaction is logged", said);
    for place in
        ["a major compaction", "the thread that reads ahead", "the thread that writes an SSTable"]
    {
        assert_eq!(peer.query(INSERT), Answer::Void);
        assert_eq!(peer.query(&command("flush")), Answer::Void);
        panic_at(place);
        assert_eq!(peer.query(MAJOR), Answer::Void);
        let why = failure(peer);
        assert!(why.contains("internal error") || why.contains("panicked"), "{place}: {why}");
        assert_eq!(peer.query(MAJOR), Answer::Void);
        assert_eq!(failure(peer), "");
    }
}

fn background(node: &TestNode, peer: &mut Peer, told: &RecentLines) {
    panic_at("the build of a view");
    let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)";
    assert!(matches!(peer.query(view), Answer::SchemaChange(_)));
    told.until("the build of a view", 1);
    assert!(matches!(peer.query("DROP MATERIALIZED VIEW ks.w"), Answer::SchemaChange(_)));

    let large =
        "CREATE TABLE ks.large (k int PRIMARY KEY, v blob) WITH compression = {'enabled': false}";
    assert!(matches!(peer.query(large), Answer::SchemaChange(_)));
    let value = "5a".repeat(300 << 10);
    for place in ["the watch of the commit log", "a removal"] {
        for count in 1..=2 {
            panic_at(place);
            until(place, || {
                let mut writer = node.started();
                for k in 0..16 {
                    let insert = format!("INSERT INTO ks.large (k, v) VALUES ({k}, 0x{value})");
                    assert_eq!(writer.query(&insert), Answer::Void);
                }
                let flush = command("flush").replace("'t'", "'large'");
                assert_eq!(writer.query(&flush), Answer::Void);
                assert_eq!(writer.query("TRUNCATE ks.large"), Answer::Void);
                told.count(place) >= count
            });
        }
    }
}

#[test]
fn what_may_be_half_changed_ends_the_node() {
    alone("half_changed");
}

/// A node in the directory of one that has ended, whose threads may hold the lock a moment longer.
fn again(ended: &TestNode) -> TestNode {
    let began = Instant::now();
    loop {
        match TestNode::start_in(ended.directory.clone(), "") {
            Ok(node) => return node,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "run by what_may_be_half_changed_ends_the_node in a process of its own"]
fn half_changed() {
    let _told = RecentLines::begin();
    for (place, text) in [
        ("an apply", INSERT),
        ("an append", INSERT),
        ("the writer of the commit log", INSERT),
        ("a schema change", NEW_TABLE),
        ("an edit of the live set", "flush"),
    ] {
        let mut node = TestNode::start(&place.replace(' ', "-"), "");
        let mut peer = with_table(&node);
        panic_at(place);
        let text = if text == "flush" { command("flush") } else { text.to_owned() };
        // The node may end before it says so.
        peer.client.query(
            1,
            &text,
            &halcyon_protocol::QueryParameters::new(halcyon_protocol::Consistency::One),
        );
        peer.send();
        let ended = node.thread.take().unwrap().join().unwrap();
        let why = ended.unwrap_err().to_string();
        assert!(why.contains("after an internal error"), "{place}: {why}");
        let said = node.said.lock().unwrap().join("\n");
        assert!(said.contains("the node ends without a flush"), "{place}: {said}");

        let mut again = again(&node);
        let mut peer = again.started();
        assert_eq!(peer.rows(ALL).rows.len(), 1, "{place}");
        assert_eq!(peer.query(INSERT), Answer::Void, "{place}");
        if place == "a schema change" {
            assert_eq!(peer.rows("SELECT * FROM ks.n").rows.len(), 0);
        } else {
            assert!(matches!(peer.query(NEW_TABLE), Answer::SchemaChange(_)), "{place}");
        }
        again.stop().unwrap();
    }
    replay();
}

/// A start whose replay panics refuses to start, and changes nothing.
fn replay() {
    let mut node = TestNode::start("replay", "");
    let _peer = with_table(&node);
    // As a kill: without a flush.
    panic_at("an append");
    let mut peer = node.started();
    assert!(matches!(peer.query("INSERT INTO ks.t (k, v) VALUES (2, 'y')"), Answer::Error { .. }));
    assert!(node.thread.take().unwrap().join().unwrap().is_err());
    panic_at("a replay");
    let refused = TestNode::start_in(node.directory.clone(), "").err().unwrap().to_string();
    assert!(refused.contains("an internal error has stopped the replay"), "{refused}");
    let mut again = TestNode::start_in(node.directory.clone(), "").unwrap();
    assert_eq!(again.started().rows(ALL).rows.len(), 1);
    again.stop().unwrap();
}
