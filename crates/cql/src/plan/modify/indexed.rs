//! Refuses values that an index cannot hold: of Cassandra's own, the terms are keys of partitions; vectors must have a similarity.

use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_model::similarity::floats;
use halcyon_stream::{Cell, Mutation, RowBuf};

use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::{Index, IndexPart};
use halcyon_syntax::{Error, Result};

/// The first size that is too large.
const TOO_LARGE: usize = 65535;

/// What a composite has beside its two components.
const COMPOSITE: usize = 6;

/// `CassandraIndex.validate`, `OnHeapGraph.validateIndexable`
pub(super) fn check(table: &Table, mutation: &Mutation) -> Result<()> {
    for index in &table.indexes {
        let Some(column) = table.indexed_column(index) else { continue };
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
