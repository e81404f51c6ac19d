//! Filters with values: the conditions that each row is asked.

use super::bind::{Form, Tuple, column_names, in_list, tuple, tuples, tuples_before_null, value};
use super::condition::{BoundFilter, Test};
use super::like::{answered, pattern};
use super::{BoundTerm, Entry, Restrictions, TupleList, TupleTerm, What};
use crate::plan::execution::Execution;
use crate::plan::term::{Bound, Term};
use crate::plan::value::collection::collection_elements;
use halcyon_schema::catalog::Table;
use halcyon_syntax::{Error, Result};

impl Restrictions {
    pub fn bind_filters(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<Vec<BoundFilter>> {
        let mut bound = Vec::new();
        let mut bind = |entries: &[Entry]| {
            entries.iter().try_for_each(|entry| bind_filter(table, entry, execution, &mut bound))
        };
        // In the order of the columns of the table, as Cassandra adds them to its row filter.
        let keys = self.filters.iter().take_while(|entry| entry.is_of_partition_key()).count();
        let (of_keys, others) = self.filters.split_at(keys);
        bind(of_keys)?;
        self.check_asked_clusterings(table, execution)?;
        bind(others)?;
        for filter in &mut bound {
            if !self.uses_index || answered(table, filter).is_none() {
                filter.analysis = self.analysis(filter);
            }
        }
        Ok(bound)
    }
}

/// Binds what each row is asked. A filter of several columns is refused here, when a statement is executed: Cassandra prepares such
/// statements.
pub(super) fn bind_filter(
    table: &Table,
    entry: &Entry,
    execution: &Execution<'_>,
    bound: &mut Vec<BoundFilter>,
) -> Result<()> {
    match &entry.what {
        What::Slice { .. } if entry.tuple => Err(Error::invalid_request(
            "Multi-column slice restrictions cannot be used for filtering.",
        )),
        What::In(_) if entry.tuple && entry.columns.len() > 1 => {
            Err(Error::invalid_request("Multicolumn IN filters are not supported"))
        }
        _ => bind_entry(table, entry, execution, bound),
    }
}

/// The message about a missing value, as filters word it.
pub(super) fn unsupported(error: Error) -> Error {
    match error {
        // What a tuple lacks is found where the tuple is made.
        Error::InvalidRequest(message) if !message.contains("for tuple ") => Error::InvalidRequest(
            message
                .replace("Invalid null value in condition", "Unsupported null value")
                .replace("Invalid null value for", "Unsupported null value for")
                .replace("Invalid unset value", "Unsupported unset value"),
        ),
        other => other,
    }
}

/// The values of one column's IN: what is unset is left out, and Cassandra finds nothing that follows a null.
fn listed(list: &TupleList, names: &[String], execution: &Execution<'_>) -> Result<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    match list {
        TupleList::Each(terms) => {
            for term in terms {
                let TupleTerm::One(term) = term else { continue };
                match term.bind(execution)? {
                    Bound::Bytes(bytes) => values.push(bytes.into_owned()),
                    Bound::Null => break,
                    Bound::Unset => {}
                }
            }
        }
        TupleList::List { term, .. } => {
            let list = in_list(term, names, false, execution)?;
            let elements = collection_elements(&list).into_iter();
            values.extend(elements.map_while(|element| element.map(<[u8]>::to_vec)));
        }
    }
    Ok(values)
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
        What::In(list) if entry.tuple && entry.columns.len() == 1 => {
            let values = tuples_before_null(list, &names, execution)?;
            add(0, Test::In(values.into_iter().flatten().collect()));
        }
        What::In(list) if !entry.tuple => {
            add(0, Test::In(listed(list, &names, execution)?));
        }
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
                let values =
                    tuple(&side.term, &names, execution, Form::Slice).map_err(unsupported)?;
                // The other values decide about rows that have the first one.
                let inclusive = side.inclusive || values.len() > 1;
                Ok(values.into_iter().next().map(|value| (value, inclusive)))
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
        What::Like(term) => {
            if let Some(column) = entry.columns.first().copied() {
                add(0, pattern(table, column, term.bind(execution)?, execution.work)?);
            }
        }
        // An order, which no row fails.
        What::Nearest(_) => {}
    }
    Ok(())
}
