//! The limits of a request, under the names of the settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_scan::ReadSizes;

/// A timeout that can change while the node runs (`nodetool settimeout`); clones share it.
#[derive(Debug, Clone)]
pub struct Timeout(Arc<AtomicU64>);

impl Timeout {
    pub fn of(timeout: Duration) -> Timeout {
        let shared = Timeout(Arc::default());
        shared.set(timeout);
        shared
    }

    #[inline]
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }

    pub fn set(&self, timeout: Duration) {
        // Half a thousand years and more are the same.
        self.0.store(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// Cassandra's defaults are the default. Clones share the timeouts.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    pub tombstone_warn_threshold: u64,
    pub tombstone_failure_threshold: u64,
    /// `read_thresholds_enabled`
    pub read_sizes: ReadSizes,
    /// Bytes.
    pub batch_size_warn_threshold: usize,
    pub batch_size_fail_threshold: usize,
    pub unlogged_batch_across_partitions_warn_threshold: usize,
    pub read_request_timeout: Timeout,
    pub range_request_timeout: Timeout,
    pub write_request_timeout: Timeout,
    pub counter_write_request_timeout: Timeout,
    pub cas_contention_timeout: Timeout,
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
            read_request_timeout: Timeout::of(Duration::from_secs(5)),
            range_request_timeout: Timeout::of(Duration::from_secs(10)),
            write_request_timeout: Timeout::of(Duration::from_secs(2)),
            counter_write_request_timeout: Timeout::of(Duration::from_secs(5)),
            cas_contention_timeout: Timeout::of(Duration::from_millis(1_800)),
        }
    }
}
