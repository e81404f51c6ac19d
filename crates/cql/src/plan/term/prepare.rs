//! Checks a raw term against its receiver, and folds its constant parts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::UserType;

use super::literal::parse_literal;
use super::preparation::Preparation;
use super::raw::{self, Inference};
use crate::plan::eval::{Composed, Node, Shape};
use crate::plan::functions::{Match, Scope, type_matches};
use halcyon_schema::catalog::Keyspace;
use halcyon_syntax::ast::{LiteralKind, Name, QualifiedName, RawTerm, TypeText};
use halcyon_syntax::lexer::{TokenKind, tokens};
use halcyon_syntax::{Error, Result};

/// Prepares the parts of one term.
pub(super) struct Preparing<'p, 'a, 'r> {
    to: &'p mut Preparation<'a>,
    inference: Inference<'r>,
    /// Bind markers so far.
    markers: usize,
}

impl<'p, 'a: 'r, 'r> Preparing<'p, 'a, 'r> {
    pub(super) fn new(to: &'p mut Preparation<'a>) -> Preparing<'p, 'a, 'r> {
        let inference = Inference::new(to.catalog, to.keyspace, to.work);
        Preparing { to, inference, markers: 0 }
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> u64 {
        self.inference.steps()
    }
}

/// What a term costs, in units of work.
const NODE: u64 = 200;
/// A byte of a constant.
const LITERAL_BYTE: u64 = 20;

pub(super) fn prepare_node<'r>(
    raw: &'r RawTerm,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Node> {
    to.to.work.spend(NODE)?;
    match raw {
        RawTerm::Null if receiver.cql_type.is_counter() => {
            Err(Error::invalid_request("Invalid null value for counter increment/decrement"))
        }
        RawTerm::Null => Ok(Node::Null),
        RawTerm::Literal { kind: LiteralKind::String, text }
            if *receiver.cql_type.base() == CqlType::Timestamp
                && text.eq_ignore_ascii_case("now") =>
        {
            let name = raw::native("currenttimestamp");
            prepare_call(&name, &[], receiver, to)
        }
        RawTerm::Literal { kind, text } => {
            to.to.work.spend_on(text.len(), LITERAL_BYTE)?;
            parse_literal(*kind, text, receiver).map(Node::Value)
        }
        RawTerm::Bind { index, name } => {
            to.markers += 1;
            to.to.variables.note(*index, name.as_deref(), receiver);
            let cql_type = receiver.cql_type.base().clone();
            Ok(Node::Marker { index: *index, cql_type, name: receiver.name.clone() })
        }
        RawTerm::TypeHint { to: hint, term } => prepare_hint(hint, term, receiver, to),
        RawTerm::Call { name, arguments } => {
            let arguments: Vec<&'r RawTerm> = arguments.iter().collect();
            prepare_call(name, &arguments, receiver, to)
        }
        RawTerm::Arithmetic { operator, left, right } => {
            let name = raw::operator(Some(*operator));
            prepare_call(&name, &[left, right], receiver, to)
        }
        RawTerm::Negate(term) => prepare_call(&raw::operator(None), &[term], receiver, to),
        RawTerm::Tuple(terms) if raw::is_parenthesised(terms, &receiver.cql_type) => {
            let Some(term) = terms.first() else { return Ok(Node::Null) };
            prepare_node(term, receiver, to)
        }
        composed => prepare_composed(composed, receiver, to),
    }
}

fn prepare_hint<'r>(
    hint: &TypeText,
    term: &'r RawTerm,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Node> {
    let cql_type = to.to.cql_type(hint)?;
    if !to.inference.matches(term, &cql_type)?.is_assignable() {
        return Err(Error::InvalidRequest(format!(
            "Cannot cast value {term} to type {}",
            shown_type(&with_keyspace(hint, to.to.own()))
        )));
    }
    if !type_matches(&cql_type, &receiver.cql_type).is_assignable() {
        return Err(Error::InvalidRequest(format!(
            "Cannot assign value ({}){term} to {} of type {}",
            shown_type(&with_keyspace(hint, to.to.own())),
            receiver.name,
            receiver.cql_type.cql_name()
        )));
    }
    // The hint only restricts the possible types.
    prepare_node(term, receiver, to)
}

/// A type as messages show it: without quotes.
pub(crate) fn shown_type(text: &str) -> String {
    text.replace('"', "")
}

/// A type with the keyspace of the statement before user-defined types.
pub(crate) fn with_keyspace(text: &TypeText, keyspace: Option<&Arc<Keyspace>>) -> String {
    let is_type = |name: &str| keyspace.filter(|of| of.types.contains_key(name));
    let mut spelled = String::new();
    for token in tokens(&text.text) {
        let is_name = matches!(token.kind, TokenKind::Word | TokenKind::QuotedName);
        if let Some(keyspace) =
            is_type(&token.value()).filter(|_| is_name && !spelled.ends_with('.'))
        {
            spelled.push_str(&keyspace.name);
            spelled.push('.');
        }
        spelled.push_str(token.text);
        if token.is_symbol(",") {
            spelled.push(' ');
        }
    }
    spelled
}

fn prepare_call<'r>(
    name: &QualifiedName,
    raw_arguments: &[&'r RawTerm],
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Node> {
    let catalog = to.to.catalog;
    let table = catalog.table(&receiver.keyspace, &receiver.table).cloned();
    let (keyspace, work) = (to.to.keyspace, to.to.work);
    let scope = Scope { catalog, keyspace, table: table.as_deref(), work };
    let expected = receiver.cql_type.base();
    let resolved = to.inference.resolve(name, raw_arguments, &scope, Some(expected))?;
    let Some(function) = resolved else {
        let name = raw::full_name(name);
        return Err(Error::InvalidRequest(format!("Unknown function {name} called")));
    };
    if function.is_aggregate() {
        return Err(Error::invalid_request(
            "Aggregation function are not supported in the where clause",
        ));
    }
    if raw::result_matches(&function, expected) == Match::No {
        return Err(Error::InvalidRequest(format!(
            "Type error: cannot assign result of function {} (type {}) to {} (type {})",
            function.full_name(),
            function.returns.cql_name(),
            receiver.name,
            expected.cql_name()
        )));
    }
    let mut arguments = Vec::with_capacity(raw_arguments.len());
    for (index, raw) in raw_arguments.iter().enumerate() {
        let Some(spec) = function.argument_spec(index, &receiver.keyspace, &receiver.table) else {
            return Err(Error::InvalidRequest(format!(
                "Incorrect number of arguments specified for function {} (expected {}, found {})",
                function.signature(),
                function.arguments.len(),
                raw_arguments.len()
            )));
        };
        arguments.push(prepare_node(raw, &spec, to)?);
    }
    to.to.note_call(&function);
    Node::Call { function: Box::new(function), arguments }.folded(to.to.work)
}

fn invalid<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

fn prepare_composed<'r>(
    raw: &'r RawTerm,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Node> {
    let cql_type = receiver.cql_type.thawed();
    let composed = match (raw, cql_type) {
        (RawTerm::List(terms), CqlType::List(element)) => {
            check_elements("list", terms, element, receiver, to)?;
            let parts = elements("list", terms, &part(receiver, "value", element), to)?;
            Composed { parts, shape: Shape::List }
        }
        (RawTerm::List(terms), CqlType::Vector(element, dimension)) => {
            vector(terms, element, *dimension, receiver, to)?
        }
        (RawTerm::List(_), _) => return Err(raw::unexpected_array(&receiver.cql_type)),
        (RawTerm::Set(terms), CqlType::Map(..)) if terms.is_empty() => {
            Composed { parts: Vec::new(), shape: Shape::Map(cql_type.clone()) }
        }
        (RawTerm::Set(terms), CqlType::Set(element)) => {
            check_elements("set", terms, element, receiver, to)?;
            let parts = elements("set", terms, &part(receiver, "value", element), to)?;
            Composed { parts, shape: Shape::Set(cql_type.clone()) }
        }
        (RawTerm::Map(entries), CqlType::Map(key, value)) => {
            map(entries, key, value, receiver, to)?
        }
        (RawTerm::UserType(fields), CqlType::Udt(udt)) => user_type(fields, udt, receiver, to)?,
        (RawTerm::Tuple(terms), CqlType::Tuple(types)) => {
            let types: Vec<&CqlType> = types.iter().collect();
            tuple(terms, &types, receiver, to)?
        }
        (RawTerm::Tuple(terms), CqlType::Udt(udt)) => {
            let types: Vec<&CqlType> = udt.fields.iter().map(|(_, t)| t).collect();
            tuple(terms, &types, receiver, to)?
        }
        (raw, _) => {
            let kind = match raw {
                RawTerm::Set(_) => "set",
                RawTerm::Map(_) => "map",
                RawTerm::UserType(_) => "user type",
                _ => "tuple type",
            };
            let cql_type = receiver.cql_type.cql_name();
            return invalid(format!(
                "Invalid {kind} literal for {} of type {cql_type}",
                receiver.name
            ));
        }
    };
    Node::Composed(composed).folded(to.to.work)
}

/// What receives a part of a collection: `value(c)`, `key(c)`.
fn part(receiver: &ColumnSpec, what: &str, cql_type: &CqlType) -> ColumnSpec {
    part_named(receiver, format!("{what}({})", receiver.name), cql_type)
}

fn part_named(receiver: &ColumnSpec, name: String, cql_type: &CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: receiver.keyspace.clone(),
        table: receiver.table.clone(),
        name,
        cql_type: cql_type.clone().freeze(),
    }
}

fn fits<'r>(term: &'r RawTerm, cql_type: &CqlType, to: &Preparing<'_, '_, 'r>) -> Result<bool> {
    let frozen = cql_type.clone().freeze();
    Ok(to.inference.matches(term, &frozen)?.is_assignable())
}

fn check_elements<'r>(
    kind: &str,
    terms: &'r [RawTerm],
    element: &CqlType,
    receiver: &ColumnSpec,
    to: &Preparing<'_, '_, 'r>,
) -> Result<()> {
    for term in terms {
        if !fits(term, element, to)? {
            return invalid(format!(
                "Invalid {kind} literal for {}: value {} is not of type {}",
                receiver.name,
                term,
                element.clone().freeze().cql_name()
            ));
        }
    }
    Ok(())
}

/// The column's name, out of `value(c)`.
fn outer_name(spec: &ColumnSpec) -> &str {
    spec.name
        .split_once('(')
        .map_or(spec.name.as_str(), |(_, rest)| rest.strip_suffix(')').unwrap_or(rest))
}

fn elements<'r>(
    kind: &str,
    terms: &'r [RawTerm],
    spec: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(terms.len());
    for term in terms {
        let markers = to.markers;
        let node = prepare_node(term, spec, to)?;
        if to.markers != markers {
            return invalid(format!(
                "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
                outer_name(spec)
            ));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

fn vector<'r>(
    terms: &'r [RawTerm],
    element: &CqlType,
    dimension: u32,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Composed> {
    if terms.len() != dimension as usize {
        return invalid(format!(
            "Invalid vector literal for {} of type {}; expected {dimension} elements, but given {}",
            receiver.name,
            receiver.cql_type.cql_name(),
            terms.len()
        ));
    }
    check_elements("vector", terms, element, receiver, to)?;
    let spec = part(receiver, "value", element);
    let parts = terms.iter().map(|term| prepare_node(term, &spec, to)).collect::<Result<_>>()?;
    Ok(Composed { parts, shape: Shape::Vector { fixed: element.fixed_len().is_some() } })
}

fn map<'r>(
    entries: &'r [(RawTerm, RawTerm)],
    key: &CqlType,
    value: &CqlType,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Composed> {
    for (raw_key, raw_value) in entries {
        for (what, term, cql_type) in [("key", raw_key, key), ("value", raw_value, value)] {
            if !fits(term, cql_type, to)? {
                return invalid(format!(
                    "Invalid map literal for {}: {what} {} is not of type {}",
                    receiver.name,
                    term,
                    cql_type.clone().freeze().cql_name()
                ));
            }
        }
    }
    let (key_spec, value_spec) = (part(receiver, "key", key), part(receiver, "value", value));
    let mut parts = Vec::with_capacity(entries.len() * 2);
    for (raw_key, raw_value) in entries {
        parts.extend(elements("map", std::slice::from_ref(raw_key), &key_spec, to)?);
        parts.extend(elements("map", std::slice::from_ref(raw_value), &value_spec, to)?);
    }
    Ok(Composed { parts, shape: Shape::Map(receiver.cql_type.thawed().clone()) })
}

fn tuple<'r>(
    terms: &'r [RawTerm],
    types: &[&CqlType],
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Composed> {
    for (i, term) in terms.iter().enumerate() {
        let Some(cql_type) = types.get(i) else {
            return invalid(format!(
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                receiver.name,
                receiver.cql_type.cql_name(),
                types.len(),
                terms.len()
            ));
        };
        if !fits(term, cql_type, to)? {
            return invalid(format!(
                "Invalid tuple literal for {}: component {i} is not of type {}",
                receiver.name,
                (*cql_type).clone().freeze().cql_name()
            ));
        }
    }
    let mut parts = Vec::with_capacity(terms.len());
    for (i, (term, cql_type)) in terms.iter().zip(types).enumerate() {
        let spec = part_named(receiver, format!("{}[{i}]", receiver.name), cql_type);
        parts.push(prepare_node(term, &spec, to)?);
    }
    Ok(Composed { parts, shape: Shape::Tuple })
}

fn user_type<'r>(
    fields: &'r [(Name, RawTerm)],
    udt: &UserType,
    receiver: &ColumnSpec,
    to: &mut Preparing<'_, '_, 'r>,
) -> Result<Composed> {
    let type_name = String::from_utf8_lossy(&udt.name).into_owned();
    let names: Vec<String> =
        udt.fields.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    let given: HashMap<&str, &'r RawTerm> =
        fields.iter().map(|(field, term)| (field.text.as_str(), term)).collect();
    for ((_, cql_type), name) in udt.fields.iter().zip(&names) {
        if let Some(term) = given.get(name.as_str())
            && !fits(term, cql_type, to)?
        {
            return invalid(format!(
                "Invalid user type literal for {}: field {name} is not of type {}",
                receiver.name,
                cql_type.clone().freeze().cql_name()
            ));
        }
    }
    let mut parts = Vec::with_capacity(names.len());
    for ((_, cql_type), name) in udt.fields.iter().zip(&names) {
        let spec = part_named(receiver, format!("{}.{name}", receiver.name), cql_type);
        parts.push(match given.get(name.as_str()) {
            Some(term) => prepare_node(term, &spec, to)?,
            None => Node::Null,
        });
    }
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    if let Some((unknown, _)) = fields.iter().find(|(field, _)| !known.contains(&*field.text)) {
        return invalid(format!(
            "Unknown field '{}' in value of user defined type {type_name}",
            unknown.text
        ));
    }
    let multi_cell = receiver.cql_type.is_multi_cell();
    Ok(Composed { parts, shape: Shape::UserType { fields: names, name: type_name, multi_cell } })
}
