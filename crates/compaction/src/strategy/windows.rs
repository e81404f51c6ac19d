//! TimeWindow: only SSTables of the same time window are merged.
//!
//! The newest window is compacted by size. An older window is merged once it has two SSTables; a single SSTable stays until all of it
//! has expired.

use std::collections::BTreeMap;

use super::candidates::Candidate;
use super::tiers;
use halcyon_model::options::TimeWindow;
use halcyon_model::options::compaction::Resolution;

/// The SSTables to merge now, and the number of remaining tasks.
#[derive(Debug, Default)]
pub(super) struct WindowPick<'a> {
    pub(super) tables: Vec<&'a Candidate>,
    pub(super) estimated_tasks: usize,
}

/// The start of a table's window, seconds since 1970.
pub(super) fn window(table: &Candidate, options: &TimeWindow) -> i64 {
    let milliseconds = match options.resolution {
        Resolution::Nanoseconds => table.max_timestamp / 1_000_000,
        Resolution::Microseconds => table.max_timestamp / 1_000,
        Resolution::Milliseconds => table.max_timestamp,
        Resolution::Seconds => table.max_timestamp.saturating_mul(1_000),
    };
    let seconds = milliseconds / 1_000;
    seconds - seconds % options.size
}

/// `highest` is the newest window so far.
pub(super) fn choose<'a>(
    tables: &[&'a Candidate],
    options: &TimeWindow,
    highest: i64,
) -> WindowPick<'a> {
    let mut by_window: BTreeMap<i64, Vec<&Candidate>> = BTreeMap::new();
    for table in tables {
        by_window.entry(window(table, options)).or_default().push(table);
    }
    let thresholds = options.thresholds;
    let mut choice = WindowPick::default();
    for (start, mut bucket) in by_window.into_iter().rev() {
        let remaining = bucket.len().saturating_sub(thresholds.max);
        let further =
            if remaining > thresholds.min { remaining.div_ceil(thresholds.max) } else { 0 };
        let chosen = if bucket.len() >= thresholds.min && start >= highest {
            tiers::most_interesting(tiers::buckets(&bucket, &options.tiers), thresholds)
        } else if bucket.len() >= 2 && start < highest {
            bucket.sort_by_key(|table| (table.size, table.id));
            bucket.truncate(thresholds.max);
            bucket
        } else {
            Vec::new()
        };
        if !chosen.is_empty() {
            choice.estimated_tasks += 1 + further;
            if choice.tables.is_empty() {
                choice.tables = chosen;
            }
        }
    }
    choice
}
