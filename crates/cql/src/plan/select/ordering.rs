//! ORDER BY: forwards, backwards, or sorted in memory where rows of several partitions are mixed.

use halcyon_model::CqlType;
use halcyon_model::schema::ColumnKind;

use crate::plan::restrictions::{Restrictions, find_column, receiver};
use crate::plan::selection::Selection;
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::OrderBy;
use halcyon_syntax::{Error, Result};

type Sort = Vec<(usize, CqlType, bool)>;

/// The vector that rows are to be next to. The inner error comes after those of the WHERE clause.
pub(super) fn nearest(
    table: &Table,
    order_by: &[OrderBy],
    to: &mut Preparation<'_>,
) -> Result<Result<Option<(ColumnRef, Term)>>> {
    let mut nearest = Vec::new();
    for order in order_by {
        let column = find_column(table, &order.column)?;
        if let Some(term) = &order.ann_of {
            let term = Term::prepare(term, &receiver(table, column)?, to)?;
            nearest.push((column, term, order.descending));
        }
    }
    let refused = |what| Err(Error::invalid_request(what));
    Ok(match nearest.as_slice() {
        [] => Ok(None),
        [_, _, ..] => refused("Cannot specify more than one ANN ordering"),
        [_] if order_by.len() > 1 => refused("ANN ordering does not support any other ordering"),
        [(_, _, true)] => refused("Descending ANN ordering is not supported"),
        [(column, term, false)] => Ok(Some((*column, term.clone()))),
    })
}

/// Whether rows are read in reverse, and the columns by which the result is sorted.
pub(super) fn prepare(
    order_by: &[OrderBy],
    table: &Table,
    restrictions: &Restrictions,
    selection: &mut Selection,
) -> Result<(bool, Sort)> {
    if order_by.is_empty() || restrictions.nearest.is_some() {
        return Ok((false, Sort::new()));
    }
    if restrictions.uses_index {
        return Err(Error::invalid_request(
            "ORDER BY with 2ndary indexes is not supported, except for ANN queries.",
        ));
    }
    if restrictions.key_range {
        return Err(Error::invalid_request(
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ));
    }
    let mut columns: Vec<(ColumnRef, bool)> = Vec::with_capacity(order_by.len());
    for order in order_by {
        let column = find_column(table, &order.column)?;
        // A column that is named again keeps its position and takes the later direction.
        match columns.iter_mut().find(|(other, _)| *other == column) {
            Some((_, descending)) => *descending = order.descending,
            None => columns.push((column, order.descending)),
        }
    }
    let reversed = reversed(&columns, table, restrictions)?;
    let mut sort = Sort::new();
    if restrictions.keys_in {
        for (column, _) in &columns {
            let Some(def) = table.column(*column) else { continue };
            let fetch = selection.fetch(*column, false);
            sort.push((fetch, def.cql_type.clone(), reversed));
        }
    }
    Ok((reversed, sort))
}

fn reversed(
    columns: &[(ColumnRef, bool)],
    table: &Table,
    restrictions: &Restrictions,
) -> Result<bool> {
    let mut next = 0;
    let mut reversed = None;
    for (column, descending) in columns {
        let def = table.column(*column).ok_or_else(|| Error::invalid_request("no such column"))?;
        if column.kind != ColumnKind::Clustering {
            return Err(Error::InvalidRequest(format!(
                "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {}",
                def.name
            )));
        }
        while next != column.index {
            let skipped = ColumnRef { kind: ColumnKind::Clustering, index: next };
            if next > column.index || !restrictions.is_equal(skipped) {
                return Err(Error::invalid_request(
                    "Order by currently only supports the ordering of columns following their declared order in \
                     the PRIMARY KEY",
                ));
            }
            next += 1;
        }
        next += 1;
        let backwards = *descending != matches!(def.cql_type, CqlType::Reversed(_));
        if *reversed.get_or_insert(backwards) != backwards {
            return Err(Error::invalid_request("Unsupported order by relation"));
        }
    }
    Ok(reversed.unwrap_or(false))
}
