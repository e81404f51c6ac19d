//! Overlapping SSTables, and the SSTables that a compaction must include with others.

use std::collections::BTreeSet;

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
    for index in order {
        let over = |other: &usize| tables[*other].last < tables[index].first;
        if active.iter().any(over) {
            sections.push(active.clone());
            active.retain(|other| !over(other));
        }
        active.insert(index);
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
