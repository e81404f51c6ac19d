//! The stored rows that a modification reads: live cells only.

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_model::schema::ColumnKind;

/// A live cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentCell {
    /// Index among the columns of the row's kind.
    pub column: u16,
    /// Empty for a simple column.
    pub path: Vec<u8>,
    pub value: Vec<u8>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentRow {
    /// Serialized.
    pub clustering: Vec<u8>,
    /// By column, then path.
    pub cells: Vec<CurrentCell>,
}

/// Rows of a partition that live, in clustering order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentPartition {
    /// `None` if it has no live cell.
    pub static_row: Option<CurrentRow>,
    pub rows: Vec<CurrentRow>,
}

impl CurrentRow {
    pub fn cells_of(&self, column: u16) -> impl Iterator<Item = &CurrentCell> {
        self.cells.iter().filter(move |cell| cell.column == column)
    }

    /// The value of a column; a multi-cell one in its frozen form. `None` is null.
    pub fn value(&self, column: u16, cql_type: &CqlType) -> Option<Vec<u8>> {
        let mut cells = self.cells_of(column).peekable();
        cells.peek()?;
        let cells: Vec<&CurrentCell> = cells.collect();
        let mut out = Vec::new();
        match cql_type {
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => {
                out.put_i32(cells.len() as i32);
                for cell in cells {
                    if !matches!(cql_type, CqlType::List(_)) {
                        out.put_ibytes(&cell.path);
                    }
                    if !matches!(cql_type, CqlType::Set(_)) {
                        out.put_ibytes(&cell.value);
                    }
                }
            }
            CqlType::Udt(udt) => {
                for (_, i) in udt.fields.iter().zip(0u16..) {
                    match cells.iter().find(|cell| cell.path == i.to_be_bytes()) {
                        Some(cell) => out.put_ibytes(&cell.value),
                        None => out.put_i32(-1),
                    }
                }
            }
            _ => return cells.first().map(|cell| cell.value.clone()),
        }
        Some(out)
    }
}

impl CurrentPartition {
    pub fn is_empty(&self) -> bool {
        self.static_row.is_none() && self.rows.is_empty()
    }

    pub fn row(&self, clustering: &[u8]) -> Option<&CurrentRow> {
        self.rows.iter().find(|row| row.clustering == clustering)
    }

    /// The row that holds a column of this kind.
    pub fn row_of(&self, kind: ColumnKind, clustering: &[u8]) -> Option<&CurrentRow> {
        match kind {
            ColumnKind::Static => self.static_row.as_ref(),
            _ => self.row(clustering),
        }
    }
}
