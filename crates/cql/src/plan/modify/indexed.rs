//! Refuses values that an index cannot hold: of Cassandra's own, the terms are keys of partitions; vectors must have a similarity; terms of
//! storage-attached ones have limits (`guard.rs`).

use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_model::similarity::floats;
use halcyon_model::token::split_key;
use halcyon_stream::{Cell, Mutation, RowBuf};

use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::{Index, IndexKind, IndexPart};
use halcyon_syntax::{Error, Result};

use super::guard::TermGuard;

/// The first size that is too large.
const TOO_LARGE: usize = 65535;

/// What a composite has beside its two components.
const COMPOSITE: usize = 6;

/// `CassandraIndex.validate`, `OnHeapGraph.validateIndexable`
pub(super) fn check(table: &Table, mutation: &Mutation, guard: &TermGuard) -> Result<()> {
    for index in &table.indexes {
        let Some(column) = table.indexed_column(index) else { continue };
        if index.kind == IndexKind::Sai {
            check_terms(table, (index, column), mutation, guard)?;
        }
        let similarity = table.term_type(index).and_then(|term| index.similarity(&term));
        if let Some(similarity) = similarity {
            let refused = |value: &[u8]| similarity.refusal(&floats(value));
            let mut values = values(table, column, mutation).map(|(_, value)| value);
            if let Some(refusal) = values.find_map(refused) {
                return Err(Error::InvalidRequest(refusal));
            }
        }
        if !index.is_legacy() {
            continue;
        }
        if let Some(size) = sizes(table, index, column, mutation).find(|size| *size >= TOO_LARGE) {
            return Err(Error::InvalidRequest(format!(
                "Cannot index value of size {size} for index {} on {}({}) (maximum allowed size={TOO_LARGE})",
                index.name,
                table.full_name(),
                index.column
            )));
        }
    }
    Ok(())
}

/// `StorageAttachedIndex.validate`
fn check_terms(
    table: &Table,
    (index, column): (&Index, ColumnRef),
    mutation: &Mutation,
    guard: &TermGuard,
) -> Result<()> {
    let Some(term_type) = table.term_type(index) else { return Ok(()) };
    let analysed = |term: &[u8]| index.analysis().map_or(term.len(), |a| a.apply(term).len());
    let check = |term: &[u8]| guard.check(index, &term_type, term.len(), || analysed(term));
    if column.kind == ColumnKind::PartitionKey {
        let of = table.schema.partition_key.len();
        let parts = split_key(&mutation.key.bytes, of).unwrap_or_default();
        let Some(part) = parts.get(usize::from(column.index)) else { return Ok(()) };
        return mutation.rows.iter().try_for_each(|_| check(part));
    }
    let is_set = table.column(column).is_some_and(|def| matches!(def.cql_type, CqlType::Set(_)));
    for (path, value) in values(table, column, mutation) {
        match index.part {
            IndexPart::Keys => check(path)?,
            IndexPart::Values if is_set => check(path)?,
            IndexPart::Entries => {
                let size = path.len() + value.len() + COMPOSITE;
                guard.check(index, &term_type, size, || size)?;
            }
            IndexPart::Value | IndexPart::Values | IndexPart::Full => check(value)?,
        }
    }
    Ok(())
}

/// Of all terms that an index gets of a mutation.
fn sizes<'a>(
    table: &'a Table,
    index: &'a Index,
    column: ColumnRef,
    mutation: &'a Mutation,
) -> impl Iterator<Item = usize> + 'a {
    let def = table.column(column);
    let is_set = def.is_some_and(|def| matches!(def.cql_type, CqlType::Set(_)));
    let size = move |(path, value): (&[u8], &[u8])| match index.part {
        IndexPart::Keys => path.len(),
        IndexPart::Values if is_set => path.len(),
        IndexPart::Entries => path.len() + value.len() + COMPOSITE,
        IndexPart::Value | IndexPart::Values | IndexPart::Full => value.len(),
    };
    values(table, column, mutation).map(size)
}

/// The values of a column, with the paths of their cells.
fn values<'a>(
    table: &'a Table,
    column: ColumnRef,
    mutation: &'a Mutation,
) -> Box<dyn Iterator<Item = (&'a [u8], &'a [u8])> + 'a> {
    let at = usize::from(column.index);
    match column.kind {
        // One of several columns: the key itself is refused before.
        ColumnKind::PartitionKey => Box::new(std::iter::empty()),
        ColumnKind::Clustering => {
            let clusterings = &table.layout.clusterings;
            Box::new(mutation.rows.iter().filter_map(move |row| {
                let clustering = row.parts.clustering.of(&row.bytes);
                match clusterings.values(clustering, clusterings.len()).nth(at)? {
                    ClusteringValue::Bytes(value) => Some((&[][..], value)),
                    _ => None,
                }
            }))
        }
        ColumnKind::Static => {
            Box::new(mutation.static_row.iter().flat_map(move |row| of_cells(column, row)))
        }
        ColumnKind::Regular => {
            Box::new(mutation.rows.iter().flat_map(move |row| of_cells(column, row)))
        }
    }
}

fn of_cells(column: ColumnRef, row: &RowBuf) -> impl Iterator<Item = (&[u8], &[u8])> {
    let parts = |cell: &Cell| (cell.path.of(&row.bytes), cell.value.of(&row.bytes));
    let is_value = move |cell: &&Cell| cell.column == column.index && !cell.is_tombstone();
    row.parts.cells.iter().filter(is_value).map(parts)
}
