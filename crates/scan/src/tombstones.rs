//! The guardrail against reads of many tombstones: a warning above one threshold, a failure above another.

use halcyon_cql::plan::restrictions::BoundKeys;
use halcyon_cql::plan::select::BoundSelect;
use halcyon_stream::PartitionKey;

use crate::command::command;
use crate::live_rows::ReadCounts;

#[derive(Debug)]
pub(crate) struct TombstoneGuard {
    warn_threshold: u64,
    failure_threshold: u64,
    /// The counts at the start of the current read: of one partition key, or of the whole range.
    before: ReadCounts,
    warnings: Vec<String>,
}

impl TombstoneGuard {
    pub(crate) fn new(warn_threshold: u64, failure_threshold: u64) -> TombstoneGuard {
        let (before, warnings) = (ReadCounts::default(), Vec::new());
        TombstoneGuard { warn_threshold, failure_threshold, before, warnings }
    }

    pub(crate) fn fails(&self, counts: ReadCounts) -> bool {
        (counts - self.before).tombstones > self.failure_threshold
    }

    /// Ends the read of `key`: its tombstones may be worth a warning.
    pub(crate) fn end_read(&mut self, counts: ReadCounts, select: &BoundSelect, key: &[u8]) {
        let ReadCounts { rows, tombstones } = counts - self.before;
        self.before = counts;
        if tombstones > self.warn_threshold {
            self.warnings.push(format!(
                "Read {rows} live rows and {tombstones} tombstone cells for query {}{} (see tombstone_warn_threshold)",
                command(select, key),
                token(select, key)
            ));
        }
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

fn token(select: &BoundSelect, key: &[u8]) -> String {
    match select.keys {
        Some(BoundKeys::Partitions(_)) => format!("; token {}", PartitionKey::of(key).token),
        _ => String::new(),
    }
}
