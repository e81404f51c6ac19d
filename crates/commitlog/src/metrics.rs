//! What a log counts; its shard writes, any thread reads.

use halcyon_metrics::{Counter, Gauge, Reservoir, buckets_below};

/// Quarters of powers of two of nanoseconds, up to eighteen minutes.
type Times = Reservoir<4, { buckets_below(4, 40) }>;

/// The metrics of one log.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LogMetrics {
    /// Records.
    pub appended: Counter,
    /// Records that are not written yet.
    pub pending: Gauge,
    /// Of all segments, and of the files that are kept for the next ones.
    pub bytes: Gauge,
    /// How long records waited until they were durable; under `periodic`, only those that waited for a sync that was late.
    pub commit_waits: Times,
    /// How long groups waited for the file of the next segment.
    pub segment_waits: Times,
}
