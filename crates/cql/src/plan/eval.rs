//! Evaluates terms: what one execution makes of a prepared term.

use std::borrow::Cow;

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_model::request::Value;
use halcyon_model::uuid;

use super::execution::{Execution, Given, Work};
use super::functions::{Function, unset_argument};
use super::value::checked::{checked, sorted_collection};
use super::value::collection;
use halcyon_syntax::{Error, Result};

/// A term, prepared.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::plan) enum Node {
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
    Composed(Composed),
    Call {
        function: Box<Function>,
        arguments: Vec<Node>,
    },
}

/// Parts that make up one value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::plan) struct Composed {
    pub(in crate::plan) parts: Vec<Node>,
    pub(in crate::plan) shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::plan) enum Shape {
    List,
    /// The type is the set itself.
    Set(CqlType),
    /// Keys and values in turn. The type is the map itself.
    Map(CqlType),
    /// Whether elements stand without lengths.
    Vector {
        fixed: bool,
    },
    Tuple,
    /// Names of the fields and of the type. An unset field of a multi-cell value is null: all cells are overwritten.
    UserType {
        fields: Vec<String>,
        name: String,
        multi_cell: bool,
    },
}

/// The value of a term in one execution.
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

/// How often the bytes of a value are copied at most: a collection in a collection is serialized level by level.
fn levels(cql_type: &CqlType) -> u64 {
    match cql_type.thawed() {
        CqlType::List(inner) | CqlType::Set(inner) | CqlType::Vector(inner, _) => 1 + levels(inner),
        CqlType::Map(key, value) => 1 + levels(key).max(levels(value)),
        _ => 0,
    }
}

/// What it costs to validate a value, in units of work: of collections, each element.
fn checking(cql_type: &CqlType, len: usize) -> u64 {
    let each_byte = match cql_type.thawed() {
        CqlType::Set(_) | CqlType::Map(..) => 40,
        CqlType::List(_) | CqlType::Vector(..) | CqlType::Tuple(_) | CqlType::Udt(_) => 10,
        _ => 1,
    };
    50 + each_byte * levels(cql_type).max(1) * (len as u64) / 4
}

impl Node {
    /// Whether no execution can change it. What is made of constant parts has been folded to its value when it was prepared.
    pub(in crate::plan) fn is_constant(&self) -> bool {
        matches!(self, Node::Null | Node::Unset | Node::Value(_))
    }

    pub(in crate::plan) fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
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
                    Some(Value::Bytes(bytes)) => {
                        execution.work.spend(checking(cql_type, bytes.len()))?;
                        execution.work.make(bytes.len())?;
                        checked(bytes, cql_type).map(Bound::Bytes)
                    }
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

    /// The node itself, or its value if no execution can change it. Its parts are folded already, so only they are looked at.
    pub(in crate::plan) fn folded(self, work: &Work<'_>) -> Result<Node> {
        let is_constant = match &self {
            Node::Composed(composed) => composed.parts.iter().all(Node::is_constant),
            Node::Call { function, arguments } => {
                function.is_pure() && arguments.iter().all(Node::is_constant)
            }
            _ => false,
        };
        if !is_constant {
            return Ok(self);
        }
        let uuids = uuid::Generator::seeded(0);
        let execution = Execution::of_constants(&uuids, work);
        match self.bind(&execution) {
            Ok(value) => Ok(value.bytes().map_or(Node::Null, |bytes| Node::Value(bytes.to_vec()))),
            // Cassandra calls functions at execution, so other faults of the statement are reported first.
            Err(_) if matches!(self, Node::Call { .. }) => Ok(self),
            Err(error) => Err(error),
        }
    }
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
            return Err(unset_argument(&function.name));
        }
        bound.push(value);
    }
    let arguments: Vec<Option<&[u8]>> = bound.iter().map(Bound::bytes).collect();
    let Some(value) = function.call(&arguments, execution)? else { return Ok(Bound::Null) };
    execution.work.make(value.len())?;
    Ok(Bound::Bytes(Cow::Owned(value)))
}

fn invalid<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

impl Composed {
    fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
        execution.work.spend_on(self.parts.len(), 200)?;
        let mut parts = Vec::with_capacity(self.parts.len());
        for (i, part) in self.parts.iter().enumerate() {
            let bound = part.bind(execution)?;
            match (&bound, &self.shape) {
                (Bound::Null, Shape::List | Shape::Set(_) | Shape::Map(_)) => {
                    return invalid("null is not supported inside collections".to_owned());
                }
                (Bound::Null | Bound::Unset, Shape::Vector { .. }) => {
                    return invalid("null is not supported inside vectors".to_owned());
                }
                (Bound::Unset, Shape::Tuple) => {
                    return invalid(format!("Invalid unset value for tuple field number {i}"));
                }
                (Bound::Unset, Shape::UserType { multi_cell: true, .. }) => parts.push(Bound::Null),
                (Bound::Unset, Shape::UserType { fields, name, .. }) => {
                    let field = fields.get(i).map_or("", String::as_str);
                    return invalid(format!(
                        "Invalid unset value for field '{field}' of user defined type {name}"
                    ));
                }
                (Bound::Unset, _) => return Ok(Bound::Unset),
                _ => parts.push(bound),
            }
        }
        let bytes = parts.iter().filter_map(Bound::bytes).map(<[u8]>::len);
        execution.work.make(bytes.fold(0, usize::saturating_add))?;
        Ok(Bound::Bytes(Cow::Owned(self.join(&parts))))
    }

    fn join(&self, parts: &[Bound<'_>]) -> Vec<u8> {
        let bytes = || parts.iter().map(|part| part.bytes().unwrap_or_default());
        match &self.shape {
            Shape::List => collection::join(parts.len(), bytes()),
            Shape::Set(cql_type) => {
                sorted_collection(&collection::join(parts.len(), bytes()), cql_type).into_owned()
            }
            Shape::Map(cql_type) => {
                sorted_collection(&collection::join(parts.len() / 2, bytes()), cql_type)
                    .into_owned()
            }
            Shape::Vector { fixed: true } => {
                parts.iter().filter_map(Bound::bytes).flatten().copied().collect()
            }
            Shape::Vector { fixed: false } => {
                let mut out = Vec::new();
                bytes().for_each(|part| out.put_vbytes(part));
                out
            }
            Shape::Tuple | Shape::UserType { .. } => {
                let mut out = Vec::new();
                for part in parts {
                    match part.bytes() {
                        Some(bytes) => out.put_ibytes(bytes),
                        None => out.put_i32(-1),
                    }
                }
                out
            }
        }
    }
}
