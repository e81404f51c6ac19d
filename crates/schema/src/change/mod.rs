//! What a schema statement makes of a catalog.
//!
//! 1. Names are looked up; what may not be changed is refused (`forbidden`).
//! 2. The statement's own file makes a new keyspace of the old one, or Cassandra's error.
//! 3. The caller writes what differs (`rows::difference`) and makes the new catalog current.
//!
//! Errors and their order are Cassandra's.

mod alter;
mod column_type;
mod keyspace;
mod table;
mod table_options;
mod user_type;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use halcyon_model::options::{Compaction, MapOption};

use crate::catalog::{Catalog, Keyspace};
use crate::rows::{self, WriteTime};
use crate::system;
use halcyon_model::request::SchemaChange;
use halcyon_syntax::ast::{QualifiedName, StatementKind};
use halcyon_syntax::{Error, Result};

/// What a statement is executed in.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Set by USE.
    pub keyspace: Option<&'a str>,
    /// The one that this node is in: NetworkTopologyStrategy's `replication_factor` means it.
    pub data_center: &'a str,
    /// For a table that says none.
    pub default_compaction: Option<&'a MapOption<Compaction>>,
    /// For a table that says none: a time-based UUID that nothing else has.
    pub table_id: [u8; 16],
    pub at: WriteTime,
}

#[derive(Debug, Clone)]
pub struct Change {
    pub catalog: Catalog,
    /// `None`: there was nothing to do.
    pub event: Option<SchemaChange>,
    pub warnings: Vec<String>,
}

/// Executes a schema statement on a catalog.
pub fn change(
    catalog: &Catalog,
    statement: &StatementKind,
    context: &Context<'_>,
) -> Result<Change> {
    let mut made = dispatch(catalog, statement, context)?;
    let differs = made.catalog.keyspaces != catalog.keyspaces;
    if differs {
        made.catalog.version = rows::version(&made.catalog);
    } else {
        made.event = None;
    }
    Ok(made)
}

fn dispatch(catalog: &Catalog, statement: &StatementKind, context: &Context<'_>) -> Result<Change> {
    use StatementKind as Kind;
    match statement {
        Kind::CreateKeyspace { name, if_not_exists, options } => {
            keyspace::create(catalog, &name.text, *if_not_exists, options, context)
        }
        Kind::AlterKeyspace { name, if_exists, options } => {
            keyspace::alter(catalog, &name.text, *if_exists, options, context)
        }
        Kind::DropKeyspace { name, if_exists } => keyspace::remove(catalog, &name.text, *if_exists),
        Kind::CreateTable(create) => table::create(catalog, create, context),
        Kind::AlterTable { name, if_exists, change } => {
            alter::alter(catalog, name, *if_exists, change, context)
        }
        Kind::DropTable { name, if_exists } => table::remove(catalog, name, *if_exists, context),
        Kind::CreateType(create) => user_type::create(catalog, create, context),
        Kind::AlterType { name, if_exists, change } => {
            user_type::alter(catalog, name, *if_exists, change, context)
        }
        Kind::DropType { name, if_exists } => user_type::remove(catalog, name, *if_exists, context),
        _ => other(catalog, statement, context),
    }
}

/// What has no implementation yet, and dropping what there can therefore be none of.
fn other(catalog: &Catalog, statement: &StatementKind, context: &Context<'_>) -> Result<Change> {
    use StatementKind as Kind;
    let unsupported = |what: &str| Err(Error::NotSupportedYet(what.to_owned()));
    let gone = |if_exists: bool, message: String| match if_exists {
        true => Ok(unchanged(catalog)),
        false => Err(Error::InvalidRequest(message)),
    };
    let full = |name: &QualifiedName| -> Result<String> {
        Ok(format!("{}.{}", keyspace_name(name, context)?, name.name))
    };
    match statement {
        Kind::CreateView(_) => unsupported("materialized views"),
        Kind::CreateIndex(_) => unsupported("secondary indexes"),
        Kind::CreateFunction(_) => unsupported("user-defined functions"),
        Kind::CreateAggregate(_) => unsupported("user-defined aggregates"),
        Kind::CreateTrigger(_) => unsupported("triggers"),
        Kind::DropIndex { name, if_exists } => {
            gone(*if_exists, format!("Index '{}' doesn't exist'", full(name)?))
        }
        Kind::DropView { name, if_exists } | Kind::AlterView { name, if_exists, .. } => {
            gone(*if_exists, format!("Materialized view '{}' doesn't exist", full(name)?))
        }
        Kind::DropFunction { name, if_exists, .. } => {
            gone(*if_exists, format!("Function '{}' doesn't exist", full(name)?))
        }
        Kind::DropAggregate { name, if_exists, .. } => {
            gone(*if_exists, format!("Aggregate '{}' doesn't exist", full(name)?))
        }
        Kind::DropTrigger { name, table, if_exists } => {
            gone(*if_exists, format!("Trigger '{}' on '{}' doesn't exist", name.text, full(table)?))
        }
        _ => Err(Error::invalid_request("no schema statement")),
    }
}

fn unchanged(catalog: &Catalog) -> Change {
    Change { catalog: catalog.clone(), event: None, warnings: Vec::new() }
}

/// A catalog with one keyspace in another state.
fn with_keyspace(catalog: &Catalog, keyspace: Keyspace, event: SchemaChange) -> Change {
    let mut catalog = catalog.clone();
    catalog.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    Change { catalog, event: Some(event), warnings: Vec::new() }
}

fn invalid(message: String) -> Error {
    Error::InvalidRequest(message)
}

/// The keyspace that a name means.
fn keyspace_name<'a>(name: &'a QualifiedName, context: &Context<'a>) -> Result<&'a str> {
    name.keyspace.as_deref().or(context.keyspace).ok_or_else(|| {
        Error::invalid_request(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        )
    })
}

/// Refuses to change what belongs to the system (`ClientState.ensurePermission`). `what` is done to `resource`.
fn forbidden(catalog: &Catalog, keyspace: &str, what: &str, resource: &str) -> Result<()> {
    if system::is_local(keyspace) || catalog.is_virtual(keyspace) {
        let message = format!("{keyspace} keyspace is not user-modifiable.");
        return Err(Error::Unauthorized(message));
    }
    if system::is_replicated_system(keyspace) && !resource.is_empty() {
        return Err(Error::Unauthorized(format!("Cannot {what} <{resource}>")));
    }
    Ok(())
}

fn existing<'a>(catalog: &'a Catalog, keyspace: &str) -> Result<&'a Arc<Keyspace>> {
    catalog
        .keyspace(keyspace)
        .ok_or_else(|| invalid(format!("Keyspace '{keyspace}' doesn't exist")))
}
