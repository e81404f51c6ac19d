//! Filters: conditions on each row that keys and slices cannot select. A null never satisfies one.

use halcyon_model::analysis::TextAnalysis;
use halcyon_model::{CqlType, Cursor};

use super::bind::{Tuple, column_names, tuple, tuples, value};
use super::{BoundTerm, Entry, Restrictions, What};
use crate::plan::execution::Execution;
use crate::plan::term::{Bound, Term};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::{Error, Result};

/// A condition on a column's value (of a collection, on its frozen form).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Test {
    /// These very bytes.
    Same(Vec<u8>),
    In(Vec<Vec<u8>>),
    /// Bounds with whether they are included.
    Between {
        start: Option<(Vec<u8>, bool)>,
        end: Option<(Vec<u8>, bool)>,
    },
    Contains(Vec<u8>),
    ContainsKey(Vec<u8>),
    Entry(Vec<u8>, Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundFilter {
    pub column: ColumnRef,
    pub cql_type: CqlType,
    pub test: Test,
    /// By which texts are compared.
    pub analysis: Option<TextAnalysis>,
}

impl Restrictions {
    pub fn bind_filters(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<Vec<BoundFilter>> {
        let mut bound = Vec::new();
        for entry in &self.filters {
            bind_entry(table, entry, execution, &mut bound)?;
        }
        for filter in &mut bound {
            filter.analysis = self.analysis(filter);
        }
        Ok(bound)
    }
}

/// The message about a missing value, as filters word it.
pub(super) fn unsupported(error: Error) -> Error {
    match error {
        Error::InvalidRequest(message) => Error::InvalidRequest(
            message
                .replace("Invalid null value in condition", "Unsupported null value")
                .replace("Invalid unset value", "Unsupported unset value"),
        ),
        other => other,
    }
}

pub(super) fn bind_entry(
    table: &Table,
    entry: &Entry,
    execution: &Execution<'_>,
    bound: &mut Vec<BoundFilter>,
) -> Result<()> {
    let names = column_names(table, entry);
    let mut add = |index: usize, test: Test| {
        let Some(column) = entry.columns.get(index).copied() else { return };
        let Some(def) = table.column(column) else { return };
        let cql_type = def.cql_type.base().clone();
        bound.push(BoundFilter { column, cql_type, test, analysis: None });
    };
    match &entry.what {
        What::Equal(_) | What::In(_) => {
            let all: Vec<Tuple> = tuples(&entry.what, &names, execution).map_err(unsupported)?;
            for index in 0..entry.columns.len() {
                let values = all.iter().filter_map(|tuple| tuple.get(index).cloned());
                add(index, Test::In(values.collect()));
            }
        }
        What::Slice { start, end } => {
            let side = |side: &Option<BoundTerm>| -> Result<Option<(Vec<u8>, bool)>> {
                let Some(side) = side else { return Ok(None) };
                let mut values = tuple(&side.term, &names, execution, true).map_err(unsupported)?;
                Ok(values.drain(..).next().map(|value| (value, side.inclusive)))
            };
            add(0, Test::Between { start: side(start)?, end: side(end)? });
        }
        What::Contains { values, keys, entries } => {
            let name = names.first().map_or("", String::as_str);
            for term in values {
                add(0, Test::Contains(value(term, execution, name).map_err(unsupported)?));
            }
            for term in keys {
                add(0, Test::ContainsKey(value(term, execution, name).map_err(unsupported)?));
            }
            let part = |term: &Term, what: &str| match term.bind(execution)? {
                Bound::Bytes(bytes) => Ok(bytes.into_owned()),
                absent => Err(Error::InvalidRequest(format!(
                    "Unsupported {} map {what} for column {name}",
                    if absent.is_unset() { "unset" } else { "null" }
                ))),
            };
            for (key, term) in entries {
                add(0, Test::Entry(part(key, "key")?, part(term, "value")?));
            }
        }
        // An order, which no row fails.
        What::Nearest(_) => {}
    }
    Ok(())
}

impl BoundFilter {
    /// Whether a value satisfies; it must be one of the column's type.
    pub fn accepts(&self, value: Option<&[u8]>) -> bool {
        let Some(value) = value else { return false };
        match &self.test {
            Test::Same(wanted) => value == wanted,
            Test::In(values) if self.analysis.is_some() => {
                values.iter().any(|other| self.is_same(value, other))
            }
            Test::In(values) => {
                values.iter().any(|other| self.cql_type.compare(value, other).is_eq())
            }
            Test::Between { start, end } => {
                let above = start.as_ref().is_none_or(|(start, inclusive)| {
                    let order = self.cql_type.compare(value, start);
                    order.is_gt() || (*inclusive && order.is_eq())
                });
                let below = end.as_ref().is_none_or(|(end, inclusive)| {
                    let order = self.cql_type.compare(value, end);
                    order.is_lt() || (*inclusive && order.is_eq())
                });
                above && below
            }
            Test::Contains(wanted) => {
                self.any_element(value, |_, element| self.is_same(element, wanted))
            }
            Test::ContainsKey(wanted) => {
                self.any_element(value, |key, _| self.is_same(key, wanted))
            }
            Test::Entry(key, wanted) => {
                self.any_element(value, |k, element| k == key && element == wanted)
            }
        }
    }

    fn is_same(&self, value: &[u8], wanted: &[u8]) -> bool {
        match self.analysis {
            None => value == wanted,
            Some(analysis) => analysis.apply(value) == analysis.apply(wanted),
        }
    }

    /// Whether an element (of a map, with its key) satisfies the condition.
    fn any_element(&self, collection: &[u8], asked: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        debug_assert!(is_collection(&self.cql_type));
        let is_map = matches!(self.cql_type.thawed(), CqlType::Map(..));
        let mut cursor = Cursor::new(collection);
        let Ok(count) = cursor.i32() else { return false };
        for _ in 0..count {
            let key = if is_map { cursor.ibytes().ok() } else { Some(&[] as &[u8]) };
            let (Some(key), Ok(element)) = (key, cursor.ibytes()) else { return false };
            if asked(key, element) {
                return true;
            }
        }
        false
    }
}

/// Whether a filter on this type can be a comparison of values.
fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}
