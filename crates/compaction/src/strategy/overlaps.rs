//! Overlapping SSTables, and the SSTables that a compaction must include with others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::candidates::Candidate;
use halcyon_model::options::compaction::OverlapInclusion;

/// The indexes of tables that share a token.
pub(super) type Section = BTreeSet<usize>;

/// The maximal sets of tables that share a token, from the first token to the last.
pub(super) fn sections(tables: &[&Candidate]) -> Vec<Section> {
    let mut order: Vec<usize> = (0..tables.len()).collect();
    order.sort_by_key(|index| (tables[*index].first, *index));
    let mut sections = Vec::new();
    let mut active = Section::new();
    let mut ends = BinaryHeap::new();
    for index in order {
        let over = |(last, _): &(i64, usize)| *last < tables[index].first;
        if ends.peek().is_some_and(|Reverse(end)| over(end)) {
            sections.push(active.clone());
            while let Some(Reverse(end)) = ends.peek().filter(|Reverse(end)| over(end)) {
                active.remove(&end.1);
                ends.pop();
            }
        }
        active.insert(index);
        ends.push(Reverse((tables[index].last, index)));
    }
    if !active.is_empty() {
        sections.push(active);
    }
    sections
}

/// Ranges of sections, each around a section with at least `threshold` tables.
pub(super) fn grouped(
    threshold: usize,
    inclusion: OverlapInclusion,
    sections: &[Section],
) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut at, mut taken) = (0, 0);
    while at < sections.len() {
        let core = &sections[at];
        if core.len() < threshold {
            at += 1;
            continue;
        }
        let (mut start, mut end) = (at, at + 1);
        if inclusion != OverlapInclusion::None {
            let mut all = core.clone();
            let reaches = |all: &Section, next: &Section| {
                let target = if inclusion == OverlapInclusion::Transitive { all } else { core };
                !next.is_disjoint(target)
            };
            while start > taken && reaches(&all, &sections[start - 1]) {
                start -= 1;
                all.extend(&sections[start]);
            }
            while end < sections.len() && reaches(&all, &sections[end]) {
                all.extend(&sections[end]);
                end += 1;
            }
        }
        groups.push(start..end);
        (at, taken) = (end, end);
    }
    groups
}
