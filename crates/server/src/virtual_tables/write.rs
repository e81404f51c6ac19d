//! A write to a virtual table, by the names of its columns.

use halcyon_model::schema::ColumnKind;
use halcyon_model::token::split_key;
use halcyon_query::{Error, Result, modification_is_not_supported};
use halcyon_schema::catalog::Table;
use halcyon_stream::{Mutation, RowBuf};

pub(super) struct Write<'a> {
    pub(super) table: &'a Table,
    pub(super) mutation: &'a Mutation,
}

/// What a write assigns to a column.
pub(super) enum Assigned<'a> {
    Nothing,
    Null,
    Text(&'a str),
}

/// The components of a partition key, all of them text.
pub(super) fn texts_of_key(table: &Table, key: &[u8]) -> Result<Vec<String>> {
    let count = table.columns(ColumnKind::PartitionKey).len();
    let parts = split_key(key, count).unwrap_or_default();
    let text = |part: &&[u8]| String::from_utf8(part.to_vec()).ok();
    let parts: Option<Vec<String>> = parts.iter().map(text).collect();
    parts.ok_or_else(|| Error::Invalid("a key that is not a text".to_owned()))
}

impl Write<'_> {
    /// The components of the partition key, all of them text.
    pub(super) fn key(&self) -> Result<Vec<String>> {
        texts_of_key(self.table, &self.mutation.key.bytes)
    }

    pub(super) fn deletes_partition(&self) -> bool {
        !self.mutation.deletion.is_live()
            || self.rows().any(|row| !row.parts.deletion.time.is_live())
    }

    fn rows(&self) -> impl Iterator<Item = &RowBuf> {
        self.mutation.rows.iter()
    }

    pub(super) fn text(&self, column: &str) -> Assigned<'_> {
        let columns = self.table.columns(ColumnKind::Regular);
        let index = columns.iter().position(|def| def.name == column);
        let mut cells = self.rows().flat_map(|row| row.parts.cells.iter().map(move |c| (row, c)));
        match cells.find(|(_, cell)| Some(usize::from(cell.column)) == index) {
            None => Assigned::Nothing,
            Some((_, cell)) if cell.is_tombstone() => Assigned::Null,
            Some((row, cell)) => {
                let text = std::str::from_utf8(cell.value.of(&row.bytes));
                text.map_or(Assigned::Null, Assigned::Text)
            }
        }
    }

    pub(super) fn sets_something(&self) -> bool {
        self.rows().any(|row| !row.parts.cells.is_empty())
    }

    pub(super) fn not_supported(&self) -> Error {
        modification_is_not_supported(self.table)
    }
}
