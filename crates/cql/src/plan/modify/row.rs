//! Builds the rows of a mutation: cells with their time, sorted, one for each path (`UpdateParameters`).

use std::cmp::Ordering;

use halcyon_model::reconcile::{CellVersion, right_cell_wins};
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_model::{CqlType, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_stream::{Cell, Column, ColumnShape, ComplexDeletion, RowBuf, RowDeletion};

use super::current::CurrentRow;

/// What all cells of one modification share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteTime {
    pub timestamp: i64,
    pub ttl: i32,
    pub now_seconds: u32,
    pub latest_expiration: u32,
}

impl WriteTime {
    /// The expiration time of the cells; `None` without a TTL.
    fn expiration(&self) -> u32 {
        if self.ttl == NO_TTL {
            return NO_DELETION_TIME;
        }
        self.now_seconds.saturating_add_signed(self.ttl).min(self.latest_expiration)
    }

    fn now(&self) -> u32 {
        self.now_seconds.min(MAX_DELETION_TIME)
    }

    pub(super) fn deletion(&self) -> DeletionTime {
        DeletionTime { marked_for_delete_at: self.timestamp, local_deletion_time: self.now() }
    }
}

struct Pending {
    column: u16,
    timestamp: i64,
    path: Vec<u8>,
    value: Vec<u8>,
    ttl: i32,
    local_deletion_time: u32,
}

pub(super) struct RowWriter<'a> {
    columns: &'a [Column],
    time: WriteTime,
    row: RowBuf,
    cells: Vec<Pending>,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(columns: &'a [Column], clustering: &[u8], time: WriteTime) -> RowWriter<'a> {
        let mut row = RowBuf::new();
        row.parts.clustering = row.store(clustering);
        RowWriter { columns, time, row, cells: Vec::new() }
    }

    /// The row exists even without cells (INSERT).
    pub(super) fn liveness(&mut self) {
        self.row.parts.liveness = Liveness {
            timestamp: self.time.timestamp,
            ttl: self.time.ttl,
            local_expiration_time: self.time.expiration(),
        };
    }

    pub(super) fn delete_row(&mut self) {
        self.row.parts.deletion = RowDeletion { time: self.time.deletion(), shadowable: false };
    }

    /// The deletion that covers the row comes with its counters.
    pub(super) fn delete_before(&mut self, time: DeletionTime) {
        if !self.cells.is_empty() && !time.is_live() {
            self.row.parts.deletion = RowDeletion { time, shadowable: false };
        }
    }

    pub(super) fn cell(&mut self, column: u16, path: &[u8], value: &[u8]) {
        let (ttl, local_deletion_time) = (self.time.ttl, self.time.expiration());
        self.push(column, path, value, ttl, local_deletion_time);
    }

    pub(super) fn tombstone(&mut self, column: u16, path: &[u8]) {
        self.push(column, path, &[], NO_TTL, self.time.now());
    }

    /// A cell or tombstone of a counter that takes the place of one with this timestamp is not older: a deletion that comes later and
    /// lies between the two must take the former only, in whatever order they are merged.
    pub(super) fn counter(&mut self, column: u16, context: Option<&[u8]>, stored: Option<i64>) {
        match context {
            Some(context) => self.cell(column, &[], context),
            None => self.tombstone(column, &[]),
        }
        if let (Some(cell), Some(stored)) = (self.cells.last_mut(), stored) {
            cell.timestamp = cell.timestamp.max(stored);
        }
    }

    fn push(&mut self, column: u16, path: &[u8], value: &[u8], ttl: i32, deletion: u32) {
        self.cells.push(Pending {
            column,
            timestamp: self.time.timestamp,
            path: path.to_vec(),
            value: value.to_vec(),
            ttl,
            local_deletion_time: deletion,
        });
    }

    /// Deletes the cells of a multi-cell column. A new value is written with the deletion, which is one
    /// microsecond older.
    pub(super) fn delete_column(&mut self, column: u16, overwrite: bool) {
        let mut time = self.time.deletion();
        if overwrite {
            time.marked_for_delete_at = time.marked_for_delete_at.saturating_sub(1);
        }
        let deletions = &mut self.row.parts.complex_deletions;
        match deletions.iter_mut().find(|deletion| deletion.column == column) {
            Some(deletion) => deletion.time = deletion.time.max(time),
            None => deletions.push(ComplexDeletion { column, time }),
        }
    }

    /// A list after the operations so far: paths and values in order.
    pub(super) fn list<'l>(
        &'l self,
        column: u16,
        stored: Option<&'l CurrentRow>,
    ) -> Vec<(&'l [u8], &'l [u8])> {
        let overwritten = self.row.parts.complex_deletions.iter().any(|d| d.column == column);
        let stored = stored.filter(|_| !overwritten).into_iter();
        let stored = stored.flat_map(|row| row.cells_of(column));
        let mut list: Vec<(&[u8], &[u8])> = stored.map(|cell| (cell.path, cell.value)).collect();
        for cell in self.cells.iter().filter(|cell| cell.column == column) {
            list.retain(|(path, _)| *path != cell.path);
            let tombstone = cell.ttl == NO_TTL && cell.local_deletion_time != NO_DELETION_TIME;
            if !tombstone {
                list.push((&cell.path, &cell.value));
            }
        }
        list.sort_by(|a, b| CqlType::TimeUuid.compare(a.0, b.0));
        list
    }

    /// The row; `None` if it is empty.
    pub(super) fn finish(mut self) -> Option<RowBuf> {
        let columns = self.columns;
        let compare = |a: &Pending, b: &Pending| {
            a.column.cmp(&b.column).then_with(|| {
                match columns.get(usize::from(a.column)).map(|column| &column.shape) {
                    Some(ColumnShape::Complex { path_type }) => path_type.compare(&a.path, &b.path),
                    _ => Ordering::Equal,
                }
            })
        };
        self.cells.sort_by(compare);
        self.cells.dedup_by(|next, kept| {
            let equal = compare(next, kept) == Ordering::Equal;
            if equal && right_cell_wins(&of(kept), &of(next)) {
                std::mem::swap(next, kept);
            }
            equal
        });
        self.row.parts.complex_deletions.sort_by_key(|deletion| deletion.column);
        for cell in std::mem::take(&mut self.cells) {
            let cell = Cell {
                column: cell.column,
                ttl: cell.ttl,
                timestamp: cell.timestamp,
                local_deletion_time: cell.local_deletion_time,
                path: self.row.store(&cell.path),
                value: self.row.store(&cell.value),
            };
            self.row.parts.cells.push(cell);
        }
        (!self.row.row().is_empty()).then_some(self.row)
    }
}

fn of(cell: &Pending) -> CellVersion<'_> {
    CellVersion {
        timestamp: cell.timestamp,
        ttl: cell.ttl,
        local_deletion_time: cell.local_deletion_time,
        value: &cell.value,
    }
}
