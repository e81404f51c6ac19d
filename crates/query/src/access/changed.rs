//! What changes of the schema mean for permissions: a creator gets all of them on what is new, and no role keeps any on what is dropped.

use std::sync::Arc;

use halcyon_model::access::{Principal, Resource};
use halcyon_schema::catalog::{Catalog, Keyspace};
use halcyon_syntax::ast::StatementKind;

use super::{grants, store};
use crate::coordinator::Coordinator;
use crate::{Error, Result};

/// The keyspace that a statement has changed, before and after it.
#[derive(Default)]
pub(crate) struct Changed {
    pub(crate) before: Option<Arc<Keyspace>>,
    pub(crate) after: Option<Arc<Keyspace>>,
}

impl Changed {
    pub(crate) fn of(before: &Catalog, after: &Catalog, keyspace: &str) -> Changed {
        let of = |catalog: &Catalog| catalog.keyspace(keyspace).cloned();
        Changed { before: of(before), after: of(after) }
    }
}

/// Grants and revokes what follows from a change that was made.
pub(crate) async fn follow(
    coordinator: &Coordinator,
    kind: &StatementKind,
    changed: &Changed,
    principal: &Principal,
) -> Result<()> {
    if !coordinator.access().shared.settings().authorizes {
        return Ok(());
    }
    let done = async {
        if let Principal::Role { name, .. } = principal {
            for resource in created(kind, changed) {
                let all = resource.kind().applicable();
                grants::add(coordinator, name, &resource, all).await?;
            }
        }
        for resource in dropped(changed) {
            grants::revoke_all_on(coordinator, &resource).await?;
        }
        store::changed(coordinator)
    };
    let failed = |error: Error| {
        Error::Server(format!(
            "the schema has changed, but the permissions on its resource have not: {error}; grant or revoke them"
        ))
    };
    done.await.map(drop).map_err(failed)
}

/// `AlterSchemaStatement.createdResources`: views and types have no permissions of their own.
fn created(kind: &StatementKind, changed: &Changed) -> Vec<Resource> {
    let (before, Some(after)) = (changed.before.as_deref(), changed.after.as_deref()) else {
        return Vec::new();
    };
    match kind {
        StatementKind::CreateKeyspace { .. } if before.is_none() => {
            let name = &after.name;
            vec![Resource::Keyspace(name.clone()), Resource::FunctionsOf(name.clone())]
        }
        StatementKind::CreateTable(_)
        | StatementKind::CreateFunction(_)
        | StatementKind::CreateAggregate(_) => missing(Some(after), before),
        _ => Vec::new(),
    }
}

/// `AuthSchemaChangeListener`
fn dropped(changed: &Changed) -> Vec<Resource> {
    let Some(before) = changed.before.as_deref() else { return Vec::new() };
    let mut gone = missing(Some(before), changed.after.as_deref());
    if changed.after.is_none() {
        let name = &before.name;
        gone.push(Resource::Keyspace(name.clone()));
        gone.push(Resource::AllTables(name.clone()));
        gone.push(Resource::FunctionsOf(name.clone()));
    }
    gone
}

/// Tables, views, functions and aggregates that only the first has.
fn missing(first: Option<&Keyspace>, second: Option<&Keyspace>) -> Vec<Resource> {
    let Some(first) = first else { return Vec::new() };
    let keyspace = || first.name.clone();
    let is_table = |name: &&String| !second.is_some_and(|of| of.tables.contains_key(*name));
    let tables = first.tables.keys().filter(is_table);
    let tables = tables.map(|name| Resource::Table { keyspace: keyspace(), table: name.clone() });
    let scalars = first.functions.scalars.iter();
    let scalars = scalars
        .filter(|(own, _)| !second.is_some_and(|of| of.functions.scalars.contains_key(*own)));
    let scalars = scalars.map(|(_, of)| (of.name.clone(), of.argument_types().cloned().collect()));
    let aggregates = first.functions.aggregates.iter();
    let aggregates = aggregates
        .filter(|(own, _)| !second.is_some_and(|of| of.functions.aggregates.contains_key(*own)));
    let aggregates = aggregates.map(|(_, of)| (of.name.clone(), of.arguments.clone()));
    let functions = scalars.chain(aggregates).map(|(name, arguments)| Resource::Function {
        keyspace: keyspace(),
        name,
        arguments,
    });
    tables.chain(functions).collect()
}
