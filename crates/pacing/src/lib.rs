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
mod climb;
mod evidence;
mod latency;
#[cfg(test)]
mod plant;

use halcyon_metrics::{Counts, Histogram, buckets_below};

pub use auto::AutoController;
pub use latency::{LatencyController, Sample, p99_ns};

/// Eight to each power of two of nanoseconds, fine enough to hold a target by; a day is in the last one.
const BUCKETS: usize = buckets_below(8, 46);

/// How long reads took; one thread records.
pub type LatencyHistogram = Histogram<8, BUCKETS>;

/// How long reads of all threads took up to now, or within a time.
pub type LatencyCounts = Counts<8, BUCKETS>;
