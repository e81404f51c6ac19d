//! CREATE, ALTER and DROP TYPE.

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_guardrails::Threshold;
use halcyon_model::CqlType;
use halcyon_model::request::{SchemaAction, SchemaChange, SchemaTarget};
use halcyon_model::schema::ColumnDef;
use halcyon_model::types::{MAX_PARTS, TypeError, UserType, quote_identifier_if_needed};

use super::column_type::{is_empty, mentions, resolve, spelled_with_keyspace};
use super::context::{
    Change, Context, existing, first_duplicate, forbidden, invalid, keyspace_name, unchanged,
    with_keyspace,
};
use super::guard::{check_count, check_vector};
use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::java_hash;
use halcyon_syntax::Result;
use halcyon_syntax::ast::{CreateType, Name, QualifiedName, TypeChange, TypeText};
use halcyon_syntax::lexer::{TokenKind, tokens};

fn event(action: SchemaAction, keyspace: &str, name: &str) -> SchemaChange {
    let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
    SchemaChange { action, target: SchemaTarget::Type, keyspace, name, arguments: Vec::new() }
}

/// Fields are frozen or simple: checked before the type is looked up.
fn check_field(text: &TypeText) -> Result<()> {
    let tokens = tokens(&text.text);
    let is_generic = tokens.get(1).is_some_and(|token| token.is_symbol("<"));
    let Some(first) = tokens.first() else { return Ok(()) };
    if first.is_word("counter") {
        return Err(invalid("A user type cannot contain counters".to_owned()));
    }
    let is_native = !is_empty(text) && CqlType::parse_cql(&text.text, &|_| None).is_ok();
    if !is_generic && !is_native && first.kind != TokenKind::String {
        return Err(invalid("A user type cannot contain non-frozen UDTs".to_owned()));
    }
    Ok(())
}

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateType,
    context: &Context<'_>,
) -> Result<Change> {
    let name = &create.name.name;
    let keyspace = keyspace_name(&create.name, context)?;
    forbidden(catalog, keyspace, "CREATE", &format!("keyspace {keyspace}"))?;
    let known = existing(catalog, keyspace)?;
    if known.types.contains_key(name) {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("A user type with name '{name}' already exists")));
    }
    if let Some(field) = first_duplicate(create.fields.iter().map(|(field, _)| &field.text)) {
        return Err(invalid(format!("Duplicate field name '{field}' in type '{name}'")));
    }
    create.fields.iter().try_for_each(|(_, text)| check_field(text))?;
    let mut fields = Vec::with_capacity(create.fields.len());
    let mut parts = 1;
    for (field, text) in &create.fields {
        let cql_type = resolve(text, known)?;
        parts += cql_type.parts();
        check_parts(name, parts)?;
        fields.push((field.text.clone().into_bytes(), cql_type));
    }
    let made = UserType { keyspace: keyspace.to_owned(), name: name.clone().into_bytes(), fields };
    let mut changed = Keyspace::clone(known);
    changed.types.insert(name.clone(), Arc::new(made));
    Ok(with_keyspace(catalog, changed, event(SchemaAction::Created, keyspace, name)))
}

fn check_parts(name: &str, parts: usize) -> Result<()> {
    if parts <= MAX_PARTS {
        return Ok(());
    }
    Err(invalid(TypeError::too_large(name).to_string()))
}

/// Refuses a change that would make a type or column too large that uses the changed type.
fn check_uses(keyspace: &Keyspace, changed: &UserType) -> Result<()> {
    let sum = |types: &mut dyn Iterator<Item = usize>| types.fold(1, usize::saturating_add);
    let size = sum(&mut changed.fields.iter().map(|(_, field)| field.parts()));
    check_parts(&String::from_utf8_lossy(&changed.name), size)?;
    let with = |used: &CqlType| used.parts_with(&changed.name, size);
    for (name, other) in keyspace.types.iter().filter(|(_, other)| other.name != changed.name) {
        check_parts(name, sum(&mut other.fields.iter().map(|(_, field)| with(field))))?;
    }
    for table in keyspace.tables.values() {
        for column in table.all_columns() {
            check_parts(
                &format!("of column {}.{}", table.schema.name, column.name),
                with(&column.cql_type),
            )?;
        }
    }
    for of in keyspace.functions.types() {
        check_parts("of a function", with(of))?;
    }
    Ok(())
}

pub(super) fn alter(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    change: &TypeChange,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(name, context)?;
    forbidden(catalog, keyspace, "ALTER", &format!("keyspace {keyspace}"))?;
    let found = catalog.keyspace(keyspace).and_then(|of| Some((of, of.types.get(&name.name)?)));
    let Some((known, user_type)) = found else {
        if if_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Type {keyspace}.{} doesn't exist", name.name)));
    };
    let mut changed = UserType::clone(user_type);
    match change {
        TypeChange::Add { if_not_exists, fields } => {
            for (field, text) in fields {
                add_field(&mut changed, known, (field, text), *if_not_exists, context)?;
            }
        }
        TypeChange::Rename { if_exists, renames } => {
            check_initial_states(known, &changed)?;
            rename(&mut changed, renames, *if_exists)?;
        }
        TypeChange::Retype { .. } => {
            return Err(invalid("Altering field types is no longer supported".to_owned()));
        }
    }
    check_uses(known, &changed)?;
    let mut keyspace_after = Keyspace::clone(known);
    replace(&mut keyspace_after, changed);
    Ok(with_keyspace(catalog, keyspace_after, event(SchemaAction::Updated, keyspace, &name.name)))
}

/// `keyspace.type`, as messages name it.
fn full_name(user_type: &UserType) -> String {
    let name = quote_identifier_if_needed(&String::from_utf8_lossy(&user_type.name));
    format!("{}.{name}", user_type.keyspace)
}

fn add_field(
    user_type: &mut UserType,
    keyspace: &Keyspace,
    (field, text): (&Name, &TypeText),
    if_not_exists: bool,
    context: &Context<'_>,
) -> Result<()> {
    check_field(text)?;
    let full = full_name(user_type);
    if user_type.fields.iter().any(|(known, _)| *known == field.text.as_bytes()) {
        if if_not_exists {
            return Ok(());
        }
        return Err(invalid(format!(
            "Cannot add field {0} to type {full}: a field with name {0} already exists",
            field.text
        )));
    }
    let cql_type = resolve(text, keyspace)?;
    let spelled = spelled_with_keyspace(text, keyspace);
    let begin =
        format!("Cannot add new field {} of type {spelled} to user type {full}", field.text);
    if mentions(&cql_type, &user_type.name) {
        return Err(invalid(format!("{begin} as it would create a circular reference")));
    }
    let in_key = |table: &&Arc<Table>| {
        table.schema.partition_key.iter().any(|column| mentions(&column.cql_type, &user_type.name))
    };
    let used: Vec<String> =
        keyspace.tables.values().filter(in_key).map(|table| table.full_name()).collect();
    if !used.is_empty() {
        return Err(invalid(format!(
            "{begin} as the type is being used in partition key by the following tables: {}",
            used.join(", ")
        )));
    }
    let name = String::from_utf8_lossy(&user_type.name);
    check_count(context.guard, Threshold::FieldsPerUdt, user_type.fields.len() + 1, &name)?;
    check_vector(context.guard, text, "Field", &field.text)?;
    user_type.fields.push((field.text.clone().into_bytes(), cql_type));
    Ok(())
}

/// An INITCOND is stored as a literal, which names fields.
fn check_initial_states(keyspace: &Keyspace, user_type: &UserType) -> Result<()> {
    let aggregates = keyspace.functions.aggregates.values();
    let used: Vec<String> = aggregates
        .filter(|of| of.initial.is_some() && mentions(&of.state, &user_type.name))
        .map(|of| format!("{}.{}", of.keyspace, of.name))
        .collect();
    if used.is_empty() {
        return Ok(());
    }
    Err(invalid(format!(
        "Cannot alter user type {} as it is still used in INITCOND by aggregates {}",
        full_name(user_type),
        used.join(", ")
    )))
}

fn rename(user_type: &mut UserType, renames: &[(Name, Name)], if_exists: bool) -> Result<()> {
    let full = full_name(user_type);
    let keyspace = user_type.keyspace.clone();
    // Of several new names of one field the last one counts.
    let last: BTreeMap<&str, &str> =
        renames.iter().map(|(from, to)| (from.text.as_str(), to.text.as_str())).collect();
    let mut renames: Vec<(&str, &str)> = last.into_iter().collect();
    java_hash::sort_filled(&mut renames, |(from, _)| from);
    // Each is found by the name that it had before the statement.
    let before: Vec<Vec<u8>> = user_type.fields.iter().map(|(field, _)| field.clone()).collect();
    for (from, to) in renames {
        let at = before.iter().position(|field| field == from.as_bytes());
        match at.and_then(|at| user_type.fields.get_mut(at)) {
            Some((name, _)) => *name = to.as_bytes().to_vec(),
            None if if_exists => {}
            None => {
                return Err(invalid(format!("Unkown field {from} in user type {full}")));
            }
        }
    }
    if let Some(field) = first_duplicate(user_type.fields.iter().map(|(field, _)| field)) {
        let field = String::from_utf8_lossy(field);
        return Err(invalid(format!("Duplicate field name {field} in type {keyspace}")));
    }
    Ok(())
}

/// Puts the type's new definition wherever it is used.
fn replace(keyspace: &mut Keyspace, user_type: UserType) {
    for other in keyspace.types.values_mut() {
        if other.fields.iter().any(|(_, field)| mentions(field, &user_type.name)) {
            let other = Arc::make_mut(other);
            for (_, field) in &mut other.fields {
                *field = replaced(field, &user_type);
            }
        }
    }
    for table in keyspace.tables.values_mut() {
        let arguments = table.masks.values().flat_map(|mask| &mask.arguments).map(|(of, _)| of);
        let mut types = arguments.chain(table.all_columns().map(|column| &column.cql_type));
        let is_used = types.any(|of| mentions(of, &user_type.name));
        drop(types);
        if is_used {
            let mut schema = table.schema.clone();
            let retype = |columns: &mut Vec<ColumnDef>| {
                for column in columns {
                    column.cql_type = replaced(&column.cql_type, &user_type);
                }
            };
            retype(&mut schema.partition_key);
            retype(&mut schema.clustering);
            retype(&mut schema.statics);
            retype(&mut schema.regulars);
            let mut altered = table.altered(schema);
            for (of, _) in altered.masks.values_mut().flat_map(|mask| &mut mask.arguments) {
                *of = replaced(of, &user_type);
            }
            *table = Arc::new(altered);
        }
    }
    if keyspace.functions.types().any(|of| mentions(of, &user_type.name)) {
        keyspace.functions = keyspace.functions.with_types(|of| replaced(of, &user_type));
    }
    let name = String::from_utf8_lossy(&user_type.name).into_owned();
    keyspace.types.insert(name, Arc::new(user_type));
}

fn replaced(cql_type: &CqlType, user_type: &UserType) -> CqlType {
    let boxed = |inner: &CqlType| Box::new(replaced(inner, user_type));
    let all = |list: &[CqlType]| list.iter().map(|inner| replaced(inner, user_type)).collect();
    match cql_type {
        CqlType::Udt(udt) if udt.name == user_type.name => {
            CqlType::Udt(Box::new(user_type.clone()))
        }
        CqlType::Udt(udt) => {
            let mut udt = UserType::clone(udt);
            for (_, field) in &mut udt.fields {
                *field = replaced(field, user_type);
            }
            CqlType::Udt(Box::new(udt))
        }
        // The parts of a frozen type are spelled without `Frozen`: freezing again removes it.
        CqlType::Frozen(inner) => replaced(inner, user_type).freeze(),
        CqlType::List(e) => CqlType::List(boxed(e)),
        CqlType::Set(e) => CqlType::Set(boxed(e)),
        CqlType::Map(k, v) => CqlType::Map(boxed(k), boxed(v)),
        CqlType::Tuple(fields) => CqlType::Tuple(all(fields)),
        CqlType::Vector(e, n) => CqlType::Vector(boxed(e), *n),
        CqlType::Reversed(inner) => CqlType::Reversed(boxed(inner)),
        other => other.clone(),
    }
}

pub(super) fn remove(
    catalog: &Catalog,
    name: &QualifiedName,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    let keyspace = keyspace_name(name, context)?;
    forbidden(catalog, keyspace, "DROP", &format!("keyspace {keyspace}"))?;
    let known = catalog.keyspace(keyspace).filter(|of| of.types.contains_key(&name.name));
    let full = format!("{keyspace}.{}", name.name);
    let Some(known) = known else {
        if if_exists {
            return Ok(unchanged(catalog));
        }
        return Err(invalid(format!("Type '{full}' doesn't exist")));
    };
    check_unused(known, name.name.as_bytes(), &full)?;
    let mut changed = Keyspace::clone(known);
    changed.types.remove(&name.name);
    Ok(with_keyspace(catalog, changed, event(SchemaAction::Dropped, keyspace, &name.name)))
}

fn functions_using(keyspace: &Keyspace, name: &[u8]) -> Vec<String> {
    let functions = &keyspace.functions;
    let scalars = functions.scalars.values().filter(|f| f.types().any(|of| mentions(of, name)));
    let aggregates =
        functions.aggregates.values().filter(|a| a.types().any(|of| mentions(of, name)));
    let scalars = scalars.map(|function| &function.name);
    let names = scalars.chain(aggregates.map(|aggregate| &aggregate.name));
    names.map(|function| format!("{}.{function}", keyspace.name)).collect()
}

fn check_unused(keyspace: &Keyspace, name: &[u8], full: &str) -> Result<()> {
    let begin = format!("Cannot drop user type '{full}' as it is still used by");
    let functions = functions_using(keyspace, name);
    if !functions.is_empty() {
        return Err(invalid(format!("{begin} functions {}", functions.join(", "))));
    }
    let types: Vec<&str> = keyspace
        .types
        .iter()
        .filter(|(_, other)| {
            other.name != name && other.fields.iter().any(|(_, field)| mentions(field, name))
        })
        .map(|(other, _)| other.as_str())
        .collect();
    if !types.is_empty() {
        return Err(invalid(format!("{begin} user types {}", types.join(", "))));
    }
    let uses: BTreeMap<&str, bool> = keyspace
        .tables
        .iter()
        .filter(|(_, table)| table.kind != TableKind::View)
        .map(|(table_name, table)| {
            let used = table.all_columns().any(|column| mentions(&column.cql_type, name));
            (table_name.as_str(), used)
        })
        .collect();
    let tables: Vec<&str> = uses.into_iter().filter(|(_, used)| *used).map(|(t, _)| t).collect();
    if !tables.is_empty() {
        return Err(invalid(format!("{begin} tables {}", tables.join(", "))));
    }
    Ok(())
}
