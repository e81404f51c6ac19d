//! CREATE FUNCTION and DROP FUNCTION.

use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::{SchemaAction, SchemaChange, SchemaTarget};
use halcyon_syntax::ast::{CreateFunction, QualifiedName, TypeText};
use halcyon_syntax::{Error, Result};

use super::column_type::{resolve, spelled_with_keyspace};
use super::context::{
    Change, Context, existing, first_duplicate, invalid, keyspace_name, system_keyspace, unchanged,
    with_keyspace,
};
use crate::catalog::{Catalog, Keyspace, Table};
use crate::checks;
use crate::function::{Functions, JAVA, UserFunction, WASM, signature, without_needless};

/// Types of functions are not frozen, because their values are always whole; tuples and vectors are by nature.
pub(super) fn check_thawed(what: &str, spelled: &str) -> Result<()> {
    if !spelled.starts_with("frozen<") {
        return Ok(());
    }
    Err(invalid(format!(
        "{what} '{spelled}' cannot be frozen; remove frozen<> modifier from '{spelled}'"
    )))
}

/// A type as messages show it.
fn spelled(text: &TypeText) -> &str {
    without_needless(&text.text)
}

/// The same without quotes.
fn unquoted(text: &TypeText) -> String {
    spelled(text).replace('"', "")
}

/// The same with the keyspace of user types.
pub(super) fn spelled_in(text: &TypeText, keyspace: &Keyspace) -> String {
    without_needless(&spelled_with_keyspace(text, keyspace)).replace('"', "")
}

pub(super) fn spelled_all<'a>(types: impl IntoIterator<Item = &'a TypeText>) -> String {
    types.into_iter().map(spelled).collect::<Vec<_>>().join(", ")
}

pub(super) fn event(
    action: SchemaAction,
    target: SchemaTarget,
    keyspace: &str,
    name: &str,
    arguments: Vec<String>,
) -> SchemaChange {
    SchemaChange { action, target, keyspace: keyspace.to_owned(), name: name.to_owned(), arguments }
}

/// The types of arguments in the event of a function that was made.
pub(super) fn event_arguments<'a>(
    types: impl IntoIterator<Item = &'a TypeText>,
    keyspace: &Keyspace,
) -> Vec<String> {
    types.into_iter().map(|text| spelled_with_keyspace(text, keyspace)).collect()
}

/// The function that a statement would make, whose body is not looked at (`UDFunction.create`).
pub fn new_function(
    catalog: &Catalog,
    create: &CreateFunction,
    context: &Context<'_>,
) -> Result<UserFunction> {
    let keyspace = keyspace_name(&create.name, context)?;
    let name = &create.name.name;
    let found = catalog.keyspace(keyspace);
    let looked_up = found.map_or(Ok(0), |known| types_that_permissions_need(create, known))?;
    system_keyspace(catalog, keyspace)?;
    if create.if_not_exists && create.replace {
        return Err(both_directives());
    }
    check_enabled(context, &create.language)?;
    if !checks::is_function_name(name) {
        return Err(invalid(format!("Function name '{name}' is invalid")));
    }
    if first_duplicate(create.arguments.iter().map(|(name, _)| &name.text)).is_some() {
        let names: Vec<&str> = create.arguments.iter().map(|(name, _)| &*name.text).collect();
        let names = names.join(", ");
        return Err(invalid(format!(
            "Duplicate argument names for given function {name} with argument names [{names}]"
        )));
    }
    for (place, (_, text)) in create.arguments.iter().enumerate() {
        let shown = match found {
            Some(known) if place < looked_up => spelled_in(text, known),
            _ => unquoted(text),
        };
        check_thawed("Argument", &shown)?;
    }
    check_thawed("Return type", &unquoted(&create.returns))?;
    let known = existing(catalog, keyspace)?;
    let argument = |(name, text): &(halcyon_syntax::ast::Name, TypeText)| {
        Ok((name.text.clone(), resolve(text, known)?))
    };
    Ok(UserFunction {
        keyspace: keyspace.to_owned(),
        name: name.clone(),
        arguments: create.arguments.iter().map(argument).collect::<Result<_>>()?,
        returns: resolve(&create.returns, known)?,
        called_on_null: create.called_on_null,
        language: create.language.clone(),
        body: create.body.clone(),
    })
}

/// How many types of arguments Cassandra looks up before anything else: to ask for permissions it compares them with those of overloads
/// that have as many, up to the first that differs. A type has its keyspace in messages from then on.
fn types_that_permissions_need(create: &CreateFunction, known: &Keyspace) -> Result<usize> {
    let name = &create.name.name;
    let scalars = known.functions.scalars_named(name);
    let scalars = scalars.map(|of| of.arguments.iter().map(|(_, of)| of).collect::<Vec<_>>());
    let aggregates = known.functions.aggregates_named(name);
    let aggregates = aggregates.map(|of| of.arguments.iter().collect());
    let mut most = 0;
    for overload in scalars.chain(aggregates).filter(|of| of.len() == create.arguments.len()) {
        for (place, ((_, text), of)) in create.arguments.iter().zip(overload).enumerate() {
            most = most.max(place + 1);
            if resolve(text, known)? != *of {
                break;
            }
        }
    }
    Ok(most)
}

pub(super) fn both_directives() -> Error {
    Error::invalid_request("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives")
}

fn check_enabled(context: &Context<'_>, language: &str) -> Result<()> {
    if !context.functions.are_enabled {
        return Err(Error::invalid_request(
            "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable",
        ));
    }
    if ![JAVA, WASM].contains(&language) {
        return Err(Error::invalid_request(
            "Currently only Java UDFs are available in Cassandra. For more information - CASSANDRA-18252 and CASSANDRA-17281",
        ));
    }
    Ok(())
}

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateFunction,
    context: &Context<'_>,
) -> Result<Change> {
    let function = new_function(catalog, create, context)?;
    let known = existing(catalog, &function.keyspace)?;
    let name = &function.name;
    let signature = function.signature();
    if known.functions.aggregates.contains_key(&signature) {
        return Err(invalid(format!("Function '{name}' cannot replace an aggregate")));
    }
    let mut action = SchemaAction::Created;
    if let Some(replaced) = known.functions.scalars.get(&signature) {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        if !create.replace {
            return Err(invalid(format!("Function '{name}' already exists")));
        }
        check_replaced(&function, replaced)?;
        action = SchemaAction::Updated;
    }
    let arguments = event_arguments(create.arguments.iter().map(|(_, text)| text), known);
    let event = event(action, SchemaTarget::Function, &function.keyspace, name, arguments);
    let mut changed = Keyspace::clone(known);
    changed.functions.scalars.insert(signature, Arc::new(function));
    Ok(with_keyspace(catalog, changed, event))
}

fn check_replaced(function: &UserFunction, replaced: &UserFunction) -> Result<()> {
    let name = &function.name;
    if function.called_on_null != replaced.called_on_null {
        let directive = match function.called_on_null {
            true => "CALLED ON NULL INPUT",
            false => "RETURNS NULL ON NULL INPUT",
        };
        return Err(invalid(format!("Function '{name}' must have {directive} directive")));
    }
    if !is_compatible(&function.returns, &replaced.returns) {
        return Err(invalid(format!(
            "Cannot replace function '{name}', the new return type {} is not compatible with the return type {} of existing function",
            function.returns.cql_name(),
            replaced.returns.cql_name()
        )));
    }
    Ok(())
}

/// Whether results of one type can stand for those of another (`AbstractType.isCompatibleWith`).
pub(super) fn is_compatible(new: &CqlType, old: &CqlType) -> bool {
    match (new, old) {
        (CqlType::Text, CqlType::Ascii) | (CqlType::Blob, CqlType::Text | CqlType::Ascii) => true,
        (CqlType::Tuple(new), CqlType::Tuple(old)) => {
            new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| is_compatible(new, old))
        }
        _ => new == old,
    }
}

/// The overload that a DROP means.
pub(super) struct Dropped<'a> {
    pub(super) keyspace: &'a Keyspace,
    pub(super) signature: crate::function::Signature,
    /// As messages show it.
    pub(super) full: String,
}

/// What a DROP of a function or an aggregate means; `None`: there is none, and IF EXISTS says that there need not be.
pub(super) fn find_dropped<'a>(
    catalog: &'a Catalog,
    (name, if_exists, arguments): (&QualifiedName, bool, Option<&[TypeText]>),
    what: &str,
    has: impl Fn(&Functions, &crate::function::Signature) -> bool,
    context: &Context<'_>,
) -> Result<Option<Dropped<'a>>> {
    let keyspace = keyspace_name(name, context)?;
    let own = &name.name;
    system_keyspace(catalog, keyspace)?;
    let full = match arguments {
        Some(types) => format!("{keyspace}.{own}({})", spelled_all(types)),
        None => format!("{keyspace}.{own}"),
    };
    let gone = || match if_exists {
        true => Ok(None),
        false => Err(invalid(format!("{what} '{full}' doesn't exist"))),
    };
    let Some(known) = catalog.keyspace(keyspace) else { return gone() };
    let functions = &known.functions;
    let scalars = functions.scalars_named(own).map(|function| function.signature());
    let aggregates = functions.aggregates_named(own).map(|aggregate| aggregate.signature());
    let mut overloads: Vec<_> = scalars.chain(aggregates).collect();
    if overloads.len() > 1 && arguments.is_none() {
        let drop = format!("DROP {}", what.to_uppercase());
        let describe = what.to_uppercase();
        return Err(invalid(format!(
            "'{drop} {own}' matches multiple function definitions; specify the argument types by issuing a statement like '{drop} \
             {own} (type, type, ...)'. You can use cqlsh 'DESCRIBE {describe} {own}' command to find all overloads"
        )));
    }
    if let Some(types) = arguments {
        // Of a known name, Cassandra looks up the types first, for permissions.
        if overloads.is_empty() {
            types.iter().try_for_each(|text| check_thawed("Argument", &unquoted(text)))?;
        }
        let found = types.iter().map(|text| resolve(text, known)).collect::<Result<Vec<_>>>()?;
        types.iter().try_for_each(|text| check_thawed("Argument", &spelled_in(text, known)))?;
        let wanted = signature(own, &found);
        overloads.retain(|signature| *signature == wanted);
    }
    match overloads.into_iter().find(|signature| has(functions, signature)) {
        Some(signature) => Ok(Some(Dropped { keyspace: known, signature, full })),
        None => gone(),
    }
}

pub(super) fn remove(
    catalog: &Catalog,
    wanted: (&QualifiedName, bool, Option<&[TypeText]>),
    context: &Context<'_>,
) -> Result<Change> {
    let has = |functions: &Functions, signature: &_| functions.scalars.contains_key(signature);
    let Some(found) = find_dropped(catalog, wanted, "Function", has, context)? else {
        return Ok(unchanged(catalog));
    };
    let Dropped { keyspace, signature, full } = found;
    let aggregates = keyspace.functions.aggregates.values();
    let users: Vec<String> = aggregates
        .filter(|aggregate| aggregate.uses(&signature))
        .map(|aggregate| format!("{}.{}", aggregate.keyspace, aggregate.name))
        .collect();
    if !users.is_empty() {
        let users = users.join(", ");
        return Err(invalid(format!(
            "Function '{full}' is still referenced by aggregates {users}"
        )));
    }
    let has_mask = |table: &&Arc<Table>| {
        let mut masks = table.masks.values();
        table.view.is_none()
            && masks.any(|mask| mask.keyspace == keyspace.name && mask.function == signature.0)
    };
    let masked = keyspace.tables.values().filter(has_mask);
    let masked: Vec<&str> = masked.map(|table| table.schema.name.as_str()).collect();
    if !masked.is_empty() {
        let tables = masked.join(", ");
        return Err(invalid(format!(
            "Function '{full}' is still referenced by column masks in tables {tables}"
        )));
    }
    let mut changed = Keyspace::clone(keyspace);
    changed.functions.scalars.remove(&signature);
    let (name, arguments) = signature;
    let event =
        event(SchemaAction::Dropped, SchemaTarget::Function, &keyspace.name, &name, arguments);
    Ok(with_keyspace(catalog, changed, event))
}
