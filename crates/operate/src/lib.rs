//! What watches a node, over HTTP: its metrics and health for machines, a page for eyes, and the spans of sampled requests (`spans/`).
//!
//! ```text
//!   Registry ── walk ──► exposition: Prometheus text, in the names of an exporter
//!                             ▲
//!   one thread, tokio ── http ┴── /metrics  /health  /ready
//!                          └───── page: /  ◄── PANELS: statements ──► Console, the node as clients see it
//! ```
//! 1. The node registers its sources once it has opened its data. Until then `/metrics` shows nothing and `/ready` says why.
//! 2. The thread runs in the class of batch jobs: a scrape never takes a core from a shard that has work.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod console;
mod exposition;
mod http;
mod page;
mod panels;
mod response;
mod spans;
mod watched;

pub use console::{Console, Login, Refusal, Visitor};
pub use exposition::{Format, Names, NodeIdentity};
pub use http::Endpoint;
pub use panels::{Kind, PANELS, Panel, Unit};
pub use spans::{Collector, Exporter, Span, Tell};
pub use watched::Watched;
