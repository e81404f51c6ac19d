//! What machines watch of a node, over HTTP: its metrics, its health, and the spans of sampled requests (`spans/`).
//!
//! ```text
//!   Registry ── walk ──► exposition: Prometheus text, in the names of an exporter
//!                             ▲
//!   one thread, tokio ── http ┴── /metrics  /health  /ready
//! ```
//! 1. The node registers its sources once it has opened its data. Until then `/metrics` shows nothing and `/ready` says why.
//! 2. The thread runs in the class of batch jobs: a scrape never takes a core from a shard that has work.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod exposition;
mod http;
mod spans;
mod watched;

pub use exposition::{Format, Names, NodeIdentity};
pub use http::Endpoint;
pub use spans::{Collector, Exporter, Span, Tell};
pub use watched::Watched;
