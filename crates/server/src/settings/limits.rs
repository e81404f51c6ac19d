//! What requests may take, from settings.

use std::time::Duration;

use halcyon_query::RequestLimits;

use super::Values;
use super::error::Result;

impl Values {
    pub(super) fn limits(&self) -> Result<RequestLimits> {
        let defaults = RequestLimits::default();
        let time = |name, default: Duration| Ok(self.duration(name)?.unwrap_or(default));
        let bytes = |name, default: usize| -> Result<usize> {
            let found = self.bytes(name)?.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
            Ok(found.unwrap_or(default))
        };
        // A negative number means unlimited.
        let count = |name, default: u64| -> Result<u64> {
            let found = self.integer(name)?.map(|count| u64::try_from(count).unwrap_or(u64::MAX));
            Ok(found.unwrap_or(default))
        };
        let partitions = count(
            "unlogged_batch_across_partitions_warn_threshold",
            defaults.unlogged_batch_across_partitions_warn_threshold as u64,
        )?;
        Ok(RequestLimits {
            tombstone_warn_threshold: count(
                "tombstone_warn_threshold",
                defaults.tombstone_warn_threshold,
            )?,
            tombstone_failure_threshold: count(
                "tombstone_failure_threshold",
                defaults.tombstone_failure_threshold,
            )?,
            batch_size_warn_threshold: bytes(
                "batch_size_warn_threshold",
                defaults.batch_size_warn_threshold,
            )?,
            batch_size_fail_threshold: bytes(
                "batch_size_fail_threshold",
                defaults.batch_size_fail_threshold,
            )?,
            unlogged_batch_across_partitions_warn_threshold: usize::try_from(partitions)
                .unwrap_or(usize::MAX),
            read_request_timeout: time("read_request_timeout", defaults.read_request_timeout)?,
            range_request_timeout: time("range_request_timeout", defaults.range_request_timeout)?,
            write_request_timeout: time("write_request_timeout", defaults.write_request_timeout)?,
            counter_write_request_timeout: time(
                "counter_write_request_timeout",
                defaults.counter_write_request_timeout,
            )?,
            cas_contention_timeout: time(
                "cas_contention_timeout",
                defaults.cas_contention_timeout,
            )?,
        })
    }
}
