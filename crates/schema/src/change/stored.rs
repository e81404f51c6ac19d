//! The types of a changed schema, as a start will read them: what a statement accepts, no start refuses.
//!
//! Stored types are spelled otherwise than the statement spelled them, and a changed user type changes its users: so their texts may
//! nest deeper than any that a statement had.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_syntax::Result;

use super::context::invalid;
use crate::UserTypeCatalog;
use crate::catalog::{Catalog, Keyspace, Table};

/// Reads back the types that `after` has and `before` has not.
pub(super) fn check(before: &Catalog, after: &Catalog) -> Result<()> {
    for (name, keyspace) in &after.keyspaces {
        let known = before.keyspaces.get(name);
        if !keyspace.is_virtual && known.is_none_or(|known| !Arc::ptr_eq(known, keyspace)) {
            check_keyspace(known.map(Arc::as_ref), keyspace)?;
        }
    }
    Ok(())
}

fn check_keyspace(before: Option<&Keyspace>, after: &Keyspace) -> Result<()> {
    let texts = after.types.iter().map(|(name, user_type)| {
        let fields = user_type.fields.iter();
        let field = |(name, of): &(Vec<u8>, CqlType)| {
            (String::from_utf8_lossy(name).into_owned(), of.cql_name())
        };
        (name.clone(), fields.map(field).collect())
    });
    let types = UserTypeCatalog::resolve(&after.name, &texts.collect::<BTreeMap<_, _>>());
    for (name, resolved) in types.all() {
        resolved.map_err(|error| invalid(format!("type {}.{name}: {error}", after.name)))?;
    }
    for of in after.functions.types() {
        types
            .parse(&of.cql_name())
            .map_err(|error| invalid(format!("a type of a function of {}: {error}", after.name)))?;
    }
    let known = |table: &Arc<Table>| {
        let same = before.and_then(|before| before.tables.get(&table.schema.name));
        same.is_some_and(|same| Arc::ptr_eq(same, table))
    };
    for table in after.tables.values().filter(|table| !known(table)) {
        for column in table.all_columns() {
            let cql_type = column.cql_type.base();
            // In `system_schema.columns`, and in the header of each SSTable.
            let read = types
                .parse(&cql_type.cql_name())
                .and_then(|_| CqlType::parse(&cql_type.to_string()));
            read.map_err(|error| {
                invalid(format!("type of column {}.{}: {error}", table.full_name(), column.name))
            })?;
        }
    }
    Ok(())
}
