//! The guardrails of values that are written: sizes of values and collections, and lists that are read before they are written. Asked in
//! the order in which Cassandra makes cells (`UpdateParameters`, `Lists`, `Sets`, `Maps`).

use halcyon_guardrails::{Flag, Guard, Threshold};
use halcyon_model::CqlType;
use halcyon_schema::change::violated;
use halcyon_syntax::Result;

use super::operation::{Access, Change};

/// What a cell has beside its path and value (`Cell.dataSize`).
const CELL: usize = 20;
/// A list's cell is named by a UUID.
const LIST_PATH: usize = 16;

/// One operation of a statement on one column.
pub(super) struct Guarded<'a> {
    pub(super) guard: &'a Guard,
    pub(super) column: &'a str,
    pub(super) cql_type: &'a CqlType,
    pub(super) access: Access,
}

impl Guarded<'_> {
    /// Before values are bound.
    pub(super) fn check_access(&self) -> Result<()> {
        let feature = match self.access {
            Access::SetByIndex => "Setting of list items by index requiring read before write",
            Access::DeleteByIndex => "Removal of list items by index requiring read before write",
            Access::DiscardByValue => "Removal of list items requiring read before write",
            Access::Assign | Access::Append | Access::Other => return Ok(()),
        };
        let flag = Flag::ReadBeforeWriteListOperations;
        self.guard.allow_named(flag, feature).map_err(violated)
    }

    pub(super) fn check_change(&self, change: &Change) -> Result<()> {
        let is_collection =
            matches!(self.cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..));
        let is_counted = is_collection && matches!(self.access, Access::Assign | Access::Append);
        match change {
            Change::Cell(Some(value)) if is_counted => {
                self.check(Threshold::ItemsPerCollection, elements(value))?;
                self.check(Threshold::ColumnValueSize, value.len())?;
                self.check(Threshold::CollectionSize, CELL + value.len())
            }
            Change::Cell(Some(value)) => self.check(Threshold::ColumnValueSize, value.len()),
            Change::Overwrite(cells) => {
                let cells = cells.iter().map(|(path, value)| (&**path, Some(&**value)));
                self.check_cells(cells, is_counted)
            }
            Change::Cells(cells) => {
                let cells = cells.iter().map(|(path, value)| (&**path, value.as_deref()));
                self.check_cells(cells, is_counted)
            }
            Change::SetIndex { value: Some(value), .. } => {
                if let Some(value) = value {
                    self.check(Threshold::ColumnValueSize, value.len())?;
                }
                self.check(Threshold::ColumnValueSize, LIST_PATH)
            }
            Change::DeleteIndex(_) => self.check(Threshold::ColumnValueSize, LIST_PATH),
            Change::Cell(None)
            | Change::SetIndex { value: None, .. }
            | Change::DeleteAll
            | Change::DiscardValues(_)
            | Change::Increment(_)
            | Change::Combine { .. }
            | Change::Refused(_) => Ok(()),
        }
    }

    /// `is_counted`: they are the elements of a collection that is assigned or added.
    fn check_cells<'c>(
        &self,
        cells: impl ExactSizeIterator<Item = (&'c [u8], Option<&'c [u8]>)>,
        is_counted: bool,
    ) -> Result<()> {
        if is_counted && cells.len() > 0 {
            self.check(Threshold::ItemsPerCollection, cells.len())?;
        }
        let (mut size, is_any) = (0usize, cells.len() > 0);
        for (path, value) in cells {
            if let Some(value) = value {
                self.check(Threshold::ColumnValueSize, value.len())?;
            }
            self.check(Threshold::ColumnValueSize, path.len())?;
            size = size.saturating_add(CELL + path.len() + value.map_or(0, <[u8]>::len));
        }
        if is_counted && is_any { self.check(Threshold::CollectionSize, size) } else { Ok(()) }
    }

    fn check(&self, threshold: Threshold, value: usize) -> Result<()> {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.guard.check(threshold, value, self.column).map_err(violated)
    }
}

/// How many elements or entries a serialised collection says that it has.
fn elements(value: &[u8]) -> usize {
    let count = value.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes));
    usize::try_from(count).unwrap_or(0)
}
