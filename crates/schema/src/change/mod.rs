//! Schema statements: each makes a new catalog from the current one.
//!
//! 1. Names are looked up; changes of system and virtual keyspaces are refused (`context::forbidden`).
//! 2. The statement's own file makes a new keyspace from the old one, or Cassandra's error.
//! 3. The caller writes the rows that differ (`rows::difference`) and makes the new catalog current.
//!
//! Errors and their order are Cassandra's.

mod aggregate;
mod alter;
mod column_type;
mod compact;
mod context;
mod function;
mod guard;
mod index;
mod keyspace;
mod mask;
mod sai;
mod sasi;
mod stored;
mod table;
mod table_options;
mod trigger;
mod user_type;
mod view;

#[cfg(test)]
mod tests;

use halcyon_syntax::ast::{QualifiedName, StatementKind};
use halcyon_syntax::{Error, Result};

pub use self::alter::drop_time;
pub use self::column_type::check_type_keyspace;
use self::context::keyspace_name;
pub use self::context::{
    Change, CheckViewRows, Context, Evaluate, FindMask, RestrictedRows, keyspace_of,
};
pub use self::function::new_function;
pub use self::guard::{validate, violated};
use crate::catalog::Catalog;
use crate::rows;

/// Executes a schema statement on a catalog.
pub fn change(
    catalog: &Catalog,
    statement: &StatementKind,
    context: &Context<'_>,
) -> Result<Change> {
    if let Some((Ok(keyspace), name)) = named(statement).map(|n| (keyspace_name(n, context), n)) {
        catalog.check_usable(keyspace, &name.name)?;
    }
    let mut made = dispatch(catalog, statement, context)?;
    rows::set_version(catalog, &mut made.catalog);
    if made.catalog.version == catalog.version {
        made.event = None;
    } else {
        stored::check(catalog, &made.catalog)?;
    }
    Ok(made)
}

/// The table or type that a statement makes or changes.
fn named(statement: &StatementKind) -> Option<&QualifiedName> {
    use StatementKind as Kind;
    match statement {
        Kind::CreateTable(create) => Some(&create.name),
        Kind::CreateType(create) => Some(&create.name),
        Kind::CreateIndex(create) => Some(&create.table),
        Kind::CreateView(create) => Some(&create.name),
        Kind::AlterTable { name, .. }
        | Kind::DropTable { name, .. }
        | Kind::AlterView { name, .. }
        | Kind::DropView { name, .. }
        | Kind::AlterType { name, .. }
        | Kind::DropType { name, .. } => Some(name),
        _ => None,
    }
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
        Kind::DropKeyspace { name, if_exists } => {
            keyspace::remove(catalog, &name.text, *if_exists, context)
        }
        Kind::CreateTable(create) => table::create(catalog, create, context),
        Kind::AlterTable { name, if_exists, change } => {
            alter::alter(catalog, name, *if_exists, change, context)
        }
        Kind::DropTable { name, if_exists } => table::remove(catalog, name, *if_exists, context),
        Kind::CreateType(create) => user_type::create(catalog, create, context),
        Kind::AlterType { name, if_exists, change } => {
            user_type::alter(catalog, name, *if_exists, change, context)
        }
        Kind::CreateIndex(create) => index::create(catalog, create, context),
        Kind::CreateView(create) => view::create(catalog, create, context),
        Kind::AlterView { name, if_exists, options } => {
            view::alter(catalog, name, *if_exists, options, context)
        }
        Kind::DropView { name, if_exists } => view::remove(catalog, name, *if_exists, context),
        Kind::CreateTrigger(create) => trigger::create(catalog, create, context),
        Kind::DropIndex { name, if_exists } => index::remove(catalog, name, *if_exists, context),
        Kind::DropType { name, if_exists } => user_type::remove(catalog, name, *if_exists, context),
        Kind::CreateFunction(create) => function::create(catalog, create, context),
        Kind::DropFunction { name, if_exists, arguments } => {
            function::remove(catalog, (name, *if_exists, arguments.as_deref()), context)
        }
        Kind::CreateAggregate(create) => aggregate::create(catalog, create, context),
        Kind::DropAggregate { name, if_exists, arguments } => {
            aggregate::remove(catalog, (name, *if_exists, arguments.as_deref()), context)
        }
        Kind::DropTrigger { name, table, if_exists } => {
            trigger::remove(catalog, name, table, *if_exists, context)
        }
        _ => Err(Error::invalid_request("no schema statement")),
    }
}
