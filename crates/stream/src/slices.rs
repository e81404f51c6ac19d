//! Slices: the rows of a partition that a read selects, and its direction.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::BoundKind;
use halcyon_model::clustering::{Position, PositionBuf};

use crate::layout::Layout;

/// All rows between two bounds; `None` is the start or end of the partition. The bounds are in clustering order in reversed reads
/// too: `start` has an opening kind (`InclusiveStart`, `ExclusiveStart`), `end` a closing one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slice {
    pub start: Option<PositionBuf>,
    pub end: Option<PositionBuf>,
}

impl Slice {
    /// The start; for an unbounded slice, a position before all rows.
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

    /// The intersection; `None` if it is empty.
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

fn position(bound: &Option<PositionBuf>, open: BoundKind) -> Position<'_> {
    match bound {
        Some(bound) => bound.position(),
        None => Position { kind: open, count: 0, serialized: &[] },
    }
}

/// Disjoint slices in clustering order. A single row is a slice from its inclusive start to its inclusive end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slices {
    /// Shared, because each source of a read has a clone, and there may be very many.
    pub slices: Arc<Vec<Slice>>,
    /// Rows come in descending order; `slices` stay in clustering order. A reversed stream is a valid stream of a table with all
    /// clustering orders flipped (`Layout::reversed`): partitions keep their order, each marker has the `BoundKind::reversed` of
    /// its kind, and its `open` and `close` are exchanged. So merge, validator and query need no code for reversed streams.
    pub reversed: bool,
    /// Whether the static row is selected.
    pub statics: bool,
}

impl Slices {
    /// The whole partition.
    pub fn all() -> Slices {
        Slices { slices: vec![Slice::default()].into(), reversed: false, statics: true }
    }

    /// Whether looking at each of them would hold a shard.
    pub fn are_many(&self) -> bool {
        const MANY: usize = 1_000;
        self.slices.len() > MANY
    }

    pub fn is_all(&self) -> bool {
        matches!(self.slices.as_slice(), [slice] if slice.start.is_none() && slice.end.is_none())
    }
}
