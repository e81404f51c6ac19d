//! Literals of lists, sets, maps, vectors, tuples and user types.

use std::borrow::Cow;

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::UserType;

use super::{Bound, Node, markers, raw};
use crate::plan::Execution;
use crate::plan::term::Preparation;
use halcyon_syntax::ast::{Name, RawTerm};
use halcyon_syntax::{Error, Result};

/// Parts that make up one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Composed {
    parts: Vec<Node>,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
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

fn invalid<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

pub(super) fn prepare(
    raw: &RawTerm,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Node> {
    let cql_type = receiver.cql_type.thawed().clone();
    let composed = match (raw, &cql_type) {
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
            Composed { parts: Vec::new(), shape: Shape::Map(cql_type) }
        }
        (RawTerm::Set(terms), CqlType::Set(element)) => {
            check_elements("set", terms, element, receiver, to)?;
            let parts = elements("set", terms, &part(receiver, "value", element), to)?;
            Composed { parts, shape: Shape::Set(cql_type) }
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
    Node::Composed(composed).folded()
}

/// What receives a part of a collection: `value(c)`, `key(c)`.
pub(crate) fn part(receiver: &ColumnSpec, what: &str, cql_type: &CqlType) -> ColumnSpec {
    ColumnSpec {
        name: format!("{what}({})", receiver.name),
        cql_type: cql_type.clone().freeze(),
        ..receiver.clone()
    }
}

fn fits(term: &RawTerm, cql_type: &CqlType, to: &Preparation<'_>) -> Result<bool> {
    let frozen = cql_type.clone().freeze();
    Ok(raw::matches(term, &frozen, (to.catalog, to.keyspace))?.is_assignable())
}

fn check_elements(
    kind: &str,
    terms: &[RawTerm],
    element: &CqlType,
    receiver: &ColumnSpec,
    to: &Preparation<'_>,
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

fn elements(
    kind: &str,
    terms: &[RawTerm],
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(terms.len());
    for term in terms {
        let node = Node::prepare(term, spec, to)?;
        if node.has_marker() {
            return invalid(format!(
                "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
                outer_name(spec)
            ));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

fn vector(
    terms: &[RawTerm],
    element: &CqlType,
    dimension: u32,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
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
    let parts = terms.iter().map(|term| Node::prepare(term, &spec, to)).collect::<Result<_>>()?;
    Ok(Composed { parts, shape: Shape::Vector { fixed: element.fixed_len().is_some() } })
}

fn map(
    entries: &[(RawTerm, RawTerm)],
    key: &CqlType,
    value: &CqlType,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
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

fn tuple(
    terms: &[RawTerm],
    types: &[&CqlType],
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
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
                cql_type.cql_name()
            ));
        }
    }
    let mut parts = Vec::with_capacity(terms.len());
    for (i, (term, cql_type)) in terms.iter().zip(types).enumerate() {
        let spec = ColumnSpec {
            name: format!("{}[{i}]", receiver.name),
            cql_type: (*cql_type).clone().freeze(),
            ..receiver.clone()
        };
        parts.push(Node::prepare(term, &spec, to)?);
    }
    Ok(Composed { parts, shape: Shape::Tuple })
}

fn user_type(
    fields: &[(Name, RawTerm)],
    udt: &UserType,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Composed> {
    let type_name = String::from_utf8_lossy(&udt.name).into_owned();
    let names: Vec<String> =
        udt.fields.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    // The last of several values for one field counts.
    let value_of = |name: &str| fields.iter().rfind(|(field, _)| field.text == name);
    for ((_, cql_type), name) in udt.fields.iter().zip(&names) {
        if let Some((_, term)) = value_of(name)
            && !fits(term, cql_type, to)?
        {
            return invalid(format!(
                "Invalid user type literal for {}: field {name} is not of type {}",
                receiver.name,
                cql_type.clone().freeze().cql_name()
            ));
        }
    }
    if let Some((unknown, _)) = fields.iter().find(|(field, _)| !names.contains(&field.text)) {
        return invalid(format!(
            "Unknown field '{}' in value of user defined type {type_name}",
            unknown.text
        ));
    }
    let mut parts = Vec::with_capacity(names.len());
    for ((_, cql_type), name) in udt.fields.iter().zip(&names) {
        let spec = ColumnSpec {
            name: format!("{}.{name}", receiver.name),
            cql_type: cql_type.clone().freeze(),
            ..receiver.clone()
        };
        parts.push(match value_of(name) {
            Some((_, term)) => Node::prepare(term, &spec, to)?,
            None => Node::Null,
        });
    }
    let multi_cell = receiver.cql_type.is_multi_cell();
    Ok(Composed { parts, shape: Shape::UserType { fields: names, name: type_name, multi_cell } })
}

impl Composed {
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.parts.iter()
    }

    pub(super) fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
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
        Ok(Bound::Bytes(Cow::Owned(self.join(&parts))))
    }

    fn join(&self, parts: &[Bound<'_>]) -> Vec<u8> {
        let bytes = || parts.iter().map(|part| part.bytes().unwrap_or_default());
        match &self.shape {
            Shape::List => markers::join(parts.len(), bytes()),
            Shape::Set(cql_type) => {
                markers::sorted_collection(&markers::join(parts.len(), bytes()), cql_type)
                    .into_owned()
            }
            Shape::Map(cql_type) => {
                markers::sorted_collection(&markers::join(parts.len() / 2, bytes()), cql_type)
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
