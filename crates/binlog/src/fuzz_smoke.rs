//! What the fuzz target calls, on random changes of real files.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

#[path = "../../../fuzz/src/full_query_log.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod full_query_log;
#[path = "../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;

use mutation::Mutator;

use crate::record::HEADER;
use crate::record::tests::samples;

/// Proves that no change makes the reader panic, hang, or take memory without bound.
#[test]
fn changed_files() {
    let records: Vec<u8> = samples().iter().filter_map(|of| of.framed()).flatten().collect();
    let bodies: Vec<Vec<u8>> = samples().iter().filter_map(|of| of.framed()).collect();
    let mut files = mutation::seeds("full_query_log");
    files.iter().for_each(|bytes| full_query_log::file(bytes));
    files.push([&HEADER[..], &records].concat());
    files.extend(bodies);
    for seed in 0..50_000 {
        let bytes = Mutator::new(seed).change_one_of(&files);
        eprintln!("seed {seed}: {}", bytes.escape_ascii());
        full_query_log::file(&bytes);
    }
}
