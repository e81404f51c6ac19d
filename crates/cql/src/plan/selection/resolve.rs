//! Looks up what selectors name: columns, functions, types (`Selectable.Raw.prepare`). What may be done with them is checked
//! afterwards, by `prepare`: a call whose overload is unknown is refused before a slice of a list among its arguments.

use halcyon_model::CqlType;
use halcyon_model::types::UserType;
use halcyon_schema::catalog::Table;
use halcyon_syntax::ast::{Name, QualifiedName, RawSelector, RawTerm};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

use super::names::{Known, cannot_infer};
use super::{TimeKind, names};
use crate::plan::functions::{
    self, Argument, Function, Match, Scope, count_rows, operator_name, preferred, returned,
};
use crate::plan::restrictions::{find_column, receiver};
use crate::plan::term::{Inference, Preparation, RawArgument, unfit};

/// The choice of an overload, in units of work.
const OVERLOADS: u64 = 5_000;

/// A selector whose columns exist and whose functions are chosen.
pub struct Resolved<'r> {
    pub raw: &'r RawSelector,
    /// The type that it has whatever receives it (`Selectable.getExactTypeIfKnown`).
    pub exact: Option<CqlType>,
    /// Of a call.
    pub function: Option<Function>,
    /// What it is made of.
    pub parts: Vec<Resolved<'r>>,
    /// Of a literal of a map or a user type: its keys and values, as far as they exist. The keys may be names of fields.
    entries: Vec<(Result<Resolved<'r>>, Result<Resolved<'r>>)>,
}

/// A selector as the argument of a call.
pub(super) struct SelectorArgument<'a> {
    of: &'a Resolved<'a>,
    inference: Inference<'a>,
}

pub(super) fn native_name(name: &str) -> QualifiedName {
    QualifiedName {
        location: Location { line: 1, column: 0 },
        keyspace: Some("system".into()),
        name: name.into(),
    }
}

impl<'r> Resolved<'r> {
    pub fn new(raw: &'r RawSelector, table: &Table, to: &Preparation<'_>) -> Result<Resolved<'r>> {
        let other = |raw: &'r RawSelector| Resolved::new(raw, table, to);
        let all = |raws: &'r [RawSelector]| raws.iter().map(other).collect::<Result<Vec<_>>>();
        let whole =
            |exact, parts| Ok(Resolved { raw, exact, function: None, parts, entries: Vec::new() });
        match raw {
            RawSelector::Column(name) => {
                let cql_type = receiver(table, find_column(table, name)?)?.cql_type;
                whole(Some(cql_type), Vec::new())
            }
            RawSelector::CountRows => Ok(Resolved::call(raw, count_rows(), Vec::new())),
            RawSelector::WriteTime(of) => timed(TimeKind::WriteTime, raw, of, other),
            RawSelector::MaxWriteTime(of) => timed(TimeKind::MaxWriteTime, raw, of, other),
            RawSelector::Ttl(of) => timed(TimeKind::Ttl, raw, of, other),
            RawSelector::Call { name, arguments, .. } if names::counts_rows(name, arguments) => {
                Ok(Resolved::call(raw, count_rows(), Vec::new()))
            }
            RawSelector::Call { name, arguments, is_implied } => {
                let keyspace = name.keyspace.clone().filter(|_| !is_implied);
                let called = QualifiedName { keyspace, ..name.clone() };
                Resolved::chosen(raw, &called, all(arguments)?, table, to)
            }
            RawSelector::Arithmetic { operator, left, right } => {
                let name = native_name(operator_name(Some(*operator)));
                Resolved::chosen(raw, &name, vec![other(left)?, other(right)?], table, to)
            }
            RawSelector::Negate(of) => Resolved::chosen(
                raw,
                &native_name(operator_name(None)),
                vec![other(of)?],
                table,
                to,
            ),
            RawSelector::Cast { selector, to: text } => {
                let parts = vec![other(selector)?];
                whole(Some(to.cql_type(text)?), parts)
            }
            RawSelector::Field { selector, field } => {
                let of = other(selector)?;
                let exact = of.exact.as_ref().and_then(|of| field_type(of, field.text.as_bytes()));
                whole(exact, vec![of])
            }
            RawSelector::Element { selector, .. } => {
                let of = other(selector)?;
                whole(of.exact.as_ref().and_then(element_type), vec![of])
            }
            RawSelector::Slice { selector, .. } => {
                let of = other(selector)?;
                let exact = of.exact.clone().filter(|of| element_type(of).is_some());
                whole(exact, vec![of])
            }
            RawSelector::Term(term) => {
                let inference = Inference::new(to.catalog, to.keyspace, to.work);
                let exact = RawArgument { raw: term, inference: &inference }.exact_type()?;
                whole(exact, Vec::new())
            }
            RawSelector::TypeHint { to: text, selector } => {
                let parts = vec![other(selector)?];
                whole(Some(to.cql_type(text)?.freeze()), parts)
            }
            RawSelector::List(items) | RawSelector::Set(items) | RawSelector::Tuple(items) => {
                let parts = all(items)?;
                whole(literal_type(raw, &parts), parts)
            }
            RawSelector::Map(raws) => Ok(Resolved {
                entries: raws.iter().map(|(key, value)| (other(key), other(value))).collect(),
                ..whole(None, Vec::new())?
            }),
        }
    }

    /// The fields that a literal of a user type names, with their values and types.
    pub(super) fn found_fields<'u>(
        &self,
        udt: &'u UserType,
    ) -> Result<Vec<(&'r Name, &Resolved<'r>, &'u CqlType)>> {
        let mut found = Vec::with_capacity(self.entries.len());
        for (name, (_, value)) in self.names().zip(&self.entries) {
            let name = name.ok_or_else(|| cannot_infer(&self.shown()))?;
            let cql_type = field_of(udt, name)?;
            found.push((name, value.as_ref().map_err(Error::clone)?, cql_type));
        }
        Ok(found)
    }

    /// The keys and values of a literal, if all of them exist.
    pub(super) fn found_entries(&self) -> Result<Vec<(&Resolved<'r>, &Resolved<'r>)>> {
        let mut found = Vec::with_capacity(self.entries.len());
        for (key, value) in &self.entries {
            found
                .push((key.as_ref().map_err(Error::clone)?, value.as_ref().map_err(Error::clone)?));
        }
        Ok(found)
    }

    /// Refuses what is not found in literals of maps and user types, apart from keys that may be names of fields.
    pub(super) fn check_entries(&self) -> Result<()> {
        self.parts.iter().try_for_each(Resolved::check_entries)?;
        for (name, (key, value)) in self.names().zip(&self.entries) {
            if name.is_none() {
                key.as_ref().map_err(Error::clone)?.check_entries()?;
            }
            value.as_ref().map_err(Error::clone)?.check_entries()?;
        }
        Ok(())
    }

    /// Adds the functions that are found to what is known of names.
    pub(super) fn add_to(&self, known: &mut Known) {
        if let Some(function) = self.function.as_ref().filter(|of| of.is_user_defined()) {
            known.keyspaces.insert(self.raw, function.keyspace.clone());
        }
        let entries = self.entries.iter().flat_map(|(key, value)| [key, value]);
        self.parts.iter().chain(entries.flatten()).for_each(|part| part.add_to(known));
    }

    /// The name.
    pub(super) fn shown(&self) -> String {
        let mut known = Known::default();
        self.add_to(&mut known);
        names::shown(self.raw, &known)
    }

    /// The keys of a literal as names of fields, where they are names.
    fn names(&self) -> impl Iterator<Item = Option<&'r Name>> {
        let entries = match self.raw {
            RawSelector::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(key, _)| match key {
            RawSelector::Column(name) => Some(name),
            _ => None,
        })
    }

    fn call(raw: &'r RawSelector, function: Function, parts: Vec<Resolved<'r>>) -> Resolved<'r> {
        let exact = Some(function.returns.clone());
        Resolved { raw, exact, function: Some(function), parts, entries: Vec::new() }
    }

    fn chosen(
        raw: &'r RawSelector,
        name: &QualifiedName,
        parts: Vec<Resolved<'r>>,
        table: &Table,
        to: &Preparation<'_>,
    ) -> Result<Resolved<'r>> {
        to.work.spend(OVERLOADS)?;
        let scope = scope(table, to);
        let arguments: Vec<SelectorArgument<'_>> =
            parts.iter().map(|part| SelectorArgument::new(part, to)).collect();
        let arguments: Vec<&dyn Argument> =
            arguments.iter().map(|of| of as &dyn Argument).collect();
        let function = functions::resolve(name, &arguments, &scope, None)?.ok_or_else(|| {
            let shown = match &name.keyspace {
                Some(keyspace) => format!("{keyspace}.{}", name.name),
                None => name.name.clone(),
            };
            Error::InvalidRequest(format!("Unknown function '{shown}'"))
        })?;
        drop(arguments);
        Ok(Resolved::call(raw, function, parts))
    }
}

pub(super) fn scope<'a>(table: &'a Table, to: &'a Preparation<'_>) -> Scope<'a> {
    Scope { catalog: to.catalog, keyspace: to.keyspace, table: Some(table), work: to.work }
}

/// A time of a column, or of a part of one.
fn timed<'r>(
    kind: TimeKind,
    raw: &'r RawSelector,
    of: &'r RawSelector,
    resolve: impl FnOnce(&'r RawSelector) -> Result<Resolved<'r>>,
) -> Result<Resolved<'r>> {
    if !matches!(names::timed_column(of), RawSelector::Column(_)) {
        return Err(Error::InvalidRequest(format!(
            "Cannot use selection function {} on {}",
            names::time_function(raw),
            names::name(of)
        )));
    }
    let part = resolve(of)?;
    let mut column = &part;
    while let Some(of) = column.parts.first() {
        column = of;
    }
    let exact = column.exact.as_ref().map(|column| time_type(kind, column, of));
    Ok(Resolved { raw, exact, function: None, parts: vec![part], entries: Vec::new() })
}

/// The type of a time. Cassandra takes that of an element or a field for a list where it chooses functions.
pub(super) fn time_type(kind: TimeKind, column: &CqlType, of: &RawSelector) -> CqlType {
    let one = if kind == TimeKind::Ttl { CqlType::Int } else { CqlType::BigInt };
    if !column.is_multi_cell() || is_of_one_cell(of) || kind == TimeKind::MaxWriteTime {
        return one;
    }
    CqlType::List(Box::new(one)).freeze()
}

/// Whether an element or a field is asked, which is of one cell at most.
fn is_of_one_cell(of: &RawSelector) -> bool {
    match of {
        RawSelector::Element { .. } | RawSelector::Field { .. } => true,
        RawSelector::Slice { selector, .. } => is_of_one_cell(selector),
        _ => false,
    }
}

/// The type of a literal of a list, a set or a tuple.
fn literal_type(raw: &RawSelector, parts: &[Resolved<'_>]) -> Option<CqlType> {
    let known = parts.iter().map(|part| part.exact.clone().map(CqlType::freeze));
    if !matches!(raw, RawSelector::Tuple(_)) {
        let element = Box::new(known.flatten().next()?);
        let is_list = matches!(raw, RawSelector::List(_));
        return Some(if is_list { CqlType::List(element) } else { CqlType::Set(element) });
    }
    // It may be parentheses.
    if parts.len() == 1 { None } else { known.collect::<Option<_>>().map(CqlType::Tuple) }
}

/// The type of a field that a literal names.
fn field_of<'a>(udt: &'a UserType, name: &Name) -> Result<&'a CqlType> {
    let field = udt.fields.iter().find(|(field, _)| field == name.text.as_bytes());
    field.map(|(_, cql_type)| cql_type).ok_or_else(|| {
        Error::InvalidRequest(format!(
            "Unknown field '{}' in value of user defined type {}",
            name.text,
            String::from_utf8_lossy(&udt.name)
        ))
    })
}

fn field_type(of: &CqlType, field: &[u8]) -> Option<CqlType> {
    let CqlType::Udt(udt) = of.thawed() else { return None };
    let field = udt.fields.iter().find(|(name, _)| name == field);
    field.map(|(_, cql_type)| cql_type.clone().freeze())
}

/// What `[]` selects. The elements of a list cannot be selected; a call that takes one is refused for that, not for the
/// type, which Cassandra takes for that of the cells' names.
fn element_type(of: &CqlType) -> Option<CqlType> {
    match of.thawed() {
        CqlType::Map(_, value) => Some((**value).clone()),
        CqlType::Set(element) => Some((**element).clone()),
        CqlType::List(_) => Some(CqlType::TimeUuid),
        _ => None,
    }
}

impl<'a> SelectorArgument<'a> {
    pub(super) fn new(of: &'a Resolved<'a>, to: &'a Preparation<'_>) -> SelectorArgument<'a> {
        SelectorArgument { of, inference: Inference::new(to.catalog, to.keyspace, to.work) }
    }
}

impl Argument for SelectorArgument<'_> {
    fn matches(&self, receiver: &CqlType) -> Result<Match> {
        matches(self.of, receiver, &self.inference)
    }

    fn exact_type(&self) -> Result<Option<CqlType>> {
        Ok(match self.of.raw {
            RawSelector::List(_) | RawSelector::Set(_) | RawSelector::Tuple(_) => None,
            _ => self.of.exact.clone(),
        })
    }

    fn compatible_type(&self) -> Result<Option<CqlType>> {
        compatible_type(self.of, &self.inference)
    }

    fn text(&self) -> String {
        self.of.shown()
    }

    fn list_len(&self) -> Option<usize> {
        matches!(self.of.raw, RawSelector::List(_)).then_some(self.of.parts.len())
    }

    fn is_marker(&self) -> bool {
        matches!(self.of.raw, RawSelector::Term(RawTerm::Bind { .. }))
    }
}

fn matches<'r>(of: &Resolved<'r>, receiver: &CqlType, inference: &Inference<'r>) -> Result<Match> {
    let all = |of: &[Resolved<'r>], element: &CqlType| {
        all_match(of.iter().map(|part| (part, element)), inference)
    };
    Ok(match (of.raw, receiver.thawed()) {
        (RawSelector::Term(raw), _) => RawArgument { raw, inference }.matches(receiver)?,
        // The type of a hint is frozen, which only counts here.
        (RawSelector::TypeHint { .. }, _) if receiver.is_multi_cell() => Match::No,
        (RawSelector::List(_), CqlType::Vector(element, _)) => all(&of.parts, element)?,
        (RawSelector::List(_), CqlType::List(element))
        | (RawSelector::Set(_), CqlType::Set(element)) => {
            all(&of.parts, &element.as_ref().clone().freeze())?
        }
        (RawSelector::Set(items), CqlType::Map(..)) if items.is_empty() => Match::Weak,
        (RawSelector::Tuple(_), CqlType::Tuple(types)) if of.parts.len() <= types.len() => {
            let types: Vec<CqlType> = types.iter().map(|of| of.clone().freeze()).collect();
            unfit(all_match(of.parts.iter().zip(&types), inference))?.and(Match::Weak)
        }
        (RawSelector::Tuple(items), to) if items.len() == 1 && !matches!(to, CqlType::Tuple(_)) => {
            match of.parts.first() {
                Some(only) => matches(only, receiver, inference)?,
                None => Match::No,
            }
        }
        (RawSelector::List(_) | RawSelector::Set(_) | RawSelector::Tuple(_), _) => Match::No,
        (RawSelector::Map(_), CqlType::Udt(udt)) => match_fields(of, udt, inference)?,
        (RawSelector::Map(_), to) => match_entries(of, to, inference)?,
        _ => of.exact.as_ref().map_or(Match::No, |exact| returned(exact, receiver)),
    })
}

/// Whether all parts fit what they are for. Without parts, it could be something else as well.
fn all_match<'a, 'r: 'a, 't>(
    pairs: impl ExactSizeIterator<Item = (&'a Resolved<'r>, &'t CqlType)>,
    inference: &Inference<'r>,
) -> Result<Match> {
    let mut all = if pairs.len() == 0 { Match::Weak } else { Match::Exact };
    for (part, to) in pairs {
        all = all.and(matches(part, to, inference)?);
    }
    Ok(all)
}

/// A literal where a value of a user type is expected.
fn match_fields<'r>(of: &Resolved<'r>, udt: &UserType, inference: &Inference<'r>) -> Result<Match> {
    // Of a frozen type, fields are frozen here, and cells where Cassandra looks.
    let fields = of.found_fields(inference.declared(udt).unwrap_or(udt))?;
    let pairs: Vec<_> = fields.into_iter().map(|(_, value, to)| (value, to)).collect();
    Ok(unfit(all_match(pairs.into_iter(), inference))?.and(Match::Weak))
}

/// A literal where something else is expected: its keys are selectors.
fn match_entries<'r>(
    of: &Resolved<'r>,
    receiver: &CqlType,
    inference: &Inference<'r>,
) -> Result<Match> {
    let known = of.found_entries()?;
    let CqlType::Map(key_type, value_type) = receiver else { return Ok(Match::No) };
    let (key_type, value_type) =
        (key_type.as_ref().clone().freeze(), value_type.as_ref().clone().freeze());
    let keys = all_match(known.iter().map(|(key, _)| (*key, &key_type)), inference)?;
    Ok(keys.and(all_match(known.iter().map(|(_, value)| (*value, &value_type)), inference)?))
}

fn compatible_type<'r>(of: &Resolved<'r>, inference: &Inference<'r>) -> Result<Option<CqlType>> {
    let types = || {
        let types = of.parts.iter().map(|part| compatible_type(part, inference));
        types.collect::<Result<Vec<Option<CqlType>>>>()
    };
    let element = || Ok(preferred(types()?.into_iter()).map(Box::new));
    Ok(match of.raw {
        RawSelector::Term(raw) => RawArgument { raw, inference }.compatible_type()?,
        RawSelector::List(_) => element()?.map(|element| CqlType::List(element).freeze()),
        RawSelector::Set(_) => element()?.map(|element| CqlType::Set(element).freeze()),
        // One selector in parentheses may be no tuple.
        RawSelector::Tuple(items) if items.len() == 1 => None,
        RawSelector::Tuple(_) => types()?.into_iter().collect::<Option<_>>().map(CqlType::Tuple),
        RawSelector::Map(_) => {
            of.check_entries()?;
            None
        }
        _ => of.exact.clone(),
    })
}
