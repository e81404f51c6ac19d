//! Metrics of one shard's clients; only the shard changes them, any thread reads them.

pub(crate) mod jvm;
mod messages;
pub(crate) mod node;
pub(crate) mod pools;
mod source;

use halcyon_metrics::{Counter, Counts, Gauge, Histogram, buckets_below};

/// Powers of two of nanoseconds; the last one holds a day and a half.
const BUCKETS: usize = buckets_below(1, 48);

type Waits = Counts<1, BUCKETS>;

#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ClientMetrics {
    pub(crate) connections: Gauge,
    pub(crate) requests: Counter,
    pub(crate) in_flight: Gauge,
    pub(crate) prepared_executed: Counter,
    pub(crate) regular_executed: Counter,
    pub(crate) protocol_errors: Counter,
    pub(crate) logins: Counter,
    pub(crate) refused_logins: Counter,
    /// Requests that were refused because the node was overloaded.
    pub(crate) discarded: Counter,
    /// Connections from which nothing is read until there is room, and how often that has begun.
    pub(crate) paused: Gauge,
    pub(crate) pauses: Counter,
    /// How long requests waited for their statement to start, from the socket on: nanoseconds, at least one.
    pub(crate) waits: Histogram<1, BUCKETS>,
}

/// A connection from which nothing is read, until it is dropped.
pub(crate) struct Paused<'a>(&'a ClientMetrics);

impl<'a> Paused<'a> {
    pub(crate) fn count(metrics: &'a ClientMetrics) -> Paused<'a> {
        metrics.paused.up();
        metrics.pauses.up();
        Paused(metrics)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.paused.down();
    }
}
