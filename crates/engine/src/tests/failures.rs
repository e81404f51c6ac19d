//! Full disks and I/O errors while serving: what `disk_failure_policy` and `commit_failure_policy` do, and that nothing
//! acknowledged is lost.

use halcyon_commitlog::SyncMode;
use halcyon_io::{Fault, FaultRule};

use super::*;
use crate::{CommitFailurePolicy, DiskFailurePolicy, FailurePolicy};

/// A node with a table, ten rows in it.
async fn with_rows(disk: Disk, set: impl FnOnce(&mut Options)) -> (Node, Arc<Table>) {
    let node = start_with(disk, set).await.expect("starts");
    let table = table();
    change(&node, std::slice::from_ref(&table)).await.expect("schema");
    for c in 0..10 {
        node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
    }
    (node, table)
}

fn rule(path: &str, fault: Fault) -> FaultRule {
    FaultRule { path_contains: path.to_owned(), times: u64::MAX, ..FaultRule::any(fault) }
}

/// Proves that a commit log without room refuses writes one by one, reports it once, and continues when there is room; what was
/// acknowledged survives, what was refused is not there.
#[test]
fn a_commit_log_without_room() {
    let (_, sim) = Disk::simulated(21);
    let breaker = sim.clone();
    let written = life(&sim, |disk| async move {
        let (node, table) = with_rows(disk, |_| ()).await;
        breaker.set_capacity(1);
        let mut c = 10;
        let refused = loop {
            match node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await {
                Ok(()) => c += 1,
                Err(e) => break e,
            }
        };
        assert!(refused.to_string().starts_with("the commit log cannot grow"), "{refused}");
        assert!(node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.is_err());
        assert!(node.engine.reporter().failure().is_none());
        assert_eq!(warnings(&node).len(), 1);
        assert_eq!(contents(&node, &table).await.len(), c as usize);
        breaker.set_capacity(None);
        node.shard.apply(vec![insert(&table, 1, c + 1, 1, 10)]).await.expect("there is room");
        c
    });
    sim.crash_to_synced();
    life(&sim, move |disk| async move {
        let node = start(disk).await.expect("starts");
        let rows = contents(&node, &user_table(&node)).await;
        assert!(rows.keys().map(|(_, c)| *c).eq((0..written).chain([written + 1])));
    });
}

/// Proves that a commit log that is short of space, because of a table that is being truncated, leaves the shard to the truncation.
#[test]
fn a_truncation_beside_a_full_commit_log() {
    simulate(async {
        let (disk, _) = Disk::simulated(22);
        let (node, table) = with_rows(disk, |options| {
            options.commitlog.total_space = (2 * 64) << 10;
        })
        .await;
        node.shard.empty_table(table.id).await.expect("emptied");
        for c in 0..600 {
            node.shard.apply(vec![insert(&table, 1, c, c, 20)]).await.expect("applied");
        }
        halcyon_io::clock::sleep(std::time::Duration::from_secs(1)).await;
        node.engine.schema().truncate(table.id).await.expect("truncated");
        assert!(contents(&node, &table).await.is_empty());
    });
}

/// Proves what each `commit_failure_policy` does about a device that refuses to write the log.
#[test]
fn a_commit_log_that_fails() {
    use CommitFailurePolicy::{Die, Ignore, Stop, StopCommit};
    let policies = [
        (Stop, Some(FailurePolicy::Stop)),
        (StopCommit, Some(FailurePolicy::StopWrites)),
        (Die, Some(FailurePolicy::Die)),
        (Ignore, None),
    ];
    for (policy, expected) in policies {
        let (_, sim) = Disk::simulated(22);
        let breaker = sim.clone();
        life(&sim, move |disk| async move {
            let (node, table) = with_rows(disk, |o| o.commit_failure_policy = policy).await;
            breaker.fail_on(rule("commitlog", Fault::DeviceError));
            assert!(node.shard.apply(vec![insert(&table, 1, 10, 1, 10)]).await.is_err());
            assert!(node.shard.apply(vec![insert(&table, 1, 10, 1, 10)]).await.is_err());
            assert_eq!(
                node.engine.reporter().failure().map(|(_, policy)| policy),
                expected,
                "{policy:?}"
            );
            assert_eq!(warnings(&node).len(), usize::from(expected.is_none()));
            assert_eq!(contents(&node, &table).await.len(), 10);
        });
        sim.clear_faults();
        sim.crash_to_synced();
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            assert_eq!(contents(&node, &user_table(&node)).await.len(), 10);
        });
    }
}

/// Proves that under `periodic` a flush saves what was acknowledged and a log that has failed, or has no room, cannot make durable.
#[test]
fn a_flush_saves_what_a_log_cannot() {
    for fault in [Fault::DeviceError, Fault::NoSpace] {
        let (_, sim) = Disk::simulated(23);
        let breaker = sim.clone();
        life(&sim, |disk| async move {
            let period = std::time::Duration::from_secs(3_600);
            let set = |options: &mut Options| {
                options.commitlog.sync = SyncMode::Periodic { period };
                options.commit_failure_policy = CommitFailurePolicy::StopCommit;
            };
            let (node, table) = with_rows(disk, set).await;
            breaker.fail_on(rule("commitlog", fault));
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        });
        sim.clear_faults();
        sim.crash_to_synced();
        life(&sim, |disk| async move {
            let node = start(disk).await.expect("starts");
            assert_eq!(contents(&node, &user_table(&node)).await.len(), 10, "{fault:?}");
        });
    }
}

/// Proves what each `disk_failure_policy` does about a flush without room, and that nodes that keep running flush when there is room.
#[test]
fn a_flush_without_room() {
    use DiskFailurePolicy::{BestEffort, Die, Ignore, Stop, StopParanoid};
    let policies = [
        (Stop, Some(FailurePolicy::Stop)),
        (StopParanoid, Some(FailurePolicy::Stop)),
        (Die, Some(FailurePolicy::Die)),
        (BestEffort, None),
        (Ignore, None),
    ];
    for (policy, expected) in policies {
        let (_, sim) = Disk::simulated(23);
        let breaker = sim.clone();
        life(&sim, move |disk| async move {
            let (node, table) = with_rows(disk, |o| o.disk_failure_policy = policy).await;
            // It fails three times; where it is tried again, a minute is enough for that.
            breaker.fail_on(FaultRule { times: 3, ..rule("/ks/", Fault::NoSpace) });
            let first = node.engine.flusher().flush(Some(table.id)).await;
            assert_eq!(
                node.engine.reporter().failure().map(|(_, policy)| policy),
                expected,
                "{policy:?}"
            );
            assert_eq!(contents(&node, &table).await.len(), 10);
            if expected.is_some() {
                assert!(first.is_err());
                return;
            }
            let notes = warnings(&node);
            assert!(notes.len() == 1 && notes[0].contains("it is tried again"), "{notes:?}");
            node.shard.apply(vec![insert(&table, 1, 10, 1, 10)]).await.expect("writes resume");
            node.engine.disk().clock().sleep(std::time::Duration::from_secs(60)).await;
            node.engine.flusher().flush(Some(table.id)).await.expect("there is room");
            assert_eq!(contents(&node, &table).await.len(), 11);
        });
    }
}

/// Proves that writes which find memory full are refused with the reason while flushes fail, and resume after one has succeeded.
#[test]
fn memtables_without_room() {
    let (_, sim) = Disk::simulated(25);
    let breaker = sim.clone();
    life(&sim, move |disk| async move {
        let set = |o: &mut Options| {
            o.disk_failure_policy = DiskFailurePolicy::BestEffort;
            o.memtable_space = 1 << 20;
        };
        let (node, table) = with_rows(disk, set).await;
        breaker.fail_on(rule("/ks/", Fault::NoSpace));
        let mut c = 10;
        let refused = loop {
            match node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await {
                Ok(()) => c += 1,
                Err(e) => break e.to_string(),
            }
        };
        assert!(
            refused.starts_with("memtables are full, and a flush of ks.t failed: "),
            "{refused}"
        );
        assert_eq!(contents(&node, &table).await.len(), c as usize);
        breaker.clear_faults();
        node.engine.flusher().flush(Some(table.id)).await.expect("there is room");
        node.shard.apply(vec![insert(&table, 1, c, 1, 10)]).await.expect("writes resume");
        assert_eq!(contents(&node, &table).await.len(), c as usize + 1);
    });
}

/// Proves that a compaction without room leaves its inputs, and works when there is room.
#[test]
fn a_compaction_without_room() {
    let (_, sim) = Disk::simulated(24);
    let breaker = sim.clone();
    life(&sim, move |disk| async move {
        let (node, table) =
            with_rows(disk, |o| o.disk_failure_policy = DiskFailurePolicy::BestEffort).await;
        for round in 0..2 {
            node.shard.apply(vec![insert(&table, 2, round, 1, 10)]).await.expect("applied");
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
        }
        breaker.set_capacity(1);
        assert!(node.engine.compactor().compact(table.id).await.is_err());
        assert_eq!(contents(&node, &table).await.len(), 12);
        breaker.set_capacity(None);
        node.engine.compactor().compact(table.id).await.expect("there is room");
        assert_eq!(contents(&node, &table).await.len(), 12);
    });
}

/// Proves that a damaged SSTable is `stop_paranoid`'s and `die`'s business only, and an unreadable one every stopping policy's.
#[test]
fn reads_that_fail() {
    use DiskFailurePolicy::{Die, Ignore, Stop, StopParanoid};
    let cases = [
        (StopParanoid, true, Some(FailurePolicy::Stop)),
        (Die, true, Some(FailurePolicy::Die)),
        (Stop, true, None),
        (Ignore, true, None),
        (Stop, false, Some(FailurePolicy::Stop)),
        (Ignore, false, None),
    ];
    for (policy, damaged, expected) in cases {
        let (_, sim) = Disk::simulated(25);
        let breaker = sim.clone();
        life(&sim, move |disk| async move {
            let (node, table) = with_rows(disk, |o| o.disk_failure_policy = policy).await;
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            if damaged {
                let files = breaker.files();
                let of_table = |p: &&std::path::PathBuf| {
                    let path = p.to_string_lossy();
                    path.contains("/ks/") && path.ends_with("-Data.db")
                };
                assert!(breaker.flip(files.iter().find(of_table).expect("a file"), 20, 1));
            } else {
                breaker.fail_on(rule("-Data.db", Fault::DeviceError));
            }
            let failed = async {
                let mut stream = node.shard.read(all(&table)).await?;
                while stream.advance().await? {}
                Ok::<(), crate::Error>(())
            };
            let failed = failed.await;
            assert!(failed.is_err(), "{policy:?}");
            let found = node.engine.reporter().failure().map(|(_, policy)| policy);
            assert_eq!(found, expected, "{policy:?}, damaged {damaged}: {failed:?}");
            assert_eq!(warnings(&node).len(), usize::from(expected.is_none()));
        });
    }
}

/// Proves that a start without room for what it replays leaves the disk as it was, however much room there is, and that a start with
/// enough finds everything.
#[test]
fn a_start_without_room() {
    let (_, sim) = Disk::simulated(26);
    life(&sim, |disk| async move {
        with_rows(disk, |_| ()).await;
    });
    sim.kill();
    let before = sim.files();
    let length = |path: &std::path::PathBuf| sim.contents(path).map_or(0, |bytes| bytes.len());
    let used: usize = before.iter().map(length).sum();
    let mut failed = 0;
    for room in (0..).step_by(3000) {
        sim.set_capacity((used + room) as u64);
        if life(&sim, |disk| async move { start(disk).await.is_ok() }) {
            break;
        }
        failed += 1;
        sim.kill();
        assert_eq!(sim.files(), before, "{room} bytes");
        assert_eq!(before.iter().map(length).sum::<usize>(), used, "{room} bytes");
    }
    assert!(failed > 3, "{failed}");
    sim.set_capacity(None);
    sim.kill();
    life(&sim, |disk| async move {
        let node = start(disk).await.expect("starts");
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 10);
    });
}

/// Proves that a segment of ours without a byte in it is never taken for one that Cassandra has emptied: the start is refused, or runs
/// without it as the policy says, and what is left of it stays; and that Cassandra's own is only taken for empty where Cassandra does.
#[test]
fn empty_segments() {
    const NEWER: &str = "/halcyon/commitlog/CommitLog-7-1700000000002.log";
    const OLDER: &str = "/halcyon/commitlog/CommitLog-7-1700000000001.log";
    let (_, sim) = Disk::simulated(27);
    life(&sim, |disk| async move {
        with_rows(disk, |_| ()).await;
    });
    sim.kill();
    let segment = std::path::PathBuf::from("/halcyon/commitlog/CommitLog-0-1.log");
    let looked = sim.clone();
    life(&sim, |disk| async move {
        let refusal = async || {
            let error = start(disk.clone()).await.err().map(|e| e.to_string());
            error.expect("refused")
        };
        let purpose = halcyon_io::Purpose::CommitLog;
        disk.remove(&segment).await.expect("removed");
        disk.write_new(&segment, &[0; 64 << 10], purpose).await.expect("written");
        let error = refusal().await;
        assert!(error.contains("CommitLog-0-1.log") && error.contains("policy: ignore"), "{error}");
        assert!(looked.contents(&segment).is_some_and(|bytes| bytes.len() == 64 << 10));
        for name in [OLDER, NEWER] {
            disk.write_new(Path::new(name), &[0; 4096], purpose).await.expect("written");
        }
        let error = refusal().await;
        assert!(error.contains(OLDER), "{error}");
        disk.remove(Path::new(OLDER)).await.expect("removed");
        let ignore = |o: &mut Options| o.on_corruption = crate::OnCorruption::Ignore;
        let node = start_with(disk.clone(), ignore).await.expect("starts");
        let notes = node.report.notes;
        assert!(notes.iter().any(|note| note.contains("CommitLog-0-1.log: skipped")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains(NEWER)), "{notes:?}");
        assert!(looked.contents(&segment.with_extension("log.damaged")).is_some());
        assert!(looked.contents(Path::new(NEWER)).is_none());
    });
}

/// Proves that the node does not take a refused file name for a failed device: it retries the flush, and accepts writes meanwhile.
#[test]
fn a_flush_of_a_name_too_long() {
    let (_, sim) = Disk::simulated(26);
    let breaker = sim.clone();
    life(&sim, move |disk| async move {
        let (node, table) = with_rows(disk, |_| ()).await;
        breaker.fail_on(FaultRule { times: 1, ..rule("/ks/", Fault::NameTooLong) });
        node.engine.flusher().flush(Some(table.id)).await.expect_err("the name is too long");
        assert_eq!(node.engine.reporter().failure(), None);
        let notes = warnings(&node);
        assert!(notes.len() == 1 && notes[0].contains("not about its device"), "{notes:?}");
        node.shard.apply(vec![insert(&table, 1, 10, 1, 10)]).await.expect("writes resume");
        breaker.clear_faults();
        node.engine.disk().clock().sleep(std::time::Duration::from_secs(60)).await;
        node.engine.flusher().flush(Some(table.id)).await.expect("the name fits");
        assert_eq!(contents(&node, &table).await.len(), 11);
    });
}
