//! Closed token intervals, found by overlap: a static interval tree.
//!
//! ```text
//!   sorted by first:   [-9,-2]  [-7, 4]  [-3, 0]  [ 1, 8]  [ 5, 6]
//!   middle = root:                       [-3, 0] max 8
//!                          [-7, 4] max 4             [ 5, 6] max 8
//!                 [-9,-2]                    [ 1, 8]
//! ```
//! The tree is implicit: the root of a stretch of the sorted array is its middle. Each entry keeps the greatest `last` of its subtree, so a
//! query skips each subtree that ends before it and each that starts behind it: O(log n + found).
//!
//! It is rebuilt by each edit and not balanced in place: a sort of an array that is sorted but for a few entries is linear, and readers
//! share the old one meanwhile.

#[derive(Debug, Clone, Copy)]
struct Entry {
    first: i64,
    last: i64,
    /// The greatest `last` of the subtree.
    max_last: i64,
    /// The caller's number.
    value: u32,
}

#[derive(Debug, Clone, Default)]
pub struct IntervalIndex {
    entries: Vec<Entry>,
}

impl IntervalIndex {
    /// Of `(first, last)`, each numbered by its position.
    pub fn new(intervals: impl IntoIterator<Item = (i64, i64)>) -> IntervalIndex {
        let numbered = (0..).zip(intervals);
        IntervalIndex::of(
            numbered.map(|(value, (first, last))| entry(first, last, value)).collect(),
        )
    }

    fn of(mut entries: Vec<Entry>) -> IntervalIndex {
        // Stable, and linear where the entries are nearly sorted.
        entries.sort_by_key(|entry| entry.first);
        set_max_last(&mut entries);
        IntervalIndex { entries }
    }

    /// The index with its numbers changed, without those for which `renumber` has none, and with `added`.
    pub fn edited(
        &self,
        renumber: impl Fn(u32) -> Option<u32>,
        added: impl IntoIterator<Item = (u32, (i64, i64))>,
    ) -> IntervalIndex {
        let mut entries = Vec::with_capacity(self.entries.len() + 8);
        let kept = |old: &Entry| Some(Entry { value: renumber(old.value)?, ..*old });
        entries.extend(self.entries.iter().filter_map(kept));
        entries.extend(added.into_iter().map(|(value, (first, last))| entry(first, last, value)));
        IntervalIndex::of(entries)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Shows the number of each interval that shares a token with `first..=last`, by its first token.
    pub fn overlapping(&self, first: i64, last: i64, mut found: impl FnMut(u32)) {
        visit(&self.entries, first, last, &mut found);
    }
}

fn entry(first: i64, last: i64, value: u32) -> Entry {
    Entry { first, last, max_last: last, value }
}

fn set_max_last(entries: &mut [Entry]) -> Option<i64> {
    let middle = entries.len() / 2;
    let (left, rest) = entries.split_at_mut(middle);
    let (root, right) = rest.split_first_mut()?;
    let below = set_max_last(left).max(set_max_last(right));
    root.max_last = root.last.max(below.unwrap_or(root.last));
    Some(root.max_last)
}

fn visit(entries: &[Entry], first: i64, last: i64, found: &mut impl FnMut(u32)) {
    let (left, rest) = entries.split_at(entries.len() / 2);
    let Some((root, right)) = rest.split_first() else { return };
    if root.max_last < first {
        return;
    }
    visit(left, first, last, found);
    if root.first <= last {
        if root.last >= first {
            found(root.value);
        }
        visit(right, first, last, found);
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::Random;

    use super::*;

    /// Proves on random intervals that a query finds what a scan of all finds, after edits too.
    #[test]
    fn finds_what_a_scan_finds() {
        let seed = halcyon_io::random().next_u64();
        println!("seed {seed}");
        let mut random = Random::seeded(seed);
        let mut interval = || {
            let first = random.below(1000) as i64 - 500;
            (first, first + random.below(100) as i64)
        };
        for count in [0, 1, 2, 3, 100] {
            let mut all: Vec<(i64, i64)> = (0..count).map(|_| interval()).collect();
            let mut index = IntervalIndex::new(all.iter().copied());
            for _ in 0..5 {
                for at in -550..650 {
                    let (first, last) = (at, at + 7);
                    let mut found = Vec::new();
                    index.overlapping(first, last, |value| found.push(value));
                    found.sort_unstable();
                    let overlaps = |(_, of): &(u32, &(i64, i64))| of.0 <= last && first <= of.1;
                    let scan = (0..).zip(&all).filter(overlaps).map(|(value, _)| value);
                    assert_eq!(found, scan.collect::<Vec<u32>>(), "{first} {all:?}");
                }
                // Every third goes, two come.
                let kept = |value: u32| !value.is_multiple_of(3);
                let before = |value: u32| (0..value).filter(|v| kept(*v)).count() as u32;
                all = (0..).zip(all).filter(|(at, _)| kept(*at)).map(|(_, of)| of).collect();
                let added = [interval(), interval()];
                let numbers = all.len() as u32..;
                let new = numbers.zip(added);
                index = index.edited(|value| kept(value).then(|| before(value)), new);
                all.extend(added);
            }
        }
    }
}
