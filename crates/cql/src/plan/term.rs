//! Terms: literals, bind markers, collections and calls, type-checked against what receives them.
//!
//! 1. `Term::prepare` checks a raw term against its receiver and folds what cannot change to its serialized value.
//! 2. What is left depends on a marker or on a function that is not pure; `Term::bind` evaluates it once per execution.
//! 3. Bytes from a client are validated by the receiver's type; sets and maps are put in order.

mod collection;
mod duration;
mod literal;
mod markers;
mod number;
mod raw;
mod temporal;

use std::borrow::Cow;

use halcyon_model::CqlType;
use halcyon_model::request::{ColumnSpec, Value};
use halcyon_model::uuid;

use super::functions::{self, Argument, Function, Match, Scope};
use super::{Execution, Given, Variables};
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::ast::{LiteralKind, QualifiedName, RawTerm, TypeText};
use halcyon_syntax::{Error, Result};

pub(crate) use duration::parse_duration;
pub(crate) use literal::from_string;
pub use literal::parse_literal;
pub(crate) use markers::sorted_collection;
pub(crate) use markers::{collection_elements, tuple_fields};
pub(crate) use raw::{RawArgument, type_matches};

/// What names are looked up in, and where bind markers are noted, while a statement is prepared.
#[derive(Debug)]
pub struct Preparation<'a> {
    pub catalog: &'a Catalog,
    /// The keyspace of the statement: that of its table.
    pub keyspace: &'a str,
    pub variables: &'a mut Variables,
}

/// A term that is ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Term(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Null,
    Unset,
    Value(Vec<u8>),
    Marker {
        index: u16,
        cql_type: CqlType,
        name: String,
    },
    /// A column of an INSERT whose JSON a marker gives.
    Json {
        at: usize,
        default_unset: bool,
    },
    Composed(collection::Composed),
    Call {
        function: Box<Function>,
        arguments: Vec<Node>,
    },
}

/// What a term came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound<'a> {
    Null,
    Unset,
    /// A serialized value of the receiver's type, valid for it. A collection's is its frozen form.
    Bytes(Cow<'a, [u8]>),
}

impl Bound<'_> {
    /// The bytes of a value; `None` is null or unset.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Bound::Bytes(bytes) => Some(bytes),
            Bound::Null | Bound::Unset => None,
        }
    }

    pub fn is_unset(&self) -> bool {
        matches!(self, Bound::Unset)
    }
}

impl Variables {
    /// Notes what receives a marker. A name that the user gave it replaces the receiver's.
    pub fn note(&mut self, index: u16, name: Option<&str>, receiver: &ColumnSpec) {
        let at = usize::from(index);
        if self.specs.len() <= at {
            self.specs.resize_with(at + 1, ColumnSpec::default);
            self.receivers.resize_with(at + 1, String::new);
        }
        if let Some(spec) = self.specs.get_mut(at) {
            *spec = ColumnSpec { cql_type: receiver.cql_type.base().clone(), ..receiver.clone() };
            if let Some(name) = name {
                name.clone_into(&mut spec.name);
            }
        }
        if let Some(noted) = self.receivers.get_mut(at) {
            receiver.name.clone_into(noted);
        }
    }

    /// Finds the markers that give the partition key columns, the last one where there are several.
    pub fn find_partition_key<'k>(&mut self, columns: impl IntoIterator<Item = &'k str>) {
        let marker = |column: &str| {
            let at = self.receivers.iter().rposition(|receiver| receiver == column)?;
            u16::try_from(at).ok()
        };
        let found: Option<Vec<u16>> = columns.into_iter().map(marker).collect();
        self.partition_key = found.unwrap_or_default();
    }
}

impl Preparation<'_> {
    /// The type that a text names, in the keyspace of the statement.
    pub fn cql_type(&self, text: &TypeText) -> Result<CqlType> {
        raw::resolve_type(text, self.catalog, self.keyspace)
    }
}

impl Term {
    /// Checks a term against its receiver; messages are Cassandra's. A bind marker is noted with the receiver as its spec.
    pub fn prepare(raw: &RawTerm, receiver: &ColumnSpec, to: &mut Preparation<'_>) -> Result<Term> {
        Node::prepare(raw, receiver, to).map(Term)
    }

    /// What a JSON literal gives a column.
    pub(crate) fn given(given: Given, default_unset: bool) -> Term {
        Term(match given {
            Given::Value(value) => Node::Value(value),
            Given::Nothing if default_unset => Node::Unset,
            Given::Nothing | Given::Null => Node::Null,
        })
    }

    /// What the JSON of a marker will give the column at this place of `Execution::json`.
    pub(crate) fn of_json(at: usize, default_unset: bool) -> Term {
        Term(Node::Json { at, default_unset })
    }

    /// The value in one execution. Bytes that a client sent are validated.
    pub fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
        self.0.bind(execution)
    }

    /// Whether two executions could differ.
    pub fn is_constant(&self) -> bool {
        self.0.is_constant()
    }

    /// `NULL` as it stands in the text.
    pub fn is_null(&self) -> bool {
        self.0 == Node::Null
    }

    /// Whether it is one bind marker and nothing else.
    pub fn is_marker(&self) -> bool {
        matches!(self.0, Node::Marker { .. })
    }
}

impl Node {
    fn prepare(raw: &RawTerm, receiver: &ColumnSpec, to: &mut Preparation<'_>) -> Result<Node> {
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
                parse_literal(*kind, text, receiver).map(Node::Value)
            }
            RawTerm::Bind { index, name } => {
                to.variables.note(*index, name.as_deref(), receiver);
                let cql_type = receiver.cql_type.base().clone();
                Ok(Node::Marker { index: *index, cql_type, name: receiver.name.clone() })
            }
            RawTerm::TypeHint { to: hint, term } => prepare_hint(raw, hint, term, receiver, to),
            RawTerm::Call { name, arguments } => {
                let arguments: Vec<&RawTerm> = arguments.iter().collect();
                prepare_call(name, &arguments, receiver, to)
            }
            RawTerm::Arithmetic { operator, left, right } => {
                let name = raw::operator(Some(*operator));
                prepare_call(&name, &[left, right], receiver, to)
            }
            RawTerm::Negate(term) => prepare_call(&raw::operator(None), &[term], receiver, to),
            RawTerm::Tuple(terms) if raw::is_parenthesised(terms, &receiver.cql_type) => {
                let Some(term) = terms.first() else { return Ok(Node::Null) };
                Node::prepare(term, receiver, to)
            }
            composed => collection::prepare(composed, receiver, to),
        }
    }

    fn is_constant(&self) -> bool {
        match self {
            Node::Null | Node::Unset | Node::Value(_) => true,
            Node::Marker { .. } | Node::Json { .. } => false,
            Node::Composed(composed) => composed.nodes().all(Node::is_constant),
            Node::Call { function, arguments } => {
                function.is_pure() && arguments.iter().all(Node::is_constant)
            }
        }
    }

    fn has_marker(&self) -> bool {
        match self {
            Node::Null | Node::Unset | Node::Value(_) => false,
            Node::Marker { .. } | Node::Json { .. } => true,
            Node::Composed(composed) => composed.nodes().any(Node::has_marker),
            Node::Call { arguments, .. } => arguments.iter().any(Node::has_marker),
        }
    }

    fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
        match self {
            Node::Null => Ok(Bound::Null),
            Node::Unset => Ok(Bound::Unset),
            Node::Value(bytes) => Ok(Bound::Bytes(Cow::Borrowed(bytes))),
            Node::Json { at, default_unset } => Ok(match execution.json.get(*at) {
                Some(Given::Value(bytes)) => Bound::Bytes(Cow::Borrowed(bytes)),
                Some(Given::Null) => Bound::Null,
                Some(Given::Nothing) | None if *default_unset => Bound::Unset,
                Some(Given::Nothing) | None => Bound::Null,
            }),
            Node::Marker { index, cql_type, name } => {
                match execution.values.get(usize::from(*index)) {
                    Some(Value::Bytes(bytes)) => markers::bind(bytes, cql_type).map(Bound::Bytes),
                    Some(Value::Unset) => Ok(Bound::Unset),
                    Some(Value::Null) => Ok(Bound::Null),
                    None => {
                        Err(Error::InvalidRequest(format!("Invalid unset value for column {name}")))
                    }
                }
            }
            Node::Composed(composed) => composed.bind(execution),
            Node::Call { function, arguments } => call(function, arguments, execution),
        }
    }

    /// The node itself, or its value if no execution can change it.
    fn folded(self) -> Result<Node> {
        if !self.is_constant() || matches!(self, Node::Null | Node::Value(_)) {
            return Ok(self);
        }
        let uuids = uuid::Generator::seeded(0);
        let execution = Execution {
            values: &[],
            now_micros: 0,
            now_seconds: 0,
            protocol_version: 5,
            uuids: &uuids,
            json: &[],
        };
        let value = self.bind(&execution)?.bytes().map(<[u8]>::to_vec);
        Ok(value.map_or(Node::Null, Node::Value))
    }
}

fn prepare_hint(
    whole: &RawTerm,
    hint: &TypeText,
    term: &RawTerm,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Node> {
    let cql_type = to.cql_type(hint)?;
    let cast = ColumnSpec { cql_type, name: whole.to_string(), ..receiver.clone() };
    let scope = (to.catalog, to.keyspace);
    if !raw::matches(term, &cast.cql_type, scope)?.is_assignable() {
        return Err(Error::InvalidRequest(format!(
            "Cannot cast value {} to type {}",
            term, hint.text
        )));
    }
    if !type_matches(&cast.cql_type, &receiver.cql_type).is_assignable() {
        return Err(Error::InvalidRequest(format!(
            "Cannot assign value {} to {} of type {}",
            whole,
            receiver.name,
            receiver.cql_type.cql_name()
        )));
    }
    // The hint only says which types may be meant.
    Node::prepare(term, receiver, to)
}

fn prepare_call(
    name: &QualifiedName,
    raw_arguments: &[&RawTerm],
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Node> {
    let table = to.catalog.table(&receiver.keyspace, &receiver.table).cloned();
    let scope = Scope { catalog: to.catalog, keyspace: to.keyspace, table: table.as_deref() };
    let wrapped: Vec<RawArgument<'_>> = raw_arguments
        .iter()
        .map(|raw| RawArgument { raw, catalog: to.catalog, keyspace: to.keyspace })
        .collect();
    let arguments: Vec<&dyn Argument> = wrapped.iter().map(|raw| raw as &dyn Argument).collect();
    let expected = receiver.cql_type.base();
    let Some(function) = functions::resolve(name, &arguments, &scope, Some(expected))? else {
        let name = raw::full_name(name);
        return Err(Error::InvalidRequest(format!("Unknown function {name} called")));
    };
    if function.is_aggregate() {
        return Err(Error::invalid_request(
            "Aggregation function are not supported in the where clause",
        ));
    }
    if type_matches(&function.returns, expected) == Match::No {
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
        arguments.push(Node::prepare(raw, &spec, to)?);
    }
    Node::Call { function: Box::new(function), arguments }.folded()
}

fn call<'v>(
    function: &'v Function,
    arguments: &'v [Node],
    execution: &Execution<'v>,
) -> Result<Bound<'v>> {
    let mut bound = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = argument.bind(execution)?;
        if value.is_unset() {
            return Err(Error::InvalidRequest(format!(
                "Invalid unset value for argument in call to function {}",
                function.name
            )));
        }
        bound.push(value);
    }
    let arguments: Vec<Option<&[u8]>> = bound.iter().map(Bound::bytes).collect();
    Ok(match function.call(&arguments, execution)? {
        Some(value) => Bound::Bytes(Cow::Owned(value)),
        None => Bound::Null,
    })
}
