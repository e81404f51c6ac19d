//! IF: conditions on the stored rows, checked before a modification is applied (`ColumnCondition`).

use std::cmp::Ordering;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;

use super::columns::{column, spec_of};
use super::current::CurrentRow;
use super::operation::field_spec;
use crate::plan::execution::Execution;
use crate::plan::term::{Preparation, Term};
use crate::plan::value::collection::collection_elements;
use crate::plan::value::collection::tuple_fields;
use crate::plan::value::composed::are_equal_objects;
use halcyon_model::schema::ColumnKind;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::{self, CellTarget, Operator, RawTerm, RelationValue};
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone)]
pub(super) enum Conditions {
    None,
    Exists,
    NotExists,
    Columns(Vec<Condition>),
}

#[derive(Debug, Clone)]
pub(super) struct Condition {
    column: ColumnRef,
    column_type: CqlType,
    target: Target,
    operator: Operator,
    value: ConditionValue,
    /// The type of the compared value.
    value_type: CqlType,
}

#[derive(Debug, Clone)]
enum Target {
    Column,
    Element(Term),
    Field(u16),
}

#[derive(Debug, Clone)]
enum ConditionValue {
    One(Term),
    Many(Vec<Term>),
    /// `IN ?`
    List(Term),
}

/// Conditions with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundConditions {
    Exists,
    NotExists,
    Columns(Vec<BoundCondition>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundCondition {
    pub column: ColumnRef,
    column_type: CqlType,
    target: BoundTarget,
    operator: Operator,
    /// One, unless the operator is IN.
    values: Vec<Option<Vec<u8>>>,
    /// Whether the value is unset: refused when it is compared, after what all statements of a batch are refused for.
    is_unset: bool,
    value_type: CqlType,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BoundTarget {
    Column,
    /// An element whose key is null.
    Nothing,
    Index(i32),
    Key(Vec<u8>),
    Field(u16),
}

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

pub(super) fn prepare(
    raw: &ast::Conditions,
    table: &Table,
    to: &mut Preparation<'_>,
) -> Result<Conditions> {
    let raw = match raw {
        ast::Conditions::None => return Ok(Conditions::None),
        ast::Conditions::IfExists => return Ok(Conditions::Exists),
        ast::Conditions::All(raw) => raw,
    };
    let mut conditions = Vec::with_capacity(raw.len());
    for condition in raw {
        let (CellTarget::Column(name) | CellTarget::Element(name, _) | CellTarget::Field(name, _)) =
            &condition.target;
        let column = column(table, name)?;
        conditions.push(prepare_one(condition, column, &spec_of(table, column), to)?);
        if column.kind.is_key() {
            return refuse(format!("PRIMARY KEY column '{}' cannot have IF conditions", name.text));
        }
    }
    // Cassandra keeps those of static columns apart, and binds them last.
    conditions.sort_by_key(|condition| condition.column.kind == ColumnKind::Static);
    Ok(Conditions::Columns(conditions))
}

fn prepare_one(
    condition: &ast::Condition,
    column: ColumnRef,
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Condition> {
    let name = &spec.name;
    if spec.cql_type.is_counter() {
        return refuse("Conditions on counters are not supported".to_owned());
    }
    let (target, receiver) = match (&condition.target, spec.cql_type.thawed()) {
        (CellTarget::Column(_), _) => (Target::Column, spec.clone()),
        (CellTarget::Element(_, key), CqlType::List(element)) => {
            let key = Term::prepare(key, &spec.part("idx", &CqlType::Int), to)?;
            (Target::Element(key), spec.part("value", element))
        }
        (CellTarget::Element(_, key), CqlType::Map(key_type, value)) => {
            let key = Term::prepare(key, &spec.part("key", key_type), to)?;
            (Target::Element(key), spec.part("value", value))
        }
        (CellTarget::Element(..), CqlType::Set(_)) => {
            return refuse(format!("Invalid element access syntax for set column {name}"));
        }
        (CellTarget::Element(..), _) => {
            return refuse(format!(
                "Invalid element access syntax for non-collection column {name}"
            ));
        }
        (CellTarget::Field(_, field), CqlType::Udt(udt)) => {
            let at = udt.fields.iter().zip(0u16..).find(|((f, _), _)| f == field.text.as_bytes());
            let Some(((_, cql_type), at)) = at else {
                return refuse(format!("Unknown field {} for column {name}", field.text));
            };
            (Target::Field(at), field_spec(spec, udt, at, cql_type))
        }
        (CellTarget::Field(_, field), _) => {
            return refuse(format!("Unknown field {} for column {name}", field.text));
        }
    };
    let receiver = compared(condition.operator, receiver, spec)?;
    let value = prepare_value(condition, &receiver, to)?;
    Ok(Condition {
        column,
        column_type: spec.cql_type.clone(),
        target,
        operator: condition.operator,
        value,
        value_type: receiver.cql_type,
    })
}

/// The type of the compared value: the receiver's, or that of a collection's elements.
fn compared(operator: Operator, receiver: ColumnSpec, spec: &ColumnSpec) -> Result<ColumnSpec> {
    let name = &spec.name;
    let slices = match operator {
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Contains | Operator::ContainsKey => {
            let (what, element) = match (operator, spec.cql_type.thawed()) {
                (Operator::Contains, CqlType::List(e) | CqlType::Set(e) | CqlType::Map(_, e)) => {
                    ("value", e)
                }
                (Operator::ContainsKey, CqlType::Map(key, _)) => ("key", key),
                (Operator::Contains, _) => {
                    return refuse(format!("Cannot use CONTAINS on non-collection column {name}"));
                }
                _ => return refuse(format!("Cannot use CONTAINS KEY on non-map column {name}")),
            };
            return Ok(receiver.part(what, element));
        }
        _ => return Ok(receiver),
    };
    if receiver.cql_type.references_duration() {
        let (shown, what) = match receiver.cql_type.thawed() {
            CqlType::Duration => (format!(" ( {slices} )"), "durations"),
            CqlType::Tuple(_) => (String::new(), "tuples containing durations"),
            CqlType::Udt(_) => (String::new(), "UDTs containing durations"),
            _ => (String::new(), "collections containing durations"),
        };
        return refuse(format!("Slice conditions{shown} are not supported on {what}"));
    }
    Ok(receiver)
}

fn prepare_value(
    condition: &ast::Condition,
    receiver: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<ConditionValue> {
    let each = |terms: &[RawTerm], to: &mut Preparation<'_>| -> Result<Vec<Term>> {
        terms.iter().map(|term| Term::prepare(term, receiver, to)).collect()
    };
    Ok(match (&condition.value, condition.operator) {
        (RelationValue::Many(terms), _) => ConditionValue::Many(each(terms, to)?),
        (RelationValue::One(term), Operator::In) => {
            let list = CqlType::List(Box::new(receiver.cql_type.clone().freeze()));
            ConditionValue::List(Term::prepare(term, &receiver.part("in", &list), to)?)
        }
        (RelationValue::One(term), _) => ConditionValue::One(Term::prepare(term, receiver, to)?),
    })
}

impl Conditions {
    pub(super) fn columns(&self) -> Vec<ColumnRef> {
        let Conditions::Columns(conditions) = self else { return Vec::new() };
        let mut columns = Vec::new();
        for Condition { column, .. } in conditions {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns
    }

    pub(super) fn bind(&self, execution: &Execution<'_>) -> Result<Option<BoundConditions>> {
        Ok(match self {
            Conditions::None => None,
            Conditions::Exists => Some(BoundConditions::Exists),
            Conditions::NotExists => Some(BoundConditions::NotExists),
            Conditions::Columns(conditions) => {
                let bound = conditions.iter().map(|condition| condition.bind(execution));
                Some(BoundConditions::Columns(bound.collect::<Result<_>>()?))
            }
        })
    }
}

impl Condition {
    fn bind(&self, execution: &Execution<'_>) -> Result<BoundCondition> {
        let target = match &self.target {
            Target::Column => BoundTarget::Column,
            Target::Field(field) => BoundTarget::Field(*field),
            Target::Element(key) => self.bind_element(key, execution)?,
        };
        let (mut values, mut is_unset) = (Vec::new(), false);
        match &self.value {
            ConditionValue::One(term) => {
                let value = term.bind(execution)?;
                is_unset = value.is_unset();
                values.push(value.bytes().map(<[u8]>::to_vec));
            }
            ConditionValue::Many(terms) => {
                for term in terms {
                    let value = term.bind(execution)?;
                    if !value.is_unset() {
                        values.push(value.bytes().map(<[u8]>::to_vec));
                    }
                }
            }
            ConditionValue::List(term) => {
                let value = term.bind(execution)?;
                if value.is_unset() {
                    return Err(unset());
                }
                let Some(list) = value.bytes() else {
                    return refuse("Invalid null list in IN condition".to_owned());
                };
                let elements = collection_elements(list);
                values.extend(elements.into_iter().map(|e| e.map(<[u8]>::to_vec)));
            }
        }
        Ok(BoundCondition {
            column: self.column,
            column_type: self.column_type.clone(),
            target,
            operator: self.operator,
            values,
            is_unset,
            value_type: self.value_type.clone(),
        })
    }

    fn bind_element(&self, key: &Term, execution: &Execution<'_>) -> Result<BoundTarget> {
        let key = key.bind(execution)?;
        let is_list = matches!(self.column_type.thawed(), CqlType::List(_));
        Ok(match key.bytes() {
            Some(bytes) if !is_list => BoundTarget::Key(bytes.to_vec()),
            Some(bytes) => {
                let index = bytes.try_into().map(i32::from_be_bytes);
                index.map_or(BoundTarget::Nothing, BoundTarget::Index)
            }
            None if key.is_unset() && !is_list => BoundTarget::Key(Vec::new()),
            None => BoundTarget::Nothing,
        })
    }
}

impl BoundCondition {
    /// Whether it holds of a row (which may be missing).
    pub fn applies(&self, row: Option<&CurrentRow>) -> Result<bool> {
        let stored = self.stored(row)?;
        let stored = stored.as_deref();
        if self.is_unset {
            return Err(unset());
        }
        match self.operator {
            Operator::In => {
                for value in &self.values {
                    if self.compare(Operator::Equal, value.as_deref(), stored)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            operator => {
                let value = self.values.first().and_then(Option::as_deref);
                self.compare(operator, value, stored)
            }
        }
    }

    /// The stored value that is compared; `None` is null.
    fn stored(&self, row: Option<&CurrentRow>) -> Result<Option<Vec<u8>>> {
        let column = self.column.index;
        match self.target {
            BoundTarget::Column => {
                return Ok(row.and_then(|row| row.value(column, &self.column_type)));
            }
            BoundTarget::Nothing => {
                let is_list = matches!(self.column_type.thawed(), CqlType::List(_));
                let kind = if is_list { "list" } else { "map" };
                return refuse(format!("Invalid null value for {kind} element access"));
            }
            _ => {}
        }
        if self.column_type.is_multi_cell() {
            let mut cells = row.into_iter().flat_map(|row| row.cells_of(column));
            let cell = match &self.target {
                BoundTarget::Index(index) => cells.nth(position(*index)?),
                BoundTarget::Key(key) => cells.find(|cell| self.is_key(cell.path, key)),
                BoundTarget::Field(field) => cells.find(|cell| cell.path == field.to_be_bytes()),
                BoundTarget::Column | BoundTarget::Nothing => None,
            };
            return Ok(cell.map(|cell| cell.value.to_vec()));
        }
        let Some(whole) = row.and_then(|row| row.value(column, &self.column_type)) else {
            return Ok(None);
        };
        let part = match &self.target {
            BoundTarget::Index(index) => {
                collection_elements(&whole).get(position(*index)?).copied()
            }
            BoundTarget::Key(key) => collection_elements(&whole)
                .chunks(2)
                .find(|entry| {
                    entry.first().copied().flatten().is_some_and(|other| self.is_key(other, key))
                })
                .and_then(|entry| entry.get(1).copied()),
            BoundTarget::Field(field) => tuple_fields(&whole).get(usize::from(*field)).copied(),
            BoundTarget::Column | BoundTarget::Nothing => None,
        };
        Ok(part.flatten().map(<[u8]>::to_vec))
    }

    fn is_key(&self, key: &[u8], wanted: &[u8]) -> bool {
        match self.column_type.thawed() {
            CqlType::Map(of, _) => of.compare(key, wanted).is_eq(),
            _ => key == wanted,
        }
    }

    fn compare(
        &self,
        operator: Operator,
        value: Option<&[u8]>,
        stored: Option<&[u8]>,
    ) -> Result<bool> {
        let Some(value) = value else {
            return match operator {
                Operator::Equal => Ok(stored.is_none()),
                Operator::NotEqual => Ok(stored.is_some()),
                other => refuse(format!(
                    "Invalid comparison with null for operator \"{}\"",
                    symbol(other)
                )),
            };
        };
        let is_empty = self.check_empty(operator, value)?;
        let Some(stored) = stored else {
            return Ok(match operator {
                Operator::Equal => is_empty,
                Operator::NotEqual => !is_empty,
                _ => false,
            });
        };
        if matches!(operator, Operator::Contains | Operator::ContainsKey) {
            return Ok(self.contains(operator, value, stored));
        }
        let order = self.value_type.compare(stored, value);
        Ok(match operator {
            Operator::Equal => order == Ordering::Equal,
            Operator::NotEqual => order != Ordering::Equal,
            Operator::Less => order == Ordering::Less,
            Operator::LessOrEqual => order != Ordering::Greater,
            Operator::Greater => order == Ordering::Greater,
            Operator::GreaterOrEqual => order != Ordering::Less,
            _ => false,
        })
    }

    /// Whether the value is what a multi-cell collection without cells equals: an empty one, before and after which nothing lies.
    fn check_empty(&self, operator: Operator, value: &[u8]) -> Result<bool> {
        let kind = match self.column_type {
            CqlType::List(_) => "list",
            CqlType::Set(_) => "set",
            CqlType::Map(..) => "map",
            _ => return Ok(false),
        };
        if self.target != BoundTarget::Column || value != 0i32.to_be_bytes() {
            return Ok(false);
        }
        match operator {
            Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => refuse(format!(
                "Invalid comparison with an empty {kind} for operator \"{}\"",
                symbol(operator)
            )),
            _ => Ok(true),
        }
    }

    fn contains(&self, operator: Operator, value: &[u8], stored: &[u8]) -> bool {
        let (width, at) = match (self.column_type.thawed(), operator) {
            (CqlType::Map(..), Operator::Contains) => (2, 1),
            (CqlType::Map(..), _) => (2, 0),
            _ => (1, 0),
        };
        let elements = collection_elements(stored);
        let mut found = elements.chunks(width).filter_map(|entry| entry.get(at).copied().flatten());
        found.any(|element| match self.column_type.is_multi_cell() {
            true => self.value_type.compare(element, value) == Ordering::Equal,
            false => are_equal_objects(&self.value_type, element, value),
        })
    }
}

/// Of an element of a list that is stored; of one that is not, no index is refused.
fn position(index: i32) -> Result<usize> {
    usize::try_from(index).or_else(|_| refuse(format!("Invalid negative list index {index}")))
}

fn unset() -> Error {
    Error::invalid_request("Invalid 'unset' value in condition")
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        _ => "=",
    }
}
