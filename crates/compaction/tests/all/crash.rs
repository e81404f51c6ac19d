//! A compaction on a simulated disk that stops at every one of its operations, in turn. Whatever the crash left, recovery makes
//! it all old or all new, and may itself be stopped anywhere.

use std::path::{Path, PathBuf};

use crate::sim_table::{self, A, B, SimTable};

/// Tables with statics, collections, range tombstones, counters, several chunks, none; BIG and BTI.
const TABLES: [&str; 6] = [
    "oa/uncompressed",
    "oa/list_multicell",
    "da/range_boundaries_asc",
    "nb/counters",
    "pa/wide_static",
    "ea/statics",
];

/// Operations of a compaction that nothing stops.
fn operations(table: &SimTable) -> u64 {
    let before = table.sim.snapshot();
    let first = table.sim.ops_count();
    table.compact().expect("compacts");
    let count = table.sim.ops_count() - first;
    table.sim.restore(&before);
    count
}

fn crash_everywhere(table: &SimTable, directories: &[&str], what: &str) {
    let before = table.sim.snapshot();
    let first = table.sim.ops_count();
    let (mut old, mut new) = (0, 0);
    for at in 0..=operations(table) {
        let when = format!("{what}, crash at operation {at}");
        table.sim.restore(&before);
        table.sim.crash_at(first + at);
        let outcome = table.compact();
        let crashed = table.sim.is_down();
        assert_eq!(outcome.is_err(), crashed, "{when}: {outcome:?}");
        table.sim.restart();
        let left = sim_table::logs(&table.sim);
        table.recover(directories).unwrap_or_else(|e| panic!("{when}: {e}\n{left}"));
        let is_new = table.check(directories, &when);
        assert!(crashed || is_new, "{when}: a finished compaction is lost");
        *if is_new { &mut new } else { &mut old } += 1;
        let operations = table.sim.ops_count();
        table.recover(directories).unwrap_or_else(|e| panic!("{when}, once more: {e}"));
        assert!(table.sim.ops_count() - operations <= 2 * directories.len() as u64, "{when}");
    }
    assert!(old > 10 && new > 10, "{what}: {old} old, {new} new");
}

/// Proves that wherever the machine stops, what was there before or what was to come is there, whole.
#[test]
fn a_crash_at_every_operation() {
    for (i, name) in TABLES.iter().enumerate() {
        for seed in 0..2 {
            let seed = seed * 100 + i as u64;
            let table = SimTable::load(name, seed, &[A]);
            crash_everywhere(&table, &[A], &format!("{name}, seed {seed}"));
        }
    }
}

/// Proves the same where inputs lie in two directories, each with a replica of the log.
#[test]
fn a_crash_with_replicas_of_the_log() {
    for seed in 0..2 {
        for (output, directories) in [(A, [A, B]), (B, [A, B]), (A, [B, A])] {
            let mut table = SimTable::load("oa/statics", seed, &directories);
            table.settings.output = Some(PathBuf::from(output));
            crash_everywhere(&table, &directories, &format!("to {output}, seed {seed}"));
        }
    }
}

/// Proves the same for a split into several outputs, one of which is whole while the next is begun.
#[test]
fn a_crash_between_outputs() {
    for seed in 0..2 {
        let mut table = SimTable::load("oa/uncompressed", seed, &[A]);
        table.settings.split_size = Some(0); // each partition its own
        let before = table.sim.snapshot();
        let outputs = table.compact().expect("compacts").outputs.len();
        assert!(outputs > 2, "{outputs} outputs");
        table.sim.restore(&before);
        crash_everywhere(&table, &[A], &format!("split, seed {seed}"));
    }
}

/// Proves that recovery may be stopped at every operation, after a compaction that was stopped at any.
#[test]
fn a_crash_in_recovery() {
    for (name, directories) in [("oa/list_multicell", &[A][..]), ("da/statics", &[A, B][..])] {
        let table = SimTable::load(name, 7, directories);
        let before = table.sim.snapshot();
        let first = table.sim.ops_count();
        // The crashes of recovery do not depend on how far the writing had come; every third is enough.
        for at in (0..operations(&table)).step_by(3) {
            table.sim.restore(&before);
            table.sim.crash_at(first + at);
            table.compact().expect_err("crashes");
            table.sim.restart();
            recover_with_crashes(&table, directories, &format!("{name}, crash at {at}"));
        }
    }
}

fn recover_with_crashes(table: &SimTable, directories: &[&str], when: &str) {
    let left = table.sim.snapshot();
    let first = table.sim.ops_count();
    for at in 0.. {
        let when = format!("{when}, recovery crashes at {at}");
        table.sim.restore(&left);
        table.sim.crash_at(first + at);
        let stopped = table.recover(directories).is_err();
        assert_eq!(stopped, table.sim.is_down(), "{when}");
        table.sim.restart();
        table.recover(directories).unwrap_or_else(|e| panic!("{when}: {e}"));
        table.check(directories, &when);
        if !stopped {
            return;
        }
    }
}

/// Proves that a log that has outlived its transaction deletes nothing when its files have been restored since.
#[test]
fn a_stale_log_deletes_nothing() {
    let table = SimTable::load("oa/statics", 1, &[A]);
    let before = table.sim.snapshot();
    let first = table.sim.ops_count();
    // The first crash after the commit: the log is whole, all inputs are there.
    let committed = (0..operations(&table)).find_map(|at| {
        table.sim.restore(&before);
        table.sim.crash_at(first + at);
        table.compact().expect_err("crashes");
        table.sim.crash_to_synced();
        let log =
            table.sim.files().into_iter().find(|path| path.extension() == Some("log".as_ref()))?;
        let text = String::from_utf8(table.sim.contents(&log)?).ok()?;
        text.contains("COMMIT").then_some(())
    });
    assert!(committed.is_some(), "no crash after the commit");
    let touched = Path::new(A).join("oa-2-big-Filter.db");
    let bytes = table.sim.contents(&touched).expect("there");
    halcyon_io::block_on(async {
        table.disk.remove(&touched).await.expect("removed");
        let again = table.disk.write_new(&touched, &bytes, halcyon_io::Purpose::Flush).await;
        again.expect("restored from a backup");
    });
    let files = sim_table::files(&table.sim);
    let refused = table.recover(&[A]).expect_err("refuses").to_string();
    assert!(refused.contains(".log: line") && refused.contains("oa-2-big-"), "{refused}");
    assert!(refused.contains("restored backup"), "{refused}");
    assert!(sim_table::files(&table.sim) == files, "files have changed");
    let unreadable = halcyon_io::block_on(sim_table::live(&table.disk, &[A]));
    assert!(unreadable.is_err(), "a reader must not choose between the two either");
}
