//! Logs of what clients ask: a bounded queue, a thread that writes, files that are rolled, and the format of the full query log.
//!
//! ```text
//!  shards ─► queue, at most max_queue_weight bytes ─► thread ─► file ─┬─ roll_cycle is over, or the file is large: rolled
//!              full: the request waits a little, or                   ├─ rolled files beyond max_log_size: the oldest are deleted
//!              the record is dropped and counted                      └─ or each is given to archive_command
//! ```
//!
//! 1. Settings have Cassandra's names (`BinLogOptions`) and defaults; files do not: Cassandra's are Chronicle queues, memory-mapped.
//! 2. A request waits for room at most [`BLOCKED_MAX`], and not at all where files cannot be written: then records are dropped and
//!    counted, and the operator's log says how many.
//! 3. A file has whole records: one that could not be written leaves no part of itself.
//! 4. `record` has the full query log's format, `reader` reads it from any bytes.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

#[cfg(test)]
extern crate self as halcyon_binlog;

mod archive;
mod folder;
#[cfg(test)]
mod fuzz_smoke;
mod log;
mod options;
mod queue;
pub mod reader;
pub mod record;
mod tell;

pub use folder::Naming;
pub use log::{BLOCKED_MAX, BinLog, Counts};
pub use options::{Options, RollCycle};
pub use tell::{Severity, Tell};
