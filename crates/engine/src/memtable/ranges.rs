//! The range tombstones of one partition: disjoint and in order (`RangeTombstoneList`).
//!
//! A new tombstone splits those that it overlaps; in each part the superseding one remains.
//! ```text
//!   before   ├───── 5 ─────┤        ├── 9 ──┤
//!   new            ├────────── 7 ───────┤
//!   after    ├─ 5 ─┤────── 7 ───────┤── 9 ──┤
//! ```

use std::cmp::Ordering;

use halcyon_model::Clusterings;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::RangeTombstone;

#[derive(Debug, Clone, Default)]
pub(crate) struct Ranges(Vec<RangeTombstone>);

/// The bound as the end of the range before it.
fn ending(bound: &PositionBuf) -> PositionBuf {
    PositionBuf { kind: bound.kind.as_close(), ..bound.clone() }
}

/// The bound as the start of the range after it.
fn starting(bound: &PositionBuf) -> PositionBuf {
    PositionBuf { kind: bound.kind.as_open(), ..bound.clone() }
}

fn order(clusterings: &Clusterings, a: &PositionBuf, b: &PositionBuf) -> Ordering {
    clusterings.compare(a.position(), b.position())
}

impl Ranges {
    pub(crate) fn as_slice(&self) -> &[RangeTombstone] {
        &self.0
    }

    /// Inserts a range tombstone; returns the growth in bytes.
    pub(crate) fn insert(&mut self, clusterings: &Clusterings, new: RangeTombstone) -> isize {
        let before = |a: &PositionBuf, b: &PositionBuf| order(clusterings, a, b).is_lt();
        if new.time.is_live() || !before(&new.start, &new.end) {
            return 0;
        }
        let first = self.0.partition_point(|old| !before(&new.start, &old.end));
        let met = self.0.get(first..).unwrap_or_default();
        let last = first + met.partition_point(|old| before(&old.start, &new.end));
        let mut pieces: Vec<RangeTombstone> = Vec::new();
        let mut put = |start: PositionBuf, end: PositionBuf, time| match pieces.last_mut() {
            Some(last) if last.time == time && order(clusterings, &last.end, &start).is_eq() => {
                last.end = end;
            }
            _ => pieces.push(RangeTombstone { start, end, time }),
        };
        let mut cut = new.start.clone();
        for old in self.0.get(first..last).unwrap_or_default() {
            if before(&old.start, &new.start) {
                put(old.start.clone(), ending(&new.start), old.time);
            } else if before(&cut, &old.start) {
                put(starting(&cut), ending(&old.start), new.time);
                cut = old.start.clone();
            }
            let end = if before(&new.end, &old.end) { &new.end } else { &old.end };
            let time = old.time.max(new.time);
            put(starting(&cut), ending(end), time);
            cut = end.clone();
            if before(&new.end, &old.end) {
                put(starting(&new.end), old.end.clone(), old.time);
            }
        }
        if before(&cut, &new.end) {
            put(starting(&cut), new.end, new.time);
        }
        let grown = pieces.iter().map(size_of_range).sum::<isize>();
        let gone = self.0.splice(first..last, pieces).map(|old| size_of_range(&old)).sum::<isize>();
        grown - gone
    }
}

fn size_of_range(range: &RangeTombstone) -> isize {
    let bytes = range.start.serialized.len() + range.end.serialized.len();
    (size_of::<RangeTombstone>() + bytes) as isize
}
