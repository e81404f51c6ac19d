//! Metrics of one shard's clients; only the shard changes them, any thread reads them.

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
    /// How long requests waited for their statement to start, from the socket on: nanoseconds, at least one.
    pub(crate) waits: Histogram<1, BUCKETS>,
}
