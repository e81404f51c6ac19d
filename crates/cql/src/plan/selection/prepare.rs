//! Prepares selectors: looks up columns, chooses functions, derives types.

use std::collections::HashMap;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::UserType;

use super::terms::{SelectionTerm, Usage};
use super::{AggregateCall, Part, Selection, Selector, TimeKind, names};
use crate::plan::execution::Work;
use crate::plan::functions::{
    self, Argument, Function, Match, Scope, assignable, cast_name, count_rows, operator_name,
};
use crate::plan::restrictions::{find_column, receiver};
use crate::plan::term::{Inference, Preparation, RawArgument, Term};
use halcyon_schema::catalog::Table;
use halcyon_syntax::ast::{Name, QualifiedName, RawSelector, RawTerm, TypeText};
use halcyon_syntax::lexer::Location;
use halcyon_syntax::{Error, Result};

/// A selector with its metadata.
#[derive(Debug, Clone)]
pub struct Item {
    pub selector: Selector,
    pub cql_type: CqlType,
}

/// A selection while it is being made.
pub struct Preparing<'a, 'b> {
    pub table: &'a Table,
    pub to: &'a mut Preparation<'b>,
    pub selection: Selection,
    /// Whether the error that was answered is about a name: of a column, a function or a type.
    pub is_unresolved: bool,
}

/// What a selector costs, and the choice of an overload, in units of work.
const SELECTOR: u64 = 500;
const OVERLOADS: u64 = 5_000;

/// A selector as the argument of a call.
struct SelectorArgument<'a> {
    raw: &'a RawSelector,
    exact: Option<CqlType>,
    scope: Scope<'a>,
    work: &'a Work<'a>,
}

impl Argument for SelectorArgument<'_> {
    fn matches(&self, receiver: &CqlType) -> Match {
        match (&self.exact, self.raw) {
            (Some(exact), _) => assignable(exact, receiver),
            (None, RawSelector::Term(raw)) => self.as_term(raw, |term| term.matches(receiver)),
            (None, RawSelector::List(items)) => match receiver.thawed() {
                CqlType::List(element) | CqlType::Vector(element, _) => self.all(items, element),
                _ => Match::No,
            },
            (None, RawSelector::Set(items)) => match receiver.thawed() {
                CqlType::Set(element) => self.all(items, element),
                CqlType::Map(..) if items.is_empty() => Match::Weak,
                _ => Match::No,
            },
            (None, RawSelector::Column(_)) => {
                self.exact_type().map_or(Match::No, |exact| assignable(&exact, receiver))
            }
            (None, RawSelector::Tuple(items)) if items.len() == 1 => {
                items.first().map_or(Match::No, |only| self.other(only).matches(receiver))
            }
            (None, RawSelector::Tuple(items)) => match receiver.thawed() {
                CqlType::Tuple(types) if items.len() <= types.len() => {
                    let pairs = items.iter().zip(types);
                    pairs.fold(Match::Weak, |all, (raw, to)| all.and(self.other(raw).matches(to)))
                }
                _ => Match::No,
            },
            _ => Match::Weak,
        }
    }

    fn exact_type(&self) -> Option<CqlType> {
        match (&self.exact, self.raw) {
            (Some(exact), _) => Some(exact.clone()),
            (None, RawSelector::Term(raw)) => self.as_term(raw, |term| term.exact_type()),
            (None, RawSelector::Column(name)) => {
                let table = self.scope.table?;
                Some(receiver(table, find_column(table, name).ok()?).ok()?.cql_type)
            }
            _ => None,
        }
    }

    fn compatible_type(&self) -> Option<CqlType> {
        match (&self.exact, self.raw) {
            (None, RawSelector::Term(raw)) => self.as_term(raw, |term| term.compatible_type()),
            (None, RawSelector::List(items)) => {
                self.first(items).map(|e| CqlType::List(Box::new(e)))
            }
            (None, RawSelector::Set(items)) => self.first(items).map(|e| CqlType::Set(Box::new(e))),
            (None, RawSelector::Tuple(items)) if items.len() == 1 => self.first(items),
            (None, RawSelector::Tuple(items)) => {
                let types = items.iter().map(|raw| self.other(raw).compatible_type());
                types.collect::<Option<_>>().map(CqlType::Tuple)
            }
            _ => self.exact_type(),
        }
    }

    fn text(&self) -> String {
        names::name(self.raw)
    }

    fn list_len(&self) -> Option<usize> {
        match self.raw {
            RawSelector::List(items) => Some(items.len()),
            _ => None,
        }
    }

    fn is_marker(&self) -> bool {
        matches!(self.raw, RawSelector::Term(RawTerm::Bind { .. }))
    }
}

impl<'a> SelectorArgument<'a> {
    /// Asks a term, which is a constant or a marker.
    fn as_term<T>(&self, raw: &RawTerm, ask: impl FnOnce(&RawArgument<'_, '_>) -> T) -> T {
        let inference = Inference::new(self.scope.catalog, self.scope.keyspace, self.work);
        ask(&RawArgument { raw, inference: &inference })
    }

    /// The type that the first of some literals would have.
    fn first(&self, items: &'a [RawSelector]) -> Option<CqlType> {
        self.other(items.first()?).compatible_type()
    }

    fn other(&self, raw: &'a RawSelector) -> SelectorArgument<'a> {
        SelectorArgument { raw, exact: None, scope: self.scope, work: self.work }
    }

    fn all(&self, items: &'a [RawSelector], element: &CqlType) -> Match {
        items.iter().fold(Match::Weak, |all, raw| all.and(self.other(raw).matches(element)))
    }
}

fn native_name(name: &str) -> QualifiedName {
    QualifiedName {
        location: Location { line: 1, column: 0 },
        keyspace: Some("system".into()),
        name: name.into(),
    }
}

fn cannot_infer(raw: &RawSelector) -> Error {
    Error::InvalidRequest(format!(
        "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
        names::name(raw)
    ))
}

impl<'a, 'b> Preparing<'a, 'b> {
    pub fn new(table: &'a Table, to: &'a mut Preparation<'b>) -> Preparing<'a, 'b> {
        Preparing { table, to, selection: Selection::default(), is_unresolved: false }
    }

    /// A selector of the result, with its name.
    pub fn item(&mut self, raw: &RawSelector) -> Result<(Item, String)> {
        if matches!(raw, RawSelector::Tuple(items) if items.len() == 1) {
            return Err(cannot_infer(raw));
        }
        let item = self.selector(raw, None)?;
        Ok((item, self.item_name(raw)?))
    }

    /// A cast to the type that a selector has already does not show, nor one in the arguments of a call.
    fn item_name(&self, raw: &RawSelector) -> Result<String> {
        if let RawSelector::Cast { selector, to } = raw {
            let known = match selector.as_ref() {
                RawSelector::Column(column) => {
                    let column = find_column(self.table, column)?;
                    Some(receiver(self.table, column)?.cql_type)
                }
                RawSelector::Cast { to, .. } => Some(self.type_named(to)?),
                _ => None,
            };
            if known == Some(self.type_named(to)?) {
                return self.item_name(selector);
            }
        }
        if let RawSelector::Call { name, arguments } = raw
            && let [cast @ RawSelector::Cast { selector, .. }] = arguments.as_slice()
            && self.item_name(cast)? == self.item_name(selector)?
        {
            let arguments = vec![selector.as_ref().clone()];
            return self.item_name(&RawSelector::Call { name: name.clone(), arguments });
        }
        if let RawSelector::TypeHint { to, selector } = raw
            && let CqlType::Udt(udt) = self.type_named(to)?.thawed()
        {
            let name = String::from_utf8_lossy(&udt.name);
            return Ok(format!("({}.{name}){}", udt.keyspace, names::name(selector)));
        }
        Ok(names::name(raw))
    }

    fn selector(&mut self, raw: &RawSelector, expected: Option<&CqlType>) -> Result<Item> {
        self.to.work.spend(SELECTOR)?;
        match raw {
            RawSelector::Column(name) => self.column(name),
            RawSelector::CountRows => Ok(self.count_rows()),
            RawSelector::WriteTime(of) => self.time(raw, of, TimeKind::WriteTime),
            RawSelector::MaxWriteTime(of) => self.time(raw, of, TimeKind::MaxWriteTime),
            RawSelector::Ttl(of) => self.time(raw, of, TimeKind::Ttl),
            RawSelector::Call { name, arguments } => {
                let counts_rows = name.name == "count"
                    && matches!(arguments.as_slice(), [RawSelector::Term(RawTerm::Literal { .. })]);
                if counts_rows {
                    return Ok(self.count_rows());
                }
                let arguments: Vec<&RawSelector> = arguments.iter().collect();
                self.call(name, &arguments)
            }
            RawSelector::Arithmetic { operator, left, right } => {
                self.call(&native_name(operator_name(Some(*operator))), &[left, right])
            }
            RawSelector::Negate(of) => self.call(&native_name(operator_name(None)), &[of]),
            RawSelector::Cast { selector, to } => {
                let of = self.selector(selector, None)?;
                self.cast(of, to, selector)
            }
            RawSelector::Field { selector, field } => self.field(selector, field),
            RawSelector::Element { selector, key } => self.element(selector, key),
            RawSelector::Slice { selector, from, to } => {
                self.slice(selector, from.as_ref(), to.as_ref())
            }
            RawSelector::Term(term) => self.term(raw, term, expected),
            RawSelector::TypeHint { to, selector } => {
                let to = self.type_named(to);
                let to = self.resolved(to)?;
                self.hinted(raw, selector, to)
            }
            RawSelector::Tuple(items) if items.len() == 1 => match items.first() {
                Some(item) => self.selector(item, expected),
                None => Err(cannot_infer(raw)),
            },
            _ => self.composed(raw, expected),
        }
    }

    fn scope(&self) -> Scope<'_> {
        let Preparation { catalog, keyspace, work, .. } = *self.to;
        Scope { catalog, keyspace, table: Some(self.table), work }
    }

    fn type_named(&self, text: &TypeText) -> Result<CqlType> {
        self.to.cql_type(text)
    }

    /// Notes an error about a name.
    fn resolved<T>(&mut self, found: Result<T>) -> Result<T> {
        self.is_unresolved |= found.is_err();
        found
    }

    fn column(&mut self, name: &Name) -> Result<Item> {
        let found = find_column(self.table, name);
        let column = self.resolved(found)?;
        let cql_type = receiver(self.table, column)?.cql_type;
        let fetch = self.selection.fetch(column, false);
        Ok(Item { selector: Selector::Column(fetch), cql_type })
    }

    /// A term that is evaluated once per execution.
    fn add_term(
        &mut self,
        term: &RawTerm,
        name: &str,
        cql_type: CqlType,
        usage: Usage,
    ) -> Result<usize> {
        let spec = ColumnSpec {
            keyspace: self.table.schema.keyspace.clone(),
            table: self.table.schema.name.clone(),
            name: name.to_owned(),
            cql_type,
        };
        let term = Term::prepare(term, &spec, self.to)?;
        self.selection.terms.push(SelectionTerm { term, usage });
        Ok(self.selection.terms.len() - 1)
    }

    /// The arguments of a call; terms among them must not be unset.
    fn used_by(&mut self, function: &Function, arguments: &[Selector]) {
        for argument in arguments {
            let Selector::Term(index) = argument else { continue };
            if let Some(term) = self.selection.terms.get_mut(*index) {
                let name = function.name.clone();
                let is_aggregate = function.is_aggregate();
                term.usage =
                    if is_aggregate { Usage::Aggregated(name) } else { Usage::Argument(name) };
            }
        }
    }

    fn term(
        &mut self,
        raw: &RawSelector,
        term: &RawTerm,
        expected: Option<&CqlType>,
    ) -> Result<Item> {
        let argument =
            SelectorArgument { raw, exact: None, scope: self.scope(), work: self.to.work };
        let cql_type = expected.cloned().or_else(|| argument.exact_type());
        let cql_type = cql_type.ok_or_else(|| cannot_infer(raw))?;
        let index = self.add_term(term, "[selection]", cql_type.clone(), Usage::Value)?;
        Ok(Item { selector: Selector::Term(index), cql_type })
    }

    fn hinted(&mut self, whole: &RawSelector, raw: &RawSelector, to: CqlType) -> Result<Item> {
        let composed = match raw {
            RawSelector::List(_) | RawSelector::Set(_) => true,
            RawSelector::Tuple(items) => items.len() > 1,
            _ => false,
        };
        let parts = SelectorArgument { raw, exact: None, scope: self.scope(), work: self.to.work };
        if !composed || parts.matches(&to).is_assignable() {
            let item = self.selector(raw, Some(&to))?;
            if assignable(&item.cql_type, &to).is_assignable() {
                return Ok(Item { selector: item.selector, cql_type: to });
            }
        }
        let shown = self.item_name(whole)?;
        Err(Error::InvalidRequest(format!(
            "Cannot assign value {shown} to {shown} of type {}",
            to.freeze().cql_name()
        )))
    }

    fn time(&mut self, raw: &RawSelector, of: &RawSelector, kind: TimeKind) -> Result<Item> {
        let name = match of {
            RawSelector::Element { selector, .. }
            | RawSelector::Slice { selector, .. }
            | RawSelector::Field { selector, .. } => selector.as_ref(),
            other => other,
        };
        let function = match raw {
            RawSelector::WriteTime(_) => "writetime",
            RawSelector::MaxWriteTime(_) => "maxwritetime",
            _ => "ttl",
        };
        let RawSelector::Column(name) = name else {
            return Err(Error::InvalidRequest(format!(
                "Cannot use selection function {function} on {}",
                names::name(of)
            )));
        };
        let found = find_column(self.table, name);
        let column = self.resolved(found)?;
        if column.kind.is_key() {
            return Err(Error::InvalidRequest(format!(
                "Cannot use selection function {function} on PRIMARY KEY part {}",
                name.text
            )));
        }
        let cql_type = receiver(self.table, column)?.cql_type;
        let part = self.part(of, &cql_type)?;
        let many = cql_type.is_multi_cell() && matches!(part, Part::Whole | Part::Slice(..));
        let list = many && kind != TimeKind::MaxWriteTime;
        let fetch = self.selection.fetch(column, true);
        let one = if kind == TimeKind::Ttl { CqlType::Int } else { CqlType::BigInt };
        let returns = if list { CqlType::List(Box::new(one)) } else { one };
        Ok(Item {
            selector: Selector::Time { fetch, kind, part, list, cql_type },
            cql_type: returns,
        })
    }

    /// The cells whose time is selected.
    fn part(&mut self, of: &RawSelector, cql_type: &CqlType) -> Result<Part> {
        Ok(match of {
            RawSelector::Element { selector, key } => {
                let (key_type, _) = element_types(cql_type, selector)?;
                let name = element_name(cql_type, selector);
                let usage = Usage::Element(names::name(selector));
                Part::Element(self.add_term(key, &name, key_type, usage)?)
            }
            RawSelector::Slice { selector, from, to } => {
                let (from, to) = self.limits(selector, cql_type, (from.as_ref(), to.as_ref()))?;
                Part::Slice(from, to)
            }
            RawSelector::Field { selector, field } => {
                let index = field_index(cql_type, selector, field)?;
                if cql_type.is_multi_cell() {
                    Part::Field(u16::try_from(index.0).unwrap_or(u16::MAX))
                } else {
                    Part::Whole
                }
            }
            _ => Part::Whole,
        })
    }

    fn field(&mut self, selector: &RawSelector, field: &Name) -> Result<Item> {
        let of = self.selector(selector, None)?;
        let (index, cql_type) = field_index(&of.cql_type, selector, field)?;
        Ok(Item { selector: Selector::Field { of: Box::new(of.selector), index }, cql_type })
    }

    fn element(&mut self, selector: &RawSelector, key: &RawTerm) -> Result<Item> {
        let of = self.selector(selector, None)?;
        let (key_type, value_type) = element_types(&of.cql_type, selector)?;
        let name = element_name(&of.cql_type, selector);
        let key = self.add_term(key, &name, key_type, Usage::Element(names::name(selector)))?;
        let cql_type = of.cql_type.clone();
        let selector = Selector::Element { of: Box::new(of.selector), cql_type, key };
        Ok(Item { selector, cql_type: value_type })
    }

    fn slice(
        &mut self,
        selector: &RawSelector,
        from: Option<&RawTerm>,
        to: Option<&RawTerm>,
    ) -> Result<Item> {
        let of = self.selector(selector, None)?;
        let (from, to) = self.limits(selector, &of.cql_type, (from, to))?;
        let cql_type = of.cql_type.clone();
        let of = Box::new(of.selector);
        let selector = Selector::Slice { of, cql_type: cql_type.clone(), from, to };
        Ok(Item { selector, cql_type })
    }

    /// The limits of a slice of `of`.
    fn limits(
        &mut self,
        of: &RawSelector,
        cql_type: &CqlType,
        (from, to): (Option<&RawTerm>, Option<&RawTerm>),
    ) -> Result<(Option<usize>, Option<usize>)> {
        let key_type = sliced_type(cql_type, of)?;
        let (name, shown) = (element_name(cql_type, of), names::name(of));
        let mut limit = |term: Option<&RawTerm>| -> Result<Option<usize>> {
            let Some(term) = term else { return Ok(None) };
            let usage = Usage::Slice(shown.clone());
            self.add_term(term, &name, key_type.clone(), usage).map(Some)
        };
        Ok((limit(from)?, limit(to)?))
    }

    fn call(&mut self, name: &QualifiedName, arguments: &[&RawSelector]) -> Result<Item> {
        let aggregates = self.selection.aggregates.len();
        let prepared = arguments
            .iter()
            .map(|raw| if is_literal(raw) { Ok(None) } else { self.selector(raw, None).map(Some) })
            .collect::<Result<Vec<Option<Item>>>>()?;
        let scope = self.scope();
        let chosen = choose(name, arguments, &prepared, scope, self.to.work);
        let function = self.resolved(chosen)?;
        let mut selectors = Vec::with_capacity(arguments.len());
        for ((raw, prepared), expected) in arguments.iter().zip(prepared).zip(&function.arguments) {
            selectors.push(match prepared {
                Some(item) => item.selector,
                None => self.argument(raw, expected)?,
            });
        }
        self.used_by(&function, &selectors);
        let cql_type = function.returns.clone();
        if !function.is_aggregate() {
            return Ok(Item {
                selector: Selector::Call { function, arguments: selectors },
                cql_type,
            });
        }
        if self.selection.aggregates.len() > aggregates {
            return Err(Error::invalid_request(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        self.selection.aggregates.push(AggregateCall { function, arguments: selectors });
        Ok(Item { selector: Selector::Aggregate(self.selection.aggregates.len() - 1), cql_type })
    }

    fn count_rows(&mut self) -> Item {
        let function = count_rows();
        let cql_type = function.returns.clone();
        self.selection.aggregates.push(AggregateCall { function, arguments: Vec::new() });
        Item { selector: Selector::Aggregate(self.selection.aggregates.len() - 1), cql_type }
    }

    fn argument(&mut self, raw: &RawSelector, expected: &CqlType) -> Result<Selector> {
        if let RawSelector::Term(term) = raw {
            return Ok(Selector::Term(self.add_term(
                term,
                "[selection]",
                expected.clone(),
                Usage::Value,
            )?));
        }
        Ok(self.selector(raw, Some(expected))?.selector)
    }

    fn cast(&mut self, of: Item, text: &TypeText, raw: &RawSelector) -> Result<Item> {
        let (from, to) = (of.cql_type.base().clone(), self.type_named(text)?);
        if from == to {
            return Ok(of);
        }
        let scope = self.scope();
        let argument = SelectorArgument { raw, exact: Some(from), scope, work: self.to.work };
        let function = match text.text.as_str() {
            // It names no cast.
            "varchar" => None,
            _ => functions::resolve(&native_name(&cast_name(&to)), &[&argument], &scope, None)?,
        };
        let function = function.ok_or_else(|| {
            // Cassandra names the column that the statement selects first.
            let first = self.selection.fetch.first().and_then(|f| self.table.column(f.column));
            let shown = first.map_or_else(|| names::name(raw), |def| def.name.clone());
            Error::InvalidRequest(format!("{shown} cannot be cast to {}", text.text))
        })?;
        let arguments = vec![of.selector];
        self.used_by(&function, &arguments);
        Ok(Item { selector: Selector::Call { function, arguments }, cql_type: to })
    }

    /// Collections, tuples and user types made of selectors.
    fn composed(&mut self, raw: &RawSelector, expected: Option<&CqlType>) -> Result<Item> {
        let expected = expected.map(CqlType::thawed).cloned();
        let (types, items): (Vec<CqlType>, Vec<Item>);
        match (raw, expected) {
            (RawSelector::List(raws), Some(CqlType::Vector(element, dimension))) => {
                let items = self.uniform(raws.iter(), Some(&element))?;
                Ok(collection(CqlType::Vector(element, dimension), items))
            }
            (RawSelector::List(raws) | RawSelector::Set(raws), expected) => {
                let hint = match expected {
                    Some(CqlType::List(e) | CqlType::Set(e)) => Some(*e),
                    _ => self.element_type(raws)?,
                };
                let hint = hint.ok_or_else(|| cannot_infer(raw))?;
                items = self.uniform(raws.iter(), Some(&hint))?;
                let element = Box::new(hint.freeze());
                let cql_type = match raw {
                    RawSelector::List(_) => CqlType::List(element),
                    _ => CqlType::Set(element),
                };
                Ok(collection(cql_type, items))
            }
            (RawSelector::Map(raws), Some(CqlType::Udt(udt))) => {
                let fields = raws.iter().map(|(key, value)| match key {
                    RawSelector::Column(name) => Some((name, value)),
                    _ => None,
                });
                let fields: Option<Vec<_>> = fields.collect();
                self.user_type(fields.ok_or_else(|| cannot_infer(raw))?, udt)
            }
            (RawSelector::Map(raws), expected) => {
                let (key, value) = match expected {
                    Some(CqlType::Map(k, v)) => (Some(*k), Some(*v)),
                    _ => return Err(cannot_infer(raw)),
                };
                let keys = self.uniform(raws.iter().map(|(key, _)| key), key.as_ref())?;
                let values = self.uniform(raws.iter().map(|(_, value)| value), value.as_ref())?;
                let first = |hint: Option<CqlType>, items: &[Item]| {
                    let found = hint.or_else(|| items.first().map(|item| item.cql_type.clone()));
                    found.map(CqlType::freeze).map(Box::new).ok_or_else(|| cannot_infer(raw))
                };
                let cql_type = CqlType::Map(first(key, &keys)?, first(value, &values)?);
                let in_turn = keys.into_iter().zip(values).flat_map(|(k, v)| [k, v]);
                Ok(collection(cql_type, in_turn.collect()))
            }
            (RawSelector::Tuple(raws), None) if raws.iter().any(|raw| self.has_no_type(raw)) => {
                Err(cannot_infer(raw))
            }
            (RawSelector::Tuple(raws), expected) => {
                let hints = match expected {
                    Some(CqlType::Tuple(hints)) => hints,
                    _ => Vec::new(),
                };
                items = raws
                    .iter()
                    .enumerate()
                    .map(|(index, raw)| self.selector(raw, hints.get(index)))
                    .collect::<Result<_>>()?;
                types = items.iter().map(|item| item.cql_type.clone().freeze()).collect();
                let selectors = items.into_iter().map(|item| item.selector).collect();
                Ok(Item { selector: Selector::Tuple(selectors), cql_type: CqlType::Tuple(types) })
            }
            (RawSelector::UserType(fields), Some(CqlType::Udt(udt))) => {
                self.user_type(fields.iter().map(|(name, raw)| (name, raw)).collect(), udt)
            }
            _ => Err(cannot_infer(raw)),
        }
    }

    /// The first element that has a type gives it to all.
    fn element_type(&mut self, raws: &[RawSelector]) -> Result<Option<CqlType>> {
        for raw in raws {
            match raw {
                RawSelector::List(inner) => {
                    if let Some(element) = self.element_type(inner)? {
                        return Ok(Some(CqlType::List(Box::new(element.freeze())).freeze()));
                    }
                }
                RawSelector::Set(inner) => {
                    if let Some(element) = self.element_type(inner)? {
                        return Ok(Some(CqlType::Set(Box::new(element.freeze())).freeze()));
                    }
                }
                RawSelector::Tuple(inner) if inner.len() == 1 => {}
                raw if is_literal(raw) => {}
                raw => return self.selector(raw, None).map(|item| Some(item.cql_type)),
            }
        }
        Ok(None)
    }

    /// The first of several values for one field counts.
    fn user_type(
        &mut self,
        fields: Vec<(&Name, &RawSelector)>,
        udt: Box<UserType>,
    ) -> Result<Item> {
        let given: HashMap<&[u8], &RawSelector> =
            fields.into_iter().rev().map(|(name, raw)| (name.text.as_bytes(), raw)).collect();
        let mut selectors = Vec::with_capacity(udt.fields.len());
        for (name, cql_type) in &udt.fields {
            let null = RawSelector::Term(RawTerm::Null);
            let raw = given.get(name.as_slice()).copied().unwrap_or(&null);
            selectors.push(self.selector(raw, Some(cql_type))?.selector);
        }
        Ok(Item { selector: Selector::Tuple(selectors), cql_type: CqlType::Udt(udt) })
    }

    /// Whether it is a constant that fits several types.
    fn has_no_type(&self, raw: &RawSelector) -> bool {
        let argument =
            SelectorArgument { raw, exact: None, scope: self.scope(), work: self.to.work };
        matches!(raw, RawSelector::Term(_)) && argument.exact_type().is_none()
    }

    fn uniform<'r>(
        &mut self,
        raws: impl Iterator<Item = &'r RawSelector>,
        hint: Option<&CqlType>,
    ) -> Result<Vec<Item>> {
        raws.map(|raw| self.selector(raw, hint)).collect()
    }
}

/// Selectors whose type depends on their receiver.
fn is_literal(raw: &RawSelector) -> bool {
    match raw {
        RawSelector::Term(_)
        | RawSelector::List(_)
        | RawSelector::Set(_)
        | RawSelector::Map(_)
        | RawSelector::UserType(_) => true,
        RawSelector::Tuple(items) => items.len() > 1 || items.iter().all(is_literal),
        _ => false,
    }
}

fn choose(
    name: &QualifiedName,
    arguments: &[&RawSelector],
    prepared: &[Option<Item>],
    scope: Scope<'_>,
    work: &Work<'_>,
) -> Result<Function> {
    work.spend(OVERLOADS)?;
    let wrapped: Vec<SelectorArgument<'_>> = arguments
        .iter()
        .zip(prepared)
        .map(|(raw, item)| {
            let exact = item.as_ref().map(|item| item.cql_type.clone());
            SelectorArgument { raw, exact, scope, work }
        })
        .collect();
    let arguments: Vec<&dyn Argument> = wrapped.iter().map(|arg| arg as &dyn Argument).collect();
    functions::resolve(name, &arguments, &scope, None)?.ok_or_else(|| {
        let shown = match &name.keyspace {
            Some(keyspace) => format!("{keyspace}.{}", name.name),
            None => name.name.clone(),
        };
        Error::InvalidRequest(format!("Unknown function '{shown}'"))
    })
}

fn collection(cql_type: CqlType, items: Vec<Item>) -> Item {
    let items = items.into_iter().map(|item| item.selector).collect();
    let selector = Selector::Collection { cql_type: cql_type.clone(), items };
    Item { selector, cql_type }
}

/// The receiver of the term in `[]`, as messages name it.
fn element_name(cql_type: &CqlType, selector: &RawSelector) -> String {
    let what = if matches!(cql_type.thawed(), CqlType::Map(..)) { "key" } else { "value" };
    format!("{what}({})", names::name(selector))
}

/// Types of key and value of what `[]` may be applied to.
fn element_types(cql_type: &CqlType, selector: &RawSelector) -> Result<(CqlType, CqlType)> {
    match cql_type.thawed() {
        CqlType::Map(key, value) => Ok(((**key).clone().freeze(), (**value).clone())),
        CqlType::Set(element) => Ok(((**element).clone().freeze(), (**element).clone())),
        CqlType::List(_) => Err(Error::InvalidRequest(format!(
            "Element selection is only allowed on sets and maps, but {} is a list",
            names::name(selector)
        ))),
        _ => Err(Error::InvalidRequest(format!(
            "Invalid element selection: {} is of type {} is not a collection",
            names::name(selector),
            cql_type.clone().freeze().cql_name()
        ))),
    }
}

/// The type of the keys of what is sliced.
fn sliced_type(cql_type: &CqlType, selector: &RawSelector) -> Result<CqlType> {
    if matches!(cql_type.thawed(), CqlType::List(_)) {
        return Err(Error::InvalidRequest(format!(
            "Slice selection is only allowed on sets and maps, but {} is a list",
            names::name(selector)
        )));
    }
    element_types(cql_type, selector).map(|(key_type, _)| key_type)
}

fn field_index(
    cql_type: &CqlType,
    selector: &RawSelector,
    field: &Name,
) -> Result<(usize, CqlType)> {
    let CqlType::Udt(udt) = cql_type.thawed() else {
        return Err(Error::InvalidRequest(format!(
            "Invalid field selection: {} of type {} is not a user type",
            names::name(selector),
            cql_type.cql_name()
        )));
    };
    let named = |(name, _): &(Vec<u8>, CqlType)| name == field.text.as_bytes();
    let index = udt.fields.iter().position(named).ok_or_else(|| {
        Error::InvalidRequest(format!(
            "{} of type {} has no field {}",
            names::name(selector),
            cql_type.cql_name(),
            field.text
        ))
    })?;
    let cql_type = udt.fields.get(index).map(|(_, t)| t.clone()).unwrap_or(CqlType::Blob);
    Ok((index, cql_type))
}
