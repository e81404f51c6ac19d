//! Checks rows cell by cell: values and paths are valid for their types and in order, times are possible.

use std::cmp::Ordering;

use halcyon_model::clustering::{ClusteringValue, Position};
use halcyon_model::counter::CounterContext;
use halcyon_model::time::INVALID_DELETION_TIME;
use halcyon_model::token::{key_component_types, split_key};
use halcyon_model::{CqlType, DeletionTime};
use halcyon_stream::{Cell, Column, ColumnShape, Layout, Row, Statics};

use super::report::VerifyReport;
use crate::Component;

/// The report, and the offset in Data.db of the checked row or marker.
pub(super) struct ReportAt<'a> {
    pub(super) report: &'a mut VerifyReport,
    pub(super) offset: u64,
}

impl ReportAt<'_> {
    fn problem(&mut self, what: String) {
        self.report.problem(Component::Data, self.offset, what);
    }

    /// Times that overflowed when they were written: they are read as the end of time, as Cassandra reads them.
    fn remark(&mut self, what: String) {
        self.report.remark(Component::Data, self.offset, what);
    }

    pub(super) fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() && deletion.local_deletion_time == INVALID_DELETION_TIME {
            self.remark("deletion with an impossible local deletion time".into());
        }
    }
}

pub(super) fn check_key(layout: &Layout, key: &[u8], report: &mut ReportAt<'_>) {
    // Only the header of a legacy index has such a key type: its keys are elements of the collection, and which, it does not say.
    let elements = match &layout.key_type {
        CqlType::List(element) | CqlType::Set(element) => vec![element.as_ref().clone()],
        CqlType::Map(key, value) => {
            let (key, value) = (key.as_ref().clone(), value.as_ref().clone());
            vec![CqlType::Composite(vec![key.clone(), value.clone()]), key, value]
        }
        _ => Vec::new(),
    };
    if !elements.is_empty() {
        if !elements.iter().any(|element| element.validate(key).is_ok()) {
            let what =
                format!("partition key is not an element of a {}", layout.key_type.cql_name());
            report.problem(what);
        }
        return;
    }
    let types = key_component_types(&layout.key_type);
    let Some(components) = split_key(key, types.len()) else {
        return report.problem(format!("partition key is not of {} components", types.len()));
    };
    for (cql_type, component) in types.iter().zip(components) {
        if let Err(why) = cql_type.validate(component) {
            report.problem(format!("partition key is not a valid {}: {why}", cql_type.cql_name()));
        }
    }
}

pub(super) fn check_position(layout: &Layout, position: Position<'_>, report: &mut ReportAt<'_>) {
    let values = layout.clusterings.values(position.serialized, position.count);
    for (cql_type, value) in layout.clustering_types.iter().zip(values) {
        // Cassandra accepts empty values of any type.
        let ClusteringValue::Bytes(bytes) = value else { continue };
        if !bytes.is_empty()
            && let Err(why) = cql_type.validate(bytes)
        {
            report
                .problem(format!("clustering value is not a valid {}: {why}", cql_type.cql_name()));
        }
    }
}

/// Says whether a counter has local or remote shards.
pub(super) fn check_row(
    layout: &Layout,
    which: Statics,
    row: Row<'_>,
    report: &mut ReportAt<'_>,
) -> bool {
    report.deletion(&row.deletion.time);
    if row.liveness.local_expiration_time == INVALID_DELETION_TIME && !row.liveness.is_empty() {
        report.remark("row with an impossible expiration time".into());
    }
    for deletion in row.complex_deletions {
        report.deletion(&deletion.time);
    }
    let columns = layout.columns(which);
    let mut legacy_shards = false;
    let mut before: Option<&Cell> = None;
    for cell in row.cells {
        let Some(column) = columns.get(usize::from(cell.column)) else { continue };
        if let Some(before) = before
            && before.column == cell.column
        {
            check_paths(column, before.path.of(row.bytes), cell.path.of(row.bytes), report);
        }
        before = Some(cell);
        legacy_shards |= check_cell(column, cell, row.bytes, report);
    }
    legacy_shards
}

fn check_paths(column: &Column, before: &[u8], path: &[u8], report: &mut ReportAt<'_>) {
    let ColumnShape::Complex { path_type } = &column.shape else { return };
    if path_type.compare(before, path) != Ordering::Less {
        report.problem(format!("cells of column {} are out of order", name(column)));
    }
}

fn name(column: &Column) -> String {
    String::from_utf8_lossy(&column.name).into_owned()
}

fn check_cell(column: &Column, cell: &Cell, bytes: &[u8], report: &mut ReportAt<'_>) -> bool {
    if cell.local_deletion_time == INVALID_DELETION_TIME {
        let what = format!("cell of column {} with an impossible deletion time", name(column));
        report.remark(what);
    }
    let path = cell.path.of(bytes);
    let value = cell.value.of(bytes);
    let value_type = match (&column.cql_type, &column.shape) {
        (CqlType::List(element), _) => element.as_ref(),
        (CqlType::Set(_), _) => &CqlType::Empty,
        (CqlType::Map(_, value), _) => value.as_ref(),
        (CqlType::Udt(udt), _) => match field_of(udt, path) {
            Some(field) => field,
            None => {
                report.problem(format!("cell of column {} of no field of its type", name(column)));
                return false;
            }
        },
        (other, _) => other,
    };
    if let ColumnShape::Complex { path_type } = &column.shape
        && let Err(why) = path_type.validate(path)
    {
        report.problem(format!("cell path in column {}: {why}", name(column)));
    }
    if cell.is_tombstone() {
        return false;
    }
    if column.shape != ColumnShape::Counter {
        if let Err(why) = value_type.validate(value) {
            report.problem(format!("value of column {}: {why}", name(column)));
        }
        return false;
    }
    match CounterContext::decode(value) {
        Ok(context) => context.has_legacy_shards(),
        Err(error) => {
            report.problem(format!("counter in column {}: {}", name(column), error.what));
            false
        }
    }
}

fn field_of<'t>(udt: &'t halcyon_model::types::UserType, path: &[u8]) -> Option<&'t CqlType> {
    let index = u16::from_be_bytes(*path.first_chunk::<2>()?);
    udt.fields.get(usize::from(index)).map(|(_, cql_type)| cql_type)
}
