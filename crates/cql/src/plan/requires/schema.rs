//! What changes of the schema and TRUNCATE require.

use halcyon_model::CqlType;
use halcyon_model::access::{Permission, Resource};
use halcyon_schema::catalog::{Catalog, Keyspace};
use halcyon_schema::change::keyspace_of;
use halcyon_schema::function::signature;
use halcyon_syntax::ast::{
    CreateAggregate, CreateFunction, QualifiedName, StatementKind, TypeText,
};

use super::requirement::Requirement;
use crate::plan::term::resolve_type;

/// What names mean; `None` of an unknown name.
#[derive(Clone, Copy)]
struct Names<'a> {
    catalog: &'a Catalog,
    keyspace: Option<&'a str>,
}

impl<'a> Names<'a> {
    fn keyspace<'n>(self, name: &'n QualifiedName) -> Option<&'n str>
    where
        'a: 'n,
    {
        keyspace_of(name, self.keyspace).ok()
    }

    fn table(self, name: &QualifiedName) -> Option<Resource> {
        let (keyspace, table) = (self.keyspace(name)?.to_owned(), name.name.clone());
        Some(Resource::Table { keyspace, table })
    }

    fn all_tables(self, name: &QualifiedName) -> Option<Resource> {
        Some(Resource::AllTables(self.keyspace(name)?.to_owned()))
    }

    /// The base table of a view.
    fn base(self, view: &QualifiedName) -> Option<Resource> {
        let keyspace = self.keyspace(view)?;
        let table = self.catalog.table(keyspace, &view.name)?.view.as_ref()?.base.clone();
        Some(Resource::Table { keyspace: keyspace.to_owned(), table })
    }

    /// The table of an index.
    fn indexed(self, index: &QualifiedName) -> Option<Resource> {
        let keyspace = self.catalog.keyspace(self.keyspace(index)?)?;
        let mut tables = keyspace.tables.values();
        let table = tables.find(|table| table.index(&index.name).is_some())?;
        let (keyspace, table) = (keyspace.name.clone(), table.schema.name.clone());
        Some(Resource::Table { keyspace, table })
    }
}

pub(super) fn of(
    kind: &StatementKind,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Vec<Requirement> {
    let names = Names { catalog, keyspace };
    let on = |permission, resource: Option<Resource>| {
        resource.map(|resource| Requirement::Permission(permission, resource)).into_iter().collect()
    };
    let superuser = |refusal| vec![Requirement::Superuser(refusal)];
    match kind {
        StatementKind::CreateKeyspace { .. } => {
            on(Permission::Create, Some(Resource::AllKeyspaces))
        }
        StatementKind::AlterKeyspace { name, .. } => {
            on(Permission::Alter, Some(Resource::Keyspace(name.text.clone())))
        }
        StatementKind::DropKeyspace { name, .. } => {
            on(Permission::Drop, Some(Resource::Keyspace(name.text.clone())))
        }
        StatementKind::CreateType(create) => on(Permission::Create, names.all_tables(&create.name)),
        StatementKind::AlterType { name, .. } => on(Permission::Alter, names.all_tables(name)),
        StatementKind::DropType { name, .. } => on(Permission::Drop, names.all_tables(name)),
        StatementKind::CreateTable(create) => {
            on(Permission::Create, names.all_tables(&create.name))
        }
        StatementKind::AlterTable { name, .. } => on(Permission::Alter, names.table(name)),
        StatementKind::DropTable { name, .. } => on(Permission::Drop, names.table(name)),
        StatementKind::CreateView(create) => on(Permission::Alter, names.table(&create.base)),
        StatementKind::AlterView { name, .. } | StatementKind::DropView { name, .. } => {
            on(Permission::Alter, names.base(name))
        }
        StatementKind::CreateIndex(create) => on(Permission::Alter, names.table(&create.table)),
        StatementKind::DropIndex { name, .. } => on(Permission::Alter, names.indexed(name)),
        StatementKind::CreateFunction(create) => created_function(create, catalog, keyspace),
        StatementKind::CreateAggregate(create) => {
            created_aggregate(create, catalog, keyspace).unwrap_or_default()
        }
        StatementKind::DropFunction { name, arguments, .. }
        | StatementKind::DropAggregate { name, arguments, .. } => {
            dropped(name, arguments.as_deref(), catalog, keyspace).unwrap_or_default()
        }
        StatementKind::CreateTrigger(_) => {
            superuser("Only superusers are allowed to perform CREATE TRIGGER queries")
        }
        StatementKind::DropTrigger { .. } => {
            superuser("Only superusers are allowed to perfrom DROP TRIGGER queries")
        }
        StatementKind::Truncate { name } => on(Permission::Modify, names.table(name)),
        // The first three need nothing, the next ones have plans, roles are asked elsewhere.
        StatementKind::Use { .. }
        | StatementKind::Describe(_)
        | StatementKind::Skipped { .. }
        | StatementKind::Select(_)
        | StatementKind::Modification(_)
        | StatementKind::Batch(_)
        | StatementKind::Auth(_) => Vec::new(),
    }
}

fn types<'t>(
    texts: impl IntoIterator<Item = &'t TypeText>,
    catalog: &Catalog,
    keyspace: &str,
) -> Option<Vec<CqlType>> {
    let resolved = texts.into_iter().map(|text| resolve_type(text, catalog, keyspace));
    resolved.map(|resolved| resolved.ok().map(CqlType::freeze)).collect()
}

/// Where an overload is replaced, ALTER on it; else CREATE in its keyspace.
fn created(
    keyspace: &str,
    name: &str,
    (arguments, replace): (Option<Vec<CqlType>>, bool),
    known: Option<&Keyspace>,
) -> Requirement {
    let is_known = |arguments: &Vec<CqlType>| {
        let signature = signature(name, arguments);
        known.is_some_and(|known| {
            let functions = &known.functions;
            functions.scalars.contains_key(&signature)
                || functions.aggregates.contains_key(&signature)
        })
    };
    match arguments.filter(|arguments| replace && is_known(arguments)) {
        Some(arguments) => {
            Requirement::Permission(Permission::Alter, function(keyspace, name, arguments))
        }
        None => {
            Requirement::Permission(Permission::Create, Resource::FunctionsOf(keyspace.to_owned()))
        }
    }
}

fn function(keyspace: &str, name: &str, arguments: Vec<CqlType>) -> Resource {
    Resource::Function { keyspace: keyspace.to_owned(), name: name.to_owned(), arguments }
}

fn created_function(
    create: &CreateFunction,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Vec<Requirement> {
    let Ok(keyspace) = keyspace_of(&create.name, keyspace) else { return Vec::new() };
    let arguments = types(create.arguments.iter().map(|(_, text)| text), catalog, keyspace);
    let known = catalog.keyspace(keyspace).map(AsRef::as_ref);
    vec![created(keyspace, &create.name.name, (arguments, create.replace), known)]
}

/// The functions that it is made of have to be executable too.
fn created_aggregate(
    create: &CreateAggregate,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Option<Vec<Requirement>> {
    let keyspace = keyspace_of(&create.name, keyspace).ok()?;
    let known = catalog.keyspace(keyspace)?;
    let arguments = types(&create.arguments, catalog, keyspace)?;
    let state = types([&create.state_type], catalog, keyspace)?;
    let folds: Vec<CqlType> = state.iter().chain(&arguments).cloned().collect();
    let execute = |name: &String, arguments| {
        Requirement::Permission(Permission::Execute, function(keyspace, name, arguments))
    };
    let mut requires = vec![
        created(keyspace, &create.name.name, (Some(arguments), create.replace), Some(known)),
        execute(&create.state_function, folds),
    ];
    requires.extend(create.final_function.as_ref().map(|name| execute(name, state)));
    Some(requires)
}

/// DROP on each overload that the text can mean.
fn dropped(
    name: &QualifiedName,
    arguments: Option<&[TypeText]>,
    catalog: &Catalog,
    keyspace: Option<&str>,
) -> Option<Vec<Requirement>> {
    let known = catalog.keyspace(keyspace_of(name, keyspace).ok()?)?;
    let wanted = match arguments {
        Some(texts) => Some(signature(&name.name, &types(texts, catalog, &known.name)?)),
        None => None,
    };
    let functions = &known.functions;
    let scalars = functions.scalars_named(&name.name);
    let scalars = scalars.map(|of| (of.signature(), of.argument_types().cloned().collect()));
    let aggregates = functions.aggregates_named(&name.name);
    let aggregates = aggregates.map(|of| (of.signature(), of.arguments.clone()));
    let meant = scalars.chain(aggregates);
    let meant = meant.filter(|(own, _)| wanted.as_ref().is_none_or(|wanted| wanted == own));
    let requires = meant.map(|(_, arguments)| {
        Requirement::Permission(Permission::Drop, function(&known.name, &name.name, arguments))
    });
    Some(requires.collect())
}
