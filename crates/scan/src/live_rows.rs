//! The live values of rows. A stream also has tombstones and expired cells, which no client may see.
//!
//! 1. A cell is dead if it is a tombstone, has expired, or is covered by the deletion of its partition, range, row or
//!    collection.
//! 2. A row exists if its primary key is live, or if any of its cells is, of any column. With strict liveness, only the primary key
//!    counts.
//! 3. Cells of a collection or user type are composed to its frozen form, counters to their total.

use std::fmt;
use std::ops::Sub;

use halcyon_cql::plan::select::BoundSelect;
use halcyon_cql::plan::selection::{CellTime, RowValues};
use halcyon_model::bytes::Put;
use halcyon_model::schema::ColumnKind;
use halcyon_model::{CqlType, DeletionTime, counter};
use halcyon_schema::catalog::ColumnRef;
use halcyon_stream::{Cell, Column, ColumnShape, Row};

use crate::{Error, Result};

/// The fetched column that a column of the layout fills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Index among the fetched columns.
    pub fetch: usize,
    pub times: bool,
}

/// By kind, then by column of the layout.
#[derive(Debug)]
pub(crate) struct Targets {
    pub key: Vec<Option<Target>>,
    pub clustering: Vec<Option<Target>>,
    pub statics: Vec<Option<Target>>,
    pub regulars: Vec<Option<Target>>,
}

impl Targets {
    pub(crate) fn new(select: &BoundSelect) -> Targets {
        let table = &select.plan.table;
        let of_kind = |kind: ColumnKind| {
            let mut targets = vec![None; table.columns(kind).len()];
            for (index, fetch) in select.plan.selection.fetch.iter().enumerate() {
                let ColumnRef { kind: fetched, index: column } = fetch.column;
                if fetched == kind
                    && let Some(target) = targets.get_mut(usize::from(column))
                {
                    *target = Some(Target { fetch: index, times: fetch.times });
                }
            }
            targets
        };
        Targets {
            key: of_kind(ColumnKind::PartitionKey),
            clustering: of_kind(ColumnKind::Clustering),
            statics: of_kind(ColumnKind::Static),
            regulars: of_kind(ColumnKind::Regular),
        }
    }
}

/// Reads live values from the rows of a stream; keeps the deletions of the partition and of the open range tombstone.
#[derive(Debug, Clone)]
pub(crate) struct LiveRows {
    pub now: u32,
    pub strict_liveness: bool,
    pub partition: DeletionTime,
    /// Of the open range tombstone.
    pub range: DeletionTime,
    pub counts: ReadCounts,
}

/// The rows and tombstones of a read, for metrics, warnings and the tombstone guardrail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// LiveRows rows, static ones too.
    pub rows: u64,
    /// Dead cells, rows and markers.
    pub tombstones: u64,
}

/// Hears of each partition that a read comes to the end of.
pub trait Watch: fmt::Debug + Send {
    fn partition(&self, key: &[u8], found: ReadCounts);
}

impl Sub for ReadCounts {
    type Output = ReadCounts;

    fn sub(self, before: ReadCounts) -> ReadCounts {
        ReadCounts {
            rows: self.rows - before.rows,
            tombstones: self.tombstones - before.tombstones,
        }
    }
}

impl LiveRows {
    pub(crate) fn new(now: u32, strict_liveness: bool) -> LiveRows {
        LiveRows {
            now,
            strict_liveness,
            partition: DeletionTime::LIVE,
            range: DeletionTime::LIVE,
            counts: ReadCounts::default(),
        }
    }

    pub(crate) fn start(&mut self, deletion: DeletionTime) {
        self.partition = deletion;
        self.range = DeletionTime::LIVE;
    }

    pub(crate) fn marker(&mut self, open: Option<DeletionTime>) {
        self.range = open.unwrap_or(DeletionTime::LIVE);
        self.counts.tombstones += 1;
    }

    /// Reads the live values of a row; returns whether the row is live. `targets` is by column of the layout.
    pub(crate) fn read(
        &mut self,
        row: &Row<'_>,
        columns: &[Column],
        targets: &[Option<Target>],
        values: &mut RowValues,
    ) -> Result<bool> {
        let deletion = self.partition.max(self.range).max(row.deletion.time);
        if !row.deletion.time.is_live() {
            self.counts.tombstones += 1;
        }
        let liveness = &row.liveness;
        let expired = liveness.is_expiring() && self.now >= liveness.local_expiration_time;
        let mut there = !liveness.is_empty() && !expired && !deletion.deletes(liveness.timestamp);
        if self.strict_liveness && !there {
            return Ok(false);
        }
        let mut cells = row.cells;
        while let Some(first) = cells.first() {
            let count = cells.iter().take_while(|cell| cell.column == first.column).count();
            let (of_column, rest) = cells.split_at(count);
            cells = rest;
            let index = usize::from(first.column);
            let Some(column) = columns.get(index) else { continue };
            let complex = row.complex_deletions.iter().find(|d| d.column == first.column);
            let deletion = complex.map_or(deletion, |complex| deletion.max(complex.time));
            let target = targets.get(index).copied().flatten();
            there |= self.column(row, column, of_column, deletion, target, values)?;
        }
        self.counts.rows += u64::from(there);
        Ok(there)
    }

    fn is_live(&mut self, cell: &Cell, deletion: &DeletionTime) -> bool {
        if deletion.deletes(cell.timestamp) {
            return false;
        }
        let live = cell.is_live(self.now);
        if !live {
            self.counts.tombstones += 1;
        }
        live
    }

    /// Whether any cell of the column is live.
    fn column(
        &mut self,
        row: &Row<'_>,
        column: &Column,
        cells: &[Cell],
        deletion: DeletionTime,
        target: Option<Target>,
        values: &mut RowValues,
    ) -> Result<bool> {
        let Some(target) = target else {
            let mut any = false;
            for cell in cells {
                any |= self.is_live(cell, &deletion);
            }
            return Ok(any);
        };
        match &column.shape {
            ColumnShape::Simple | ColumnShape::Counter => {
                let Some(cell) = cells.first().filter(|cell| self.is_live(cell, &deletion)) else {
                    return Ok(false);
                };
                let value = cell.value.of(row.bytes);
                if column.shape == ColumnShape::Counter {
                    let total = counter::total(value).map_err(|error| {
                        Error::Corrupt(format!("a counter cell is damaged: {error}"))
                    })?;
                    values.set(target.fetch, &total.to_be_bytes());
                } else {
                    values.set(target.fetch, value);
                }
                if target.times {
                    values.add_time(target.fetch, self.time(cell, row, true));
                }
                Ok(true)
            }
            ColumnShape::Complex { .. } => {
                let live: Vec<&Cell> =
                    cells.iter().filter(|cell| self.is_live(cell, &deletion)).collect();
                if live.is_empty() {
                    return Ok(false);
                }
                values.set_with(target.fetch, |out| compose(&column.cql_type, &live, row, out));
                if target.times {
                    for cell in live {
                        values.add_time(target.fetch, self.time(cell, row, false));
                    }
                }
                Ok(true)
            }
        }
    }

    fn time(&self, cell: &Cell, row: &Row<'_>, simple: bool) -> CellTime {
        // A client's `now_in_seconds` may be so early that this wraps: to what Cassandra answers, too.
        let left = cell.local_deletion_time.wrapping_sub(self.now).cast_signed();
        CellTime {
            timestamp: cell.timestamp,
            ttl: cell.is_expiring().then_some(left),
            path: if simple { Vec::new() } else { cell.path.of(row.bytes).to_vec() },
            simple,
        }
    }
}

/// The frozen form of a collection or user type from its live cells.
fn compose(cql_type: &CqlType, cells: &[&Cell], row: &Row<'_>, out: &mut Vec<u8>) {
    if let CqlType::Udt(udt) = cql_type.thawed() {
        for index in 0..udt.fields.len() {
            let path = u16::try_from(index).unwrap_or(u16::MAX).to_be_bytes();
            match cells.iter().find(|cell| cell.path.of(row.bytes) == path) {
                Some(cell) => out.put_ibytes(cell.value.of(row.bytes)),
                None => out.put_i32(-1),
            }
        }
        return;
    }
    out.put_i32(i32::try_from(cells.len()).unwrap_or(i32::MAX));
    for cell in cells {
        if matches!(cql_type.thawed(), CqlType::Set(_) | CqlType::Map(..)) {
            out.put_ibytes(cell.path.of(row.bytes));
        }
        if matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Map(..)) {
            out.put_ibytes(cell.value.of(row.bytes));
        }
    }
}
