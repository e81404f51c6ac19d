//! SSTables that others wrote, with what no Cassandra of today writes.

use std::path::Path;

use halcyon_io::{Purpose, block_on};
use halcyon_sstable::Version;
use halcyon_sstable::verify::{Extent, VerifyOptions, verify};

use crate::sim_table::{A, SimTable, content, live};

fn load(folder: &str, seed: u64) -> SimTable {
    let others = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sstable/tests/data/others");
    SimTable::load_folder(&others.join(folder), seed, &[A])
}

/// Proves that times which overflowed when they were written (CASSANDRA-14092) are the same in what is compacted, and that this is sound.
#[test]
fn impossible_times_stay() {
    for folder in
        ["ttl-2038-table1", "statistics-out-of-order-table3", "impossible-range-tombstone"]
    {
        for version in [Version::NB, Version::OA, Version::DA] {
            let mut table = load(folder, 3);
            table.settings.version = version;
            table.settings.keep_inputs = true;
            let outcome = table.compact().expect("compacts");
            let all = block_on(live(&table.disk, &[A])).expect("opens");
            let of_outcome = |s: &std::sync::Arc<halcyon_sstable::SSTable>| {
                outcome.outputs.contains(s.descriptor())
            };
            let compacted: Vec<_> = all.into_iter().filter(of_outcome).collect();
            let found = block_on(content(&table.disk, &compacted)).expect("readable");
            assert_eq!(found, table.content, "{folder} in {version}");
            let options = VerifyOptions { extent: Extent::Rows, ..VerifyOptions::default() };
            for output in &outcome.outputs {
                let report = block_on(verify(&table.disk, output, &options, &mut |_| ()));
                assert!(!report.has_problems(), "{folder} in {version}: {report:?}");
            }
        }
    }
}

/// Proves that such rows become one that says what both say, in one input and in several, and that the outcome counts them.
#[test]
fn rows_twice_become_one() {
    for copies in 1..=2 {
        let mut table = load("duplicate-rows", copies);
        for (path, bytes) in table.files.iter().filter(|_| copies == 2) {
            let name = path.to_string_lossy().replace("mb-3-", "mb-4-");
            block_on(table.disk.write_new(Path::new(&name), bytes, Purpose::Flush))
                .expect("copied");
        }
        table.inputs = block_on(live(&table.disk, &[A])).expect("opens");
        table.settings.version = Version::NB;
        assert_eq!(table.inputs.len() as u64, copies);
        let rows = |content: &[String]| -> Vec<String> {
            content.iter().filter(|line| line.starts_with("row")).cloned().collect()
        };
        let before = rows(&table.content);
        assert_eq!(before.len(), 2, "{before:?}");
        let outcome = table.compact().expect("compacts");
        assert_eq!(outcome.duplicate_rows, copies);
        let compacted = block_on(live(&table.disk, &[A])).expect("opens");
        assert_eq!(compacted.len(), 1);
        let after = rows(&block_on(content(&table.disk, &compacted)).expect("readable"));
        // The deletion is of both, the liveness and the cell of the second.
        assert_eq!(after, before[1..], "{before:?}");
    }
}
