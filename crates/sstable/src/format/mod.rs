//! One file per component: its bytes, in both directions.
pub mod compression_info;
pub mod crc;
pub mod deletion_time;
pub mod descriptor;
pub mod digest;
pub mod filter;
#[cfg(test)]
mod golden_tests;
mod id;
pub mod listing;
pub mod replace;
pub mod saved_cache;
pub mod statistics;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod toc;
pub mod version;
