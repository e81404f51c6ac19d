//! What the fuzz targets call: each takes any bytes, and must neither panic nor hang nor take memory without bound.
//!
//! ```text
//! cargo run --bin seed                        fills corpus/ from testdata/
//! cargo +nightly fuzz run statistics          one target, from its seeds
//! ```
//! The tests `fuzz_smoke` of `sstable`, `compaction` and `protocol` include the same files, so that every test run tries them briefly.
pub mod commitlog;
pub mod components;
pub mod mutation;
pub mod protocol;
pub mod rows;
pub mod text;
