//! Compacts for Apache Cassandra: the process to which `plugin/cassandra` hands compactions (`halcyon compact --service`).
//!
//! ```text
//!   Cassandra ── frames (docs/formats/compaction-protocol.md) ──► service ──► a thread for each task: compaction::write_into
//!                                                                       │ outputs, purge bounds, pace: asked of Cassandra
//!             ◄── verified outputs, or the reason for none ─────────────┘
//! ```
//! The transaction is Cassandra's: it names each output before its first byte, and publishes or deletes them. This process deletes nothing.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(test)]
extern crate self as halcyon_compactor;

mod admission;
mod ahead;
mod exchange;
mod failure;
pub mod frame;
#[cfg(test)]
mod fuzz_smoke;
pub mod messages;
mod output;
mod priority;
mod service;
mod task;
mod task_request;
mod verified;

pub use service::{Error, serve};
