//! CREATE and DROP TABLE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use halcyon_guardrails::Flag;
use halcyon_model::CqlType;
use halcyon_model::request::{SchemaAction, SchemaChange, SchemaTarget};
use halcyon_model::schema::{ColumnDef, TableSchema};

use super::column_type::{nests_cells, resolve};
use super::compact;
use super::context::{
    Change, Context, existing, forbidden, invalid, keyspace_name, unchanged, with_keyspace,
};
use super::guard::{check_compression, violated};
use super::{mask, table_options};
use crate::catalog::{Catalog, Keyspace, Table, TableKind, refuse_derived};
use crate::checks;
use crate::java_hash;
use crate::mask::ColumnMask;
use halcyon_syntax::ast::{ColumnText, CreateTable, Name, PrimaryKey, QualifiedName};
use halcyon_syntax::{Error, Result};

pub(super) fn event(action: SchemaAction, keyspace: &str, name: &str) -> SchemaChange {
    let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
    SchemaChange { action, target: SchemaTarget::Table, keyspace, name, arguments: Vec::new() }
}

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateTable,
    context: &Context<'_>,
) -> Result<Change> {
    let name = &create.name.name;
    let keyspace = keyspace_name(&create.name, context)?;
    let key = declared_key(create)?;
    forbidden(catalog, keyspace, "CREATE", &format!("all tables in {keyspace}"))?;
    let given = &create.properties.options;
    let options = table_options::for_new_table(given, context.default_compaction)?;
    if create.columns.iter().any(|column| column.mask.is_some()) {
        mask::check_enabled(context)?;
    }
    let known = existing(catalog, keyspace)?;
    if known.tables.contains_key(name) {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        return Err(Error::AlreadyExists {
            keyspace: keyspace.to_owned(),
            table: name.clone(),
            message: format!(
                "Cannot add already existing table \"{name}\" to keyspace \"{keyspace}\""
            ),
        });
    }
    table_options::check_names(given)?;
    table_options::check(&options)?;
    let mut declared = Declared::of(create, known, context)?;
    check_key(create, key, &declared)?;
    check_order(create, key)?;
    let masks = std::mem::take(&mut declared.masks);
    let mut schema = columns(create, key, declared, known)?;
    schema.options = options;
    schema.options.compact_storage = create.properties.compact_storage;
    if checks::is_counter(&schema) && schema.options.default_time_to_live > 0 {
        return Err(counter_ttl());
    }
    let id = table_options::table_id(given)?.unwrap_or(context.table_id);
    checks::table_name(keyspace, name)?;
    checks::counters(&schema)?;
    if let Some(other) = catalog.tables().find(|table| table.id == id) {
        return Err(invalid(format!("Table with id exists already: {}", other.full_name())));
    }
    check_compression(context.guard, &schema.options)?;
    schema.id = Some(id);
    let table = Table { masks, ..Table::new(id, TableKind::Regular, schema) };
    let mut changed = Keyspace::clone(known);
    changed.tables.insert(name.clone(), Arc::new(table));
    Ok(with_keyspace(catalog, changed, event(SchemaAction::Created, keyspace, name)))
}

pub(super) fn counter_ttl() -> Error {
    Error::invalid_request("Cannot set default_time_to_live on a table with counters")
}

fn declared_key(create: &CreateTable) -> Result<&PrimaryKey> {
    create.primary_keys.first().ok_or_else(|| {
        let table = &create.name;
        invalid(format!("No PRIMARY KEY specifed for table '{table}' (exactly one required)"))
    })
}

/// The columns of a statement, with their types looked up.
struct Declared<'a> {
    /// By name: the column, and whether it is static.
    columns: BTreeMap<&'a str, (ColumnDef, bool)>,
    masks: BTreeMap<String, ColumnMask>,
}

impl<'a> Declared<'a> {
    fn of(create: &'a CreateTable, keyspace: &Keyspace, context: &Context<'_>) -> Result<Self> {
        let table = (keyspace.name.as_str(), create.name.name.as_str());
        let mut declared = Declared { columns: BTreeMap::new(), masks: BTreeMap::new() };
        let mut columns: Vec<&ColumnText> = create.columns.iter().collect();
        java_hash::sort_filled(&mut columns, |column| &column.name.text);
        for column in columns {
            let name = &column.name.text;
            let cql_type = resolve(&column.column_type, keyspace)?;
            let mask = mask::of_column(table, column, &cql_type, context)?;
            declared.masks.extend(mask.map(|mask| (name.clone(), mask)));
            let def = ColumnDef { name: name.clone(), cql_type };
            declared.columns.insert(name, (def, column.is_static));
        }
        match declared.columns.values().any(|(column, _)| nests_cells(&column.cql_type)) {
            false => Ok(declared),
            true => Err(Error::invalid_request(
                "Non-frozen UDTs with nested non-frozen collections are not supported",
            )),
        }
    }
}

/// The key is made of columns that are declared, each once, none static, of types that a key may have.
fn check_key(create: &CreateTable, key: &PrimaryKey, declared: &Declared<'_>) -> Result<()> {
    let table = &create.name.name;
    let mut seen = BTreeSet::new();
    for Name { text, .. } in key.partition_key.iter().chain(&key.clustering) {
        let Some((column, is_static)) = declared.columns.get(text.as_str()) else {
            return Err(invalid(format!(
                "Unknown column '{text}' referenced in PRIMARY KEY for table '{table}'"
            )));
        };
        if !seen.insert(text) {
            return Err(invalid(format!(
                "Duplicate column '{text}' in PRIMARY KEY clause for table '{table}'"
            )));
        }
        checks::key_column(column)?;
        if *is_static {
            let what = format!("Static column '{text}' cannot be part of the PRIMARY KEY");
            return Err(invalid(what));
        }
    }
    Ok(())
}

/// `CLUSTERING ORDER BY` names all clustering columns up to its last, in their order.
fn check_order(create: &CreateTable, key: &PrimaryKey) -> Result<()> {
    let order = &create.properties.clustering_order;
    let clustering: BTreeSet<&str> = key.clustering.iter().map(|name| name.text.as_str()).collect();
    let strangers: Vec<&str> = order
        .iter()
        .filter(|(name, _)| !clustering.contains(name.text.as_str()))
        .map(|(name, _)| name.text.as_str())
        .collect();
    if !strangers.is_empty() {
        return Err(invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not clustering columns",
            strangers.join(", ")
        )));
    }
    for (index, (name, _)) in order.iter().enumerate() {
        let Some(expected) = key.clustering.get(index) else { continue };
        if expected.text == name.text {
            continue;
        }
        if !order.iter().any(|(other, _)| other.text == expected.text) {
            return Err(invalid(format!("Missing CLUSTERING ORDER for column {}", expected.text)));
        }
        return Err(invalid(format!(
            "The order of columns in the CLUSTERING ORDER directive must match that of the clustering columns ({} must appear before {})",
            expected.text, name.text
        )));
    }
    Ok(())
}

fn columns(
    create: &CreateTable,
    key: &PrimaryKey,
    declared: Declared<'_>,
    keyspace: &Keyspace,
) -> Result<TableSchema> {
    let mut schema = TableSchema {
        keyspace: keyspace.name.clone(),
        name: create.name.name.clone(),
        id: None,
        partition_key: Vec::new(),
        clustering: Vec::new(),
        statics: Vec::new(),
        regulars: Vec::new(),
        dropped: Vec::new(),
        options: Default::default(),
        strict_liveness: false,
    };
    let mut defs = declared.columns;
    let mut take = |name: &Name| Some(defs.remove(name.text.as_str())?.0);
    for name in &key.partition_key {
        schema.partition_key.extend(take(name));
    }
    for name in &key.clustering {
        schema.clustering.extend(take(name));
    }
    // The order names the columns from the first on (`check_order`).
    for (column, (_, descending)) in
        schema.clustering.iter_mut().zip(&create.properties.clustering_order)
    {
        if *descending {
            column.cql_type = CqlType::Reversed(Box::new(column.cql_type.clone()));
        }
    }
    let is_compact = create.properties.compact_storage;
    if is_compact {
        compact::check(&schema, defs.values())?;
    }
    for (def, is_static) in defs.into_values() {
        if is_static && schema.clustering.is_empty() {
            return Err(useless_static());
        }
        if is_static { schema.statics.push(def) } else { schema.regulars.push(def) }
    }
    if checks::is_counter(&schema)
        && schema.regulars.iter().chain(&schema.statics).any(|c| !c.cql_type.is_counter())
    {
        let what = "Cannot mix counter and non counter columns in the same table";
        return Err(invalid(what.to_owned()));
    }
    if is_compact {
        let is_counter = checks::is_counter(&schema);
        compact::complete(&mut schema, is_counter);
    }
    schema.statics.sort_by(ColumnDef::compare);
    schema.regulars.sort_by(ColumnDef::compare);
    Ok(schema)
}

pub(super) fn useless_static() -> Error {
    Error::invalid_request(
        "Static columns are only useful (and thus allowed) if the table has at least one clustering column",
    )
}

pub(super) fn remove(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(name, context)?;
    let full = format!("{keyspace}.{}", name.name);
    forbidden(catalog, keyspace, "DROP", &format!("table {full}"))?;
    context.guard.allow(Flag::DropTruncateTable).map_err(violated)?;
    let known = catalog.keyspace(keyspace).filter(|of| of.tables.contains_key(&name.name));
    let Some(known) = known else {
        if if_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Table '{full}' doesn't exist")));
    };
    if known.tables.get(&name.name).is_some_and(|table| table.kind == TableKind::View) {
        return Err(Error::invalid_request(
            "Cannot use DROP TABLE on a materialized view. Please use DROP MATERIALIZED VIEW instead.",
        ));
    }
    if let Some(table) = known.tables.get(&name.name) {
        if !table.views.is_empty() {
            // Cassandra's message has room for one name, and gets the keyspace's first.
            return Err(Error::InvalidRequest(format!(
                "Cannot drop a table when materialized views still depend on it ({keyspace})"
            )));
        }
        refuse_derived(table, "dropping")?;
    }
    let mut changed = Keyspace::clone(known);
    changed.tables.remove(&name.name);
    Ok(with_keyspace(catalog, changed, event(SchemaAction::Dropped, keyspace, &name.name)))
}
