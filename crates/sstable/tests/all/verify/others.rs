//! SSTables that old Cassandras wrote: sound, with remarks where a statistic is not what it should be.

use std::path::PathBuf;

use halcyon_io::{Disk, DiskOptions, block_on};
use halcyon_sstable::verify::{Severity, VerifyReport};

use super::run;
use crate::corpus::sstables_below;

fn verified(folder: &str) -> VerifyReport {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/others").join(folder);
    let mut descriptors = Vec::new();
    sstables_below(&root, &mut descriptors);
    let [descriptor] = descriptors.as_slice() else { panic!("{folder}: {descriptors:?}") };
    block_on(run(&Disk::real(DiskOptions::default()), descriptor, true))
}

/// Cassandra reads them all, and its own verification finds nothing.
#[test]
fn statistics_of_old_versions_are_remarked_on() {
    for folder in [
        "statistics-out-of-order-table3",
        "ttl-2038-table1",
        "impossible-range-tombstone",
        "duplicate-rows",
        "byte-ordered-partitioner",
        "sound-by-nodetool-verify",
    ] {
        let report = verified(folder);
        assert_eq!(report.severity(), Some(Severity::Remark), "{folder}: {report:?}");
        assert!(report.checked.rows > 0, "{folder}");
    }
    for folder in ["index-of-map-keys", "index-of-map-entries", "index-of-set"] {
        let report = verified(folder);
        assert_eq!(report.severity(), None, "{folder}: {report:?}");
    }
    let out_of_order = verified("statistics-out-of-order-table3");
    let told = out_of_order.findings.iter().any(|found| found.what.contains("out of order"));
    assert!(told, "{out_of_order:?}");
}
