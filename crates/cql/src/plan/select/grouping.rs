//! GROUP BY: by the partition key and a prefix of the clustering columns, the last of which a function may round.

use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;

use super::columns::columns_of;
use crate::plan::restrictions::{Restrictions, find_column, receiver};
use crate::plan::selection::{Item, Preparing, Resolved, Selection, Selector};
use crate::plan::term::Preparation;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::{self, RawSelector};
use halcyon_syntax::{Error, Result};

/// Rows of one partition are of one group if these selectors give the same.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// On the clustering columns, with the types by which their values are equal; empty: a group is a partition.
    pub by: Vec<(Selector, CqlType)>,
}

pub(super) fn prepare(
    select: &ast::Select,
    table: &Table,
    restrictions: &Restrictions,
    selection: &mut Selection,
    to: &mut Preparation<'_>,
) -> Result<Option<Grouping>> {
    if select.group_by.is_empty() {
        return Ok(None);
    }
    let key = (0..table.schema.partition_key.len()).map(|i| (ColumnKind::PartitionKey, i));
    let clustering = (0..table.schema.clustering.len()).map(|i| (ColumnKind::Clustering, i));
    let mut columns = key
        .chain(clustering)
        .map(|(kind, index)| ColumnRef { kind, index: u16::try_from(index).unwrap_or(u16::MAX) });
    let order = || {
        Error::invalid_request(
            "Group by currently only support groups of columns following their declared order in the PRIMARY KEY",
        )
    };
    let mut by = Vec::new();
    let mut function_seen = false;
    for raw in &select.group_by {
        let (wanted, item) = group(raw, table, selection, to, &mut function_seen)?;
        loop {
            let next = columns.next().ok_or_else(order)?;
            if next == wanted {
                break;
            }
            if !restrictions.is_equal(next) {
                return Err(order());
            }
        }
        if wanted.kind == ColumnKind::Clustering {
            by.push((item.selector, item.cql_type));
        }
    }
    check_monotonic(&by)?;
    if columns.next().is_some_and(|next| next.kind == ColumnKind::PartitionKey) {
        return Err(Error::invalid_request(
            "Group by is not supported on only a part of the partition key",
        ));
    }
    if select.distinct && !by.is_empty() {
        return Err(Error::invalid_request(
            "Grouping on clustering columns is not allowed for SELECT DISTINCT queries",
        ));
    }
    Ok(Some(Grouping { by }))
}

fn check_monotonic(by: &[(Selector, CqlType)]) -> Result<()> {
    match by.last() {
        Some((Selector::Call { function, .. }, _)) if !function.is_monotonic() => {
            Err(Error::InvalidRequest(format!(
                "Only monotonic functions are supported in the GROUP BY clause. Got: {} ",
                function.signature()
            )))
        }
        _ => Ok(()),
    }
}

fn group(
    raw: &RawSelector,
    table: &Table,
    selection: &mut Selection,
    to: &mut Preparation<'_>,
    function_seen: &mut bool,
) -> Result<(ColumnRef, Item)> {
    let name = |column: ColumnRef| {
        table.column(column).map_or(String::new(), |column| column.name.clone())
    };
    if let RawSelector::Column(named) = raw {
        let column = find_column(table, named)?;
        if !column.kind.is_key() {
            return Err(Error::InvalidRequest(format!(
                "Group by is currently only supported on the columns of the PRIMARY KEY, got {}",
                name(column)
            )));
        }
        if *function_seen {
            return Err(Error::invalid_request(
                "Functions are only supported on the last element of the GROUP BY clause",
            ));
        }
        let cql_type = receiver(table, column)?.cql_type;
        let selector = Selector::Column(selection.fetch(column, false));
        return Ok((column, Item { selector, cql_type }));
    }
    *function_seen = true;
    let resolved = Resolved::new(raw, table, to)?;
    if let Some(function) = resolved.function.as_ref().filter(|function| function.is_aggregate()) {
        return Err(Error::InvalidRequest(format!(
            "Aggregate functions are not supported within the GROUP BY clause, got: {}",
            function.full_name()
        )));
    }
    let mut names: Vec<ColumnRef> = Vec::new();
    columns_of(raw, &mut |named| names.extend(table.find_column(&named.text)));
    let column = match names.as_slice() {
        [] => {
            return Err(Error::invalid_request(
                "GROUP BY functions must have one clustering column name as parameter",
            ));
        }
        [one] => *one,
        several => {
            let names: Vec<String> = several.iter().map(|column| name(*column)).collect();
            return Err(Error::InvalidRequest(format!(
                "GROUP BY functions accept only one clustering column as parameter, got: {}",
                names.join(",")
            )));
        }
    };
    if column.kind != ColumnKind::Clustering {
        return Err(Error::InvalidRequest(format!(
            "Group by functions are only supported on clustering columns, got {}",
            name(column)
        )));
    }
    let mut preparing = Preparing::new(table, to);
    preparing.selection = std::mem::take(selection);
    let item = preparing.item(&resolved);
    *selection = preparing.selection;
    let (item, _) = item?;
    Ok((column, item))
}
