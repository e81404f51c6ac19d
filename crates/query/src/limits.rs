//! The limits of a request, under the names of the settings.

use std::time::Duration;

use halcyon_scan::ReadSizes;

/// Cassandra's defaults are the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    pub tombstone_warn_threshold: u64,
    pub tombstone_failure_threshold: u64,
    /// `read_thresholds_enabled`
    pub read_sizes: ReadSizes,
    /// Bytes.
    pub batch_size_warn_threshold: usize,
    pub batch_size_fail_threshold: usize,
    pub unlogged_batch_across_partitions_warn_threshold: usize,
    pub read_request_timeout: Duration,
    pub range_request_timeout: Duration,
    pub write_request_timeout: Duration,
    pub counter_write_request_timeout: Duration,
    pub cas_contention_timeout: Duration,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            tombstone_warn_threshold: 1_000,
            tombstone_failure_threshold: 100_000,
            read_sizes: ReadSizes::OFF,
            batch_size_warn_threshold: 5 << 10,
            batch_size_fail_threshold: 50 << 10,
            unlogged_batch_across_partitions_warn_threshold: 10,
            read_request_timeout: Duration::from_secs(5),
            range_request_timeout: Duration::from_secs(10),
            write_request_timeout: Duration::from_secs(2),
            counter_write_request_timeout: Duration::from_secs(5),
            cas_contention_timeout: Duration::from_millis(1_800),
        }
    }
}
