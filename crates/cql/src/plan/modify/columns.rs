//! The columns that a modification names.

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::quote_identifier_if_needed;

use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::Name;
use halcyon_syntax::{Error, Result};

pub(super) fn column(table: &Table, name: &Name) -> Result<ColumnRef> {
    match table.find_column(&name.text) {
        Some(found) => Ok(found),
        None => Err(Error::InvalidRequest(format!(
            "Undefined column name {} in table {}",
            quote_identifier_if_needed(&name.text),
            table.full_name()
        ))),
    }
}

/// The receiver that a column is.
pub(super) fn spec_of(table: &Table, column: ColumnRef) -> ColumnSpec {
    let (name, cql_type) = match table.column(column) {
        Some(def) => (def.name.clone(), def.cql_type.base().clone()),
        None => (String::new(), CqlType::Blob),
    };
    ColumnSpec::of(&table.schema, name, cql_type)
}
