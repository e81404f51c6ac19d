//! What requests may take, from settings.

use halcyon_query::{ReadSizes, RequestLimits, SizeBounds, Timeout};

use super::Values;
use super::error::{Error, Result};

impl Values {
    pub(super) fn read_sizes(&self) -> Result<ReadSizes> {
        let bounds = |of: &str| -> Result<SizeBounds> {
            let [warn, fail] = ["warn", "fail"].map(|level| format!("{of}_{level}_threshold"));
            let bytes = |name: &str| Ok(self.bytes(name)?.unwrap_or(u64::MAX));
            let bounds = SizeBounds { warn: bytes(&warn)?, fail: bytes(&fail)? };
            if bounds.fail < bounds.warn && bounds.warn != u64::MAX {
                let text = |name: &str| self.text(name).unwrap_or_default();
                return Err(Error::Refused(format!(
                    "{fail} ({}) must be greater than or equal to {warn} ({})",
                    text(&fail),
                    text(&warn)
                )));
            }
            Ok(bounds)
        };
        let (coordinator, local) = (bounds("coordinator_read_size")?, bounds("local_read_size")?);
        let row_index = bounds("row_index_read_size")?;
        Ok(match self.boolean("read_thresholds_enabled")? {
            true => ReadSizes { coordinator, local, row_index },
            false => ReadSizes::OFF,
        })
    }

    /// `snapshot_links_per_second`; 0: unlimited.
    pub(super) fn links_per_second(&self) -> Result<u64> {
        let name = "snapshot_links_per_second";
        let links = self.integer(name)?.unwrap_or(0);
        u64::try_from(links).map_err(|_| self.wrong(name, "0 or more"))
    }

    pub(super) fn limits(&self) -> Result<RequestLimits> {
        let defaults = RequestLimits::default();
        let time = |name, default: Timeout| -> Result<Timeout> {
            Ok(self.duration(name)?.map_or(default, Timeout::of))
        };
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
            read_sizes: self.read_sizes()?,
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
