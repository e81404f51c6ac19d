//! Snapshots that expire.

use std::time::Duration;

use super::*;
use crate::SnapshotOptions;

const KEPT: SnapshotOptions = SnapshotOptions { skip_flush: false, ttl_seconds: None };

fn expiring(seconds: u64) -> SnapshotOptions {
    SnapshotOptions { ttl_seconds: Some(seconds), ..KEPT }
}

/// Name and seconds to live, by name.
async fn snapshots(node: &Node) -> Vec<(String, Option<i64>)> {
    let found = node.engine.snapshots().all().await.expect("listed").into_iter();
    let life = |s: &crate::Snapshot| s.expires_ms.map(|end| (end - s.created_ms) / 1000);
    let mut found: Vec<_> = found.map(|s| (s.name.clone(), life(&s))).collect();
    found.sort();
    found
}

async fn wait(node: &Node, seconds: u64) {
    for _ in 0..seconds {
        node.engine.disk().clock().sleep(Duration::from_secs(1)).await;
    }
}

async fn filled(disk: Disk) -> Node {
    let node = start(disk).await.expect("starts");
    change(&node, &[table()]).await.expect("schema");
    node.shard.apply(vec![insert(&user_table(&node), 1, 1, 1, 1)]).await.expect("applied");
    node
}

/// Proves that a snapshot is removed within a minute of its end, not before it, that the others stay, and that the log names it.
#[test]
fn expired_ones_are_removed() {
    simulate(async {
        let (disk, _) = Disk::simulated(31);
        let node = filled(disk).await;
        let tables = [ID];
        for (name, options) in [("a", expiring(60)), ("b", KEPT), ("c", expiring(600))] {
            node.engine.snapshots().take(&tables, name, options).await.expect(name);
        }
        wait(&node, 59).await;
        let named = |name: &str, life| (name.to_owned(), life);
        let (b, c) = (named("b", None), named("c", Some(600)));
        assert_eq!(snapshots(&node).await, [named("a", Some(60)), b.clone(), c.clone()]);
        wait(&node, 65).await;
        assert_eq!(snapshots(&node).await, [b.clone(), c]);
        wait(&node, 600).await;
        assert_eq!(snapshots(&node).await, [b]);
        let told = node
            .engine
            .reporter()
            .take_events()
            .into_iter()
            .filter(|e| matches!(e, crate::Event::SnapshotExpired { .. }));
        assert_eq!(told.count(), 2);
    });
}

/// Proves that the next life of a killed node removes what expires, wherever the removal was cut off, and never anything else.
#[test]
fn a_killed_node_removes_them_later() {
    let (_, sim) = Disk::simulated(32);
    life(&sim, |disk| async move {
        let node = filled(disk).await;
        for (name, options) in [("expiring", expiring(60)), ("kept", KEPT)] {
            node.engine.snapshots().take(&[ID], name, options).await.expect(name);
        }
    });
    let begin = sim.snapshot();
    for seconds in [0, 4, 6, 8, 64, 66, 130] {
        sim.restore(&begin);
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            wait(&node, seconds).await;
        });
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            wait(&node, 130).await;
            let kept = [("kept".to_owned(), None)];
            assert_eq!(snapshots(&node).await, kept, "killed after {seconds} s");
        });
    }
}

/// Proves that names and times that Cassandra refuses are refused, and that nothing is left of them.
#[test]
fn wrong_ones_are_refused() {
    simulate(async {
        let (disk, _) = Disk::simulated(33);
        let node = filled(disk).await;
        let long = "x".repeat(256);
        let cases = [
            ("a", expiring(0), "ttl for snapshot must be at least 60 seconds"),
            ("a", expiring(59), "ttl for snapshot must be at least 60 seconds"),
            ("", KEPT, "You must supply a snapshot name."),
            ("..", KEPT, "Snapshot .. already exists."),
            ("../x", KEPT, "Snapshot name cannot contain /"),
            (&long, KEPT, "Snapshot name has more than 255 bytes"),
        ];
        for (name, options, refusal) in cases {
            let refused = node.engine.snapshots().take(&[ID], name, options).await;
            assert_eq!(refused.map_err(|e| e.to_string()), Err(refusal.to_owned()));
        }
        assert_eq!(snapshots(&node).await, []);
        node.engine.snapshots().take(&[ID], "far", expiring(u64::MAX)).await.expect("taken");
        wait(&node, 130).await;
        assert_eq!(snapshots(&node).await.len(), 1);
    });
}

/// Proves that a snapshot makes no more links a second than it may, and that the ceiling can change.
#[test]
fn links_have_a_ceiling() {
    simulate(async {
        let (disk, _) = Disk::simulated(32);
        let node = filled(disk).await;
        let took = async |name: &str| {
            let clock = node.engine.disk().clock();
            let began = clock.now();
            node.engine.snapshots().take(&[ID], name, KEPT).await.expect(name);
            clock.now() - began
        };
        assert!(took("fast").await < Duration::from_secs(1));
        node.engine.snapshots().set_links_per_second(1);
        assert!(took("slow").await > Duration::from_secs(3));
        node.engine.snapshots().set_links_per_second(0);
        assert!(took("fast-again").await < Duration::from_secs(1));
    });
}
