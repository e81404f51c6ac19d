//! What becomes of a column: `c = t`, `c = c + t`, `c[k] = t`, `c.f = t`, and deletions (`Operation`).

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::schema::ColumnKind;
use halcyon_model::types::UserType;

use crate::plan::execution::Execution;
use crate::plan::functions::{self, Argument, Function, Match, Scope, operator_name};
use crate::plan::term::{Bound, Preparation, Term, with_keyspace};
use crate::plan::value::collection::collection_elements;
use crate::plan::value::collection::tuple_fields;
use halcyon_schema::catalog::ColumnRef;
use halcyon_syntax::ast::{self, ArithmeticOperator, CellTarget, Name, QualifiedName, RawTerm};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub column: ColumnRef,
    cql_type: CqlType,
    kind: OperationKind,
}

#[derive(Debug, Clone)]
enum OperationKind {
    Assign(Term),
    /// Elements to a set or map, or to the end of a list.
    Append(Term),
    Prepend(Term),
    /// Elements out of a set or map, by value out of a list.
    Discard(Term),
    SetElement {
        key: Term,
        value: Term,
    },
    SetField {
        field: u16,
        value: Term,
    },
    Delete,
    DeleteElement(Term),
    DeleteField(u16),
    /// A counter's delta.
    Count {
        delta: Term,
        subtract: bool,
    },
    /// The operand that is added to or subtracted from a stored number or text.
    Combine {
        operand: Term,
        function: Box<Function>,
    },
}

/// An operation with its values; the shard that owns the row turns it into cells.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// One cell; `None` is a tombstone.
    Cell(Option<Vec<u8>>),
    /// Deletes all cells before it writes these.
    Overwrite(Vec<(Vec<u8>, Vec<u8>)>),
    /// Cells by path; `None` is a tombstone.
    Cells(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    DeleteAll,
    /// The value `None` is a tombstone; no value leaves the element (but checks the index).
    SetIndex {
        index: i32,
        value: Option<Option<Vec<u8>>>,
    },
    DeleteIndex(i32),
    /// List elements with one of these values.
    DiscardValues(Vec<Vec<u8>>),
    Increment(i64),
    /// Adds to a number or text that is stored; conditional updates only.
    Combine {
        operand: Vec<u8>,
        function: Box<Function>,
    },
    /// Why an operation cannot be applied, behind one that reads: what the latter finds is refused first.
    Refused(Error),
}

impl Change {
    /// Whether the elements that are stored can make it fail.
    pub(super) fn asks_for_elements(&self) -> bool {
        matches!(self, Change::SetIndex { .. } | Change::DeleteIndex(_))
    }

    pub(super) fn cells(&self) -> usize {
        match self {
            Change::Overwrite(cells) => cells.len(),
            Change::Cells(cells) => cells.len(),
            Change::DiscardValues(values) => values.len(),
            _ => 1,
        }
    }

    /// Of paths and values.
    pub(super) fn bytes(&self) -> u64 {
        let bytes: usize = match self {
            Change::Cell(value) => value.as_ref().map_or(0, Vec::len),
            Change::Overwrite(cells) => {
                cells.iter().map(|(path, value)| path.len() + value.len()).sum()
            }
            Change::Cells(cells) => cells
                .iter()
                .map(|(path, value)| path.len() + value.as_ref().map_or(0, Vec::len))
                .sum(),
            Change::SetIndex { value, .. } => value.iter().flatten().map(Vec::len).sum(),
            Change::DiscardValues(values) => values.iter().map(Vec::len).sum(),
            Change::Combine { operand, .. } => operand.len(),
            Change::DeleteAll
            | Change::DeleteIndex(_)
            | Change::Increment(_)
            | Change::Refused(_) => 0,
        };
        bytes as u64
    }
}

/// What guardrails distinguish of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Assign,
    Append,
    SetByIndex,
    DeleteByIndex,
    DiscardByValue,
    Other,
}

impl Operation {
    pub(super) fn cql_type(&self) -> &CqlType {
        &self.cql_type
    }

    pub(super) fn access(&self) -> Access {
        let list = matches!(self.cql_type, CqlType::List(_));
        match self.kind {
            OperationKind::Assign(_) => Access::Assign,
            OperationKind::Append(_) => Access::Append,
            OperationKind::SetElement { .. } if list => Access::SetByIndex,
            OperationKind::DeleteElement(_) if list => Access::DeleteByIndex,
            OperationKind::Discard(_) if list => Access::DiscardByValue,
            _ => Access::Other,
        }
    }

    pub(super) fn is_static(&self) -> bool {
        self.column.kind == ColumnKind::Static
    }

    pub(super) fn requires_read(&self) -> bool {
        let list = matches!(self.cql_type, CqlType::List(_));
        match self.kind {
            OperationKind::SetElement { .. }
            | OperationKind::DeleteElement(_)
            | OperationKind::Discard(_) => list,
            OperationKind::Combine { .. } => true,
            _ => false,
        }
    }

    /// What a static column becomes that is changed once for each row of the statement, given what one change makes of it
    /// (`UpdateStatement.addUpdateForKey`): elements are added to a list, and counters counted, as often. `rows`: two or more.
    pub(super) fn repeated(
        &self,
        once: Change,
        rows: usize,
        execution: &Execution<'_>,
    ) -> Result<Change> {
        /// Bytes of a cell beside its path and value, which are two allocations.
        const CELL: usize = 128;
        let is_list = self.cql_type.is_multi_cell() && matches!(self.cql_type, CqlType::List(_));
        match once {
            Change::Increment(delta) => {
                let rows = i64::try_from(rows).unwrap_or(i64::MAX);
                Ok(Change::Increment(delta.wrapping_mul(rows)))
            }
            mut all @ (Change::Overwrite(_) | Change::Cells(_)) if is_list => {
                let bytes = usize::try_from(all.bytes()).unwrap_or(usize::MAX);
                let each = bytes.saturating_add(all.cells().saturating_mul(CELL));
                // A short text can name very many elements and rows.
                execution.work.make(each.saturating_mul(rows.saturating_sub(1)))?;
                for _ in 1..rows {
                    let Some(more) = self.bind(execution)? else { break };
                    match (&mut all, more) {
                        (Change::Overwrite(all), Change::Overwrite(more)) => all.extend(more),
                        (Change::Cells(all), Change::Cells(more)) => all.extend(more),
                        _ => {}
                    }
                }
                Ok(all)
            }
            once => Ok(once),
        }
    }

    /// `None` if the value is unset and nothing happens.
    pub(super) fn bind(&self, execution: &Execution<'_>) -> Result<Option<Change>> {
        let refuse = |message: &str| Err(Error::invalid_request(message));
        match &self.kind {
            OperationKind::Assign(term) => match term.bind(execution)? {
                Bound::Unset => Ok(None),
                value if self.cql_type.is_multi_cell() => {
                    Ok(Some(Change::Overwrite(self.cells(value.bytes(), execution))))
                }
                value => Ok(Some(Change::Cell(value.bytes().map(<[u8]>::to_vec)))),
            },
            OperationKind::Append(term) => {
                let value = term.bind(execution)?;
                let cells = self.cells(value.bytes(), execution);
                let cells = cells.into_iter().map(|(path, value)| (path, Some(value)));
                Ok(Some(Change::Cells(cells.collect())).filter(|_| value.bytes().is_some()))
            }
            OperationKind::Prepend(term) => {
                let value = term.bind(execution)?;
                let elements = value.bytes().map(elements_of).unwrap_or_default();
                let paths = execution.uuids.paths_in_front(execution.now_micros, elements.len());
                let cells = paths.into_iter().zip(elements);
                let cells = cells.map(|(path, value)| (path.to_vec(), Some(value))).collect();
                Ok(Some(Change::Cells(cells)))
            }
            OperationKind::Discard(term) => {
                let value = term.bind(execution)?;
                let elements = value.bytes().map(elements_of).unwrap_or_default();
                Ok(Some(match self.cql_type {
                    CqlType::List(_) => Change::DiscardValues(elements),
                    _ => Change::Cells(elements.into_iter().map(|path| (path, None)).collect()),
                }))
            }
            OperationKind::SetElement { key, value } => self.set_element(key, value, execution),
            OperationKind::SetField { field, value } => {
                let value = value.bind(execution)?;
                let path = field.to_be_bytes().to_vec();
                let cell = (path, value.bytes().map(<[u8]>::to_vec));
                Ok((!value.is_unset()).then(|| Change::Cells(vec![cell])))
            }
            OperationKind::Delete if self.cql_type.is_multi_cell() => Ok(Some(Change::DeleteAll)),
            OperationKind::Delete => Ok(Some(Change::Cell(None))),
            OperationKind::DeleteElement(key) => self.delete_element(key, execution),
            OperationKind::DeleteField(field) => {
                Ok(Some(Change::Cells(vec![(field.to_be_bytes().to_vec(), None)])))
            }
            OperationKind::Count { delta, subtract } => match delta.bind(execution)? {
                Bound::Unset => Ok(None),
                Bound::Null => refuse("Invalid null value for counter increment"),
                Bound::Bytes(bytes) => increment(&bytes, *subtract).map(Some),
            },
            OperationKind::Combine { operand, function } => match operand.bind(execution)? {
                Bound::Unset => Ok(None),
                Bound::Null => Ok(Some(Change::Cell(None))),
                Bound::Bytes(bytes) => Ok(Some(Change::Combine {
                    operand: bytes.into_owned(),
                    function: function.clone(),
                })),
            },
        }
    }

    /// The cells of a multi-cell value: path and value.
    fn cells(&self, value: Option<&[u8]>, execution: &Execution<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let Some(value) = value else { return Vec::new() };
        match &self.cql_type {
            CqlType::List(_) => elements_of(value)
                .into_iter()
                .map(|element| (execution.uuids.time_based(execution.now_micros).to_vec(), element))
                .collect(),
            CqlType::Set(_) => {
                elements_of(value).into_iter().map(|element| (element, Vec::new())).collect()
            }
            CqlType::Map(..) => {
                let mut items = elements_of(value).into_iter();
                std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
            }
            CqlType::Udt(_) => tuple_fields(value)
                .into_iter()
                .zip(0u16..)
                .filter_map(|(field, i)| Some((i.to_be_bytes().to_vec(), field?.to_vec())))
                .collect(),
            _ => Vec::new(),
        }
    }

    fn set_element(
        &self,
        key: &Term,
        value: &Term,
        execution: &Execution<'_>,
    ) -> Result<Option<Change>> {
        let key = key.bind(execution)?;
        let value = value.bind(execution)?;
        let new = value.bytes().map(<[u8]>::to_vec);
        if matches!(self.cql_type, CqlType::List(_)) {
            let index = list_index(&key)?
                .ok_or_else(|| Error::invalid_request("Invalid unset value for list index"))?;
            let value = (!value.is_unset()).then_some(new);
            return Ok(Some(Change::SetIndex { index, value }));
        }
        let key = map_key(&key)?;
        Ok((!value.is_unset()).then(|| Change::Cells(vec![(key, new)])))
    }

    fn delete_element(&self, key: &Term, execution: &Execution<'_>) -> Result<Option<Change>> {
        let key = key.bind(execution)?;
        match &self.cql_type {
            CqlType::List(_) => Ok(list_index(&key)?.map(Change::DeleteIndex)),
            CqlType::Set(_) => match key {
                Bound::Null => Err(Error::invalid_request("Invalid null set element")),
                Bound::Unset => Ok(None),
                Bound::Bytes(element) => {
                    Ok(Some(Change::Cells(vec![(element.into_owned(), None)])))
                }
            },
            _ => Ok(Some(Change::Cells(vec![(map_key(&key)?, None)]))),
        }
    }
}

fn elements_of(value: &[u8]) -> Vec<Vec<u8>> {
    collection_elements(value).into_iter().map(|e| e.unwrap_or_default().to_vec()).collect()
}

/// `None` if it is unset.
fn list_index(index: &Bound<'_>) -> Result<Option<i32>> {
    match index {
        Bound::Unset => Ok(None),
        Bound::Bytes(bytes) => match bytes.as_ref().try_into() {
            Ok(bytes) => Ok(Some(i32::from_be_bytes(bytes))),
            Err(_) => Err(Error::invalid_request("Invalid null value for list index")),
        },
        Bound::Null => Err(Error::invalid_request("Invalid null value for list index")),
    }
}

fn map_key(key: &Bound<'_>) -> Result<Vec<u8>> {
    match key {
        Bound::Null => Err(Error::invalid_request("Invalid null map key")),
        Bound::Unset => Err(Error::invalid_request("Invalid unset map key")),
        Bound::Bytes(bytes) => Ok(bytes.to_vec()),
    }
}

fn increment(bytes: &[u8], subtract: bool) -> Result<Change> {
    let Ok(bytes) = bytes.try_into() else {
        return Err(Error::invalid_request("Invalid null value for counter increment"));
    };
    let delta = i64::from_be_bytes(bytes);
    if !subtract {
        return Ok(Change::Increment(delta));
    }
    delta.checked_neg().map(Change::Increment).ok_or_else(|| {
        Error::InvalidRequest(format!(
            "The negation of {delta} overflows supported counter precision (signed 8 bytes integer)"
        ))
    })
}

// ---- preparation

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::InvalidRequest(message))
}

fn is_collection(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
}

fn operation(column: ColumnRef, spec: &ColumnSpec, kind: OperationKind) -> Operation {
    Operation { column, cql_type: spec.cql_type.clone(), kind }
}

/// `c = t`
pub(super) fn assign(
    column: ColumnRef,
    value: &RawTerm,
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Operation> {
    assign_term(column, Term::prepare(value, spec, to)?, spec)
}

pub(super) fn assign_term(column: ColumnRef, term: Term, spec: &ColumnSpec) -> Result<Operation> {
    if spec.cql_type.is_counter() {
        return refuse(format!(
            "Cannot set the value of counter column {} (counters can only be incremented/decremented, not set)",
            spec.name
        ));
    }
    Ok(operation(column, spec, OperationKind::Assign(term)))
}

/// One assignment of an UPDATE. `reads`: the stored values are read before it is applied.
pub(super) fn prepare(
    change: &ast::Change,
    column: ColumnRef,
    spec: &ColumnSpec,
    reads: bool,
    to: &mut Preparation<'_>,
) -> Result<Operation> {
    let name = &spec.name;
    let kind = match change {
        ast::Change::Assign(value) => return assign(column, value, spec, to),
        ast::Change::Add(value) => add_or_subtract(value, spec, (false, reads), to)?,
        ast::Change::Subtract(value) => add_or_subtract(value, spec, (true, reads), to)?,
        ast::Change::Prepend(value) => {
            let shown = format!("{name} = {value} - {name}");
            let value = Term::prepare(value, spec, to)?;
            match &spec.cql_type {
                CqlType::List(_) => OperationKind::Prepend(value),
                frozen if matches!(frozen.thawed(), CqlType::List(_)) => {
                    return refuse(format!(
                        "Invalid operation ({shown}) for frozen list column {name}"
                    ));
                }
                _ => {
                    return refuse(format!(
                        "Invalid operation ({shown}) for non list column {name}"
                    ));
                }
            }
        }
        ast::Change::Element { key, value } => set_element(key, value, spec, to)?,
        ast::Change::Field { field, value } => {
            let shown = format!("{name}.{} = {value}", field.text);
            let CqlType::Udt(udt) = &spec.cql_type else {
                let what = match spec.cql_type.thawed() {
                    CqlType::Udt(_) => "frozen UDT",
                    _ => "non-UDT",
                };
                return refuse(format!("Invalid operation ({shown}) for {what} column {name}"));
            };
            let (field, cql_type) = find_field(udt, field, name)?;
            let receiver = field_spec(spec, udt, field, cql_type);
            OperationKind::SetField { field, value: Term::prepare(value, &receiver, to)? }
        }
    };
    Ok(operation(column, spec, kind))
}

/// `column + value`, or `column - value`.
fn shown_value(value: &RawTerm, to: &Preparation<'_>) -> String {
    match value {
        RawTerm::TypeHint { to: hint, term } => {
            format!("({}){term}", with_keyspace(hint, to.own()))
        }
        other => other.to_string(),
    }
}

fn add_or_subtract(
    value: &RawTerm,
    spec: &ColumnSpec,
    (subtract, reads): (bool, bool),
    to: &mut Preparation<'_>,
) -> Result<OperationKind> {
    let name = &spec.name;
    let shown = format!("{name} = {name} {} {value}", if subtract { "-" } else { "+" });
    let change = if subtract { OperationKind::Discard } else { OperationKind::Append };
    match &spec.cql_type {
        CqlType::List(_) | CqlType::Set(_) => Ok(change(Term::prepare(value, spec, to)?)),
        CqlType::Map(key, _) => {
            let (what, expected, cql_type) = match subtract {
                true => ("substraction", "set", CqlType::Set(key.clone()).freeze()),
                false => ("addition", "map", spec.cql_type.clone()),
            };
            match Term::prepare(value, &ColumnSpec { cql_type, ..spec.clone() }, to) {
                Ok(term) => Ok(change(term)),
                Err(_) => refuse(format!(
                    "Value for a map {what} has to be a {expected}, but was: '{}'",
                    shown_value(value, to)
                )),
            }
        }
        frozen if is_collection(frozen) => {
            refuse(format!("Invalid operation ({shown}) for frozen collection column {name}"))
        }
        tuple if !subtract && matches!(tuple.thawed(), CqlType::Tuple(_) | CqlType::Udt(_)) => {
            refuse(format!("Invalid operation ({shown}) for tuple column {name}"))
        }
        // Nothing but counters is subtracted from, also where the stored value is read.
        other if reads && !subtract && !other.is_counter() => {
            if !is_number(other) && !matches!(other, CqlType::Text | CqlType::Ascii) {
                return refuse(format!(
                    "Invalid operation ({shown}) for non-numeric and non-text type {name}"
                ));
            }
            combine(value, ArithmeticOperator::Add, spec, to)
        }
        CqlType::Counter => {
            Ok(OperationKind::Count { delta: Term::prepare(value, spec, to)?, subtract })
        }
        _ => refuse(format!("Invalid operation ({shown}) for non counter column {name}")),
    }
}

/// An argument of which only the type is known.
struct Typed<'a>(&'a CqlType);

impl Argument for Typed<'_> {
    fn matches(&self, receiver: &CqlType) -> Result<Match> {
        Ok(if self.0 == receiver { Match::Exact } else { Match::No })
    }

    fn exact_type(&self) -> Result<Option<CqlType>> {
        Ok(Some(self.0.clone()))
    }

    fn text(&self) -> String {
        self.0.cql_name()
    }
}

/// `c = c + t` of a stored number or text.
fn combine(
    value: &RawTerm,
    operator: ArithmeticOperator,
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<OperationKind> {
    let name = QualifiedName {
        location: Location { line: 1, column: 0 },
        keyspace: Some("system".to_owned()),
        name: operator_name(Some(operator)).to_owned(),
    };
    let operand = Term::prepare(value, spec, to)?;
    let scope = Scope { catalog: to.catalog, keyspace: to.keyspace, table: None, work: to.work };
    let typed = Typed(&spec.cql_type);
    let found = functions::resolve(&name, &[&typed, &typed], &scope, Some(&spec.cql_type))?;
    let function = found.ok_or_else(|| {
        Error::NotSupportedYet(format!("{operator} of {}", spec.cql_type.cql_name()))
    })?;
    Ok(OperationKind::Combine { operand, function: Box::new(function) })
}

fn is_number(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Varint
            | CqlType::Float
            | CqlType::Double
            | CqlType::Decimal
    )
}

fn set_element(
    key: &RawTerm,
    value: &RawTerm,
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<OperationKind> {
    let (name, shown) = (&spec.name, format!("{}[{key}] = {value}", spec.name));
    let (key_spec, value_type) = match &spec.cql_type {
        CqlType::List(element) => (spec.part("idx", &CqlType::Int), element),
        CqlType::Map(key, element) => (spec.part("key", key), element),
        CqlType::Set(_) => {
            return refuse(format!("Invalid operation ({shown}) for set column {name}"));
        }
        frozen if is_collection(frozen) => {
            return refuse(format!(
                "Invalid operation ({shown}) for frozen collection column {name}"
            ));
        }
        _ => {
            return refuse(format!("Invalid operation ({shown}) for non collection column {name}"));
        }
    };
    Ok(OperationKind::SetElement {
        key: Term::prepare(key, &key_spec, to)?,
        value: Term::prepare(value, &spec.part("value", value_type), to)?,
    })
}

/// One target of a DELETE.
pub(super) fn deletion(
    target: &CellTarget,
    column: ColumnRef,
    spec: &ColumnSpec,
    to: &mut Preparation<'_>,
) -> Result<Operation> {
    let name = &spec.name;
    let kind = match target {
        CellTarget::Column(_) => OperationKind::Delete,
        CellTarget::Element(_, key) => {
            let receiver = match &spec.cql_type {
                CqlType::List(_) => spec.part("idx", &CqlType::Int),
                CqlType::Set(element) => spec.part("value", element),
                CqlType::Map(key, _) => spec.part("key", key),
                frozen if is_collection(frozen) => {
                    return refuse(format!(
                        "Invalid deletion operation for frozen collection column {name}"
                    ));
                }
                _ => {
                    return refuse(format!(
                        "Invalid deletion operation for non collection column {name}"
                    ));
                }
            };
            OperationKind::DeleteElement(Term::prepare(key, &receiver, to)?)
        }
        CellTarget::Field(_, field) => match &spec.cql_type {
            CqlType::Udt(udt) => OperationKind::DeleteField(find_field(udt, field, name)?.0),
            frozen if matches!(frozen.thawed(), CqlType::Udt(_)) => {
                return refuse(format!(
                    "Frozen UDT column {name} does not support field deletions"
                ));
            }
            _ => {
                return refuse(format!(
                    "Invalid field deletion operation for non-UDT column {name}"
                ));
            }
        },
    };
    Ok(operation(column, spec, kind))
}

fn find_field<'u>(udt: &'u UserType, field: &Name, column: &str) -> Result<(u16, &'u CqlType)> {
    let at = udt.fields.iter().zip(0u16..).find(|((name, _), _)| name == field.text.as_bytes());
    match at {
        Some(((_, cql_type), at)) => Ok((at, cql_type)),
        None => refuse(format!("UDT column {column} does not have a field named {}", field.text)),
    }
}

/// The receiver of a field's value: `column.field`.
pub(super) fn field_spec(
    spec: &ColumnSpec,
    udt: &UserType,
    field: u16,
    cql_type: &CqlType,
) -> ColumnSpec {
    let name = udt.fields.get(usize::from(field)).map(|(name, _)| String::from_utf8_lossy(name));
    ColumnSpec {
        name: format!("{}.{}", spec.name, name.unwrap_or_default()),
        cql_type: cql_type.clone().freeze(),
        ..spec.clone()
    }
}
