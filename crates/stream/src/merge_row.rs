//! Merges the versions of one row (`Row.Merger`).
//!
//! `active` is the deletion that covers the row from outside (of the partition, or of an open range tombstone).
//! 1. The newest liveness and row deletion win; a shadowable deletion older than the liveness is ignored.
//! 2. A row deletion that supersedes `active` becomes `active`; otherwise it is dropped.
//! 3. A liveness that `active` deletes is dropped.
//! 4. Simple columns: cells that `active` deletes are dropped, the others are reconciled.
//! 5. Complex columns: a column deletion that supersedes `active` is kept and applied; cells are reconciled by path.

use std::sync::Arc;

use halcyon_model::counter::{self, Merged};
use halcyon_model::reconcile::{CellVersion, liveness_supersedes, right_cell_wins};
use halcyon_model::{CqlType, DeletionTime, Liveness};

use crate::fragment::{Cell, ComplexDeletion, Row, RowBuf, RowDeletion, Span};
use crate::layout::{ColumnShape, Layout, Statics};

/// A version of the row, with cursors into its cells and complex deletions.
#[derive(Debug, Clone, Copy)]
struct Version<'a> {
    row: Row<'a>,
    cell: usize,
    deletion: usize,
}

impl<'a> Version<'a> {
    #[inline]
    fn next_cell(&self) -> Option<&'a Cell> {
        self.row.cells.get(self.cell)
    }

    #[inline]
    fn next_deletion(&self) -> Option<&'a ComplexDeletion> {
        self.row.complex_deletions.get(self.deletion)
    }

    #[inline]
    fn next_column(&self) -> Option<u16> {
        let cell = self.next_cell().map(|c| c.column);
        let deletion = self.next_deletion().map(|d| d.column);
        match (cell, deletion) {
            (Some(c), Some(d)) => Some(c.min(d)),
            (c, d) => c.or(d),
        }
    }

    #[inline]
    fn skip_deletion_of(&mut self, column: u16) -> Option<&'a ComplexDeletion> {
        let found = self.next_deletion().filter(|d| d.column == column)?;
        self.deletion += 1;
        Some(found)
    }

    #[inline]
    fn cell_of(&self, column: u16) -> Option<&'a Cell> {
        self.next_cell().filter(|cell| cell.column == column)
    }
}

/// A cell and the bytes of its row.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    cell: &'a Cell,
    bytes: &'a [u8],
}

impl<'a> Candidate<'a> {
    fn version(&self) -> CellVersion<'a> {
        CellVersion {
            timestamp: self.cell.timestamp,
            ttl: self.cell.ttl,
            local_deletion_time: self.cell.local_deletion_time,
            value: self.cell.value.of(self.bytes),
        }
    }
}

/// A version of the row is corrupt, and cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MergeError(pub String);

pub struct RowMerger {
    layout: Arc<Layout>,
    counters: CounterMerger,
    /// Empty between rows; keeps the memory of the versions.
    versions: Vec<Version<'static>>,
}

impl RowMerger {
    pub fn new(layout: Arc<Layout>) -> RowMerger {
        RowMerger { layout, counters: CounterMerger::default(), versions: Vec::new() }
    }

    /// Merges `rows` (oldest source first) under `active` into `out`; false if nothing remains.
    pub fn merge<'a>(
        &mut self,
        which: Statics,
        rows: impl Iterator<Item = Row<'a>>,
        active: DeletionTime,
        out: &mut RowBuf,
    ) -> Result<bool, MergeError> {
        out.clear();
        let mut versions = recycled(std::mem::take(&mut self.versions));
        versions.extend(rows.map(|row| Version { row, cell: 0, deletion: 0 }));
        let merged = self.merge_versions(which, &mut versions, active, out);
        self.versions = recycled(versions);
        merged
    }

    fn merge_versions(
        &mut self,
        which: Statics,
        versions: &mut [Version<'_>],
        active: DeletionTime,
        out: &mut RowBuf,
    ) -> Result<bool, MergeError> {
        let Some(first) = versions.first() else { return Ok(false) };
        let clustering = out.store(first.row.clustering);
        out.parts.clustering = clustering;

        let mut liveness = Liveness::EMPTY;
        let mut deletion = RowDeletion::LIVE;
        for version in versions.iter() {
            if liveness_supersedes(&version.row.liveness, &liveness) {
                liveness = version.row.liveness;
            }
            if version.row.deletion.time.supersedes(&deletion.time) {
                deletion = version.row.deletion;
            }
        }
        if deletion.shadowable && !deletion.time.deletes(liveness.timestamp) {
            deletion = RowDeletion::LIVE;
        }
        let mut active = active;
        if deletion.time.supersedes(&active) {
            active = deletion.time;
            out.parts.deletion = deletion;
        }
        if !active.deletes(liveness.timestamp) {
            out.parts.liveness = liveness;
        }
        let columns = self.layout.columns(which);
        while let Some(column) = versions.iter().filter_map(Version::next_column).min() {
            match columns.get(usize::from(column)).map(|c| &c.shape) {
                Some(ColumnShape::Complex { path_type }) => {
                    merge_complex(column, path_type, versions, active, out);
                }
                Some(ColumnShape::Counter) => {
                    self.counters.merge(surviving(column, versions, active), out)?;
                }
                _ => {
                    let mut surviving = surviving(column, versions, active);
                    if let Some(first) = surviving.next() {
                        keep(surviving.fold(first, later), out);
                    }
                }
            }
        }
        Ok(!out.row().is_empty())
    }
}

/// An empty vector with the memory of `versions`: the standard library collects in place where both items have one layout.
fn recycled<'a>(mut versions: Vec<Version<'_>>) -> Vec<Version<'a>> {
    versions.clear();
    versions.into_iter().map_while(|_| None).collect()
}

/// Takes the cells of a simple column; those that `active` deletes are left out.
fn surviving<'v, 'a: 'v>(
    column: u16,
    versions: &'v mut [Version<'a>],
    active: DeletionTime,
) -> impl Iterator<Item = Candidate<'a>> + 'v {
    let candidates = versions.iter_mut().filter_map(move |version| {
        version.skip_deletion_of(column);
        let cell = version.cell_of(column)?;
        version.cell += 1;
        Some(Candidate { cell, bytes: version.row.bytes })
    });
    candidates.filter(move |candidate| !active.deletes(candidate.cell.timestamp))
}

#[derive(Default)]
struct CounterMerger {
    /// Of the merged cell so far.
    context: Vec<u8>,
}

impl CounterMerger {
    /// `Cells.resolveCounter`: a tombstone wins over a counter whatever the timestamps, since deleting a counter is final; contexts
    /// are merged.
    fn merge<'a>(
        &mut self,
        candidates: impl Iterator<Item = Candidate<'a>>,
        out: &mut RowBuf,
    ) -> Result<(), MergeError> {
        let mut merged: Option<Cell> = None;
        for candidate in candidates {
            let value = candidate.cell.value.of(candidate.bytes);
            let Some(left) = merged else {
                self.context.clear();
                self.context.extend_from_slice(value);
                merged = Some(*candidate.cell);
                continue;
            };
            let take_right = match (left.is_tombstone(), candidate.cell.is_tombstone()) {
                (false, false) => {
                    let empty = (self.context.is_empty(), value.is_empty());
                    match empty {
                        (false, false) => {
                            self.merge_contexts(value)?;
                            let timestamp = left.timestamp.max(candidate.cell.timestamp);
                            merged = Some(Cell { timestamp, ..left });
                            false
                        }
                        (true, true) => candidate.cell.timestamp >= left.timestamp,
                        (_, right_is_empty) => right_is_empty,
                    }
                }
                (true, false) => false,
                (false, true) => true,
                (true, true) => {
                    let left = Candidate { cell: &left, bytes: &[] }.version();
                    right_cell_wins(&left, &candidate.version())
                }
            };
            if take_right {
                self.context.clear();
                self.context.extend_from_slice(value);
                merged = Some(*candidate.cell);
            }
        }
        if let Some(mut cell) = merged {
            cell.path = Span::default();
            cell.value = out.store(&self.context);
            out.parts.cells.push(cell);
        }
        Ok(())
    }

    fn merge_contexts(&mut self, right: &[u8]) -> Result<(), MergeError> {
        match counter::merge(&self.context, right) {
            Ok(Merged::Left) => {}
            Ok(Merged::Right) => {
                self.context.clear();
                self.context.extend_from_slice(right);
            }
            Ok(Merged::New(context)) => self.context = context,
            Err(e) => return Err(MergeError(format!("counter context is corrupt {e}"))),
        }
        Ok(())
    }
}

fn merge_complex(
    column: u16,
    path_type: &CqlType,
    versions: &mut [Version<'_>],
    active: DeletionTime,
    out: &mut RowBuf,
) {
    let mut deletion = DeletionTime::LIVE;
    for version in versions.iter_mut() {
        if let Some(found) = version.skip_deletion_of(column) {
            deletion = deletion.max(found.time);
        }
    }
    let mut active = active;
    if deletion.supersedes(&active) {
        active = deletion;
        out.parts.complex_deletions.push(ComplexDeletion { column, time: deletion });
    }
    loop {
        let heads = versions.iter().filter_map(|version| {
            version.cell_of(column).map(|cell| cell.path.of(version.row.bytes))
        });
        let Some(path) = heads.min_by(|a, b| path_type.compare(a, b)) else { return };
        let same_path = versions.iter_mut().filter_map(|version| {
            let cell = version.cell_of(column)?;
            if path_type.compare(cell.path.of(version.row.bytes), path).is_ne() {
                return None;
            }
            version.cell += 1;
            Some(Candidate { cell, bytes: version.row.bytes })
        });
        let mut surviving = same_path.filter(|c| !active.deletes(c.cell.timestamp));
        let Some(first) = surviving.next() else { continue };
        let winner = surviving.fold(first, later);
        keep(winner, out);
    }
}

fn later<'a>(left: Candidate<'a>, right: Candidate<'a>) -> Candidate<'a> {
    if right_cell_wins(&left.version(), &right.version()) { right } else { left }
}

fn keep(winner: Candidate<'_>, out: &mut RowBuf) {
    let mut cell = *winner.cell;
    cell.path = out.store(winner.cell.path.of(winner.bytes));
    cell.value = out.store(winner.cell.value.of(winner.bytes));
    out.parts.cells.push(cell);
}
