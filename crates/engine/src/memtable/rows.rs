//! The rows of one partition, in clustering order.
//!
//! ```text
//!   none │ one row │ Arc ─► [ leaf, leaf, … ]    leaf: Arc ─► up to 64 rows, each an Arc
//! ```
//! A clone shares everything, so a reader gets a consistent copy of a partition of any size in one step. A writer copies only the shared
//! parts that it changes (the list of leaves, one leaf), and changes the others in place.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::Clusterings;
use halcyon_model::clustering::Position;
use halcyon_stream::{MergeError, RowBuf};

const LEAF: usize = 64;

type Leaf = Vec<Arc<RowBuf>>;

#[derive(Debug, Clone, Default)]
pub(crate) enum Rows {
    #[default]
    Empty,
    /// A single row, as most partitions have.
    One(Arc<RowBuf>),
    /// No leaf is empty.
    Many(Arc<Vec<Arc<Leaf>>>),
}

/// The index of a row, or of the end; valid until the rows change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct RowAt {
    leaf: usize,
    row: usize,
}

fn compare(clusterings: &Clusterings, row: &RowBuf, position: Position<'_>) -> Ordering {
    clusterings.compare(row.row().position(clusterings.len()), position)
}

impl Rows {
    pub(crate) fn first(&self) -> RowAt {
        RowAt::default()
    }

    pub(crate) fn end(&self) -> RowAt {
        let leaf = match self {
            Rows::Empty => 0,
            Rows::One(_) => 1,
            Rows::Many(leaves) => leaves.len(),
        };
        RowAt { leaf, row: 0 }
    }

    pub(crate) fn get(&self, at: RowAt) -> Option<&Arc<RowBuf>> {
        match self {
            Rows::Empty => None,
            Rows::One(row) => (at == RowAt::default()).then_some(row),
            Rows::Many(leaves) => leaves.get(at.leaf)?.get(at.row),
        }
    }

    pub(crate) fn after(&self, at: RowAt) -> RowAt {
        let rows = match self {
            Rows::Empty | Rows::One(_) => 1,
            Rows::Many(leaves) => leaves.get(at.leaf).map_or(1, |leaf| leaf.len()),
        };
        if at.row + 1 < rows {
            RowAt { row: at.row + 1, ..at }
        } else {
            RowAt { leaf: at.leaf + 1, row: 0 }
        }
    }

    /// The previous row; there must be one.
    pub(crate) fn before(&self, at: RowAt) -> RowAt {
        if at.row > 0 {
            return RowAt { row: at.row - 1, ..at };
        }
        let leaf = at.leaf.saturating_sub(1);
        let rows = match self {
            Rows::Empty | Rows::One(_) => 1,
            Rows::Many(leaves) => leaves.get(leaf).map_or(1, |leaf| leaf.len()),
        };
        RowAt { leaf, row: rows - 1 }
    }

    /// The first row at or after `position`.
    pub(crate) fn seek(&self, clusterings: &Clusterings, position: Position<'_>) -> RowAt {
        let lies_before = |row: &Arc<RowBuf>| compare(clusterings, row, position).is_lt();
        match self {
            Rows::Empty => self.end(),
            Rows::One(row) if lies_before(row) => self.end(),
            Rows::One(_) => self.first(),
            Rows::Many(leaves) => {
                let leaf = leaves.partition_point(|leaf| leaf.last().is_some_and(lies_before));
                let row = leaves.get(leaf).map_or(0, |leaf| leaf.partition_point(lies_before));
                RowAt { leaf, row }
            }
        }
    }

    /// Inserts a row, or merges it with the row at its clustering. Returns the growth in bytes.
    pub(crate) fn upsert(
        &mut self,
        clusterings: &Clusterings,
        row: RowBuf,
        merge: impl FnOnce(&RowBuf, &RowBuf) -> Result<RowBuf, MergeError>,
    ) -> Result<isize, MergeError> {
        let grown = size_of_row(&row);
        match self {
            Rows::Empty => {
                *self = Rows::One(Arc::new(row));
                Ok(grown)
            }
            Rows::One(old) => {
                match compare(clusterings, old, row.row().position(clusterings.len())) {
                    Ordering::Equal => replace(old, &row, merge),
                    order => {
                        let pair = if order.is_lt() {
                            vec![old.clone(), Arc::new(row)]
                        } else {
                            vec![Arc::new(row), old.clone()]
                        };
                        *self = Rows::Many(Arc::new(vec![Arc::new(pair)]));
                        Ok(grown)
                    }
                }
            }
            Rows::Many(leaves) => upsert_many(Arc::make_mut(leaves), clusterings, row, merge),
        }
    }
}

fn replace(
    old: &mut Arc<RowBuf>,
    row: &RowBuf,
    merge: impl FnOnce(&RowBuf, &RowBuf) -> Result<RowBuf, MergeError>,
) -> Result<isize, MergeError> {
    let merged = merge(old, row)?;
    let grown = size_of_row(&merged) - size_of_row(old);
    *old = Arc::new(merged);
    Ok(grown)
}

fn upsert_many(
    leaves: &mut Vec<Arc<Leaf>>,
    clusterings: &Clusterings,
    row: RowBuf,
    merge: impl FnOnce(&RowBuf, &RowBuf) -> Result<RowBuf, MergeError>,
) -> Result<isize, MergeError> {
    let position = row.row().position(clusterings.len());
    let lies_before = |there: &Arc<RowBuf>| compare(clusterings, there, position).is_lt();
    // Time series append: one comparison is enough for a row after the last one.
    let last = leaves.len().saturating_sub(1);
    let appends = leaves.last().and_then(|leaf| leaf.last()).is_some_and(lies_before);
    let (at, leaf) = if appends {
        (last, leaves.last_mut())
    } else {
        let at = leaves.partition_point(|leaf| leaf.last().is_some_and(lies_before)).min(last);
        (at, leaves.get_mut(at))
    };
    let Some(leaf) = leaf else { return Ok(0) };
    let index = if appends { leaf.len() } else { leaf.partition_point(lies_before) };
    let leaf = Arc::make_mut(leaf);
    if let Some(old) = leaf.get_mut(index)
        && compare(clusterings, old, position).is_eq()
    {
        return replace(old, &row, merge);
    }
    let grown = size_of_row(&row);
    leaf.insert(index, Arc::new(row));
    if leaf.len() > LEAF {
        // Appending leaves full leaves; other inserts leave half-full ones.
        let keep = if appends { LEAF } else { LEAF / 2 };
        let rest = leaf.split_off(keep);
        leaves.insert(at + 1, Arc::new(rest));
    }
    Ok(grown)
}

/// Bytes of a row with the overhead of allocator and leaf.
pub(crate) fn size_of_row(row: &RowBuf) -> isize {
    const OVERHEAD: usize = size_of::<RowBuf>() + 48;
    let parts = row.parts.cells.capacity() * size_of::<halcyon_stream::Cell>()
        + row.parts.complex_deletions.capacity() * size_of::<halcyon_stream::ComplexDeletion>();
    (OVERHEAD + row.bytes.capacity() + parts) as isize
}
