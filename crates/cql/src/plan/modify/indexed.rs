//! Refuses values that Cassandra's own indexes cannot hold: their terms are keys of partitions.

use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::ColumnKind;
use halcyon_stream::{Cell, Mutation, RowBuf};

use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::{Index, IndexPart};
use halcyon_syntax::{Error, Result};

/// The first size that is too large.
const TOO_LARGE: usize = 65535;

/// What a composite has beside its two components.
const COMPOSITE: usize = 6;

/// `CassandraIndex.validate`
pub(super) fn check(table: &Table, mutation: &Mutation) -> Result<()> {
    for index in table.indexes.iter().filter(|index| index.is_legacy()) {
        let Some(column) = table.indexed_column(index) else { continue };
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
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let at = usize::from(column.index);
    match column.kind {
        // One of several columns: the key itself is refused before.
        ColumnKind::PartitionKey => Box::new(std::iter::empty()),
        ColumnKind::Clustering => {
            let clusterings = &table.layout.clusterings;
            Box::new(mutation.rows.iter().filter_map(move |row| {
                let clustering = row.parts.clustering.of(&row.bytes);
                match clusterings.values(clustering, clusterings.len()).nth(at)? {
                    ClusteringValue::Bytes(value) => Some(value.len()),
                    _ => None,
                }
            }))
        }
        ColumnKind::Static => Box::new(
            mutation.static_row.iter().flat_map(move |row| of_cells(table, index, column, row)),
        ),
        ColumnKind::Regular => {
            Box::new(mutation.rows.iter().flat_map(move |row| of_cells(table, index, column, row)))
        }
    }
}

fn of_cells<'a>(
    table: &Table,
    index: &'a Index,
    column: ColumnRef,
    row: &'a RowBuf,
) -> impl Iterator<Item = usize> + 'a {
    let def = table.column(column);
    let is_set = def.is_some_and(|def| matches!(def.cql_type, CqlType::Set(_)));
    let size = move |cell: &Cell| {
        let (path, value) = (cell.path.of(&row.bytes).len(), cell.value.of(&row.bytes).len());
        match index.part {
            IndexPart::Keys => path,
            IndexPart::Values if is_set => path,
            IndexPart::Entries => path + value + COMPOSITE,
            IndexPart::Value | IndexPart::Values | IndexPart::Full => value,
        }
    };
    row.parts.cells.iter().filter(move |cell| cell.column == column.index).map(size)
}
