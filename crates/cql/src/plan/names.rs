//! The table that a statement names.

use std::sync::Arc;

use halcyon_schema::catalog::{Catalog, Table};
use halcyon_syntax::ast::QualifiedName;
use halcyon_syntax::{Error, Result};

/// The table that a statement names (`Schema.validateTable`).
pub fn find_table<'a>(
    name: &QualifiedName,
    catalog: &'a Catalog,
    keyspace: Option<&str>,
) -> Result<&'a Arc<Table>> {
    let keyspace = name.keyspace.as_deref().or(keyspace).ok_or_else(|| {
        Error::invalid_request(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    })?;
    catalog.check_usable(keyspace, &name.name)?;
    let keyspace = catalog
        .keyspace(keyspace)
        .ok_or_else(|| Error::invalid_request(format!("keyspace {keyspace} does not exist")))?;
    keyspace
        .tables
        .get(&name.name)
        .ok_or_else(|| Error::invalid_request(format!("table {} does not exist", name.name)))
}
