//! Connections, sessions, routing to shards, virtual tables, settings: `halcyon serve`.
//!
//! ```text
//!  Node (main thread): settings, Engine::open, signals, drain
//!    └─ one thread a shard: ShardServer ── listener ── Connection ── session ── query::Coordinator
//!                             └─ mesh: events and connections for other shards
//! ```

// A request is one future, from the socket to the chunk of a file: the compiler has to look deep.
#![recursion_limit = "256"]
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod admission;
mod answer;
mod cache_rates;
mod client_state;
mod clients;
pub mod command;
mod connection;
mod console;
mod denylist;
mod disk_usage;
mod encryption;
mod endpoint;
mod findings;
mod internal;
mod listen;
mod log;
mod login;
mod metrics;
mod native_transport;
mod node;
mod persisted;
mod prepared;
pub mod profiles;
mod recent_lines;
mod request_log;
mod running;
mod saved_caches;
mod session;
pub mod settings;
mod shard;
mod size_estimates;
mod slow_queries;
mod supported;
mod trace;
mod virtual_tables;

#[cfg(test)]
mod tests;

pub use halcyon_access::{Cidr, CidrGroups};
pub use halcyon_engine::{Sampled, Sampler};
pub use log::{Format, Level, Line, Log, LogOptions, LogWriter, Threshold};
pub use node::{Error, serve, serve_on};
