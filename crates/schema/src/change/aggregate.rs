//! CREATE AGGREGATE and DROP AGGREGATE.

use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::{SchemaAction, SchemaTarget};
use halcyon_model::value::to_cql_literal;
use halcyon_syntax::ast::{CreateAggregate, QualifiedName, RawTerm, TypeText};
use halcyon_syntax::{Error, Result};

use super::column_type::resolve;
use super::context::{
    Change, Context, existing, invalid, keyspace_name, system_keyspace, unchanged, with_keyspace,
};
use super::function::{
    Dropped, both_directives, check_thawed, event, event_arguments, find_dropped, is_compatible,
    spelled_in,
};
use crate::catalog::{Catalog, Keyspace};
use crate::checks;
use crate::function::{Functions, UserAggregate, UserFunction, signature};

pub(super) fn create(
    catalog: &Catalog,
    create: &CreateAggregate,
    context: &Context<'_>,
) -> Result<Change> {
    let aggregate = new_aggregate(catalog, create, context)?;
    let known = existing(catalog, &aggregate.keyspace)?;
    let name = &aggregate.name;
    let signature = aggregate.signature();
    if known.functions.scalars.contains_key(&signature) {
        return Err(invalid(format!("Aggregate '{name}' cannot replace a function")));
    }
    let mut action = SchemaAction::Created;
    if let Some(replaced) = known.functions.aggregates.get(&signature) {
        if create.if_not_exists {
            return Ok(unchanged(catalog));
        }
        if !create.replace {
            return Err(invalid(format!("Aggregate '{name}' already exists")));
        }
        if !is_compatible(&aggregate.returns, &replaced.returns) {
            return Err(invalid(format!(
                "Cannot replace aggregate '{name}', the new return type {} isn't compatible with the return type {} of existing function",
                aggregate.returns.cql_name(),
                replaced.returns.cql_name()
            )));
        }
        action = SchemaAction::Updated;
    }
    let arguments = event_arguments(&create.arguments, known);
    let event = event(action, SchemaTarget::Aggregate, &aggregate.keyspace, name, arguments);
    let mut changed = Keyspace::clone(known);
    changed.functions.aggregates.insert(signature, Arc::new(aggregate));
    Ok(with_keyspace(catalog, changed, event))
}

fn new_aggregate(
    catalog: &Catalog,
    create: &CreateAggregate,
    context: &Context<'_>,
) -> Result<UserAggregate> {
    let keyspace = keyspace_name(&create.name, context)?;
    let name = &create.name.name;
    // Cassandra names the state function's resource before it looks at anything else.
    let Some(known) = catalog.keyspace(keyspace) else {
        return Err(Error::Configuration(format!("Keyspace {keyspace} doesn't exist")));
    };
    resolve_as_overloads(create, known)?;
    let state = resolve(&create.state_type, known)?;
    let arguments: Vec<CqlType> =
        create.arguments.iter().map(|text| resolve(text, known)).collect::<Result<_>>()?;
    system_keyspace(catalog, keyspace)?;
    if create.if_not_exists && create.replace {
        return Err(both_directives());
    }
    if !checks::is_function_name(name) {
        return Err(invalid(format!("Aggregate name '{name}' is invalid")));
    }
    let is_thawed = |text: &TypeText| check_thawed("Argument", &spelled_in(text, known));
    create.arguments.iter().try_for_each(is_thawed)?;
    check_thawed("State type", &spelled_in(&create.state_type, known))?;
    let state_function = state_function(known, create, &state, &arguments)?;
    let returns = match &create.final_function {
        None => state.clone(),
        Some(name) => final_function(known, name, create, &state)?.returns.clone(),
    };
    let initial = match &create.initial {
        None => None,
        Some(term) => initial(known, term, &state, context)?,
    };
    if !state_function.called_on_null && initial.is_none() {
        return Err(invalid(format!(
            "Cannot create aggregate '{name}' without INITCOND because state function {keyspace}.{} does not accept 'null' arguments",
            create.state_function
        )));
    }
    Ok(UserAggregate {
        keyspace: keyspace.to_owned(),
        name: name.clone(),
        arguments,
        state,
        state_function: create.state_function.clone(),
        final_function: create.final_function.clone(),
        returns,
        initial,
    })
}

/// Refuses an argument's type before the state's where Cassandra does: it compares the arguments with those of overloads first.
fn resolve_as_overloads(create: &CreateAggregate, known: &Keyspace) -> Result<()> {
    let functions = &known.functions;
    let scalars = functions.scalars_named(&create.name.name);
    let scalars = scalars.map(|of| of.argument_types().cloned().collect::<Vec<_>>());
    let aggregates = functions.aggregates_named(&create.name.name).map(|of| of.arguments.clone());
    let has_as_many = |own: &Vec<CqlType>| own.len() == create.arguments.len();
    for overload in scalars.chain(aggregates).filter(has_as_many) {
        for (own, text) in overload.into_iter().zip(&create.arguments) {
            if resolve(text, known)? != own {
                break;
            }
        }
    }
    Ok(())
}

fn state_function<'a>(
    keyspace: &'a Keyspace,
    create: &CreateAggregate,
    state: &CqlType,
    arguments: &[CqlType],
) -> Result<&'a UserFunction> {
    let wanted = signature(&create.state_function, std::iter::once(state).chain(arguments));
    let shown = || {
        let types = std::iter::once(&create.state_type).chain(&create.arguments);
        let types: Vec<_> = types.map(|text| spelled_in(text, keyspace)).collect();
        format!("{}.{}({})", keyspace.name, create.state_function, types.join(", "))
    };
    if keyspace.functions.aggregates.contains_key(&wanted) {
        return Err(invalid(format!("State function {} isn't a scalar function", shown())));
    }
    let Some(function) = keyspace.functions.scalars.get(&wanted) else {
        return Err(invalid(format!("State function {} doesn't exist", shown())));
    };
    if function.returns != *state {
        return Err(invalid(format!(
            "State function {} return type must be the same as the first argument type - check STYPE, argument and return types",
            shown()
        )));
    }
    Ok(function)
}

fn final_function<'a>(
    keyspace: &'a Keyspace,
    name: &str,
    create: &CreateAggregate,
    state: &CqlType,
) -> Result<&'a UserFunction> {
    let wanted = signature(name, [state]);
    let shown = format!("{}.{name}({})", keyspace.name, spelled_in(&create.state_type, keyspace));
    if keyspace.functions.aggregates.contains_key(&wanted) {
        return Err(invalid(format!("Final function {shown} isn't a scalar function")));
    }
    let found = keyspace.functions.scalars.get(&wanted);
    found.map(Arc::as_ref).ok_or_else(|| invalid(format!("Final function {shown} doesn't exist")))
}

/// The first state, as a literal.
fn initial(
    keyspace: &Keyspace,
    term: &RawTerm,
    state: &CqlType,
    context: &Context<'_>,
) -> Result<Option<String>> {
    if *term == RawTerm::Null {
        return Ok(None);
    }
    let value = (context.evaluate)(keyspace, term, state)?;
    let has_empty = matches!(state, CqlType::Text | CqlType::Ascii | CqlType::Blob);
    match value.filter(|value| !value.is_empty() || has_empty) {
        Some(value) => Ok(Some(to_cql_literal(state, &value))),
        None => Err(Error::invalid_request(
            "INITCOND must not be empty for all types except TEXT, ASCII, BLOB",
        )),
    }
}

pub(super) fn remove(
    catalog: &Catalog,
    wanted: (&QualifiedName, bool, Option<&[TypeText]>),
    context: &Context<'_>,
) -> Result<Change> {
    let has = |functions: &Functions, signature: &_| functions.aggregates.contains_key(signature);
    let Some(found) = find_dropped(catalog, wanted, "Aggregate", has, context)? else {
        return Ok(unchanged(catalog));
    };
    let Dropped { keyspace, signature, .. } = found;
    let mut changed = Keyspace::clone(keyspace);
    changed.functions.aggregates.remove(&signature);
    let (name, arguments) = signature;
    let event =
        event(SchemaAction::Dropped, SchemaTarget::Aggregate, &keyspace.name, &name, arguments);
    Ok(with_keyspace(catalog, changed, event))
}
