//! A compaction on a simulated disk that returns an error at every one of its operations, in turn; and inputs of which a bit has
//! flipped. Inputs are never touched, nothing half-written is taken for whole, and no wrong data is written.

use std::path::{Path, PathBuf};

use halcyon_compaction::{Error, Progress, run};
use halcyon_io::{Fault, FaultRule, Operation, block_on};
use halcyon_sstable::{Component, Error as SSTableError};

use crate::sim_table::{self, A, B, SimTable, files};

/// Whether the message names a file or directory of the table.
fn names_a_file(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("/a/ks/t") || text.contains("/b/ks/t")
}

fn fail_everywhere(table: &SimTable, directories: &[&str], fault: Fault, what: &str) {
    let before = table.sim.snapshot();
    let mut failures = 0;
    for at in 0.. {
        let when = format!("{what}, {fault:?} at operation {at}");
        table.sim.restore(&before);
        table.sim.fail_after(at, fault);
        let operations = table.sim.ops_count();
        let outcome = table.compact();
        let struck = table.sim.ops_count() - operations > at;
        table.sim.clear_faults();
        if let Err(e) = &outcome {
            failures += 1;
            assert!(struck && names_a_file(e), "{when}: {e}");
            assert!(!matches!(e, Error::Invalid(_)), "{when}: {e}");
        }
        // A live view of the table before anything has cleaned up.
        let live = block_on(sim_table::live(&table.disk, directories));
        let live = live.unwrap_or_else(|e| panic!("{when}: {e}"));
        let content = block_on(sim_table::content(&table.disk, &live));
        assert_eq!(content.unwrap_or_else(|e| panic!("{when}: {e}")), table.content, "{when}");
        table.recover(directories).unwrap_or_else(|e| panic!("{when}: {e}"));
        let is_new = table.check(directories, &when);
        assert!(is_new || outcome.is_err(), "{when}: success, but the old ones are there");
        if !struck {
            break;
        }
    }
    table.sim.restore(&before);
    assert!(failures > 20, "{what}: only {failures} failures");
}

/// Proves that an I/O error or a full disk at any operation leaves a table that is whole.
#[test]
fn an_error_at_every_operation() {
    for (name, seed) in [("oa/uncompressed", 1), ("da/list_multicell", 2), ("nb/wide_static", 3)] {
        let table = SimTable::load(name, seed, &[A]);
        for fault in [Fault::DeviceError, Fault::NoSpace] {
            fail_everywhere(&table, &[A], fault, name);
        }
    }
    let table = SimTable::load("oa/statics", 4, &[A, B]);
    fail_everywhere(&table, &[A, B], Fault::DeviceError, "two directories");
}

/// Proves that after a single error the transaction cleans up by itself: no outputs, no log, before any recovery.
#[test]
fn what_fails_before_the_commit_is_undone_at_once() {
    let table = SimTable::load("oa/list_multicell", 5, &[A]);
    let before = table.sim.snapshot();
    for at in 0.. {
        table.sim.restore(&before);
        let rule = FaultRule {
            path_contains: "-big-".into(),
            operation: Some(Operation::Sync),
            skip: at,
            ..FaultRule::any(Fault::DeviceError)
        };
        table.sim.fail_on(rule);
        let outcome = table.compact();
        table.sim.clear_faults();
        if outcome.is_ok() {
            assert!(at > 5, "{at} syncs");
            return;
        }
        assert!(files(&table.sim) == table.files, "sync {at}: not as before");
    }
}

/// Proves that a disk that is really full refuses before anything is written, and that one which fills up on the way is as it was.
#[test]
fn a_full_disk() {
    let table = SimTable::load("oa/uncompressed", 6, &[A]);
    let used: u64 = table.files.values().map(|bytes| bytes.len() as u64).sum();
    let before = table.sim.snapshot();
    let mut refused = 0;
    for room in (0..80_000).step_by(1000) {
        table.sim.restore(&before);
        table.sim.set_capacity(used + room);
        match table.compact() {
            Ok(_) => assert!(table.check(&[A], "room")),
            Err(Error::NoSpace { needed, free, .. }) => {
                refused += 1;
                assert!(free < needed);
                assert!(!table.check(&[A], "refused"));
            }
            Err(e) => {
                assert!(e.to_string().contains("no space"), "{e}");
                assert!(!table.check(&[A], "full"));
            }
        }
    }
    assert!(refused > 10, "{refused} refused");
}

/// Proves that a flipped bit of Data.db is an error with component and offset, or harmless: never other data.
#[test]
fn a_flipped_bit_of_the_data() {
    for name in ["oa/uncompressed", "oa/list_multicell", "ea/statics", "nb/compressed_deflate_4"] {
        let table = SimTable::load(name, 8, &[A]);
        let before = table.sim.snapshot();
        let path = table.inputs[0].descriptor().component_path(Component::Data);
        let length = table.files[&path].len() as u64;
        let step = (length / 150).max(1);
        for offset in (0..length).step_by(step as usize) {
            table.sim.restore(&before);
            assert!(table.sim.flip(&path, offset, (offset % 8) as u8));
            check_corrupt(&table, &path, offset, length, name);
        }
    }
}

fn check_corrupt(table: &SimTable, path: &Path, offset: u64, length: u64, name: &str) {
    let flipped = files(&table.sim);
    match table.compact().map_err(corrupt) {
        Err(Some((found, component, at))) => {
            assert_eq!((found.as_path(), component), (path, Component::Data));
            assert!(at <= length, "{name}: flipped at {offset}, found at {at} of {length}");
            // A chunk is found by its start; the checksum of the last one may come right after it.
            assert!(at <= offset, "{name}: flipped at {offset}, found at {at}");
            assert!(files(&table.sim) == flipped, "{name}: leftovers");
        }
        Err(None) => panic!("{name}: flipped at {offset}: not reported as corrupt"),
        Ok(_) => panic!("{name}: the flip at {offset} was not seen"),
    }
}

fn corrupt(error: Error) -> Option<(PathBuf, Component, u64)> {
    match error {
        Error::SSTable(SSTableError::Corrupt { path, component, offset, .. }) => {
            Some((path, component, offset))
        }
        _ => None,
    }
}

/// Proves that a cancelled compaction leaves the inputs and nothing else, and says so.
#[test]
fn cancelled() {
    let table = SimTable::load("oa/uncompressed", 9, &[A]);
    let progress = Progress::default();
    progress.cancel();
    let (runtime, task) = (table.disk.runtime(), table.task());
    let outcome = runtime.block_on(run(&table.disk, &task, &table.settings, &progress));
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert!(!table.check(&[A], "cancelled"));
    assert!(files(&table.sim) == table.files);
}
