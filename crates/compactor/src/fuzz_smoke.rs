//! What the fuzz target for requests calls, over its seeds and random changes of them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

#[path = "../../../fuzz/src/compactions.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod compactions;
#[path = "../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;

use halcyon_compactor::frame::Frame;
use halcyon_compactor::messages::Request;
use mutation::Mutator;

#[test]
fn requests() {
    let samples = mutation::seeds("compaction_requests");
    for bytes in &samples {
        let mut from = &bytes[..];
        while let Some(frame) = Frame::read(&mut from).expect("a frame") {
            Request::decode(&frame).expect("a seed is a request");
        }
    }
    for seed in 0..100_000 {
        let bytes = Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}: {}", bytes.escape_ascii());
        compactions::requests(&bytes);
    }
}
