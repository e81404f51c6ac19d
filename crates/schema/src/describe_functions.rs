//! DESCRIBE of functions and aggregates.

use std::fmt::Write as _;

use halcyon_model::CqlType;
use halcyon_model::types::quote_identifier_if_needed as quoted;

use crate::catalog::Keyspace;
use crate::element::Element;
use crate::function::{UserAggregate, UserFunction, spelled_argument};

fn joined<'a>(types: impl Iterator<Item = &'a CqlType>) -> String {
    types.map(spelled_argument).collect::<Vec<_>>().join(", ")
}

fn element(
    keyspace: &Keyspace,
    kind: &'static str,
    (name, arguments): (&str, String),
    statement: String,
) -> Element {
    Element {
        keyspace: quoted(&keyspace.name),
        kind,
        name: format!("{}({arguments})", quoted(name)),
        statement: Some(statement),
    }
}

fn sorted(mut elements: Vec<Element>) -> Vec<Element> {
    elements.sort_by_key(|element| element.name.replace('"', "").to_lowercase());
    elements
}

pub(crate) fn functions(keyspace: &Keyspace) -> Vec<Element> {
    let element = |function: &UserFunction| {
        let arguments = joined(function.argument_types());
        element(keyspace, "function", (&function.name, arguments), function_statement(function))
    };
    sorted(keyspace.functions.scalars.values().map(|function| element(function)).collect())
}

pub(crate) fn aggregates(keyspace: &Keyspace) -> Vec<Element> {
    let element = |aggregate: &UserAggregate| {
        let arguments = joined(aggregate.arguments.iter());
        let statement = aggregate_statement(aggregate);
        element(keyspace, "aggregate", (&aggregate.name, arguments), statement)
    };
    sorted(keyspace.functions.aggregates.values().map(|aggregate| element(aggregate)).collect())
}

/// All overloads of one name, of those that are listed.
pub(crate) fn named(elements: Vec<Element>, name: &str) -> Vec<Element> {
    let begin = format!("{}(", quoted(name));
    elements.into_iter().filter(|element| element.name.starts_with(&begin)).collect()
}

fn function_statement(function: &UserFunction) -> String {
    let argument =
        |(name, of): &(String, CqlType)| format!("{} {}", quoted(name), spelled_argument(of));
    let arguments: Vec<String> = function.arguments.iter().map(argument).collect();
    let on_null = if function.called_on_null { "CALLED" } else { "RETURNS NULL" };
    format!(
        "CREATE FUNCTION {}.{}({})\n    {on_null} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS $${}$$;",
        quoted(&function.keyspace),
        quoted(&function.name),
        arguments.join(", "),
        spelled_argument(&function.returns),
        function.language,
        function.body
    )
}

fn aggregate_statement(aggregate: &UserAggregate) -> String {
    let mut out = format!(
        "CREATE AGGREGATE {}.{}({})\n    SFUNC {}\n    STYPE {}",
        quoted(&aggregate.keyspace),
        quoted(&aggregate.name),
        joined(aggregate.arguments.iter()),
        quoted(&aggregate.state_function),
        spelled_argument(&aggregate.state)
    );
    if let Some(function) = &aggregate.final_function {
        let _ = write!(out, "\n    FINALFUNC {}", quoted(function));
    }
    if let Some(initial) = &aggregate.initial {
        let _ = write!(out, "\n    INITCOND {initial}");
    }
    out.push(';');
    out
}
