//! How fast compaction may be so that reads stay as fast as they are without it. Pure: no I/O and no clock.
//!
//! ```text
//!   reads' latencies, bytes that compaction took, time withheld ──► Sample ──► controller ──► bytes per second
//! ```
//! [`LatencyController`] holds a target that is set, [`AutoController`] one that it learns. The caller takes the samples and gives the
//! rate to a `halcyon_io::RateLimiter`.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod auto;
mod counts;
mod latency;
mod noise;
#[cfg(test)]
mod plant;
mod sustained;

use std::time::Duration;

pub use auto::AutoController;
pub use counts::{LatencyCounts, LatencyHistogram};
pub use latency::{LatencyController, Sample};

/// At most what fits: 584 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
