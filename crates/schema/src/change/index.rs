//! CREATE INDEX and DROP INDEX.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use halcyon_guardrails::{Flag, Threshold};
use halcyon_model::CqlType;
use halcyon_model::options::hash_order;
use halcyon_model::request::SchemaAction;
use halcyon_model::schema::{ColumnDef, ColumnKind};
use halcyon_model::types::quote_identifier_if_needed as quoted;

use super::context::{
    Change, Context, forbidden, invalid, keyspace_name, unchanged, with_keyspace,
};
use super::guard::{check_count, violated};
use super::table::event;
use super::{sai, sasi};
use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::checks;
use crate::index::{CLASS_NAME, Index, LEGACY, SAI, SASI, TARGET, class};
use crate::options::given;
use halcyon_model::options::Given;
use halcyon_syntax::ast::{CreateIndex, IndexTarget, IndexTargetKind, Name, QualifiedName};
use halcyon_syntax::{Error, Result};

/// Longest name of a column that a custom index may be on.
const LONGEST_NAME: usize = 48;

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateIndex,
    context: &Context<'_>,
) -> Result<Change> {
    let class = stated_class(create, context)?;
    let mut change = make(catalog, create, class, context)?;
    if class == Some(SASI) {
        change.warnings.push(sasi::USAGE_WARNING.to_owned());
    }
    Ok(change)
}

fn make(
    catalog: &Catalog,
    create: &CreateIndex,
    class: Option<&str>,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(&create.table, context)?;
    let table_name = &create.table.name;
    forbidden(catalog, keyspace, "ALTER", &format!("table {keyspace}.{table_name}"))?;
    let mut options = stated_options(create, class.is_some())?;
    check_allowed(class, context)?;
    let Some(known) = catalog.keyspace(keyspace) else {
        return Err(invalid(format!("Keyspace '{keyspace}' doesn't exist")));
    };
    let Some(table) = known.tables.get(table_name) else {
        return Err(invalid(format!("Table '{table_name}' doesn't exist")));
    };
    let name = create.name.as_ref().map(|name| name.text.as_str());
    if let Some(name) = name.filter(|name| indexed_table(known, name).is_some()) {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Index '{name}' already exists")));
    }
    check_table(table)?;
    check_index_count(table, name, context)?;
    let targets = targets(create, table, class.is_some())?;
    if let Some(class) = class {
        options.insert(CLASS_NAME.to_owned(), class.to_owned());
    }
    let texts: Vec<String> = targets.iter().map(Target::to_cql).collect();
    options.insert(TARGET.to_owned(), texts.join(", "));
    let name = name.map_or_else(|| available_name(known, table_name, &targets), str::to_owned);
    let kind = if class.is_some() { "CUSTOM" } else { "COMPOSITES" };
    let duplicate =
        table.indexes.iter().find(|has| has.kind_name() == kind && has.options == options);
    if let Some(duplicate) = duplicate {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!(
            "Index {name} is a duplicate of existing index {}",
            duplicate.name
        )));
    }
    let type_of = |name: &str| Some(&table.column(table.find_column(name)?)?.cql_type);
    let index = Index::stored(name, kind, options, type_of);
    check_index(&index, table)?;
    let mut changed = Table::clone(table);
    let at = changed.indexes.partition_point(|other| other.name < index.name);
    changed.indexes.insert(at, index);
    let warnings = sai::warnings(&changed).collect();
    let mut keyspace_changed = Keyspace::clone(known);
    keyspace_changed.tables.insert(table_name.clone(), Arc::new(changed));
    let event = event(SchemaAction::Updated, keyspace, table_name);
    Ok(Change { warnings, ..with_keyspace(catalog, keyspace_changed, event) })
}

/// The class of a custom index; `None`: Cassandra's own.
fn stated_class<'a>(create: &'a CreateIndex, context: &Context<'a>) -> Result<Option<&'a str>> {
    let settings = context.indexes;
    let class = match &create.class {
        Some(class) => class,
        None if settings.has_default => &settings.default_class,
        None => {
            let what = "Must specify index implementation via USING";
            return Err(Error::invalid_request(what));
        }
    };
    let is_legacy = !create.is_custom && class.eq_ignore_ascii_case(LEGACY);
    Ok((!is_legacy).then_some(class.as_str()))
}

/// `IndexAttributes.validate`
fn stated_options(create: &CreateIndex, is_custom: bool) -> Result<BTreeMap<String, String>> {
    let mut names: Vec<&str> =
        create.options.iter().map(|option| option.name.text.as_str()).collect();
    hash_order(&mut names, 11);
    let syntax = |name: &str, message: String| {
        let option = create.options.iter().find(|option| option.name.text == name);
        let location = option.map_or(create.table.location, |option| option.name.location);
        Err(Error::Syntax { location, message })
    };
    if let Some(name) = names.into_iter().find(|name| *name != "options") {
        return syntax(name, format!("Unknown property '{name}'"));
    }
    if !is_custom && !create.options.is_empty() {
        return Err(Error::invalid_request("Cannot specify options for a non-CUSTOM index"));
    }
    let mut options = BTreeMap::new();
    for option in &create.options {
        let Given::Map(entries) = given(&option.value) else {
            let what = "Invalid value for property 'options'. It should be a map.";
            return syntax("options", what.to_owned());
        };
        options = entries.into_iter().collect();
    }
    match [CLASS_NAME, TARGET].into_iter().find(|name| options.contains_key(*name)) {
        Some(name) => Err(invalid(format!("Cannot specify {name} as a CUSTOM option"))),
        None => Ok(options),
    }
}

/// What settings forbid.
fn check_allowed(class: Option<&str>, context: &Context<'_>) -> Result<()> {
    let feature = "Creating secondary indexes";
    context.guard.allow_named(Flag::SecondaryIndexes, feature).map_err(violated)?;
    match class {
        Some(SASI) if !context.indexes.is_sasi_allowed => Err(Error::invalid_request(
            "SASI indexes are disabled. Enable in cassandra.yaml to use.",
        )),
        _ => Ok(()),
    }
}

fn check_table(table: &Table) -> Result<()> {
    let refused = |what| Err(Error::invalid_request(what));
    if table.is_counter() {
        return refused("Secondary indexes on counter tables aren't supported");
    }
    if table.kind == TableKind::View {
        return refused("Secondary indexes on materialized views aren't supported");
    }
    Ok(())
}

fn check_index_count(table: &Table, name: Option<&str>, context: &Context<'_>) -> Result<()> {
    let on = format!("on table {}", table.schema.name);
    let what = name.map_or_else(|| on.clone(), |name| format!("{name} {on}"));
    let count = table.indexes.len() + 1;
    check_count(context.guard, Threshold::SecondaryIndexesPerTable, count, &what)
}

/// A column, and what of it is indexed.
struct Target<'a> {
    column: &'a ColumnDef,
    kind: ColumnKind,
    part: IndexTargetKind,
}

impl Target<'_> {
    fn to_cql(&self) -> String {
        let column = quoted(&self.column.name);
        match function(self.part) {
            "" => column,
            function => format!("{function}({column})"),
        }
    }
}

fn function(part: IndexTargetKind) -> &'static str {
    match part {
        IndexTargetKind::Simple => "",
        IndexTargetKind::Values => "values",
        IndexTargetKind::Keys => "keys",
        IndexTargetKind::KeysAndValues => "entries",
        IndexTargetKind::Full => "full",
    }
}

fn targets<'a>(create: &CreateIndex, table: &'a Table, is_custom: bool) -> Result<Vec<Target<'a>>> {
    let prepare = |target: &IndexTarget| -> Result<Target<'a>> {
        let found = table.find_column(&target.column.text);
        let found = found.and_then(|at| Some((at.kind, table.column(at)?)));
        let (kind, column) = found.ok_or_else(|| undefined(table, &target.column))?;
        // Without a function, an index on a collection is one on its values.
        let part = match target.kind {
            IndexTargetKind::Simple if is_collection(&column.cql_type) => IndexTargetKind::Values,
            part => part,
        };
        Ok(Target { column, kind, part })
    };
    let targets: Vec<Target<'_>> = create.targets.iter().map(prepare).collect::<Result<_>>()?;
    let refused = |what| Err(Error::invalid_request(what));
    if targets.is_empty() && !is_custom {
        return refused("Only CUSTOM indexes can be created without specifying a target column");
    }
    if targets.len() > 1 && !is_custom {
        return refused("Only CUSTOM indexes support multiple columns");
    }
    let mut seen = BTreeSet::new();
    for target in &targets {
        if !seen.insert(&target.column.name) {
            let name = &target.column.name;
            return Err(invalid(format!("Duplicate column '{name}' in index target list")));
        }
    }
    targets.iter().try_for_each(|target| check_target(table, is_custom, target))?;
    Ok(targets)
}

fn undefined(table: &Table, name: &Name) -> Error {
    let (name, table) = (quoted(&name.text), table.full_name());
    invalid(format!("Undefined column name {name} in table {table}"))
}

fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}

fn check_target(table: &Table, is_custom: bool, target: &Target<'_>) -> Result<()> {
    let ColumnDef { name, cql_type } = target.column;
    if is_custom {
        check_custom_name(name)?;
    }
    if cql_type.references_duration() {
        let on = match cql_type.thawed() {
            CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => {
                "collections containing durations"
            }
            CqlType::Tuple(_) => "tuples containing durations",
            CqlType::Udt(_) => "UDTs containing durations",
            _ => "duration columns",
        };
        return Err(invalid(format!("Secondary indexes are not supported on {on}")));
    }
    if table.schema.options.compact_storage {
        let is_dense = table.schema.is_dense();
        let on = match target.kind {
            ColumnKind::PartitionKey | ColumnKind::Clustering => Some("PRIMARY KEY columns in"),
            ColumnKind::Regular if is_dense => Some("compact value column of"),
            _ => None,
        };
        if let Some(on) = on {
            let what =
                format!("Secondary indexes are not supported on {on} COMPACT STORAGE tables");
            return Err(invalid(what));
        }
    }
    if target.kind == ColumnKind::PartitionKey && table.schema.partition_key.len() == 1 {
        let what = format!("Cannot create secondary index on the only partition key column {name}");
        return Err(invalid(what));
    }
    check_part(target)
}

fn check_part(target: &Target<'_>) -> Result<()> {
    use IndexTargetKind as Part;
    let name = &target.column.name;
    let base = target.column.cql_type.base();
    let function = function(target.part);
    let is_frozen = is_collection(base) && !base.is_multi_cell();
    if is_frozen && target.part != Part::Full {
        return Err(invalid(format!(
            "Cannot create {function}() index on frozen column {name}. Frozen collections are immutable and must be fully indexed by using the 'full({})' modifier",
            quoted(name)
        )));
    }
    if !is_frozen && target.part == Part::Full {
        let what = "full() indexes can only be created on frozen collections";
        return Err(Error::invalid_request(what));
    }
    if !is_collection(base) && target.part != Part::Simple {
        return Err(invalid(format!(
            "Cannot create {function}() index on {name}. Non-collection columns only support simple indexes"
        )));
    }
    if !matches!(base, CqlType::Map(..)) && matches!(target.part, Part::Keys | Part::KeysAndValues)
    {
        return Err(invalid(format!(
            "Cannot create index on {function} of column {name} with non-map type"
        )));
    }
    if matches!(base, CqlType::Udt(_)) {
        return Err(invalid(format!("Cannot create index on non-frozen UDT column {name}")));
    }
    Ok(())
}

fn check_custom_name(name: &str) -> Result<()> {
    if !checks::is_word(name) {
        let what = format!("Column '{name}' contains non-alphanumeric-underscore characters");
        return Err(invalid(what));
    }
    if name.len() > LONGEST_NAME {
        return Err(invalid(format!(
            "Column '{name}' is longer than the permissible name length of {LONGEST_NAME} characters"
        )));
    }
    Ok(())
}

fn check_index(index: &Index, table: &Table) -> Result<()> {
    checks::index_name(&index.name)?;
    checks::index_length(&index.name)?;
    match class(&index.options) {
        None => Ok(()),
        Some(SAI) => sai::check(index, table),
        Some(SASI) => sasi::check(index, table),
        Some(class) => {
            Err(Error::Configuration(format!("Unable to find custom indexer class '{class}'")))
        }
    }
}

/// `table_column_idx`, with a number if that is taken.
fn available_name(keyspace: &Keyspace, table: &str, targets: &[Target<'_>]) -> String {
    let mut name = match targets {
        [target] => format!("{table}_{}_idx", target.column.name),
        _ => format!("{table}_idx"),
    };
    name.retain(|c| c.is_ascii_alphanumeric() || c == '_');
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| indexed_table(keyspace, name).is_none()).unwrap_or(name)
}

fn indexed_table<'a>(keyspace: &'a Keyspace, index: &str) -> Option<&'a Arc<Table>> {
    keyspace.tables.values().find(|table| table.index(index).is_some())
}

pub(super) fn remove(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(name, context)?;
    let known = catalog.keyspace(keyspace);
    let found = known.and_then(|known| Some((known, indexed_table(known, &name.name)?)));
    let Some((known, table)) = found else {
        if crate::system::is_local(keyspace) || catalog.is_virtual(keyspace) {
            let what = format!("System keyspace '{keyspace}' is not user-modifiable");
            return Err(invalid(what));
        }
        if if_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Index '{keyspace}.{}' doesn't exist'", name.name)));
    };
    let table_name = &table.schema.name;
    forbidden(catalog, keyspace, "ALTER", &format!("table {keyspace}.{table_name}"))?;
    let mut changed = Table::clone(table);
    changed.indexes.retain(|index| index.name != name.name);
    let event = event(SchemaAction::Updated, keyspace, table_name);
    let mut keyspace_changed = Keyspace::clone(known);
    keyspace_changed.tables.insert(table_name.clone(), Arc::new(changed));
    Ok(with_keyspace(catalog, keyspace_changed, event))
}

/// Refuses to take a column from under its indexes.
pub(super) fn check_no_dependents(table: &Table, column: &str, refusal: &str) -> Result<()> {
    let of_column = table.indexes.iter().filter(|index| index.column == column);
    let names: Vec<&str> = of_column.map(|index| index.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "{refusal} column {column} because it has dependent secondary indexes ({})",
        names.join(", ")
    )))
}
