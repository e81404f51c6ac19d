//! Relations become entries: names are looked up, terms get their receivers.

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::schema::ColumnKind;
use halcyon_model::types::quote_identifier_if_needed;

use super::indexes::has_supporting;
use super::{BoundTerm, Entry, TupleList, TupleTerm, What};
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_syntax::ast::{Name, Operator, RawTerm, Relation, RelationTarget, RelationValue};
use halcyon_syntax::{Error, Result};

/// The relation as messages show it.
pub(in crate::plan) fn text(relation: &Relation) -> String {
    relation.text(str::to_owned)
}

fn undefined(table: &Table, name: &str) -> Error {
    let name = quote_identifier_if_needed(name);
    Error::InvalidRequest(format!("Undefined column name {name} in table {}", table.full_name()))
}

pub(crate) fn find(table: &Table, name: &Name) -> Result<ColumnRef> {
    table.find_column(&name.text).ok_or_else(|| undefined(table, &name.text))
}

/// What receives a value of a column.
pub(crate) fn receiver(table: &Table, column: ColumnRef) -> Result<ColumnSpec> {
    let def = table.column(column).ok_or_else(|| undefined(table, "?"))?;
    Ok(ColumnSpec::of(&table.schema, def.name.clone(), def.cql_type.base().clone()))
}

fn list_of(spec: &ColumnSpec) -> ColumnSpec {
    ColumnSpec {
        name: format!("in({})", spec.name),
        cql_type: CqlType::List(Box::new(spec.cql_type.clone())).freeze(),
        ..spec.clone()
    }
}

fn one(value: &RelationValue) -> Result<&RawTerm> {
    match value {
        RelationValue::One(term) => Ok(term),
        RelationValue::Many(_) => Err(Error::invalid_request("One value expected")),
    }
}

/// `IN` one value is `=`.
fn one_of(terms: &[RawTerm]) -> Result<&RawTerm> {
    terms.first().ok_or_else(|| Error::invalid_request("One value expected"))
}

/// The entry of a relation without `token()`.
pub(in crate::plan) fn entry(
    table: &Table,
    relation: &Relation,
    to: &mut Preparation<'_>,
) -> Result<Entry> {
    check_operator(relation)?;
    match &relation.target {
        RelationTarget::Column(name) => single(table, find(table, name)?, relation, to),
        RelationTarget::Element(name, key) => {
            map_entry(table, find(table, name)?, key, relation, to)
        }
        RelationTarget::Columns(names) => several(table, names, relation, to),
        RelationTarget::Token(_) | RelationTarget::Expression(_) => {
            Err(Error::invalid_request("Unexpected relation"))
        }
    }
}

/// Refuses the operators of no relation, before anything is known of its columns.
pub(in crate::plan) fn check_operator(relation: &Relation) -> Result<()> {
    match relation.operator {
        Operator::NotEqual => Err(unsupported(relation)),
        Operator::IsNot => {
            Err(Error::InvalidRequest(format!("Unsupported restriction: {}", text(relation))))
        }
        _ => Ok(()),
    }
}

fn unsupported(relation: &Relation) -> Error {
    Error::InvalidRequest(format!(
        "Unsupported \"{}\" relation: {}",
        relation.operator,
        text(relation)
    ))
}

/// Refuses relations of multi-cell columns, and CONTAINS of others.
pub(in crate::plan) fn check_collection(spec: &ColumnSpec, operator: Operator) -> Result<()> {
    let contains = matches!(operator, Operator::Contains | Operator::ContainsKey);
    let thawed = spec.cql_type.thawed();
    let is_map = matches!(thawed, CqlType::Map(..));
    let is_collection = is_map || matches!(thawed, CqlType::List(_) | CqlType::Set(_));
    let refused = if operator == Operator::ContainsKey && !is_map {
        format!("Cannot use CONTAINS KEY on non-map column {}", spec.name)
    } else if operator == Operator::Contains && !is_collection {
        format!("Cannot use CONTAINS on non-collection column {}", spec.name)
    } else if matches!(spec.cql_type, CqlType::Udt(_)) {
        format!(
            "Non-frozen UDT column '{}' ({}) cannot be restricted by any relation",
            spec.name,
            spec.cql_type.cql_name()
        )
    } else if spec.cql_type.is_multi_cell() && !contains {
        format!(
            "Collection column '{}' ({}) cannot be restricted by a '{operator}' relation",
            spec.name,
            spec.cql_type.cql_name()
        )
    } else {
        return Ok(());
    };
    Err(Error::InvalidRequest(refused))
}

fn is_slice(operator: Operator) -> bool {
    use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};
    matches!(operator, Less | LessOrEqual | Greater | GreaterOrEqual)
}

pub(in crate::plan) fn check_slice(spec: &ColumnSpec) -> Result<()> {
    if !spec.cql_type.references_duration() {
        return Ok(());
    }
    let what = match spec.cql_type.thawed() {
        CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..) => "collections containing durations",
        CqlType::Udt(_) => "UDTs containing durations",
        CqlType::Tuple(_) => "tuples containing durations",
        _ => "duration columns",
    };
    Err(Error::InvalidRequest(format!("Slice restrictions are not supported on {what}")))
}

fn single(
    table: &Table,
    column: ColumnRef,
    relation: &Relation,
    to: &mut Preparation<'_>,
) -> Result<Entry> {
    let spec = receiver(table, column)?;
    if is_slice(relation.operator) {
        check_slice(&spec)?;
    }
    check_collection(&spec, relation.operator)?;
    let what = match relation.operator {
        Operator::Equal => {
            What::Equal(TupleTerm::One(Term::prepare(one(&relation.value)?, &spec, to)?))
        }
        Operator::In => What::In(match &relation.value {
            RelationValue::One(term) => {
                TupleList::List { term: Term::prepare(term, &list_of(&spec), to)?, tuples: false }
            }
            RelationValue::Many(terms) if terms.len() == 1 => {
                let only = one_of(terms)?;
                return Ok(Entry {
                    columns: vec![column],
                    tuple: false,
                    what: What::Equal(TupleTerm::One(Term::prepare(only, &spec, to)?)),
                });
            }
            RelationValue::Many(terms) => {
                let each =
                    terms.iter().map(|term| Ok(TupleTerm::One(Term::prepare(term, &spec, to)?)));
                TupleList::Each(each.collect::<Result<_>>()?)
            }
        }),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            let term = TupleTerm::One(Term::prepare(one(&relation.value)?, &spec, to)?);
            slice(relation.operator, term, 1)
        }
        Operator::Contains | Operator::ContainsKey => {
            contains(&spec, relation.operator, one(&relation.value)?, to)?
        }
        Operator::Like => {
            let what = What::Like(Term::prepare(one(&relation.value)?, &spec, to)?);
            let entry = Entry { columns: vec![column], tuple: false, what };
            if !has_supporting(table, &entry) {
                return Err(Error::InvalidRequest(unindexed_like(&text(relation))));
            }
            return Ok(entry);
        }
        Operator::Matches => {
            Term::prepare(one(&relation.value)?, &spec, to)?;
            return Err(Error::InvalidRequest(format!(
                "{} restriction is only supported on properly indexed columns. {} is not valid.",
                relation.operator,
                text(relation)
            )));
        }
        Operator::IsNot | Operator::NotEqual => return Err(unsupported(relation)),
    };
    Ok(Entry { columns: vec![column], tuple: false, what })
}

/// What refuses a LIKE that no index of its column supports.
pub(crate) fn unindexed_like(relation: &str) -> String {
    format!(
        "LIKE restriction is only supported on properly indexed columns. {relation} is not valid."
    )
}

fn slice(operator: Operator, term: TupleTerm, count: usize) -> What {
    let inclusive = matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual);
    let bound = Some(BoundTerm { term, count, inclusive });
    match operator {
        Operator::Greater | Operator::GreaterOrEqual => What::Slice { start: bound, end: None },
        _ => What::Slice { start: None, end: bound },
    }
}

fn key_spec(spec: &ColumnSpec, cql_type: &CqlType) -> ColumnSpec {
    part_spec(spec, "key", cql_type)
}

fn value_spec(spec: &ColumnSpec, cql_type: &CqlType) -> ColumnSpec {
    part_spec(spec, "value", cql_type)
}

/// What a collection is made of is frozen.
fn part_spec(spec: &ColumnSpec, part: &str, cql_type: &CqlType) -> ColumnSpec {
    let (name, cql_type) = (format!("{part}({})", spec.name), cql_type.clone().freeze());
    ColumnSpec { name, cql_type, ..spec.clone() }
}

fn contains(
    spec: &ColumnSpec,
    operator: Operator,
    raw: &RawTerm,
    to: &mut Preparation<'_>,
) -> Result<What> {
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    match (spec.cql_type.thawed(), operator) {
        (CqlType::Map(key, _), Operator::ContainsKey) => {
            keys.push(Term::prepare(raw, &key_spec(spec, key), to)?);
        }
        (CqlType::Map(_, element) | CqlType::List(element) | CqlType::Set(element), _) => {
            values.push(Term::prepare(raw, &value_spec(spec, element), to)?);
        }
        _ => {}
    }
    Ok(What::Contains { values, keys, entries: Vec::new() })
}

fn map_entry(
    table: &Table,
    column: ColumnRef,
    key: &RawTerm,
    relation: &Relation,
    to: &mut Preparation<'_>,
) -> Result<Entry> {
    let spec = receiver(table, column)?;
    let name = &spec.name;
    let refused = match spec.cql_type.thawed() {
        CqlType::List(_) => {
            format!("Indexes on list entries ({name}[index] = value) are not currently supported.")
        }
        CqlType::Map(key_type, value_type) if spec.cql_type.is_multi_cell() => {
            if relation.operator == Operator::Equal {
                let key = Term::prepare(key, &key_spec(&spec, key_type), to)?;
                let value =
                    Term::prepare(one(&relation.value)?, &value_spec(&spec, value_type), to)?;
                let what = What::Contains {
                    values: Vec::new(),
                    keys: Vec::new(),
                    entries: vec![(key, value)],
                };
                return Ok(Entry { columns: vec![column], tuple: false, what });
            }
            "Only EQ relations are supported on map entries".to_owned()
        }
        CqlType::Map(..) => {
            format!("Map-entry equality predicates on frozen map column {name} are not supported")
        }
        _ => format!("Column {name} cannot be used as a map"),
    };
    Err(Error::InvalidRequest(refused))
}

fn several(
    table: &Table,
    names: &[Name],
    relation: &Relation,
    to: &mut Preparation<'_>,
) -> Result<Entry> {
    let mut columns: Vec<ColumnRef> = Vec::with_capacity(names.len());
    for name in names {
        let column = find(table, name)?;
        let refused = if column.kind != ColumnKind::Clustering {
            format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                name.text
            )
        } else if columns.contains(&column) {
            format!("Column \"{}\" appeared twice in a relation: {}", name.text, text(relation))
        } else if columns.last().is_some_and(|last| column.index != last.index + 1) {
            format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                text(relation)
            )
        } else {
            columns.push(column);
            continue;
        };
        return Err(Error::InvalidRequest(refused));
    }
    let specs: Vec<ColumnSpec> =
        columns.iter().map(|column| receiver(table, *column)).collect::<Result<_>>()?;
    let what = match relation.operator {
        Operator::Equal => What::Equal(tuple(table, one(&relation.value)?, &specs, to)?),
        Operator::In => What::In(match &relation.value {
            RelationValue::One(term) => {
                let mut spec = list_of(&tuple_spec(table, &specs));
                spec.name = spec.name.replace("((", "(").replace("))", ")");
                TupleList::List { term: Term::prepare(term, &spec, to)?, tuples: true }
            }
            RelationValue::Many(terms) if terms.len() == 1 => {
                let what = What::Equal(tuple(table, one_of(terms)?, &specs, to)?);
                return Ok(Entry { columns, tuple: true, what });
            }
            RelationValue::Many(terms) => TupleList::Each(
                terms.iter().map(|term| tuple(table, term, &specs, to)).collect::<Result<_>>()?,
            ),
        }),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            specs.iter().try_for_each(check_slice)?;
            let term = tuple(table, one(&relation.value)?, &specs, to)?;
            slice(relation.operator, term, columns.len())
        }
        _ => return Err(unsupported(relation)),
    };
    Ok(Entry { columns, tuple: true, what })
}

fn tuple_spec(table: &Table, specs: &[ColumnSpec]) -> ColumnSpec {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let types = specs.iter().map(|spec| spec.cql_type.clone().freeze()).collect();
    ColumnSpec::of(&table.schema, format!("({})", names.join(",")), CqlType::Tuple(types))
}

fn tuple(
    table: &Table,
    raw: &RawTerm,
    specs: &[ColumnSpec],
    to: &mut Preparation<'_>,
) -> Result<TupleTerm> {
    let RawTerm::Tuple(items) = raw else {
        return Ok(TupleTerm::Whole(Term::prepare(raw, &tuple_spec(table, specs), to)?));
    };
    if items.len() != specs.len() {
        return Err(Error::InvalidRequest(format!(
            "Expected {} elements in value tuple, but got {}: {raw}",
            specs.len(),
            items.len()
        )));
    }
    let terms = items.iter().zip(specs).map(|(item, spec)| Term::prepare(item, spec, to));
    Ok(TupleTerm::Columns(terms.collect::<Result<_>>()?))
}

/// A relation on `token(...)`.
pub(in crate::plan) fn token(
    table: &Table,
    names: &[Name],
    relation: &Relation,
    to: &mut Preparation<'_>,
) -> Result<What> {
    check_operator(relation)?;
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        columns.push(find(table, name)?);
    }
    let key: Vec<&str> =
        table.schema.partition_key.iter().map(|column| column.name.as_str()).collect();
    let given: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
    if key.iter().any(|column| !given.contains(column)) {
        return Err(Error::invalid_request(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    let is_repeated = |at: usize, name: &&str| given.iter().take(at).any(|other| other == name);
    if given.iter().enumerate().any(|(at, name)| is_repeated(at, name)) {
        return Err(Error::invalid_request(
            "The token() function contains duplicate partition key components",
        ));
    }
    if columns.iter().any(|column| column.kind != ColumnKind::PartitionKey) {
        return Err(Error::invalid_request(
            "The token() function must contains only partition key components",
        ));
    }
    if given != key {
        return Err(Error::InvalidRequest(format!(
            "The token function arguments must be in the partition key order: {}",
            key.join(", ")
        )));
    }
    let spec = ColumnSpec::of(&table.schema, "partition key token", CqlType::BigInt);
    let term = |to: &mut Preparation<'_>| -> Result<TupleTerm> {
        Ok(TupleTerm::One(Term::prepare(one(&relation.value)?, &spec, to)?))
    };
    match relation.operator {
        Operator::Equal => Ok(What::Equal(term(to)?)),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            Ok(slice(relation.operator, term(to)?, 1))
        }
        operator => {
            Err(Error::InvalidRequest(format!("{operator} cannot be used with the token function")))
        }
    }
}
