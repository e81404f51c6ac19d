//! Fully expired SSTables, and SSTables with enough droppable tombstones to be compacted alone.

use std::collections::HashSet;

use super::candidates::{Candidate, PickContext, Tables};
use halcyon_model::options::compaction::Tombstones;

/// Those of `chosen` whose every cell may be dropped, and that shadow nothing that is alive elsewhere: nothing that overlaps any of
/// them, nor a memtable, is as old as their newest cell.
pub(super) fn fully_expired<'a>(
    chosen: &[&'a Candidate],
    all: &[Candidate],
    moment: &PickContext<'_>,
) -> Vec<&'a Candidate> {
    let candidates: Vec<&Candidate> =
        chosen.iter().copied().filter(|table| is_dead(table, moment)).collect();
    if candidates.is_empty() {
        return candidates;
    }
    let ids: HashSet<u64> = chosen.iter().map(|table| table.id).collect();
    let covered = union(chosen.iter().map(|table| (table.first, table.last)).collect());
    let overlapping = |table: &&Candidate| {
        let at = covered.partition_point(|(_, last)| *last < table.first);
        covered.get(at).is_some_and(|(first, _)| *first <= table.last)
    };
    let elsewhere = all.iter().filter(|table| !ids.contains(&table.id)).filter(overlapping);
    shadowing_nothing(candidates, elsewhere.chain(chosen.iter().copied()), moment)
}

fn is_dead(table: &Candidate, moment: &PickContext<'_>) -> bool {
    table.max_local_deletion_time < moment.gc_before
}

fn shadowing_nothing<'a, 'b>(
    dead: Vec<&'a Candidate>,
    others: impl Iterator<Item = &'b Candidate>,
    moment: &PickContext<'_>,
) -> Vec<&'a Candidate> {
    let alive = others.filter(|table| !is_dead(table, moment));
    let oldest = alive.map(|table| table.min_timestamp).chain(moment.memtable_min_timestamp).min();
    let expired = |table: &&Candidate| oldest.is_none_or(|oldest| table.max_timestamp < oldest);
    dead.into_iter().filter(expired).collect()
}

/// Disjoint, in order.
fn union(mut ranges: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let joined = next.0 <= range.1;
        if joined {
            range.1 = range.1.max(next.1);
        }
        joined
    });
    ranges
}

/// Whether a compaction of the table alone would drop enough.
pub(super) fn worth_dropping(
    options: &Tombstones,
    table: &Candidate,
    all: &Tables<'_>,
    moment: &PickContext<'_>,
) -> bool {
    let old_enough = table.created_ms.saturating_add(options.interval.saturating_mul(1000));
    let threshold = f64::from(options.threshold);
    if options.disabled || moment.now_ms < old_enough || table.droppable_ratio <= threshold {
        return false;
    }
    if options.unchecked {
        return true;
    }
    let others = all.overlapping(table);
    let is_expired = || {
        is_dead(table, moment)
            && !shadowing_nothing(vec![table], others.iter().copied(), moment).is_empty()
    };
    if others.is_empty() || is_expired() {
        return true;
    }
    let ranges = others.iter().map(|other| (other.first, other.last)).collect();
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
