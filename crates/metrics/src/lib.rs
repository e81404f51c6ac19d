//! Metrics: what is counted, and what each is called.
//!
//! ```text
//!   one thread writes                     any thread reads
//!   Counter  Gauge  Histogram  Reservoir ──► sums of all threads: Counts, Summary ──► quantile
//!                                                        │
//!   Metric (declared once) ── Source ── Registry ── walk ┴──► virtual tables, Prometheus, nodetool
//! ```
//! 1. Each thread has its own counters and writes them with plain loads and stores. A reader sums those of all threads; it writes
//!    nothing, so it disturbs no writer. Methods that end in `_shared` are for the few counters that several threads write.
//! 2. Histograms have one bucket function with a resolution: buckets per power of two. A [`Histogram`] counts since the start, a
//!    [`Reservoir`] forgets within minutes.
//! 3. A [`Metric`] declares Cassandra's identity of a metric, its kind, unit and meaning. A [`Source`] shows the values of some, and a
//!    [`Registry`] walks all sources.
//!
//! Pure: no clock, no threads, no I/O.
#![forbid(unsafe_code)]
#![deny(clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod buckets;
mod counter;
mod declared;
mod histogram;
mod registry;
mod reservoir;
mod top;

use std::time::Duration;

pub use buckets::{Bucket, Quantile, buckets_below};
pub use counter::{Counter, Gauge};
pub use declared::{Kind, Metric, Origin, Unit};
pub use histogram::{Counts, Histogram};
pub use registry::{Distribution, Labels, Registry, Sample, Source, Value};
pub use reservoir::{Reservoir, Seconds, Summary};
pub use top::{Frequent, Largest, Top};

/// The value under which a histogram of times records a duration: nanoseconds, at most what fits (584 years).
pub const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}
