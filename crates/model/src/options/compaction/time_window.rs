//! TimeWindowCompactionStrategy.

use super::reader::{Checked, Reader};
use super::{Thresholds, Tiers};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeWindow {
    pub thresholds: Thresholds,
    /// Within the newest window.
    pub tiers: Tiers,
    /// Seconds.
    pub size: i64,
    pub resolution: Resolution,
    pub expired_check_ms: i64,
}

/// `timestamp_resolution`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeWindow {
    pub(super) fn read(reader: &mut Reader<'_>, class: &str) -> Checked<TimeWindow> {
        let name = "timestamp_resolution";
        let resolution = match reader.get(name) {
            None | Some("MICROSECONDS") => Resolution::Microseconds,
            Some("NANOSECONDS") => Resolution::Nanoseconds,
            Some("MILLISECONDS") => Resolution::Milliseconds,
            Some("SECONDS") => Resolution::Seconds,
            Some(word) => return Err(format!("{word} is not valid for {name}")),
        };
        let name = "compaction_window_unit";
        let unit = match reader.get(name) {
            None | Some("DAYS") => 86_400,
            Some("HOURS") => 3_600,
            Some("MINUTES") => 60,
            Some(word) => return Err(format!("{word} is not valid for {name}")),
        };
        let name = "compaction_window_size";
        let size = reader.int(name)?.unwrap_or(1);
        if size < 1 {
            return Err(format!("{size} must be greater than 1 for {name}"));
        }
        let name = "expired_sstable_check_frequency_seconds";
        let frequency = reader.long(name, "int")?.unwrap_or(600);
        if frequency < 0 {
            return Err(format!("{name} must not be negative, but was {frequency}"));
        }
        let name = "unsafe_aggressive_sstable_expiration";
        let asked =
            reader.boolean(name, |word| format!("{name} is not 'true' or 'false' ({word})"))?;
        if asked {
            // Cassandra allows it under a system property that we do not have.
            return Err(format!(
                "{name} is requested but not allowed, restart cassandra with -Dcassandra.allow_{name}=true to allow it"
            ));
        }
        let tiers = Tiers::read(reader)?;
        Ok(TimeWindow {
            thresholds: Thresholds::read(reader, class)?,
            tiers,
            size: i64::from(size) * unit,
            resolution,
            expired_check_ms: frequency.saturating_mul(1000),
        })
    }
}
