//! Fully expired SSTables, and SSTables with enough droppable tombstones to be compacted alone.

use super::candidates::{Candidate, Moment};
use halcyon_model::options::compaction::Tombstones;

/// Those of `chosen` whose every cell may be dropped, and that shadow nothing that is alive elsewhere: nothing anywhere, nor
/// in a memtable, is as old as their newest cell.
pub(super) fn fully_expired<'a>(
    chosen: &[&'a Candidate],
    all: &[Candidate],
    moment: &Moment<'_>,
) -> Vec<&'a Candidate> {
    let dead = |table: &Candidate| table.max_local_deletion_time < moment.gc_before;
    let candidates = chosen.iter().copied().filter(|table| dead(table));
    let is_chosen = |table: &Candidate| chosen.iter().any(|other| other.id == table.id);
    let overlapping =
        |table: &&Candidate| chosen.iter().any(|other| other.overlaps(table.first, table.last));
    let elsewhere = all.iter().filter(|table| !is_chosen(table)).filter(overlapping);
    let alive = elsewhere.chain(chosen.iter().copied()).filter(|table| !dead(table));
    let oldest = alive.map(|table| table.min_timestamp).chain(moment.memtable_min_timestamp).min();
    candidates.filter(|table| oldest.is_none_or(|oldest| table.max_timestamp < oldest)).collect()
}

/// Whether a compaction of the table alone would drop enough.
pub(super) fn worth_dropping(
    options: &Tombstones,
    table: &Candidate,
    all: &[Candidate],
    moment: &Moment<'_>,
) -> bool {
    let old_enough = table.created_ms.saturating_add(options.interval.saturating_mul(1000));
    let threshold = f64::from(options.threshold);
    if options.disabled || moment.now_ms < old_enough || table.droppable_ratio <= threshold {
        return false;
    }
    if options.unchecked {
        return true;
    }
    let others = || all.iter().filter(|o| o.id != table.id && o.overlaps(table.first, table.last));
    if others().next().is_none() || !fully_expired(&[table], all, moment).is_empty() {
        return true;
    }
    let ranges = others().map(|other| (other.first, other.last)).collect();
    uncovered(table, ranges) * table.droppable_ratio > threshold
}

/// The share of the table's tokens that no range covers. Cassandra counts samples of the index summary; because tokens are uniformly
/// distributed, the share of the token space estimates the same without the summary.
fn uncovered(table: &Candidate, mut ranges: Vec<(i64, i64)>) -> f64 {
    ranges.sort_unstable();
    let width = |from: i64, to: i64| (i128::from(to) - i128::from(from)).max(0) as f64;
    let (mut at, mut free) = (table.first, 0.0);
    for (first, last) in ranges {
        free += width(at, first.min(table.last));
        at = at.max(last);
    }
    free += width(at, table.last);
    match width(table.first, table.last) {
        0.0 => 0.0,
        whole => free / whole,
    }
}
