//! CREATE, ALTER and DROP MATERIALIZED VIEW, and what the changes of a base table do to its views.

use std::collections::BTreeSet;
use std::sync::Arc;

use halcyon_guardrails::Threshold;
use halcyon_model::CqlType;
use halcyon_model::request::SchemaAction;
use halcyon_model::schema::{ColumnDef, ColumnKind, TableSchema};
use halcyon_model::types::quote_identifier_if_needed as quoted;

use super::context::{
    Change, Context, forbidden, invalid, keyspace_name, system_keyspace, unchanged, with_keyspace,
};
use super::guard::{check_count, check_properties};
use super::mask;
use super::table::event;
use super::table_options;
use crate::catalog::{Catalog, ColumnRef, Keyspace, Table, TableKind};
use crate::checks;
use crate::view::{USAGE_WARNING, View};
use halcyon_syntax::ast::{
    CreateView, Name, QualifiedName, RawSelector, RawTerm, Relation, RelationTarget, Selection,
    TableOption,
};
use halcyon_syntax::{Error, Result};

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateView,
    context: &Context<'_>,
) -> Result<Change> {
    let name = &create.name.name;
    let keyspace = check_text(create, context)?;
    forbidden(catalog, keyspace, "ALTER", &format!("table {keyspace}.{}", create.base.name))?;
    if !context.views.is_creation_allowed {
        return refused("Materialized views are disabled. Enable in cassandra.yaml to use.");
    }
    let Some(known) = catalog.keyspace(keyspace) else {
        return Err(invalid(format!("Keyspace '{keyspace}' doesn't exist")));
    };
    let is_table = |table: &&Arc<Table>| table.kind == TableKind::Regular;
    let found = known.tables.get(&create.base.name);
    let Some(base) = found.filter(is_table) else {
        return Err(invalid(format!("Base table '{}' doesn't exist", create.base.name)));
    };
    match known.tables.get(name) {
        Some(other) if other.kind != TableKind::View => {
            return Err(invalid(format!(
                "Cannot create materialized view '{name}' - a table with the same name already exists"
            )));
        }
        Some(_) if create.if_not_exists => {
            let warnings = vec![USAGE_WARNING.to_owned()];
            return Ok(Change { warnings, ..unchanged(catalog) });
        }
        Some(_) => {
            return Err(Error::AlreadyExists {
                keyspace: keyspace.to_owned(),
                table: name.clone(),
                message: format!(
                    "Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""
                ),
            });
        }
        None => {}
    }
    if base.is_counter() {
        return refused("Materialized views are not supported on counter tables");
    }
    let create = &mut create.clone();
    check_properties(context.guard, &mut create.properties.options)?;
    let create = &*create;
    let (count, what) = (base.views.len() + 1, format!("{name} on table {}", base.schema.name));
    check_count(context.guard, Threshold::MaterializedViewsPerTable, count, &what)?;
    if base.schema.options.gc_grace_seconds() == 0 {
        return Err(invalid(format!(
            "Cannot create materialized view '{name}' for base table '{}' with gc_grace_seconds of 0, since this value is used to \
             TTL undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to expire before being \
             replayed.",
            base.schema.name
        )));
    }
    let selected = selected(create, base)?;
    let key = key(create, base, &selected)?;
    check_rows(catalog, create, base, &key, context)?;
    let mut table = table(create, base, known, &selected, &key, context)?;
    table.masks = mask::in_view(base, &table);
    let warnings = vec![USAGE_WARNING.to_owned()];
    let mut changed = Keyspace::clone(known);
    changed.tables.insert(name.clone(), Arc::new(table));
    note_views(&mut changed, &base.schema.name);
    let event = event(SchemaAction::Created, keyspace, name);
    Ok(Change { warnings, ..with_keyspace(catalog, changed, event) })
}

fn refused<T>(message: &str) -> Result<T> {
    Err(Error::invalid_request(message))
}

/// What is wrong whatever the schema is.
fn check_text<'a>(create: &'a CreateView, context: &Context<'a>) -> Result<&'a str> {
    let keyspace = keyspace_name(&create.name, context)?;
    if create.base.keyspace.as_deref().is_some_and(|other| other != keyspace) {
        return refused("Cannot create a materialized view on a table in a different keyspace");
    }
    if create.has_markers {
        return refused("Bind variables are not allowed in CREATE MATERIALIZED VIEW statements");
    }
    Ok(keyspace)
}

/// Cassandra's message shows the selector; most of them it shows as the addresses of Java objects.
fn not_by_name(selector: &RawSelector) -> Error {
    let bound = |term: &Option<RawTerm>| term.as_ref().map(RawTerm::to_string).unwrap_or_default();
    let part = match selector {
        RawSelector::Element { selector, key } => Some((selector, key.to_string())),
        RawSelector::Slice { selector, from, to } => {
            Some((selector, format!("{}..{}", bound(from), bound(to))))
        }
        _ => None,
    };
    let shown = match part.as_ref().map(|(of, part)| (of.as_ref(), part)) {
        Some((RawSelector::Column(column), part)) => format!(" (got {}[{part}])", column.text),
        _ => String::new(),
    };
    invalid(format!("Can only select columns by name when defining a materialized view{shown}"))
}

/// The columns of the base that the view has.
fn selected(create: &CreateView, base: &Table) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    match &create.selection {
        Selection::All => names.extend(base.all_columns().map(|column| column.name.clone())),
        Selection::Items(items) => {
            for item in items {
                if item.alias.is_some() {
                    return refused("Cannot use aliases when defining a materialized view");
                }
                let RawSelector::Column(name) = &item.selector else {
                    return Err(not_by_name(&item.selector));
                };
                if base.find_column(&name.text).is_none() {
                    return Err(invalid(format!(
                        "Undefined column name {} in table {}",
                        quoted(&name.text),
                        base.full_name()
                    )));
                }
                names.insert(name.text.clone());
            }
        }
    }
    match base.schema.statics.iter().find(|column| names.contains(&column.name)) {
        None => Ok(names),
        Some(column) => Err(invalid(format!(
            "Cannot include static column '{}' in materialized view '{}'",
            column.name, create.name.name
        ))),
    }
}

/// The columns of the base that the view's primary key has, in its order.
fn key(
    create: &CreateView,
    base: &Table,
    selected: &BTreeSet<String>,
) -> Result<Vec<(Name, ColumnRef)>> {
    let view = &create.name.name;
    let mut key: Vec<(Name, ColumnRef)> = Vec::new();
    for name in create.primary_key.partition_key.iter().chain(&create.primary_key.clustering) {
        let found = base.find_column(&name.text).filter(|_| selected.contains(&name.text));
        let Some((at, column)) = found.and_then(|at| Some((at, base.column(at)?))) else {
            return Err(invalid(format!(
                "Unknown column '{}' referenced in PRIMARY KEY for materialized view '{view}'",
                name.text
            )));
        };
        if key.iter().any(|(other, _)| other.text == name.text) {
            return Err(invalid(format!(
                "Duplicate column '{}' in PRIMARY KEY clause for materialized view '{view}'",
                name.text
            )));
        }
        check_view_key(column)?;
        key.push((name.clone(), at));
    }
    let order = &create.properties.clustering_order;
    let ordered = order.iter().map(|(name, _)| &name.text);
    if !order.is_empty() && !ordered.eq(create.primary_key.clustering.iter().map(|n| &n.text)) {
        return refused(
            "Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive",
        );
    }
    let in_key = |name: &str| key.iter().any(|(known, _)| known.text == name);
    let of_base = base.schema.partition_key.iter().chain(&base.schema.clustering);
    let missing = of_base.map(|column| column.name.as_str()).filter(|name| !in_key(name));
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        return Err(invalid(format!(
            "Cannot create materialized view '{view}' without primary key columns {} from base table '{}'",
            missing.join(", "),
            base.schema.name
        )));
    }
    let others: Vec<&str> = key
        .iter()
        .filter(|(_, at)| !at.kind.is_key())
        .map(|(name, _)| name.text.as_str())
        .collect();
    if others.len() > 1 {
        return Err(invalid(format!(
            "Cannot include more than one non-primary key column in materialized view primary key (got {})",
            others.join(", ")
        )));
    }
    Ok(key)
}

/// As of a table, except that Cassandra names the classes of types.
fn check_view_key(column: &ColumnDef) -> Result<()> {
    let (name, cql_type) = (&column.name, &column.cql_type);
    let kind = match cql_type {
        CqlType::Udt(_) => "user-defined",
        collection if collection.is_multi_cell() => "collection",
        _ => return checks::key_column(column),
    };
    Err(invalid(format!(
        "Invalid non-frozen {kind} type '{cql_type}' for PRIMARY KEY column '{name}'"
    )))
}

/// Every column of the view's primary key is restricted, and others only by `IS NOT NULL` (CASSANDRA-13798).
fn check_rows(
    catalog: &Catalog,
    create: &CreateView,
    base: &Table,
    key: &[(Name, ColumnRef)],
    context: &Context<'_>,
) -> Result<()> {
    let has = |target: fn(&RelationTarget) -> bool| {
        create.relations.iter().any(|relation| target(&relation.target))
    };
    if has(|target| matches!(target, RelationTarget::Token(_))) {
        return refused("Cannot use token relation when defining a materialized view");
    }
    if has(|target| matches!(target, RelationTarget::Expression(_))) {
        return Err(invalid(format!(
            "WHERE clause for materialized view '{}' cannot contain custom index expressions",
            create.name.name
        )));
    }
    let restricted = (context.view_rows)(catalog, base, &create.relations)?;
    let open = key.iter().map(|(name, _)| &name.text);
    let open: Vec<&str> =
        open.filter(|name| !restricted.any.contains(name)).map(String::as_str).collect();
    if !open.is_empty() {
        return Err(invalid(format!(
            "Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise",
            open.join(", ")
        )));
    }
    if restricted.regulars.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} restricted illegally)",
        restricted.regulars.join(",")
    )))
}

fn table(
    create: &CreateView,
    base: &Table,
    keyspace: &Keyspace,
    selected: &BTreeSet<String>,
    key: &[(Name, ColumnRef)],
    context: &Context<'_>,
) -> Result<Table> {
    let name = &create.name.name;
    let stated = &create.properties.options;
    let options = table_options::for_new_table(stated, context.default_compaction)?;
    table_options::check_names(stated)?;
    let id = table_options::table_id(stated)?;
    table_options::check(&options)?;
    if options.default_time_to_live != 0 {
        return refused(
            "Cannot set default_time_to_live for a materialized view. Data in a materialized view always expire at the same time \
             than the corresponding data in the parent table.",
        );
    }
    checks::table_name(&keyspace.name, name)?;
    let in_key = |column: &&ColumnDef| key.iter().any(|(name, _)| name.text == column.name);
    let mut columns = key.iter().filter_map(|(_, at)| base.column(*at).cloned());
    let mut partition_key: Vec<ColumnDef> =
        columns.by_ref().take(create.primary_key.partition_key.len()).collect();
    for column in &mut partition_key {
        column.cql_type = column.cql_type.base().clone();
    }
    let mut clustering: Vec<ColumnDef> = columns.collect();
    for (column, (_, descending)) in clustering.iter_mut().zip(&create.properties.clustering_order)
    {
        let ascending = column.cql_type.base().clone();
        column.cql_type =
            if *descending { CqlType::Reversed(Box::new(ascending)) } else { ascending };
    }
    let rest = base.schema.regulars.iter().filter(|column| selected.contains(&column.name));
    let regulars = rest.filter(|column| !in_key(column)).cloned().collect();
    let id = id.unwrap_or(context.table_id);
    let schema = TableSchema {
        keyspace: keyspace.name.clone(),
        name: name.clone(),
        id: Some(id),
        partition_key,
        clustering,
        statics: Vec::new(),
        regulars,
        dropped: Vec::new(),
        options,
        strict_liveness: key.iter().any(|(_, at)| !at.kind.is_key()),
    };
    let mut table = Table::new(id, TableKind::View, schema);
    table.view = Some(View {
        base_id: base.id,
        base: base.schema.name.clone(),
        includes_all: create.selection == Selection::All,
        where_clause: where_clause(&create.relations),
    });
    Ok(table)
}

fn where_clause(relations: &[Relation]) -> String {
    let texts: Vec<String> = relations.iter().map(|relation| relation.text(quoted)).collect();
    texts.join(" AND ")
}

/// Tells a base table which views are on it.
fn note_views(keyspace: &mut Keyspace, base: &str) {
    let Some(table) = keyspace.tables.get(base) else { return };
    let is_on_it = |view: &&Arc<Table>| view.view.as_ref().is_some_and(|v| v.base_id == table.id);
    let views = keyspace.tables.values().filter(is_on_it);
    let views: Vec<String> = views.map(|view| view.schema.name.clone()).collect();
    let changed = Table { views, ..Table::clone(table) };
    keyspace.tables.insert(base.to_owned(), Arc::new(changed));
}

type FoundView<'a> = Option<(&'a Arc<Keyspace>, &'a Arc<Table>, &'a View)>;

fn find<'a>(
    catalog: &'a Catalog,
    name: &QualifiedName,
    if_exists: bool,
    context: &Context<'a>,
) -> Result<FoundView<'a>> {
    let keyspace = keyspace_name(name, context)?;
    system_keyspace(catalog, keyspace)?;
    let known = catalog.keyspace(keyspace);
    let table = known.and_then(|known| known.tables.get(&name.name));
    let found =
        known.zip(table).and_then(|(known, table)| Some((known, table, table.view.as_ref()?)));
    if found.is_none() && !if_exists {
        return Err(invalid(format!("Materialized view '{keyspace}.{}' doesn't exist", name.name)));
    }
    Ok(found)
}

pub(super) fn alter(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    options: &[TableOption],
    context: &Context<'_>,
) -> Result<Change> {
    let Some((known, table, _)) = find(catalog, name, if_exists, context)? else {
        return Ok(unchanged(catalog));
    };
    let mut options = options.to_vec();
    check_properties(context.guard, &mut options)?;
    let mut schema = table.schema.clone();
    table_options::alter(&mut schema.options, &options)?;
    if schema.options.gc_grace_seconds() == 0 {
        return refused(
            "Cannot alter gc_grace_seconds of a materialized view to 0, since this value is used to TTL undelivered updates. \
             Setting gc_grace_seconds too low might cause undelivered updates to expire before being replayed.",
        );
    }
    if schema.options.default_time_to_live > 0 {
        return refused(
            "Forbidden default_time_to_live detected for a materialized view. Data in a materialized view always expire at the \
             same time than the corresponding data in the parent table. default_time_to_live must be set to zero, see \
             CASSANDRA-12868 for more information",
        );
    }
    let mut changed = Keyspace::clone(known);
    changed.tables.insert(name.name.clone(), Arc::new(table.altered(schema)));
    let event = event(SchemaAction::Updated, &known.name, &name.name);
    Ok(with_keyspace(catalog, changed, event))
}

pub(super) fn remove(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    let Some((known, _, view)) = find(catalog, name, if_exists, context)? else {
        return Ok(unchanged(catalog));
    };
    let mut changed = Keyspace::clone(known);
    changed.tables.remove(&name.name);
    note_views(&mut changed, &view.base);
    let event = event(SchemaAction::Dropped, &known.name, &name.name);
    Ok(with_keyspace(catalog, changed, event))
}

/// The views on a table, with what a change of the table has made of it.
pub(super) fn follow(keyspace: &mut Keyspace, before: &Table, after: &TableSchema) -> Result<()> {
    for name in &before.views {
        let Some(table) = keyspace.tables.get(name) else { continue };
        let Some(view) = &table.view else { continue };
        let mut changed = Table::clone(table);
        let mut schema = table.schema.clone();
        let mut view = view.clone();
        if view.includes_all {
            let has = |column: &&ColumnDef| before.find_column(&column.name).is_none();
            schema.regulars.extend(after.regulars.iter().filter(has).cloned());
            schema.regulars.sort_by(ColumnDef::compare);
        }
        for (from, to) in renamed(before, after) {
            let keys = schema.partition_key.iter_mut().chain(&mut schema.clustering);
            keys.filter(|column| column.name == *from).for_each(|column| column.name = to.clone());
            let mut relations = halcyon_syntax::parse_relations(&view.where_clause)?;
            relations.iter_mut().for_each(|relation| relation.rename(from, to));
            view.where_clause = where_clause(&relations);
        }
        if schema != table.schema || Some(&view) != table.view.as_ref() {
            changed.view = Some(view);
            changed = changed.altered(schema);
            keyspace.tables.insert(name.clone(), Arc::new(changed));
        }
    }
    Ok(())
}

/// Key columns with another name than before.
fn renamed<'a>(
    before: &'a Table,
    after: &'a TableSchema,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let keys = |kind: ColumnKind, after: &'a [ColumnDef]| before.columns(kind).iter().zip(after);
    let partition = keys(ColumnKind::PartitionKey, &after.partition_key);
    let pairs = partition.chain(keys(ColumnKind::Clustering, &after.clustering));
    pairs.filter(|(from, to)| from.name != to.name).map(|(from, to)| (&from.name, &to.name))
}
