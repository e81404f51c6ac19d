//! The rows of one partition, in clustering order: none, one row, or a list whose parts its clones share (`leaves.rs`).

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::Clusterings;
use halcyon_model::clustering::Position;
use halcyon_stream::{MergeError, RowBuf};

use super::leaves::{At, Leaves};

#[derive(Debug, Clone, Default)]
pub(crate) enum Rows {
    #[default]
    Empty,
    /// A single row, as most partitions have.
    One(Arc<RowBuf>),
    Many(Leaves<Arc<RowBuf>>),
}

fn compare(clusterings: &Clusterings, row: &RowBuf, position: Position<'_>) -> Ordering {
    clusterings.compare(row.row().position(clusterings.len()), position)
}

impl Rows {
    pub(crate) fn first(&self) -> At {
        At::default()
    }

    pub(crate) fn end(&self) -> At {
        match self {
            Rows::Empty => self.first(),
            Rows::One(_) => At::BEHIND_ONE,
            Rows::Many(rows) => rows.end(),
        }
    }

    pub(crate) fn get(&self, at: At) -> Option<&Arc<RowBuf>> {
        match self {
            Rows::Empty => None,
            Rows::One(row) => (at == At::default()).then_some(row),
            Rows::Many(rows) => rows.get(at),
        }
    }

    pub(crate) fn after(&self, at: At) -> At {
        match self {
            Rows::Empty | Rows::One(_) => At::BEHIND_ONE,
            Rows::Many(rows) => rows.after(at),
        }
    }

    /// The previous row; there must be one.
    pub(crate) fn before(&self, at: At) -> At {
        match self {
            Rows::Empty | Rows::One(_) => self.first(),
            Rows::Many(rows) => rows.before(at),
        }
    }

    /// The first row at or after `position`.
    pub(crate) fn seek(&self, clusterings: &Clusterings, position: Position<'_>) -> At {
        let lies_before = |row: &Arc<RowBuf>| compare(clusterings, row, position).is_lt();
        match self {
            Rows::Empty => self.end(),
            Rows::One(row) if lies_before(row) => self.end(),
            Rows::One(_) => self.first(),
            Rows::Many(rows) => rows.seek(lies_before),
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
                            [old.clone(), Arc::new(row)]
                        } else {
                            [Arc::new(row), old.clone()]
                        };
                        let mut rows = Leaves::default();
                        rows.splice(rows.end(), rows.end(), pair);
                        *self = Rows::Many(rows);
                        Ok(grown)
                    }
                }
            }
            Rows::Many(rows) => upsert_many(rows, clusterings, row, merge),
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
    rows: &mut Leaves<Arc<RowBuf>>,
    clusterings: &Clusterings,
    row: RowBuf,
    merge: impl FnOnce(&RowBuf, &RowBuf) -> Result<RowBuf, MergeError>,
) -> Result<isize, MergeError> {
    let position = row.row().position(clusterings.len());
    let lies_before = |there: &Arc<RowBuf>| compare(clusterings, there, position).is_lt();
    // Time series append: one comparison is enough for a row after the last one.
    let appends = rows.last().is_some_and(lies_before);
    let at = if appends { rows.end() } else { rows.seek(lies_before) };
    if let Some(old) = rows.get(at)
        && compare(clusterings, old, position).is_eq()
        && let Some(old) = rows.get_mut(at)
    {
        return replace(old, &row, merge);
    }
    let grown = size_of_row(&row);
    rows.splice(at, at, [Arc::new(row)]);
    Ok(grown)
}

/// Bytes of a row with the overhead of allocator and leaf.
pub(crate) fn size_of_row(row: &RowBuf) -> isize {
    const OVERHEAD: usize = size_of::<RowBuf>() + 48;
    let parts = row.parts.cells.capacity() * size_of::<halcyon_stream::Cell>()
        + row.parts.complex_deletions.capacity() * size_of::<halcyon_stream::ComplexDeletion>();
    (OVERHEAD + row.bytes.capacity() + parts) as isize
}
