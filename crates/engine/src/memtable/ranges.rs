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
use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_stream::RangeTombstone;

use super::leaves::{At, Leaves};

#[derive(Debug, Clone, Default)]
pub(crate) struct Ranges(Leaves<RangeTombstone>);

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
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.0.iter_from(At::default())
    }

    pub(crate) fn get(&self, at: At) -> Option<&RangeTombstone> {
        self.0.get(at)
    }

    pub(crate) fn after(&self, at: At) -> At {
        self.0.after(at)
    }

    /// The previous range; there must be one.
    pub(crate) fn before(&self, at: At) -> At {
        self.0.before(at)
    }

    /// Those that meet what is between two bounds.
    pub(crate) fn within(
        &self,
        clusterings: &Clusterings,
        start: Option<&PositionBuf>,
        end: Option<&PositionBuf>,
    ) -> (At, At) {
        let before = |a: &PositionBuf, b: &PositionBuf| order(clusterings, a, b).is_lt();
        let from = start.map(|start| self.0.seek(|range| !before(start, &range.end)));
        let to = end.map(|end| self.0.seek(|range| before(&range.start, end)));
        (from.unwrap_or_default(), to.unwrap_or_else(|| self.0.end()))
    }

    /// The one that covers a row.
    pub(crate) fn covering(
        &self,
        clusterings: &Clusterings,
        row: Position<'_>,
    ) -> Option<&RangeTombstone> {
        let order = |bound: &PositionBuf| clusterings.compare(bound.position(), row);
        let at = self.0.seek(|range| !order(&range.end).is_gt());
        self.0.get(at).filter(|range| order(&range.start).is_lt())
    }

    /// Inserts a range tombstone; returns the growth in bytes.
    pub(crate) fn insert(&mut self, clusterings: &Clusterings, new: RangeTombstone) -> isize {
        let before = |a: &PositionBuf, b: &PositionBuf| order(clusterings, a, b).is_lt();
        if new.time.is_live() || !before(&new.start, &new.end) {
            return 0;
        }
        let (first, last) = self.within(clusterings, Some(&new.start), Some(&new.end));
        let met = || self.0.iter_from(first).take_while(|old| before(&old.start, &new.end));
        let gone = met().map(size_of_range).sum::<isize>();
        let mut pieces: Vec<RangeTombstone> = Vec::new();
        let mut put = |start: PositionBuf, end: PositionBuf, time| match pieces.last_mut() {
            Some(last) if last.time == time && order(clusterings, &last.end, &start).is_eq() => {
                last.end = end;
            }
            _ => pieces.push(RangeTombstone { start, end, time }),
        };
        let mut cut = new.start.clone();
        for old in met() {
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
            put(starting(&cut), new.end.clone(), new.time);
        }
        let grown = pieces.iter().map(size_of_range).sum::<isize>();
        self.0.splice(first, last, pieces);
        grown - gone
    }
}

fn size_of_range(range: &RangeTombstone) -> isize {
    let bytes = range.start.serialized.len() + range.end.serialized.len();
    (size_of::<RangeTombstone>() + bytes) as isize
}
