//! Transaction logs that a start finds in unusual places and states.

use std::path::{Path, PathBuf};

use halcyon_compaction::txn_log::{Record, RecordType, dead_in_directory};
use halcyon_io::block_on;

use crate::sim_table::{A, B, SimTable, files};

const LOG: &str = "oa_txn_compaction_cbb12200-f5c4-11ea-bd77-95ffb25f1a12.log";

fn record(record_type: RecordType, prefix: &str, update_time_ms: i64, files: i32) -> String {
    Record { record_type, prefix: prefix.into(), update_time_ms, files }.to_line()
}

fn commit() -> String {
    record(RecordType::Commit, "", 0, 0)
}

impl SimTable {
    /// A REMOVE record as the transaction would have written it.
    fn removal(&self, directory: &str, prefix: &str) -> String {
        let (mut newest, mut count) = (0, 0);
        for path in self.files.keys().filter(|p| p.starts_with(directory)) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if !name.starts_with(prefix) {
                continue;
            }
            count += 1;
            if !name.ends_with("-Statistics.db") {
                let modified = block_on(self.disk.stat(path)).expect("there").modified_ms;
                newest = newest.max(modified);
            }
        }
        record(RecordType::Remove, &format!("{directory}/{prefix}"), newest, count)
    }

    fn refuses(&self, expected: &str) {
        let before = files(&self.sim);
        let error = self.recover(&[A]).expect_err("refuses").to_string();
        assert!(error.contains(expected) && error.contains(LOG), "{error}");
        assert!(files(&self.sim) == before, "something was deleted");
    }

    fn has(&self, path: impl AsRef<Path>) -> bool {
        self.sim.contents(path.as_ref()).is_some()
    }
}

/// Proves that a COMMIT that has rotted after inputs began to go does not delete the outputs as well.
#[test]
fn an_unreadable_end_after_files_have_gone() {
    let table = SimTable::load("oa/statics", 1, &[A]);
    let removal = table.removal(A, "oa-1-big-");
    let added = record(RecordType::Add, &format!("{A}/oa-2-big-"), 0, 0);
    let rotten = commit().replace("COMMIT", "COMMYT");
    table.put(format!("{A}/{LOG}"), &format!("{added}{removal}{rotten}"));
    block_on(table.disk.remove(&PathBuf::from(format!("{A}/oa-1-big-Filter.db")))).expect("gone");
    table.refuses("7 of its 8 files");
}

/// Proves that a table that was moved with its log is still cleaned up.
#[test]
fn a_moved_table() {
    let table = SimTable::load("oa/statics", 2, &[A]);
    let removal = table.removal(A, "oa-1-big-").replace(A, "/old/place");
    let moved =
        Record { prefix: "/old/place/oa-1-big-".into(), ..parse(&table.removal(A, "oa-1-big-")) };
    assert_ne!(moved.to_line(), removal, "the checksum covers the path");
    table.put(format!("{A}/{LOG}"), &format!("{}{}", moved.to_line(), commit()));
    assert_eq!(
        block_on(dead_in_directory(&table.disk, Path::new(A))).expect("reads"),
        ["oa-1-big-"]
    );
    table.recover(&[A]).expect("recovers");
    assert!(!table.has(format!("{A}/oa-1-big-Data.db")) && !table.has(format!("{A}/{LOG}")));
    assert!(table.has(format!("{A}/oa-2-big-Data.db")));
}

fn parse(line: &str) -> Record {
    Record::parse(line.trim_end()).expect("a record")
}

/// Proves that an SSTable of the same name in another directory of the table is not mistaken for the one that the log names.
#[test]
fn a_namesake_in_another_directory() {
    let table = SimTable::load("oa/statics", 3, &[A, B]);
    // oa-1 and oa-3 lie in A, oa-2 in B; the log removes oa-2 and a namesake of oa-1 that B once had.
    let log =
        format!("{}{}{}", table.removal(B, "oa-2-big-"), table.removal(B, "oa-1-big-"), commit());
    table.put(format!("{A}/{LOG}"), &log);
    table.put(format!("{B}/{LOG}"), &log);
    assert!(block_on(dead_in_directory(&table.disk, Path::new(A))).expect("reads").is_empty());
    table.recover(&[A, B]).expect("recovers");
    assert!(table.has(format!("{A}/oa-1-big-Data.db")), "a live SSTable was deleted");
    assert!(!table.has(format!("{B}/oa-2-big-Data.db")));
    assert!(files(&table.sim).keys().all(|path| path.extension() != Some("log".as_ref())));
}

/// Proves that a copy of a table, log and all, does not reach into the table that it was copied from.
#[test]
fn a_copy_leaves_the_original_alone() {
    let table = SimTable::load("oa/statics", 4, &[A, B]);
    // A is a copy, made while oa-1 was being written to B; in B that compaction has long been committed.
    table.put(format!("{A}/{LOG}"), &record(RecordType::Add, &format!("{B}/oa-2-big-"), 0, 0));
    table.recover(&[A, B]).expect("recovers");
    assert!(files(&table.sim) == table.files, "the original has changed");
    table.put(format!("{A}/{LOG}"), &record(RecordType::Add, &format!("{B}/oa-1-big-"), 0, 0));
    table.refuses("no replica of this log");
}

/// Proves that replicas that contradict each other stop everything.
#[test]
fn replicas_that_disagree() {
    let table = SimTable::load("oa/statics", 5, &[A, B]);
    let (one, two) = (table.removal(A, "oa-1-big-"), table.removal(B, "oa-2-big-"));
    table.put(format!("{A}/{LOG}"), &format!("{one}{two}{}", commit()));
    table.put(format!("{B}/{LOG}"), &format!("{two}{one}{}", commit()));
    table.refuses("another replica of the log says");
    let unreadable = block_on(dead_in_directory(&table.disk, Path::new(B)));
    assert!(unreadable.is_err(), "{unreadable:?}");
}
