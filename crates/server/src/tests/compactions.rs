//! Compaction as an operator sees it, and what he can change while the node runs.

use halcyon_protocol::client::Answer;

use super::statements::KEYSPACE;
use super::{PATIENCE, Peer, TestNode};

fn text(cell: &Option<Vec<u8>>) -> &str {
    cell.as_deref().map_or("null", |bytes| std::str::from_utf8(bytes).unwrap())
}

fn refused(peer: &mut Peer, statement: &str) -> String {
    match peer.query(statement) {
        Answer::Error { code: 0x2200, message, .. } => message,
        other => panic!("{statement}: {other:?}"),
    }
}

fn is_over(peer: &mut Peer) -> Vec<Option<Vec<u8>>> {
    let began = std::time::Instant::now();
    loop {
        let page = peer.rows(
            "SELECT state, sstables_in, sstables_out, failure FROM halcyon_views.major_compactions \
             WHERE keyspace_name = 'ks' AND table_name = 't'",
        );
        if text(&page.rows[0][0]) != "running" {
            return page.rows[0].clone();
        }
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Proves that a client can have a table compacted as a whole, and sees what became of it.
#[test]
fn major_compaction() {
    let mut node = TestNode::start("major", "");
    let mut peer = node.started();
    peer.query(KEYSPACE);
    peer.query("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    for k in 0..20 {
        assert_eq!(peer.query(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, 'v')")), Answer::Void);
    }
    drop(peer);
    node.stop().unwrap();
    let again = TestNode::start_in(node.directory.clone(), "").unwrap_or_else(|e| panic!("{e}"));
    let mut peer = again.started();
    let begin = "INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name) VALUES ('ks', 't')";
    assert_eq!(peer.query(begin), Answer::Void);
    let int = |n: i32| Some(n.to_be_bytes().to_vec());
    assert_eq!(is_over(&mut peer), [Some(b"done".to_vec()), int(2), int(1), None]);
    assert_eq!(peer.rows("SELECT * FROM ks.t").rows.len(), 20);
    let limited = |argument: &str| {
        format!(
            "INSERT INTO halcyon_views.major_compactions (keyspace_name, table_name, argument) VALUES ('ks', 't', '{argument}')"
        )
    };
    for (argument, inputs) in [
        ("token-range=-9223372036854775808,9223372036854775807", 1),
        ("token-range=5,5", 0),
        ("partition=7", 1),
        ("partition=777", 0),
        ("split-output", 1),
    ] {
        assert_eq!(peer.query(&limited(argument)), Answer::Void);
        assert_eq!(is_over(&mut peer)[..2], [Some(b"done".to_vec()), int(inputs)], "{argument}");
        let shown = peer.rows("SELECT argument FROM halcyon_views.major_compactions");
        assert_eq!(text(&shown.rows[0][0]), argument);
    }
    let got = |text: &str| {
        format!(
            "Invalid token for Murmur3Partitioner. Got {text} but expected a long value (unsigned 8 bytes integer)."
        )
    };
    let key = |text: &str, why: &str| {
        format!("Unable to parse partition key '{text}' for table ks.t; {why}")
    };
    for (argument, refusal) in [
        ("token-range=x,2", got("x")),
        ("token-range=1", got("")),
        ("token-range=1,99999999999999999999", got("99999999999999999999")),
        ("partition=x", key("x", "Unable to make int from 'x'")),
        ("partition=", key("", "Key may not be empty")),
        ("nonsense", "nonsense is not an argument of a compaction; there are: split-output, token-range=START,END, \
          partition=KEY, user-defined=FILES, rewrite=all|other-version|other-compression".to_owned()),
    ] {
        assert_eq!(refused(&mut peer, &limited(argument)), refusal);
    }
    assert_eq!(peer.query(&limited("user-defined=/etc/ks/t-1/oa-1-big-Data.db")), Answer::Void);
    let failed = is_over(&mut peer);
    assert_eq!(
        (text(&failed[0]), text(&failed[3])),
        ("failed", "/etc/ks/t-1/oa-1-big-Data.db is not in a folder of ks.t")
    );
    let stop = "DELETE FROM halcyon_views.major_compactions WHERE keyspace_name = 'ks' AND table_name = 't'";
    assert_eq!(peer.query(stop), Answer::Void);
    assert_eq!(refused(&mut peer, &begin.replace("'t'", "'x'")), "table ks.x does not exist");
}

/// Proves which settings a client can change, that the change is visible and logged, and that wrong ones are refused as in the file.
#[test]
fn settings_change_while_the_node_runs() {
    let node = TestNode::start("settings", "");
    let mut peer = node.started();
    let update = |name: &str, value: &str| {
        format!("UPDATE system_views.settings SET value = {value} WHERE name = '{name}'")
    };
    assert_eq!(peer.query(&update("compaction_throughput", "'7MiB/s'")), Answer::Void);
    let value = "SELECT value FROM system_views.settings WHERE name = 'compaction_throughput'";
    assert_eq!(text(&peer.rows(value).rows[0][0]), "7MiB/s");
    assert!(node.said.lock().unwrap().iter().any(|line| line.contains("is 7MiB/s from now on")));
    let cases = [
        (
            update("compaction_throughput", "'7'"),
            "Invalid value `7` of compaction_throughput; allowed: a rate with a unit: B/s, KiB/s, MiB/s",
        ),
        (update("nonsense", "'7'"), "there is no setting nonsense"),
        (
            "DELETE FROM system_views.settings WHERE name = 'compaction_throughput'".to_owned(),
            "Modification is not supported by table system_views.settings",
        ),
        (
            "UPDATE system_views.caches SET capacity_bytes = 1 WHERE name = 'keys'".to_owned(),
            "Modification is not supported by table system_views.caches",
        ),
        (
            "UPDATE system_views.settings USING TTL 5 SET value = 'x' WHERE name = 'shards'"
                .to_owned(),
            "Expiring columns are not supported by virtual tables",
        ),
        (
            format!("BEGIN BATCH {} APPLY BATCH", update("shards", "'1'")),
            "Cannot include a virtual table statement in a logged batch",
        ),
    ];
    for (statement, expected) in cases {
        assert_eq!(refused(&mut peer, &statement), expected, "{statement}");
    }
}

/// Proves what commands do and refuse: a flush, a snapshot that is listed and cleared, automatic compaction off, a drain.
#[test]
fn commands_of_nodetool() {
    let node = TestNode::start("commands", "");
    let mut peer = node.started();
    peer.query(KEYSPACE);
    peer.query("CREATE TABLE ks.t (k int PRIMARY KEY, v text)");
    peer.query("INSERT INTO ks.t (k, v) VALUES (1, 'v')");
    let command = |verb: &str, keyspace: &str, table: &str, argument: &str| {
        format!(
            "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) \
             VALUES ('{verb}', '{keyspace}', '{table}', '{argument}')"
        )
    };
    assert_eq!(peer.query(&command("flush", "ks", "t", "")), Answer::Void);
    let statistics = "SELECT sstables, memtable_bytes, auto_compaction FROM halcyon_views.table_statistics \
                      WHERE keyspace_name = 'ks' AND table_name = 't'";
    let int = |n: i32| Some(n.to_be_bytes().to_vec());
    let empty = Some(0i64.to_be_bytes().to_vec());
    assert_eq!(peer.rows(statistics).rows, [[int(1), empty.clone(), Some(vec![1])]]);
    assert_eq!(peer.query(&command("disableautocompaction", "ks", "", "")), Answer::Void);
    assert_eq!(peer.rows(statistics).rows, [[int(1), empty, Some(vec![0])]]);
    assert_eq!(peer.query(&command("snapshot", "ks", "", r#"{"name":"one"}"#)), Answer::Void);
    let again = refused(&mut peer, &command("snapshot", "", "", r#"{"name":"one"}"#));
    assert_eq!(again, "Snapshot one already exists.");
    let listed = "SELECT name, keyspace_name, table_name FROM system_views.snapshots";
    let found = peer.rows(listed);
    assert_eq!(found.rows[0].iter().map(text).collect::<Vec<_>>(), ["one", "ks", "t"]);
    assert_eq!(peer.query(&command("clearsnapshot", "", "", r#"{"name":"other"}"#)), Answer::Void);
    assert_eq!(peer.rows(listed).rows.len(), 1);
    assert_eq!(
        peer.query(&command("clearsnapshot", "", "", r#"{"older_than_seconds":3600}"#)),
        Answer::Void
    );
    let old = command("clearsnapshot", "", "", r#"{"created_before_ms":-315619200000}"#);
    assert_eq!(peer.query(&old), Answer::Void);
    assert_eq!(peer.rows(listed).rows.len(), 1);
    assert_eq!(peer.query(&command("clearsnapshot", "ks", "", "")), Answer::Void);
    assert_eq!(peer.rows(listed).rows.len(), 0);
    for (statement, expected) in [
        (command("flush", "ks", "x", ""), "Unknown keyspace/cf pair (ks.x)"),
        (command("flush", "x", "", ""), "Keyspace x does not exist"),
        (command("snapshot", "ks", "", r#"{"name":"a/b"}"#), "Snapshot name cannot contain /"),
        (
            command("snapshot", "ks", "", r#"{"name":"a","ttl_seconds":59}"#),
            "ttl for snapshot must be at least 60 seconds",
        ),
        (
            command("settraceprobability", "", "", r#"{"probability":2}"#),
            "Trace probability must be between 0 and 1",
        ),
    ] {
        assert_eq!(refused(&mut peer, &statement), expected);
    }
    assert!(
        refused(&mut peer, &command("nonsense", "", "", ""))
            .contains("expected one of `clearsnapshot`")
    );
    assert_eq!(peer.query(&command("drain", "", "", "")), Answer::Void);
    let late = peer.query("INSERT INTO ks.t (k) VALUES (2)");
    assert!(
        matches!(&late, Answer::Error { message, .. } if message == "the server is draining"),
        "{late:?}"
    );
    assert_eq!(peer.rows("SELECT * FROM ks.t").rows.len(), 1);
}
