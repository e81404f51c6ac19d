//! What Cassandra 5 and 6 wrote verifies without a finding; what is damaged has a problem.

mod copy;
mod damage;
mod others;
mod scrub;
mod statistics;

use halcyon_io::{Disk, DiskOptions, block_on};
use halcyon_sstable::Descriptor;
use halcyon_sstable::verify::{Extent, Step, VerifyOptions, VerifyReport, verify};

use crate::corpus::{corpus, sstables_below};

async fn run(disk: &Disk, descriptor: &Descriptor, extended: bool) -> VerifyReport {
    let extent = if extended { Extent::Rows } else { Extent::Digest };
    let options = VerifyOptions { extent, ..VerifyOptions::default() };
    verify(disk, descriptor, &options, &mut |_| ()).await
}

/// Over `testdata/`, or over the folder that `HALCYON_CORPUS` names.
#[test]
fn what_cassandra_wrote_is_sound() {
    let corpus = corpus();
    let mut descriptors = Vec::new();
    sstables_below(&corpus, &mut descriptors);
    assert!(descriptors.len() > 20, "golden files are missing");
    let disk = Disk::real(DiskOptions::default());
    let (mut failures, mut rows, mut cells) = (Vec::new(), 0, 0);
    block_on(async {
        for descriptor in &descriptors {
            let quick = run(&disk, descriptor, false).await;
            let report = run(&disk, descriptor, true).await;
            for finding in quick.findings.iter().chain(&report.findings).take(3) {
                failures.push(format!("{descriptor}: {finding}"));
            }
            rows += report.checked.rows;
            cells += report.checked.cells;
        }
    });
    assert!(failures.is_empty(), "{} findings:\n{}", failures.len(), failures.join("\n"));
    assert!(rows > 10_000 && cells > 10_000, "{rows} rows, {cells} cells");
}

/// Progress goes forward, and ends where the data ends.
#[test]
fn progress_is_told() {
    let copy = copy::Copy::of("oa/uncompressed");
    let mut told = Vec::new();
    let options = VerifyOptions { extent: Extent::Rows, ..VerifyOptions::default() };
    block_on(verify(&copy.disk, &copy.descriptor, &options, &mut |progress| told.push(progress)));
    for step in [Step::Checksums, Step::Content] {
        let steps: Vec<_> = told.iter().filter(|p| p.step == step).collect();
        assert!(steps.is_sorted_by_key(|p| p.done));
        assert!(steps.last().is_some_and(|p| p.done == p.total), "{steps:?}");
    }
}
