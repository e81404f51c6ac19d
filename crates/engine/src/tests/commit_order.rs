//! Outputs are opened before they are committed: an output that cannot be opened leaves everything as it was.

use halcyon_io::{Fault, FaultRule, Operation};

use super::point::uncompacted;
use super::*;
use crate::DiskFailurePolicy;

fn data_files(sim: &SimDisk) -> usize {
    let is_data = |path: &std::path::PathBuf| {
        let path = path.to_string_lossy();
        path.contains("/ks/t-") && path.ends_with("-Data.db")
    };
    sim.files().iter().filter(|path| is_data(path)).count()
}

/// The operation after `skip` others of its kind on the table's SSTables fails once; those on its transaction logs succeed.
fn fails(operation: Operation, skip: u64) -> FaultRule {
    FaultRule {
        path_contains: "-big-".to_owned(),
        operation: Some(operation),
        skip,
        ..FaultRule::any(Fault::DeviceError)
    }
}

async fn tolerant(disk: Disk) -> Node {
    let set = |options: &mut Options| options.disk_failure_policy = DiskFailurePolicy::Ignore;
    start_with(disk, set).await.expect("starts")
}

fn sstables(node: &Node) -> usize {
    let stats = node.engine.tables().stats();
    stats.iter().find(|s| s.keyspace == "ks").expect("known").sstables
}

/// Proves for each open, stat and read of a compaction that where it fails, the rows stay readable, the files on disk are those of the live
/// set, and a restart finds the same rows.
#[test]
fn a_compaction_whose_outputs_cannot_be_opened() {
    for operation in [Operation::Open, Operation::Stat, Operation::Read] {
        let (_, sim) = Disk::simulated(41);
        let faults = sim.clone();
        life(&sim, move |disk| async move {
            let node = tolerant(disk).await;
            let mut failures = 0;
            change(&node, &[table()]).await.expect("schema");
            let table = user_table(&node);
            for round in 0..3 {
                for c in 0..10 {
                    let write = insert(&table, c % 3, c, round, 10 + i64::from(round));
                    node.shard.apply(vec![write]).await.expect("applied");
                }
                node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            }
            let expected = contents(&node, &table).await;
            for skip in 0..200 {
                faults.fail_on(fails(operation, skip));
                let compacted = node.engine.compactor().compact(table.id).await;
                faults.clear_faults();
                assert_eq!(contents(&node, &table).await, expected, "{operation} {skip}");
                if compacted.is_ok() {
                    break;
                }
                failures += 1;
                assert_eq!((sstables(&node), data_files(&faults)), (3, 3), "{operation} {skip}");
            }
            assert!(failures > 0 && sstables(&node) == 1, "{operation}: {failures}");
        });
        sim.crash_to_synced();
        life(&sim, |disk| async move {
            let node = tolerant(disk).await;
            let rows = contents(&node, &user_table(&node)).await;
            assert_eq!(rows.len(), 10);
            assert!(rows.values().all(|v| *v == 2));
        });
    }
}

/// Proves the same of a flush: the memtable stays until an SSTable of it is open and committed.
#[test]
fn a_flush_whose_output_cannot_be_opened() {
    let (_, sim) = Disk::simulated(42);
    let faults = sim.clone();
    life(&sim, move |disk| async move {
        let node = tolerant(disk).await;
        let table = uncompacted("t", ID);
        change(&node, std::slice::from_ref(&table)).await.expect("schema");
        let mut failures = 0;
        for c in 0..50 {
            node.shard.apply(vec![insert(&table, 1, c, c, 10)]).await.expect("applied");
            faults.fail_on(fails(Operation::Open, u64::try_from(c).unwrap_or(0)));
            let flushed = node.engine.flusher().flush(Some(table.id)).await;
            faults.clear_faults();
            assert_eq!(contents(&node, &table).await.len(), c as usize + 1);
            failures += usize::from(flushed.is_err());
            node.engine.flusher().flush(Some(table.id)).await.expect("flushed");
            assert_eq!(sstables(&node), data_files(&faults), "{c}");
        }
        assert!(failures > 0);
    });
    sim.crash_to_synced();
    life(&sim, |disk| async move {
        let node = tolerant(disk).await;
        assert_eq!(contents(&node, &user_table(&node)).await.len(), 50);
    });
}
