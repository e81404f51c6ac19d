//! CREATE and DROP TRIGGER. A trigger is a Java class on the node's class path; this node loads none, so CREATE ends as it does in a
//! Cassandra that cannot find the class.

use halcyon_syntax::Result;
use halcyon_syntax::ast::{CreateTrigger, Name, QualifiedName};

use super::context::{
    Change, Context, existing, invalid, keyspace_name, system_keyspace, unchanged,
};
use crate::catalog::{Catalog, TableKind};

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateTrigger,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(&create.table, context)?;
    system_keyspace(catalog, keyspace)?;
    let keyspace = existing(catalog, keyspace)?;
    let Some(table) = keyspace.tables.get(&create.table.name) else {
        return Err(invalid(format!("Table '{}' doesn't exist", create.table.name)));
    };
    if table.kind == TableKind::View {
        return Err(invalid("Cannot CREATE TRIGGER for a materialized view".to_owned()));
    }
    // A table that comes from Cassandra may have triggers.
    let name = &create.name.text;
    if table.triggers.contains(name) {
        return match create.if_not_exists {
            true => Ok(unchanged(catalog)),
            false => Err(invalid(format!("Trigger '{name}' already exists"))),
        };
    }
    Err(invalid(format!("Trigger class '{}' couldn't be loaded", create.class)))
}

/// No trigger can be made; those of a directory that Cassandra wrote are not dropped either, because their class may be there.
pub(super) fn remove(
    catalog: &Catalog,
    name: &Name,
    table: &QualifiedName,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(table, context)?;
    system_keyspace(catalog, keyspace)?;
    if if_exists {
        return Ok(unchanged(catalog));
    }
    let (name, table) = (&name.text, &table.name);
    Err(invalid(format!("Trigger '{name}' on '{keyspace}.{table}' doesn't exist")))
}
