//! Picks the overload of a call (`FunctionResolver`).

use std::borrow::Cow;
use std::sync::Arc;

use halcyon_model::CqlType;

use super::matching::{Argument, Match, returned};
use super::{Body, Fold, Function, Scope, natives};
use crate::plan::term::constant;
use halcyon_schema::catalog::Keyspace;
use halcyon_schema::function::{Signature, UserAggregate};
use halcyon_syntax::ast::{QualifiedName, operator_name};
use halcyon_syntax::{Error, Result, parse_term};

fn symbol(name: &str) -> Option<char> {
    Some(match name {
        "_add" => '+',
        "_substract" => '-',
        "_multiply" => '*',
        "_divide" => '/',
        "_modulo" => '%',
        _ => return None,
    })
}

/// The function that a call means; `None` if there is none of that name. `receiver` is the type that is expected.
pub fn resolve(
    name: &QualifiedName,
    arguments: &[&dyn Argument],
    scope: &Scope<'_>,
    receiver: Option<&CqlType>,
) -> Result<Option<Function>> {
    let keyspace = name.keyspace.as_deref().unwrap_or(scope.keyspace);
    let own = user_candidates(keyspace, &name.name, scope)?;
    let is_native = name.keyspace.as_deref().is_none_or(|keyspace| keyspace == "system");
    let mut candidates = match is_native {
        true => natives::candidates(&name.name, arguments, scope, receiver)?,
        false => Cow::Owned(Vec::new()),
    };
    if !own.is_empty() {
        candidates = Cow::Owned(own.into_iter().chain(candidates.into_owned()).collect());
    }
    match &*candidates {
        [] => Ok(None),
        [only] => {
            check_arguments(only, arguments)?;
            Ok(Some(only.clone()))
        }
        _ => best(name, &candidates, arguments, receiver).map(Some),
    }
}

/// All overloads of a name in a keyspace.
fn user_candidates(keyspace: &str, name: &str, scope: &Scope<'_>) -> Result<Vec<Function>> {
    let Some(keyspace) = scope.catalog.keyspace(keyspace) else { return Ok(Vec::new()) };
    let functions = keyspace.functions.scalars_named(name).map(|of| {
        Ok(Function {
            keyspace: of.keyspace.clone(),
            name: of.name.clone(),
            arguments: of.argument_types().cloned().collect(),
            returns: of.returns.clone(),
            body: Body::User(of.clone()),
        })
    });
    let aggregates = keyspace.functions.aggregates_named(name).map(|of| {
        Ok(Function {
            keyspace: of.keyspace.clone(),
            name: of.name.clone(),
            arguments: of.arguments.clone(),
            returns: of.returns.clone(),
            body: Body::Fold(Arc::new(fold(of, keyspace, scope)?)),
        })
    });
    functions.chain(aggregates).collect()
}

/// What a call of an aggregate needs.
fn fold(aggregate: &UserAggregate, keyspace: &Keyspace, scope: &Scope<'_>) -> Result<Fold> {
    let function = |signature: &Signature| {
        keyspace.functions.scalars.get(signature).cloned().ok_or_else(|| {
            Error::Configuration(format!(
                "Unable to find function {}.{} referenced by UDA {}.{}",
                keyspace.name, signature.0, aggregate.keyspace, aggregate.name
            ))
        })
    };
    let initial = |text: &String| {
        constant(scope.catalog, &keyspace.name, &parse_term(text)?, &aggregate.state, scope.work)
    };
    let initial = aggregate.initial.as_ref().map(initial).transpose()?;
    Ok(Fold {
        state_function: function(&aggregate.state_signature())?,
        final_function: aggregate.final_signature().as_ref().map(function).transpose()?,
        initial: initial.flatten(),
    })
}

fn check_arguments(function: &Function, arguments: &[&dyn Argument]) -> Result<()> {
    if arguments.len() != function.arguments.len() {
        return Err(Error::InvalidRequest(format!(
            "Invalid number of arguments in call to function {}: {} required but {} provided",
            function.full_name(),
            function.arguments.len(),
            arguments.len()
        )));
    }
    for (index, (argument, expected)) in arguments.iter().zip(&function.arguments).enumerate() {
        if !argument.matches(expected)?.is_assignable() {
            return Err(Error::InvalidRequest(format!(
                "Type error: {} cannot be passed as argument {index} of function {} of type {}",
                argument.text(),
                function.full_name(),
                expected.cql_name()
            )));
        }
    }
    Ok(())
}

fn match_arguments(function: &Function, arguments: &[&dyn Argument]) -> Result<Match> {
    if arguments.len() != function.arguments.len() {
        return Ok(Match::No);
    }
    let mut all = Match::Exact;
    for (argument, expected) in arguments.iter().zip(&function.arguments) {
        all = all.and(argument.matches(expected)?);
        if all == Match::No {
            break;
        }
    }
    Ok(all)
}

/// The name as it was called.
fn called(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}

fn best(
    name: &QualifiedName,
    candidates: &[Function],
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Function> {
    let returns = |function: &&Function| {
        // Of native aggregates, Cassandra's timeuuid is a type that stands for no uuid.
        let is_apart = matches!(function.body, Body::Aggregate(_))
            && function.returns == CqlType::TimeUuid
            && receiver == Some(&CqlType::Uuid);
        let fits = |receiver| returned(&function.returns, receiver).is_assignable();
        !is_apart && receiver.is_none_or(fits)
    };
    let mut compatible = Vec::new();
    for function in candidates.iter().filter(returns) {
        match match_arguments(function, arguments)? {
            Match::Exact => return Ok(function.clone()),
            Match::Weak => compatible.push(function),
            Match::No => {}
        }
    }
    match compatible.as_slice() {
        [] => Err(none_matches(name, candidates, arguments)),
        [only] => Ok((*only).clone()),
        _ => ambiguous(name, &compatible, arguments, receiver),
    }
}

fn text_of(arguments: &[&dyn Argument], index: usize) -> String {
    arguments.get(index).map(|argument| argument.text()).unwrap_or_default()
}

fn signatures<'a>(functions: impl Iterator<Item = &'a Function>) -> String {
    functions.map(Function::signature).collect::<Vec<_>>().join(", ")
}

fn none_matches(
    name: &QualifiedName,
    candidates: &[Function],
    arguments: &[&dyn Argument],
) -> Error {
    let Some(first) = candidates.first() else { return Error::invalid_request("") };
    Error::InvalidRequest(match symbol(&first.name) {
        Some(symbol) => format!(
            "the '{symbol}' operation is not supported between {} and {}",
            text_of(arguments, 0),
            text_of(arguments, 1)
        ),
        None => format!(
            "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
            called(name),
            signatures(candidates.iter())
        ),
    })
}

fn ambiguous(
    name: &QualifiedName,
    compatible: &[&Function],
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
) -> Result<Function> {
    let Some(first) = compatible.first() else { return Err(Error::invalid_request("")) };
    let Some(symbol) = symbol(&first.name) else {
        return Err(Error::InvalidRequest(if first.name == operator_name(None) {
            "Ambiguous negation: use type casts to disambiguate".to_owned()
        } else {
            format!(
                "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
                called(name),
                signatures(compatible.iter().copied())
            )
        }));
    };
    if let Some(receiver) = receiver
        && !arguments.iter().any(|argument| argument.is_marker())
    {
        let same = |function: &&&Function| function.arguments.iter().all(|t| t == receiver);
        if let Some(function) = compatible.iter().find(same) {
            return Ok((*function).clone());
        }
    }
    Err(Error::InvalidRequest(format!(
        "Ambiguous '{symbol}' operation with args {} and {}: use type hint to disambiguate, example '(int) ?'",
        text_of(arguments, 0),
        text_of(arguments, 1)
    )))
}
