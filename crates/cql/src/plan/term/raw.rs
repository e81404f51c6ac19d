//! Terms as they are written: what types they could have.

use halcyon_model::CqlType;
use halcyon_model::types::TypeError;

use super::literal;
use crate::plan::functions::{self, Argument, Match, Scope, assignable, operator_name};
use halcyon_schema::catalog::Catalog;
use halcyon_syntax::ast::{ArithmeticOperator, QualifiedName, RawTerm, TypeText};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

pub(super) fn full_name(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}

/// The function that an operator stands for.
pub(super) fn operator(operator: Option<ArithmeticOperator>) -> QualifiedName {
    native(operator_name(operator))
}

/// A native function.
pub(super) fn native(name: &str) -> QualifiedName {
    QualifiedName {
        location: Location { line: 1, column: 0 },
        keyspace: Some("system".to_owned()),
        name: name.to_owned(),
    }
}

/// The type that a text names.
pub(super) fn resolve_type(text: &TypeText, catalog: &Catalog, keyspace: &str) -> Result<CqlType> {
    let types = catalog.keyspace(keyspace).map(|keyspace| &keyspace.types);
    let find = |name: &str| types?.get(name).map(|user_type| user_type.as_ref().clone());
    CqlType::parse_cql(&text.text, &find).map_err(|error| {
        Error::InvalidRequest(match error {
            TypeError::Unknown(name) => format!("Unknown type {keyspace}.{name}"),
            other => other.to_string(),
        })
    })
}

/// Whether a value of type `from` may stand where `to` is expected. Multi-cell and frozen collections are different
/// things here.
pub(crate) fn type_matches(from: &CqlType, to: &CqlType) -> Match {
    let (from, to) = (from.base(), to.base());
    if from == to {
        return Match::Exact;
    }
    let collection = |t: &CqlType| t.thawed().is_multi_cell();
    if collection(from) && collection(to) && from.is_multi_cell() != to.is_multi_cell() {
        return Match::No;
    }
    assignable(from, to)
}

/// `(t)` is `t`, unless a tuple of one is expected.
pub(super) fn is_parenthesised(terms: &[RawTerm], receiver: &CqlType) -> bool {
    terms.len() == 1 && !matches!(receiver.thawed(), CqlType::Tuple(_) | CqlType::Udt(_))
}

/// `AssignmentTestable.testAssignment`.
pub(super) fn matches(raw: &RawTerm, to: &CqlType, scope: (&Catalog, &str)) -> Result<Match> {
    let receiver = to.thawed();
    let all = |pairs: &mut dyn Iterator<Item = (&RawTerm, &CqlType)>| -> Result<Match> {
        let mut found = Match::Exact;
        for (raw, to) in pairs {
            found = found.and(matches(raw, &to.clone().freeze(), scope)?);
        }
        Ok(found)
    };
    Ok(match (raw, receiver) {
        (RawTerm::Null, CqlType::Counter) => Match::No,
        (RawTerm::Null | RawTerm::Bind { .. }, _) => Match::Weak,
        (RawTerm::Literal { kind, text }, _) => literal::matches(*kind, text, receiver),
        (RawTerm::List(terms), CqlType::List(e) | CqlType::Vector(e, _)) if !terms.is_empty() => {
            all(&mut terms.iter().map(|term| (term, e.as_ref())))?
        }
        (RawTerm::List(_), CqlType::List(_) | CqlType::Vector(..)) => Match::Weak,
        (RawTerm::List(_), _) => return Err(unexpected_array(to)),
        (RawTerm::Set(terms), CqlType::Set(_) | CqlType::Map(..)) if terms.is_empty() => {
            Match::Weak
        }
        (RawTerm::Set(terms), CqlType::Set(e)) => {
            all(&mut terms.iter().map(|term| (term, e.as_ref())))?
        }
        (RawTerm::Map(entries), CqlType::Map(k, v)) => all(&mut entries
            .iter()
            .flat_map(|(key, value)| [(key, k.as_ref()), (value, v.as_ref())]))?,
        (RawTerm::UserType(fields), CqlType::Udt(udt)) => {
            let known = |name: &str| {
                udt.fields.iter().find(|(field, _)| field == name.as_bytes()).map(|(_, t)| t)
            };
            if fields.iter().any(|(name, _)| known(&name.text).is_none()) {
                return Ok(Match::No);
            }
            let mut pairs = fields.iter().filter_map(|(name, raw)| Some((raw, known(&name.text)?)));
            all(&mut pairs)?.and(Match::Weak)
        }
        (RawTerm::Tuple(terms), _) if is_parenthesised(terms, receiver) => match terms.first() {
            Some(term) => matches(term, to, scope)?,
            None => Match::No,
        },
        (RawTerm::Tuple(terms), CqlType::Tuple(types)) if terms.len() <= types.len() => {
            all(&mut terms.iter().zip(types))?.and(Match::Weak)
        }
        (RawTerm::Tuple(terms), CqlType::Udt(udt)) if terms.len() <= udt.fields.len() => {
            all(&mut terms.iter().zip(udt.fields.iter().map(|(_, t)| t)))?.and(Match::Weak)
        }
        (RawTerm::TypeHint { to: hint, .. }, _) => {
            type_matches(&resolve_type(hint, scope.0, scope.1)?, to)
        }
        (RawTerm::Call { .. } | RawTerm::Arithmetic { .. } | RawTerm::Negate(_), _) => {
            call_matches(raw, to, scope)
        }
        _ => Match::No,
    })
}

pub(super) fn unexpected_array(to: &CqlType) -> Error {
    Error::InvalidRequest(format!(
        "Unexpected receiver type '{}'; only list and vector are expected",
        to.cql_name()
    ))
}

/// A call whose overload is not yet known can return any type.
fn call_matches(raw: &RawTerm, to: &CqlType, scope: (&Catalog, &str)) -> Match {
    match result_type(raw, Some(to), scope) {
        Some(returns) => type_matches(&returns, to),
        None => Match::Weak,
    }
}

fn result_type(
    raw: &RawTerm,
    receiver: Option<&CqlType>,
    (catalog, keyspace): (&Catalog, &str),
) -> Option<CqlType> {
    let (name, arguments): (QualifiedName, Vec<&RawTerm>) = match raw {
        RawTerm::Call { name, arguments } => (name.clone(), arguments.iter().collect()),
        RawTerm::Arithmetic { operator: sign, left, right } => {
            (operator(Some(*sign)), vec![left, right])
        }
        RawTerm::Negate(term) => (operator(None), vec![term]),
        _ => return None,
    };
    let scope = Scope { catalog, keyspace, table: None };
    let wrapped: Vec<RawArgument<'_>> =
        arguments.into_iter().map(|raw| RawArgument { raw, catalog, keyspace }).collect();
    let arguments: Vec<&dyn Argument> = wrapped.iter().map(|raw| raw as &dyn Argument).collect();
    functions::resolve(&name, &arguments, &scope, receiver).ok()?.map(|found| found.returns)
}

/// A raw term as the argument of a call.
#[derive(Debug)]
pub(crate) struct RawArgument<'a> {
    pub raw: &'a RawTerm,
    pub catalog: &'a Catalog,
    pub keyspace: &'a str,
}

impl Argument for RawArgument<'_> {
    fn matches(&self, receiver: &CqlType) -> Match {
        matches(self.raw, receiver, (self.catalog, self.keyspace)).unwrap_or(Match::No)
    }

    fn exact_type(&self) -> Option<CqlType> {
        match self.raw {
            RawTerm::TypeHint { to, .. } => resolve_type(to, self.catalog, self.keyspace).ok(),
            RawTerm::Tuple(terms) if terms.len() == 1 => {
                RawArgument { raw: terms.first()?, ..*self }.exact_type()
            }
            // Most constants fit several types.
            RawTerm::Literal { .. } => None,
            call => result_type(call, None, (self.catalog, self.keyspace)),
        }
    }

    fn compatible_type(&self) -> Option<CqlType> {
        match self.raw {
            RawTerm::Literal { kind, text } => literal::preferred(*kind, text),
            // A list or a vector.
            RawTerm::List(_) => None,
            RawTerm::Map(entries) => {
                let (key, value) = entries.first()?;
                let of = |raw| RawArgument { raw, ..*self }.compatible_type();
                Some(CqlType::Map(Box::new(of(key)?), Box::new(of(value)?)))
            }
            RawTerm::Set(terms) => {
                let first = terms.first()?;
                let element = RawArgument { raw: first, ..*self }.compatible_type()?;
                Some(CqlType::Set(Box::new(element)))
            }
            _ => self.exact_type(),
        }
    }

    fn text(&self) -> String {
        self.raw.to_string()
    }

    fn is_marker(&self) -> bool {
        matches!(self.raw, RawTerm::Bind { .. })
    }
}
