//! What the fuzz targets call: each takes any bytes, and must neither panic nor hang nor take memory without bound.
//!
//! ```text
//! fuzz_targets/<target>.rs ──► a function here ◄── fuzz_smoke of a crate, in every test run
//!            ▲                                              ▲
//!      cargo x fuzz                             seeds/<target>/, and random changes of them
//! ```
//! `cargo run --bin seed` makes the first seeds from what Cassandra wrote and answered. What a campaign finds is added to `corpus/`;
//! `cargo x fuzz --minimise` replaces the seeds by the smallest set of both that reaches as much. An input that failed is kept as a seed.
pub mod commitlog;
pub mod compactions;
pub mod components;
pub mod full_query_log;
pub mod lz4;
pub mod mutation;
pub mod node;
pub mod protocol;
pub mod rows;
pub mod schema;
pub mod settings;
pub mod text;
pub mod tls;
pub mod words;
