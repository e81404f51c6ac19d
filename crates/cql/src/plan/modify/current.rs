//! The stored rows that a modification reads: live cells, and the tombstones and deletions of counters.

use halcyon_model::bytes::Put;
use halcyon_model::clustering::{Clusterings, Position};
use halcyon_model::{BoundKind, CqlType, DeletionTime};
use halcyon_stream::{RangeTombstone, Span};

/// A live cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentCell<'r> {
    /// Empty for a simple column.
    pub path: &'r [u8],
    pub value: &'r [u8],
}

/// The cell of a counter, live or a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentCounter {
    pub column: u16,
    pub timestamp: i64,
    pub is_tombstone: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentRow {
    /// Serialized.
    pub clustering: Vec<u8>,
    /// Of all cells: one allocation, because a collection may have very many.
    bytes: Vec<u8>,
    /// Column, path and value; by column, then path.
    cells: Vec<(u16, Span, Span)>,
    /// The cells of counters once more, and their tombstones.
    counters: Vec<CurrentCounter>,
}

/// Rows of a partition that live, in clustering order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentPartition {
    /// `None` if it has no live cell and no tombstone of a counter.
    pub static_row: Option<CurrentRow>,
    /// Of the partition.
    pub deletion: DeletionTime,
    /// Of counters: range tombstones, and deletions of rows as such.
    pub range_tombstones: Vec<RangeTombstone>,
    rows: Vec<CurrentRow>,
    /// Cells of the row that has most.
    widest: usize,
}

impl CurrentRow {
    pub fn new(clustering: &[u8]) -> CurrentRow {
        CurrentRow { clustering: clustering.to_vec(), ..CurrentRow::default() }
    }

    /// Adds a live cell; `column` is its index among the columns of the row's kind.
    pub fn push(&mut self, column: u16, path: &[u8], value: &[u8]) {
        let mut store = |part: &[u8]| {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(part);
            Span { start, len: part.len() as u32 }
        };
        let (path, value) = (store(path), store(value));
        self.cells.push((column, path, value));
    }

    pub fn push_counter(&mut self, counter: CurrentCounter) {
        self.counters.push(counter);
    }

    pub fn counter(&self, column: u16) -> Option<CurrentCounter> {
        self.counters.iter().find(|counter| counter.column == column).copied()
    }

    /// Whether it has anything that a modification depends on.
    pub fn has_cells(&self) -> bool {
        !self.cells.is_empty() || !self.counters.is_empty()
    }

    pub fn cells_of(&self, column: u16) -> impl Iterator<Item = CurrentCell<'_>> {
        let cells = self.cells.iter().filter(move |(of, ..)| *of == column);
        cells.map(|(_, path, value)| CurrentCell {
            path: path.of(&self.bytes),
            value: value.of(&self.bytes),
        })
    }

    /// The value of a column; a multi-cell one in its frozen form. `None` is null.
    pub fn value(&self, column: u16, cql_type: &CqlType) -> Option<Vec<u8>> {
        let mut cells = self.cells_of(column).peekable();
        cells.peek()?;
        let cells: Vec<CurrentCell<'_>> = cells.collect();
        let mut out = Vec::new();
        match cql_type {
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => {
                out.put_i32(cells.len() as i32);
                for cell in cells {
                    if !matches!(cql_type, CqlType::List(_)) {
                        out.put_ibytes(cell.path);
                    }
                    if !matches!(cql_type, CqlType::Set(_)) {
                        out.put_ibytes(cell.value);
                    }
                }
            }
            CqlType::Udt(udt) => {
                for (_, i) in udt.fields.iter().zip(0u16..) {
                    match cells.iter().find(|cell| cell.path == i.to_be_bytes()) {
                        Some(cell) => out.put_ibytes(cell.value),
                        None => out.put_i32(-1),
                    }
                }
            }
            _ => return cells.first().map(|cell| cell.value.to_vec()),
        }
        Some(out)
    }
}

impl Default for CurrentPartition {
    fn default() -> CurrentPartition {
        CurrentPartition {
            static_row: None,
            deletion: DeletionTime::LIVE,
            range_tombstones: Vec::new(),
            rows: Vec::new(),
            widest: 0,
        }
    }
}

impl CurrentPartition {
    pub fn is_empty(&self) -> bool {
        self.static_row.is_none() && self.rows.is_empty()
    }

    /// Whether a row has so much that visiting each of its cells would hold a shard.
    pub fn is_wide(&self) -> bool {
        const WIDE: usize = 1_000;
        self.static_row.as_ref().map_or(0, |row| row.cells.len()).max(self.widest) > WIDE
    }

    /// Adds the row that comes next.
    pub fn push(&mut self, row: CurrentRow) {
        self.widest = self.widest.max(row.cells.len());
        self.rows.push(row);
    }

    pub fn rows(&self) -> &[CurrentRow] {
        &self.rows
    }

    /// The newest deletion that covers a row of counters: of the partition, of a range, or of the row.
    pub fn deletion_of(&self, clusterings: &Clusterings, clustering: &[u8]) -> DeletionTime {
        let row = row_at(clusterings, clustering);
        let covers = |range: &&RangeTombstone| {
            clusterings.compare(range.start.position(), row).is_le()
                && clusterings.compare(row, range.end.position()).is_le()
        };
        let ranges = self.range_tombstones.iter().filter(covers).map(|range| range.time);
        ranges.fold(self.deletion, DeletionTime::max)
    }

    /// The row of a clustering, whose bytes may be others: 1.0 is the row of 1.00.
    pub fn row(&self, clusterings: &Clusterings, clustering: &[u8]) -> Option<&CurrentRow> {
        let wanted = row_at(clusterings, clustering);
        let order = |row: &CurrentRow| {
            clusterings.compare(Position { serialized: &row.clustering, ..wanted }, wanted)
        };
        self.rows.get(self.rows.binary_search_by(order).ok()?)
    }
}

fn row_at<'a>(clusterings: &Clusterings, clustering: &'a [u8]) -> Position<'a> {
    let count = clusterings.len();
    Position { kind: BoundKind::Clustering, count, serialized: clustering }
}
