//! Slices: which rows of a partition a read wants, and in which direction.

use std::cmp::Ordering;

use halcyon_model::BoundKind;
use halcyon_model::clustering::Position;

use crate::layout::Layout;
use crate::mutation::BoundBuf;

/// Everything between two bounds; `None` is the partition's beginning or end. Bounds are in clustering order whatever
/// the direction of the read: `start` has an opening kind (`InclusiveStart`, `ExclusiveStart`), `end` a closing one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    pub start: Option<BoundBuf>,
    pub end: Option<BoundBuf>,
}

impl Slice {
    /// Where it begins; nothing lies before the beginning of an open one.
    pub fn start_position(&self) -> Position<'_> {
        position(&self.start, BoundKind::InclStart)
    }

    pub fn end_position(&self) -> Position<'_> {
        position(&self.end, BoundKind::InclEnd)
    }

    pub fn contains(&self, row: Position<'_>, layout: &Layout) -> bool {
        layout.clusterings.compare(self.start_position(), row) == Ordering::Less
            && layout.clusterings.compare(row, self.end_position()) == Ordering::Less
    }

    /// What both have; `None` if that is nothing.
    pub fn intersect(&self, other: &Slice, layout: &Layout) -> Option<Slice> {
        let order = |a, b| layout.clusterings.compare(a, b);
        let start = if order(self.start_position(), other.start_position()).is_ge() {
            &self.start
        } else {
            &other.start
        };
        let end = if order(self.end_position(), other.end_position()).is_le() {
            &self.end
        } else {
            &other.end
        };
        let slice = Slice { start: start.clone(), end: end.clone() };
        (order(slice.start_position(), slice.end_position()) == Ordering::Less).then_some(slice)
    }
}

fn position(bound: &Option<BoundBuf>, open: BoundKind) -> Position<'_> {
    match bound {
        Some(bound) => bound.position(),
        None => Position { kind: open, count: 0, serialized: &[] },
    }
}

/// In clustering order, not overlapping. One row is a slice from its inclusive start to its inclusive end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slices {
    pub slices: Vec<Slice>,
    /// Rows come last to first; `slices` stay in clustering order. A reversed stream is an ordinary stream of a table whose
    /// clustering columns all have the opposite order (`Layout::reversed`): partitions come as usual, rows backwards, each
    /// marker has `BoundKind::reversed` of its kind, and what it closes and opens are exchanged. Merge, validator and
    /// whoever applies deletions therefore need not know.
    pub reversed: bool,
    /// Whether the static row is wanted.
    pub statics: bool,
}

impl Slices {
    /// The whole partition.
    pub fn all() -> Slices {
        Slices { slices: vec![Slice::default()], reversed: false, statics: true }
    }

    pub fn is_all(&self) -> bool {
        matches!(self.slices.as_slice(), [slice] if slice.start.is_none() && slice.end.is_none())
    }
}
