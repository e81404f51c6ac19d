//! Terms as they are written: what types they could have.
//!
//! To choose an overload, each level of a nested term asks the level below whether it could be of the type of each parameter, and that one
//! asks on. So [`Inference`] remembers the answers: a term is asked once for each type, and the steps are in proportion to the text.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::types::{TypeError, UserType};

use super::literal;
use crate::plan::execution::Work;
use crate::plan::functions::{
    self, Argument, Body, Function, Match, Scalar, Scope, operator_name, preferred, type_matches,
};
use halcyon_schema::catalog::Catalog;
use halcyon_schema::change::check_type_keyspace;
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

/// The type that a text names, in a statement on the keyspace.
pub(crate) fn resolve_type(text: &TypeText, catalog: &Catalog, keyspace: &str) -> Result<CqlType> {
    check_type_keyspace(text, keyspace)?;
    let types = catalog.keyspace(keyspace).map(|keyspace| &keyspace.types);
    let find = |name: &str| types?.get(name).map(|user_type| user_type.as_ref().clone());
    CqlType::parse_stated(&text.text, &find).map_err(|error| {
        Error::InvalidRequest(match error {
            TypeError::Unknown(name) => format!("Unknown type {keyspace}.{name}"),
            other => other.to_string(),
        })
    })
}

/// Whether the result of a function may be what `to` is the type of (`AbstractFunction.testAssignment`).
pub(super) fn result_matches(function: &Function, to: &CqlType) -> Match {
    // The types of functions are written without `frozen`.
    match to.is_multi_cell() {
        true => argument_matches(function, &function.returns, to),
        false => argument_matches(function, &function.returns.clone().freeze(), to),
    }
}

/// Whether the result of a function may be an argument or a part of a literal (`FunctionCall.Raw.testAssignment`).
fn argument_matches(function: &Function, returns: &CqlType, to: &CqlType) -> Match {
    // It returns what is expected, so it chooses no overload.
    if function.body == Body::Scalar(Scalar::FromJson) {
        return Match::Weak;
    }
    type_matches(returns, to)
}

/// What is refused for a part of a tuple or of a user type only says that it does not fit (`UserTypes.testUserTypeAssignment`).
pub(crate) fn unfit(found: Result<Match>) -> Result<Match> {
    match found {
        Err(Error::InvalidRequest(_)) => Ok(Match::No),
        found => found,
    }
}

/// `(t)` is `t`, unless a tuple of one is expected.
pub(super) fn is_parenthesised(terms: &[RawTerm], receiver: &CqlType) -> bool {
    terms.len() == 1 && !matches!(receiver.thawed(), CqlType::Tuple(_) | CqlType::Udt(_))
}

/// What a look at a term costs, and one at the overloads of a function, in units of work.
const TERM: u64 = 100;
const OVERLOADS: u64 = 5_000;

/// The keyspace of native functions.
const SYSTEM: &str = "system";

/// What the parts of one term could be, remembered while the term is prepared.
#[derive(Debug)]
pub(crate) struct Inference<'r> {
    catalog: &'r Catalog,
    keyspace: &'r str,
    work: &'r Work<'r>,
    /// By the address of a part, which stays what it is as long as the term is borrowed: the types that were asked for.
    matches: RefCell<HashMap<*const RawTerm, Vec<(CqlType, Match)>>>,
    /// The types of calls that nothing receives.
    exact: RefCell<HashMap<*const RawTerm, Option<CqlType>>>,
    of_natives: OnceCell<Box<Inference<'r>>>,
    /// How many answers had to be found out.
    steps: Cell<u64>,
    parts: PhantomData<&'r RawTerm>,
}

impl<'r> Inference<'r> {
    pub(crate) fn new(
        catalog: &'r Catalog,
        keyspace: &'r str,
        work: &'r Work<'r>,
    ) -> Inference<'r> {
        Inference {
            catalog,
            keyspace,
            work,
            matches: RefCell::default(),
            exact: RefCell::default(),
            of_natives: OnceCell::new(),
            steps: Cell::new(0),
            parts: PhantomData,
        }
    }

    #[cfg(test)]
    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// A user type as the catalog has it.
    pub(crate) fn declared(&self, udt: &UserType) -> Option<&'r UserType> {
        let keyspace = self.catalog.keyspace(&udt.keyspace)?;
        keyspace.types.get(std::str::from_utf8(&udt.name).ok()?).map(Arc::as_ref)
    }

    /// `AssignmentTestable.testAssignment`.
    pub(super) fn matches(&self, raw: &'r RawTerm, to: &CqlType) -> Result<Match> {
        if matches!(raw, RawTerm::Null | RawTerm::Bind { .. } | RawTerm::Literal { .. }) {
            return self.found(raw, to);
        }
        let part = std::ptr::from_ref(raw);
        let known = self.matches.borrow().get(&part).and_then(|types| {
            types.iter().find(|(cql_type, _)| cql_type == to).map(|(_, found)| *found)
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.found(raw, to)?;
        self.matches.borrow_mut().entry(part).or_default().push((to.clone(), found));
        Ok(found)
    }

    fn all<'t>(&self, pairs: impl Iterator<Item = (&'r RawTerm, &'t CqlType)>) -> Result<Match> {
        let mut found = Match::Exact;
        for (raw, to) in pairs {
            found = found.and(self.matches(raw, &to.clone().freeze())?);
        }
        Ok(found)
    }

    fn step(&self, units: u64) -> Result<()> {
        self.steps.set(self.steps.get() + 1);
        self.work.spend(units)
    }

    fn found(&self, raw: &'r RawTerm, to: &CqlType) -> Result<Match> {
        self.step(TERM)?;
        let receiver = to.thawed();
        Ok(match (raw, receiver) {
            (RawTerm::Null, CqlType::Counter) => Match::No,
            (RawTerm::Null | RawTerm::Bind { .. }, _) => Match::Weak,
            (RawTerm::Literal { kind, text }, _) => literal::matches(*kind, text, receiver),
            (RawTerm::List(terms), CqlType::Vector(_, dimension))
                if terms.len() != *dimension as usize =>
            {
                Match::No
            }
            (RawTerm::List(terms), CqlType::List(e) | CqlType::Vector(e, _))
                if !terms.is_empty() =>
            {
                self.all(terms.iter().map(|term| (term, e.as_ref())))?
            }
            (RawTerm::List(_), CqlType::List(_) | CqlType::Vector(..)) => Match::Weak,
            (RawTerm::List(_), _) => return Err(unexpected_array(to)),
            (RawTerm::Set(terms), CqlType::Set(_) | CqlType::Map(..)) if terms.is_empty() => {
                Match::Weak
            }
            (RawTerm::Set(terms), CqlType::Set(e)) => {
                self.all(terms.iter().map(|term| (term, e.as_ref())))?
            }
            (RawTerm::Map(entries), CqlType::Map(k, v)) => {
                let entry = |(key, value): &'r (RawTerm, RawTerm)| [(key, &**k), (value, &**v)];
                self.all(entries.iter().flat_map(entry))?
            }
            (RawTerm::UserType(fields), CqlType::Udt(udt)) => {
                let types: HashMap<&[u8], &CqlType> =
                    udt.fields.iter().map(|(field, t)| (field.as_slice(), t)).collect();
                // A field that the type does not have is refused later, by its name.
                let known = |name: &str| types.get(name.as_bytes()).copied();
                let pairs = fields.iter().filter_map(|(name, raw)| Some((raw, known(&name.text)?)));
                unfit(self.all(pairs))?.and(Match::Weak)
            }
            (RawTerm::Tuple(terms), _) if is_parenthesised(terms, receiver) => {
                match terms.first() {
                    Some(term) => self.matches(term, to)?,
                    None => Match::No,
                }
            }
            (RawTerm::Tuple(terms), CqlType::Tuple(types)) if terms.len() <= types.len() => {
                unfit(self.all(terms.iter().zip(types)))?.and(Match::Weak)
            }
            (RawTerm::Tuple(terms), CqlType::Udt(udt)) if terms.len() <= udt.fields.len() => {
                let types = udt.fields.iter().map(|(_, cql_type)| cql_type);
                unfit(self.all(terms.iter().zip(types)))?.and(Match::Weak)
            }
            (RawTerm::TypeHint { to: hint, .. }, _) => {
                type_matches(&resolve_type(hint, self.catalog, self.keyspace)?, to)
            }
            (RawTerm::Call { .. } | RawTerm::Arithmetic { .. } | RawTerm::Negate(_), _) => {
                // A call whose overload is not yet known can return any type.
                self.work.spend(OVERLOADS)?;
                let function = self.function(raw, Some(to));
                let of = |found: Function| argument_matches(&found, &found.returns, to);
                function.map_or(Match::Weak, of)
            }
            _ => Match::No,
        })
    }

    /// The function of a call or an operator.
    fn function(&self, raw: &'r RawTerm, receiver: Option<&CqlType>) -> Option<Function> {
        let (name, arguments): (QualifiedName, Vec<&RawTerm>) = match raw {
            RawTerm::Call { name, arguments } => (name.clone(), arguments.iter().collect()),
            RawTerm::Arithmetic { operator: sign, left, right } => {
                (operator(Some(*sign)), vec![left, right])
            }
            RawTerm::Negate(term) => (operator(None), vec![term]),
            _ => return None,
        };
        let Inference { catalog, keyspace, work, .. } = *self;
        let scope = Scope { catalog, keyspace, table: None, work };
        self.resolve(&name, &arguments, &scope, receiver).ok()?
    }

    /// The function that a call with these arguments means.
    pub(super) fn resolve(
        &self,
        name: &QualifiedName,
        arguments: &[&'r RawTerm],
        scope: &Scope<'_>,
        receiver: Option<&CqlType>,
    ) -> Result<Option<Function>> {
        let wrapped: Vec<RawArgument<'_, 'r>> =
            arguments.iter().map(|raw| RawArgument { raw, inference: self }).collect();
        let wrapped: Vec<&dyn Argument> = wrapped.iter().map(|raw| raw as &dyn Argument).collect();
        functions::resolve(name, &wrapped, scope, receiver)
    }

    /// `AssignmentTestable.getExactTypeIfKnown`.
    fn exact_type(&self, raw: &'r RawTerm) -> Result<Option<CqlType>> {
        Ok(match raw {
            RawTerm::TypeHint { to, .. } => Some(resolve_type(to, self.catalog, self.keyspace)?),
            RawTerm::Tuple(terms) => match terms.as_slice() {
                [only] => self.exact_type(only)?,
                _ => None,
            },
            RawTerm::Call { .. } | RawTerm::Arithmetic { .. } | RawTerm::Negate(_) => {
                let part = std::ptr::from_ref(raw);
                if let Some(known) = self.exact.borrow().get(&part) {
                    return Ok(known.clone());
                }
                self.step(OVERLOADS)?;
                let found = self.function(raw, None).map(|function| function.returns);
                self.exact.borrow_mut().insert(part, found.clone());
                found
            }
            // Most constants fit several types.
            _ => None,
        })
    }

    /// `AssignmentTestable.getCompatibleTypeIfKnown`.
    fn compatible_type(&self, raw: &'r RawTerm) -> Result<Option<CqlType>> {
        let preferred = |terms: &mut dyn Iterator<Item = &'r RawTerm>| {
            let types: Vec<_> =
                terms.map(|term| self.compatible_type(term)).collect::<Result<_>>()?;
            Ok(preferred(types.into_iter()))
        };
        Ok(match raw {
            RawTerm::Literal { kind, text } => literal::preferred(*kind, text),
            // A list or a vector.
            RawTerm::List(_) => None,
            RawTerm::Map(entries) => {
                let key = preferred(&mut entries.iter().map(|(key, _)| key))?.map(Box::new);
                let value = preferred(&mut entries.iter().map(|(_, value)| value))?.map(Box::new);
                key.zip(value).map(|(key, value)| CqlType::Map(key, value).freeze())
            }
            RawTerm::Set(terms) => {
                let element = preferred(&mut terms.iter())?.map(Box::new);
                element.map(|element| CqlType::Set(element).freeze())
            }
            _ => self.exact_type(raw)?,
        })
    }

    /// The same parts as in a statement on the keyspace of native functions, which look there for what their arguments name.
    fn of_natives(&self) -> &Inference<'r> {
        if self.keyspace == SYSTEM {
            return self;
        }
        let made = || Box::new(Inference::new(self.catalog, SYSTEM, self.work));
        self.of_natives.get_or_init(made)
    }
}

pub(super) fn unexpected_array(to: &CqlType) -> Error {
    Error::InvalidRequest(format!(
        "Unexpected receiver type '{}'; only list and vector are expected",
        to.cql_name()
    ))
}

/// A raw term as the argument of a call.
#[derive(Debug)]
pub(crate) struct RawArgument<'i, 'r> {
    pub raw: &'r RawTerm,
    pub inference: &'i Inference<'r>,
}

impl Argument for RawArgument<'_, '_> {
    fn matches(&self, receiver: &CqlType) -> Result<Match> {
        self.inference.matches(self.raw, receiver)
    }

    fn exact_type(&self) -> Result<Option<CqlType>> {
        self.inference.exact_type(self.raw)
    }

    fn compatible_type(&self) -> Result<Option<CqlType>> {
        self.inference.of_natives().compatible_type(self.raw)
    }

    fn text(&self) -> String {
        self.raw.to_string()
    }

    fn is_marker(&self) -> bool {
        matches!(self.raw, RawTerm::Bind { .. })
    }
}
