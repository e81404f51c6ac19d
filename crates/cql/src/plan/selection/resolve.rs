//! Looks up what selectors name: columns, functions, types (`Selectable.Raw.prepare`). What may be done with them is checked
//! afterwards, by `prepare`: a call whose overload is unknown is refused before a slice of a list among its arguments.

use halcyon_model::CqlType;
use halcyon_model::types::UserType;
use halcyon_schema::catalog::Table;
use halcyon_syntax::ast::{Name, QualifiedName, RawSelector, RawTerm};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

use super::{TimeKind, names};
use crate::plan::functions::{
    self, Argument, Function, Match, Scope, assignable, count_rows, operator_name, preferred,
};
use crate::plan::restrictions::{find_column, receiver};
use crate::plan::term::{Inference, Preparation, RawArgument};

/// The choice of an overload, in units of work.
const OVERLOADS: u64 = 5_000;

/// A selector whose columns exist and whose functions are chosen.
pub struct Resolved<'r> {
    pub raw: &'r RawSelector,
    /// The type that it has whatever receives it (`Selectable.getExactTypeIfKnown`).
    pub exact: Option<CqlType>,
    /// Of a call.
    pub function: Option<Function>,
    /// What it is made of; of literals of maps and user types first their values.
    pub parts: Vec<Resolved<'r>>,
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
        let whole = |exact, parts| Ok(Resolved { raw, exact, function: None, parts });
        match raw {
            RawSelector::Column(name) => {
                let cql_type = receiver(table, find_column(table, name)?)?.cql_type;
                whole(Some(cql_type), Vec::new())
            }
            RawSelector::CountRows => Ok(Resolved::call(raw, count_rows(), Vec::new())),
            RawSelector::WriteTime(of) => timed(TimeKind::WriteTime, raw, of, other),
            RawSelector::MaxWriteTime(of) => timed(TimeKind::MaxWriteTime, raw, of, other),
            RawSelector::Ttl(of) => timed(TimeKind::Ttl, raw, of, other),
            RawSelector::Call { name, arguments } => {
                let counts_rows = name.name == "count"
                    && matches!(arguments.as_slice(), [RawSelector::Term(RawTerm::Literal { .. })]);
                if counts_rows {
                    return Ok(Resolved::call(raw, count_rows(), Vec::new()));
                }
                Resolved::chosen(raw, name, all(arguments)?, table, to)
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
                let exact = RawArgument { raw: term, inference: &inference }.exact_type();
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
            RawSelector::Map(_) | RawSelector::UserType(_) => whole(None, looked_up(raw, &other)),
        }
    }

    fn call(raw: &'r RawSelector, function: Function, parts: Vec<Resolved<'r>>) -> Resolved<'r> {
        Resolved { raw, exact: Some(function.returns.clone()), function: Some(function), parts }
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

/// The parts of a literal of a map or a user type, as far as they are known: its use refuses the others, and tells whether keys are
/// selectors or names of fields.
fn looked_up<'r>(
    literal: &'r RawSelector,
    resolve: &impl Fn(&'r RawSelector) -> Result<Resolved<'r>>,
) -> Vec<Resolved<'r>> {
    let (values, keys): (Vec<&RawSelector>, Vec<&RawSelector>) = match literal {
        RawSelector::Map(entries) => entries.iter().map(|(key, value)| (value, key)).unzip(),
        RawSelector::UserType(fields) => (fields.iter().map(|(_, of)| of).collect(), Vec::new()),
        _ => return Vec::new(),
    };
    let all =
        |raws: Vec<&'r RawSelector>| raws.into_iter().map(resolve).collect::<Result<Vec<_>>>();
    let mut parts = all(values).unwrap_or_default();
    if !parts.is_empty() {
        parts.extend(all(keys).unwrap_or_default());
    }
    parts
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
    Ok(Resolved { raw, exact, function: None, parts: vec![part] })
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

fn field_type(of: &CqlType, field: &[u8]) -> Option<CqlType> {
    let CqlType::Udt(udt) = of.thawed() else { return None };
    udt.fields.iter().find(|(name, _)| name == field).map(|(_, cql_type)| cql_type.clone())
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
    fn matches(&self, receiver: &CqlType) -> Match {
        matches(self.of, receiver, &self.inference)
    }

    fn exact_type(&self) -> Option<CqlType> {
        match self.of.raw {
            RawSelector::List(_) | RawSelector::Set(_) | RawSelector::Tuple(_) => None,
            _ => self.of.exact.clone(),
        }
    }

    fn compatible_type(&self) -> Option<CqlType> {
        compatible_type(self.of, &self.inference)
    }

    fn text(&self) -> String {
        names::name(self.of.raw)
    }

    fn list_len(&self) -> Option<usize> {
        matches!(self.of.raw, RawSelector::List(_)).then_some(self.of.parts.len())
    }

    fn is_marker(&self) -> bool {
        matches!(self.of.raw, RawSelector::Term(RawTerm::Bind { .. }))
    }
}

fn matches<'r>(of: &Resolved<'r>, receiver: &CqlType, inference: &Inference<'r>) -> Match {
    let all = |element: &CqlType| {
        let parts = of.parts.iter().map(|part| matches(part, element, inference));
        parts.fold(Match::Weak, Match::and)
    };
    match (of.raw, receiver.thawed()) {
        (RawSelector::Term(raw), _) => RawArgument { raw, inference }.matches(receiver),
        // The type of a hint is frozen, which only counts here.
        (RawSelector::TypeHint { .. }, _) if receiver.is_multi_cell() => Match::No,
        (RawSelector::List(items), CqlType::Vector(_, dimension))
            if !items.is_empty() && items.len() != *dimension as usize =>
        {
            Match::No
        }
        (RawSelector::List(_), CqlType::List(element) | CqlType::Vector(element, _)) => {
            all(element)
        }
        (RawSelector::Set(_), CqlType::Set(element)) => all(element),
        (RawSelector::Set(items), CqlType::Map(..)) if items.is_empty() => Match::Weak,
        (RawSelector::Tuple(_), CqlType::Tuple(types)) if of.parts.len() <= types.len() => {
            let pairs = of.parts.iter().zip(types);
            pairs.fold(Match::Weak, |all, (part, to)| all.and(matches(part, to, inference)))
        }
        (RawSelector::Tuple(items), to) if items.len() == 1 && !matches!(to, CqlType::Tuple(_)) => {
            of.parts.first().map_or(Match::No, |only| matches(only, receiver, inference))
        }
        (RawSelector::List(_) | RawSelector::Set(_) | RawSelector::Tuple(_), _) => Match::No,
        (RawSelector::Map(entries), CqlType::Map(key, value)) => {
            let (values, keys) = of.parts.split_at(entries.len().min(of.parts.len()));
            let all = |parts: &[Resolved<'r>], cql_type: &CqlType| {
                let parts = parts.iter().map(|part| matches(part, cql_type, inference));
                parts.fold(Match::Weak, Match::and)
            };
            all(keys, key).and(all(values, value))
        }
        (RawSelector::Map(entries), CqlType::Udt(udt)) => {
            let fields = entries.iter().map(|(key, _)| match key {
                RawSelector::Column(name) => Some(name),
                _ => None,
            });
            match_fields(fields, &of.parts, udt, inference)
        }
        (RawSelector::UserType(fields), CqlType::Udt(udt)) => {
            match_fields(fields.iter().map(|(name, _)| Some(name)), &of.parts, udt, inference)
        }
        (RawSelector::Map(_) | RawSelector::UserType(_), _) => Match::Weak,
        _ => of.exact.as_ref().map_or(Match::No, |exact| assignable(exact, receiver)),
    }
}

/// Whether values fit the fields that they are for. A field that the type does not have is refused later, by its name.
fn match_fields<'n, 'r>(
    names: impl Iterator<Item = Option<&'n Name>>,
    values: &[Resolved<'r>],
    udt: &UserType,
    inference: &Inference<'r>,
) -> Match {
    let mut all = Match::Weak;
    for (name, value) in names.zip(values) {
        let field = udt
            .fields
            .iter()
            .find(|(field, _)| name.is_some_and(|name| name.text.as_bytes() == field.as_slice()));
        if let Some((_, cql_type)) = field {
            all = all.and(matches(value, cql_type, inference));
        }
    }
    all
}

fn compatible_type<'r>(of: &Resolved<'r>, inference: &Inference<'r>) -> Option<CqlType> {
    let element = || preferred(of.parts.iter().map(|part| compatible_type(part, inference)));
    match of.raw {
        RawSelector::Term(raw) => RawArgument { raw, inference }.compatible_type(),
        RawSelector::List(_) => element().map(|element| CqlType::List(Box::new(element)).freeze()),
        RawSelector::Set(_) => element().map(|element| CqlType::Set(Box::new(element)).freeze()),
        // One selector in parentheses may be no tuple.
        RawSelector::Tuple(items) if items.len() == 1 => None,
        RawSelector::Tuple(_) => {
            let types = of.parts.iter().map(|part| compatible_type(part, inference));
            types.collect::<Option<_>>().map(CqlType::Tuple)
        }
        _ => of.exact.clone(),
    }
}
