//! The table that a statement names.

use std::sync::Arc;

use halcyon_schema::catalog::{Catalog, Table};
use halcyon_schema::change::keyspace_of;
use halcyon_syntax::ast::QualifiedName;
use halcyon_syntax::{Error, Result};

/// The table that a statement names (`Schema.validateTable`).
pub fn find_table<'a>(
    name: &QualifiedName,
    catalog: &'a Catalog,
    keyspace: Option<&str>,
) -> Result<&'a Arc<Table>> {
    let keyspace = keyspace_of(name, keyspace)?;
    catalog.check_usable(keyspace, &name.name)?;
    let keyspace = catalog
        .keyspace(keyspace)
        .ok_or_else(|| Error::invalid_request(format!("keyspace {keyspace} does not exist")))?;
    keyspace
        .tables
        .get(&name.name)
        .ok_or_else(|| Error::invalid_request(format!("table {} does not exist", name.name)))
}
