//! The function of the fuzz target for stored schemas, on its seeds and on random changes of them.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

#[path = "../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../../fuzz/src/schema.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod schema;

/// Proves that a start uses or sets apart whatever it finds, and that what it uses can be written, read again and described.
#[test]
fn stored_schemas() {
    let samples = [schema::samples(), mutation::seeds("schema_rows")].concat();
    samples.iter().for_each(|bytes| schema::rows(bytes));
    for seed in 0..3_000 {
        let bytes = mutation::Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}");
        schema::rows(&bytes);
    }
}
