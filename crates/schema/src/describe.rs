//! DESCRIBE: schema as statements that would make it again, spelled as Cassandra 5.0 spells them.

use std::fmt::Write as _;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::options::literal;
use halcyon_model::schema::{ColumnDef, ColumnKind, DroppedColumn};
use halcyon_model::types::{UserType, quote_identifier_if_needed as quoted};

use super::system;
use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::describe_functions::{aggregates, functions, named};
pub use crate::element::Element;
use crate::index::{CLASS_NAME, Index, TARGET};
use crate::java_hash;
use crate::view::View;
use halcyon_syntax::ast::{Describe, DescribeTarget, QualifiedName};
use halcyon_syntax::{Error, Result};

/// Everything but `DESCRIBE CLUSTER`. `keyspace` is the one in force.
pub fn describe(
    catalog: &Catalog,
    describe: &Describe,
    keyspace: Option<&str>,
) -> Result<Vec<Element>> {
    let internals = describe.internals;
    let all = |kind| all(catalog, keyspace, kind);
    match &describe.target {
        DescribeTarget::Cluster => Err(Error::invalid_request("not a schema element")),
        DescribeTarget::Keyspaces => Ok(sorted(catalog)
            .into_iter()
            .map(|of| Element { statement: None, ..keyspace_element(of) })
            .collect()),
        DescribeTarget::Tables => all(tables),
        DescribeTarget::Types => all(|of| {
            let mut found = types(of);
            found.sort_by_key(|element| unquoted(&element.name).to_lowercase());
            found
        }),
        DescribeTarget::Functions => all(functions),
        DescribeTarget::Aggregates => all(aggregates),
        DescribeTarget::Schema { full } => {
            let is_system = |name: &str| {
                system::is_local(name)
                    || catalog.is_virtual(name)
                    || system::is_replicated_system(name)
            };
            let wanted = sorted(catalog).into_iter().filter(|of| *full || !is_system(&of.name));
            Ok(wanted.flat_map(|of| whole_keyspace(of, internals)).collect())
        }
        DescribeTarget::Keyspace { name, only } => {
            let name = name.as_deref().or(keyspace).ok_or_else(no_keyspace)?;
            let of = find_keyspace(catalog, name)?;
            Ok(if *only { vec![keyspace_element(of)] } else { whole_keyspace(of, internals) })
        }
        DescribeTarget::Table(name) => {
            let of = keyspace_of(catalog, name, keyspace)?;
            let found = of.tables.get(&name.name).filter(|table| table.kind != TableKind::View);
            let table = found.ok_or_else(|| {
                Error::InvalidRequest(format!(
                    "Table '{}' not found in keyspace '{}'",
                    name.name, of.name
                ))
            })?;
            Ok(table_elements(of, table, internals))
        }
        DescribeTarget::Index(name) => {
            let of = keyspace_of(catalog, name, keyspace)?;
            let found = index_element(of, &name.name).ok_or_else(|| {
                Error::InvalidRequest(format!(
                    "Table for existing index '{}' not found in '{}'",
                    name.name, of.name
                ))
            })?;
            Ok(vec![found])
        }
        DescribeTarget::Type(name) => {
            let of = keyspace_of(catalog, name, keyspace)?;
            let found = of.types.get(&name.name);
            let user_type =
                found.ok_or_else(|| not_found("User defined type", &name.name, &of.name))?;
            Ok(vec![type_element(of, user_type)])
        }
        other => rarer(catalog, other, keyspace, internals),
    }
}

/// The names of all elements of a kind; with a keyspace in force, only of its own.
fn all(
    catalog: &Catalog,
    keyspace: Option<&str>,
    kind: fn(&Keyspace) -> Vec<Element>,
) -> Result<Vec<Element>> {
    let listed = match keyspace {
        Some(name) => vec![find_keyspace(catalog, name)?],
        None => sorted(catalog),
    };
    let elements = listed.into_iter().flat_map(kind);
    Ok(elements.map(|element| Element { statement: None, ..element }).collect())
}

/// Views, functions, and generic names.
fn rarer(
    catalog: &Catalog,
    target: &DescribeTarget,
    keyspace: Option<&str>,
    internals: bool,
) -> Result<Vec<Element>> {
    match target {
        DescribeTarget::Function(name) => {
            let of = keyspace_of(catalog, name, keyspace)?;
            overloads("User defined function", name, of, functions(of))
        }
        DescribeTarget::Aggregate(name) => {
            let of = keyspace_of(catalog, name, keyspace)?;
            overloads("User defined aggregate", name, of, aggregates(of))
        }
        DescribeTarget::Generic(name) => generic(catalog, name, keyspace, internals),
        DescribeTarget::View(name) => view(catalog, name, keyspace, internals),
        _ => Err(Error::invalid_request("not a schema element")),
    }
}

fn view(
    catalog: &Catalog,
    name: &QualifiedName,
    keyspace: Option<&str>,
    internals: bool,
) -> Result<Vec<Element>> {
    let of = keyspace_of(catalog, name, keyspace)?;
    let found = of.tables.get(&name.name).filter(|table| table.view.is_some());
    let view = found.ok_or_else(|| not_found("Materialized view", &name.name, &of.name))?;
    Ok(vec![table_element(of, view, internals)])
}

fn overloads(
    what: &str,
    name: &QualifiedName,
    of: &Keyspace,
    all: Vec<Element>,
) -> Result<Vec<Element>> {
    let found = named(all, &name.name);
    if found.is_empty() { Err(not_found(what, &name.name, &of.name)) } else { Ok(found) }
}

fn not_found(what: &str, name: &str, keyspace: &str) -> Error {
    Error::InvalidRequest(format!("{what} '{name}' not found in '{keyspace}'"))
}

fn no_keyspace() -> Error {
    Error::invalid_request("No keyspace specified and no current keyspace")
}

/// A keyspace, a table, an index or a type, whichever there is first.
fn generic(
    catalog: &Catalog,
    name: &QualifiedName,
    keyspace: Option<&str>,
    internals: bool,
) -> Result<Vec<Element>> {
    if name.keyspace.is_none()
        && let Some(of) = catalog.keyspace(&name.name)
    {
        return Ok(whole_keyspace(of, internals));
    }
    let Some(wanted) = name.keyspace.as_deref().or(keyspace) else {
        return Err(Error::InvalidRequest(format!("'{}' not found in keyspaces", name.name)));
    };
    let of = find_keyspace(catalog, wanted)?;
    if let Some(table) = of.tables.get(&name.name) {
        return Ok(table_elements(of, table, internals));
    }
    if let Some(index) = index_element(of, &name.name) {
        return Ok(vec![index]);
    }
    Err(Error::InvalidRequest(format!("'{}' not found in keyspace '{wanted}'", name.name)))
}

fn find_keyspace<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Keyspace> {
    let found = catalog.keyspace(name).map(AsRef::as_ref);
    found.ok_or_else(|| Error::InvalidRequest(format!("'{name}' not found in keyspaces")))
}

fn keyspace_of<'a>(
    catalog: &'a Catalog,
    name: &QualifiedName,
    keyspace: Option<&str>,
) -> Result<&'a Keyspace> {
    find_keyspace(catalog, name.keyspace.as_deref().or(keyspace).ok_or_else(no_keyspace)?)
}

/// Names are listed without regard to case.
fn sorted(catalog: &Catalog) -> Vec<&Keyspace> {
    let mut all: Vec<&Keyspace> = catalog.keyspaces.values().map(AsRef::as_ref).collect();
    all.sort_by_key(|keyspace| keyspace.name.to_lowercase());
    all
}

fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(name)
}

fn whole_keyspace(keyspace: &Keyspace, internals: bool) -> Vec<Element> {
    let mut elements = vec![keyspace_element(keyspace)];
    elements.extend(types(keyspace));
    elements.extend(functions(keyspace));
    elements.extend(aggregates(keyspace));
    let tables = sorted_tables(keyspace).into_iter();
    elements.extend(tables.flat_map(|table| table_elements(keyspace, table, internals)));
    elements
}

fn element(keyspace: &Keyspace, kind: &'static str, name: &str, statement: String) -> Element {
    let statement = Some(statement);
    Element { keyspace: quoted(&keyspace.name), kind, name: quoted(name), statement }
}

fn keyspace_element(keyspace: &Keyspace) -> Element {
    element(keyspace, "keyspace", &keyspace.name, keyspace_statement(keyspace))
}

fn table_element(keyspace: &Keyspace, table: &Table, internals: bool) -> Element {
    let kind = if table.view.is_some() { "materialized_view" } else { "table" };
    element(keyspace, kind, &table.schema.name, table_statement(table, internals))
}

fn type_element(keyspace: &Keyspace, user_type: &UserType) -> Element {
    let name = String::from_utf8_lossy(&user_type.name).into_owned();
    element(keyspace, "type", &name, type_statement(user_type))
}

/// A table and its indexes.
fn table_elements(keyspace: &Keyspace, table: &Table, internals: bool) -> Vec<Element> {
    let mut indexes: Vec<&Index> = table.indexes.iter().collect();
    indexes.sort_by_key(|index| index.name.to_lowercase());
    let indexes = indexes.into_iter().map(|index| element_of_index(keyspace, table, index));
    let views = table.views.iter().filter_map(|name| keyspace.tables.get(name));
    let views = views.map(|view| table_element(keyspace, view, internals));
    std::iter::once(table_element(keyspace, table, internals)).chain(indexes).chain(views).collect()
}

fn element_of_index(keyspace: &Keyspace, table: &Table, index: &Index) -> Element {
    element(keyspace, "index", &index.name, index_statement(table, index))
}

fn index_element(keyspace: &Keyspace, name: &str) -> Option<Element> {
    let found = |table: &Arc<Table>| Some(element_of_index(keyspace, table, table.index(name)?));
    keyspace.tables.values().find_map(found)
}

fn sorted_tables(keyspace: &Keyspace) -> Vec<&Table> {
    let mut all: Vec<&Table> = keyspace.tables.values().map(AsRef::as_ref).collect();
    all.retain(|table| table.kind != TableKind::View);
    all.sort_by_key(|table| table.schema.name.to_lowercase());
    all
}

fn tables(keyspace: &Keyspace) -> Vec<Element> {
    let table = |table| table_element(keyspace, table, false);
    sorted_tables(keyspace).into_iter().map(table).collect()
}

/// Types by name, but each after those that its fields are of.
fn types(keyspace: &Keyspace) -> Vec<Element> {
    let all = in_order(keyspace.types.values().map(AsRef::as_ref).collect());
    all.into_iter().map(|user_type| type_element(keyspace, user_type)).collect()
}

fn in_order(mut left: Vec<&UserType>) -> Vec<&UserType> {
    let mut listed = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |user_type: &UserType| {
            let mentions = |other: &&UserType| {
                other.name != user_type.name
                    && user_type.fields.iter().any(|(_, field)| names_type(field, &other.name))
            };
            left.iter().any(mentions)
        };
        // Types cannot name each other in a circle.
        let next = left.iter().position(|user_type| !waits(user_type)).unwrap_or(0);
        listed.push(left.remove(next));
    }
    listed
}

fn names_type(cql_type: &CqlType, name: &[u8]) -> bool {
    matches!(cql_type, CqlType::Udt(udt) if udt.name == name)
        || cql_type.children().into_iter().any(|child| names_type(child, name))
}

pub fn keyspace_statement(keyspace: &Keyspace) -> String {
    let name = quoted(&keyspace.name);
    if keyspace.is_virtual {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let class = keyspace.replication.get("class").map_or("", String::as_str);
    let class = class.strip_prefix("org.apache.cassandra.locator.").unwrap_or(class);
    let mut replication = format!("{{'class': {}", literal(class));
    for (option, value) in keyspace.replication.iter().filter(|(option, _)| *option != "class") {
        let _ = write!(replication, ", {}: {}", literal(option), literal(value));
    }
    format!(
        "CREATE KEYSPACE {name} WITH replication = {replication}}}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

pub fn type_statement(user_type: &UserType) -> String {
    let text = |bytes: &[u8]| quoted(&String::from_utf8_lossy(bytes));
    let fields: Vec<String> = user_type
        .fields
        .iter()
        .map(|(name, field)| format!("    {} {}", text(name), field.cql_name()))
        .collect();
    let keyspace = quoted(&user_type.keyspace);
    format!("CREATE TYPE {keyspace}.{} (\n{}\n);", text(&user_type.name), fields.join(",\n"))
}

/// `schema.cql` of a snapshot: the statements that make the table again, with its indexes and the types that it uses (`SchemaCQLHelper`).
pub fn snapshot_script(keyspace: &Keyspace, table: &Table) -> String {
    let mut named: Vec<&CqlType> = table.all_columns().map(|column| &column.cql_type).collect();
    named.extend(table.schema.dropped.iter().map(|column| &column.cql_type));
    let mut used: Vec<&UserType> = Vec::new();
    while let Some(cql_type) = named.pop() {
        let new = |of: &&UserType| !used.contains(of) && names_type(cql_type, &of.name);
        let found: Vec<&UserType> =
            keyspace.types.values().map(AsRef::as_ref).filter(new).collect();
        named.extend(found.iter().flat_map(|of| of.fields.iter().map(|(_, field)| field)));
        used.extend(found);
    }
    let again = |statement: &str, what: &str| {
        statement.replacen(&format!("CREATE {what} "), &format!("CREATE {what} IF NOT EXISTS "), 1)
            + "\n"
    };
    used.sort_by(|a, b| a.name.cmp(&b.name));
    let types = in_order(used).into_iter().map(|of| again(&type_statement(of), "TYPE"));
    let indexes = table.indexes.iter().map(|index| {
        let statement = index_statement(table, index);
        let kind = if statement.starts_with("CREATE CUSTOM") { "CUSTOM INDEX" } else { "INDEX" };
        again(&statement, kind)
    });
    types
        .chain(std::iter::once(again(&table_statement(table, true), "TABLE")))
        .chain(indexes)
        .collect()
}

/// `internals`: with the table's id and its dropped columns, so that its old files can be read.
pub fn table_statement(table: &Table, internals: bool) -> String {
    let schema = &table.schema;
    let name = format!("{}.{}", quoted(&schema.keyspace), quoted(&schema.name));
    if let Some(view) = &table.view {
        return view_statement(table, view, internals);
    }
    let is_virtual = table.kind == TableKind::Virtual;
    let is_compact = schema.options.compact_storage;
    let mut out = String::new();
    if is_virtual {
        let _ = write!(
            out,
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL TABLE {name} (\n"
        );
    } else {
        if is_compact {
            let _ = write!(
                out,
                "/*\nWarning: Table {name} omitted because it has constructs not compatible with CQL (was created via legacy \
                 API).\nApproximate structure, for reference:\n(this should not be used to reproduce this schema)\n\n"
            );
        }
        let _ = writeln!(out, "CREATE TABLE {name} (");
    }
    out.push_str(&columns(table, internals));
    out.push_str("\n) WITH ");
    out.push_str(&options(table, internals).join("\n    AND "));
    out.push(';');
    if internals {
        push_dropped(&mut out, table, &name);
    }
    if is_virtual || is_compact {
        out.push_str("\n*/");
    }
    out
}

fn view_statement(table: &Table, view: &View, internals: bool) -> String {
    let (keyspace, name) = (quoted(&table.schema.keyspace), quoted(&table.schema.name));
    let selected = match view.includes_all {
        true => "*".to_owned(),
        false => {
            let kinds = [ColumnKind::PartitionKey, ColumnKind::Clustering, ColumnKind::Regular];
            let columns = kinds.into_iter().flat_map(|kind| table.in_select_order(kind));
            let names = columns.filter_map(|at| Some(quoted(&table.column(at)?.name)));
            names.collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "CREATE MATERIALIZED VIEW {keyspace}.{name} AS\n    SELECT {selected}\n    FROM {keyspace}.{}\n    WHERE {}\n    {}\n WITH {};",
        quoted(&view.base),
        view.where_clause,
        primary_key(table),
        options(table, internals).join("\n    AND ")
    )
}

/// `PRIMARY KEY ((a, b), c)`
fn primary_key(table: &Table) -> String {
    let names = |kind: ColumnKind| -> Vec<String> {
        table.visible_columns(kind).map(|column| quoted(&column.name)).collect()
    };
    let partition = names(ColumnKind::PartitionKey).join(", ");
    let mut key =
        if table.schema.partition_key.len() > 1 { format!("({partition})") } else { partition };
    for column in names(ColumnKind::Clustering) {
        let _ = write!(key, ", {column}");
    }
    format!("PRIMARY KEY ({key})")
}

pub fn index_statement(table: &Table, index: &Index) -> String {
    let option = |name: &str| index.options.get(name).map_or("", String::as_str);
    let on = format!("{}.{}", quoted(&table.schema.keyspace), quoted(&table.schema.name));
    let (name, target) = (quoted(&index.name), option(TARGET));
    if !index.options.contains_key(CLASS_NAME) {
        return format!("CREATE INDEX {name} ON {on} ({target});");
    }
    let class = literal(option(CLASS_NAME));
    let stated =
        index.options.iter().filter(|(name, _)| ![TARGET, CLASS_NAME].contains(&name.as_str()));
    let stated: Vec<String> =
        stated.map(|(name, value)| format!("{}: {}", literal(name), literal(value))).collect();
    let options = match stated.is_empty() {
        true => String::new(),
        false => format!(" WITH OPTIONS = {{{}}}", stated.join(", ")),
    };
    format!("CREATE CUSTOM INDEX {name} ON {on} ({target}) USING {class}{options};")
}

/// Dropped columns in the order in which Cassandra's hash map has them.
fn dropped(table: &Table) -> Vec<&DroppedColumn> {
    let mut all: Vec<&DroppedColumn> = table.schema.dropped.iter().collect();
    java_hash::sort_copied(&mut all, |column| &column.name);
    all
}

fn columns(table: &Table, internals: bool) -> String {
    let dropped = if internals { dropped(table) } else { Vec::new() };
    let was_dropped = |name: &str| dropped.iter().any(|column| column.name == name);
    let keys = [ColumnKind::PartitionKey, ColumnKind::Clustering];
    let rest = [ColumnKind::Static, ColumnKind::Regular];
    let is_compact = table.schema.options.compact_storage;
    let single = table.schema.partition_key.len() == 1 && table.schema.clustering.is_empty();
    let mut lines = Vec::new();
    for kind in keys.into_iter().chain(rest) {
        // A column that was added again after it was dropped is printed below, in that order.
        for column in table.visible_columns(kind).filter(|column| !was_dropped(&column.name)) {
            let key = if single && kind == ColumnKind::PartitionKey { " PRIMARY KEY" } else { "" };
            let is_static = if kind == ColumnKind::Static && !is_compact { " static" } else { "" };
            let mask = masked(table, &column.name);
            let declared = declared(&column.name, &column.cql_type);
            lines.push(format!("    {declared}{is_static}{mask}{key}"));
        }
    }
    for column in dropped {
        let is_static = if column.kind == ColumnKind::Static { " static" } else { "" };
        lines.push(format!("    {}{is_static}", declared(&column.name, &column.cql_type)));
    }
    if !single {
        lines.push(format!("    {}", primary_key(table)));
    }
    lines.join(",\n")
}

fn masked(table: &Table, column: &str) -> String {
    table.masks.get(column).map(|mask| format!(" MASKED WITH {mask}")).unwrap_or_default()
}

fn declared(name: &str, cql_type: &CqlType) -> String {
    format!("{} {}", quoted(name), cql_type.base().cql_name())
}

fn options(table: &Table, internals: bool) -> Vec<String> {
    let schema = &table.schema;
    let options = &schema.options;
    let mut lines = Vec::new();
    if options.compact_storage {
        lines.push("COMPACT STORAGE".to_owned());
    }
    if internals && table.kind != TableKind::Virtual {
        lines.push(format!("ID = {}", halcyon_model::uuid::text(&table.id)));
    }
    if !schema.clustering.is_empty() {
        let order = |column: &ColumnDef| {
            let descending = matches!(column.cql_type, CqlType::Reversed(_));
            format!("{} {}", quoted(&column.name), if descending { "DESC" } else { "ASC" })
        };
        let orders: Vec<String> = schema.clustering.iter().map(order).collect();
        lines.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
    }
    if table.kind == TableKind::Virtual {
        lines.push(options.print_comment());
    } else {
        // Rows of a view expire with those of its base.
        let has = |line: &String| table.view.is_none() || !line.starts_with("default_time_to_live");
        lines.extend(options.print().into_iter().filter(has));
    }
    lines
}

fn push_dropped(out: &mut String, table: &Table, name: &str) {
    for column in dropped(table) {
        let quoted_name = quoted(&column.name);
        let _ = write!(
            out,
            "\nALTER TABLE {name} DROP {quoted_name} USING TIMESTAMP {};",
            column.dropped_time
        );
        let Some(again) = table.find_column(&column.name) else { continue };
        if let Some(def) = table.column(again) {
            let is_static = if again.kind == ColumnKind::Static { " static" } else { "" };
            let (declared, mask) = (declared(&def.name, &def.cql_type), masked(table, &def.name));
            let _ = write!(out, "\nALTER TABLE {name} ADD {declared}{is_static}{mask};");
        }
    }
}
