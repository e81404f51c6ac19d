//! Makes selectors of what is looked up (`resolve`): checks what is done with each part, derives types, prepares terms
//! (`Selectable.newSelectorFactory`).

use std::collections::HashMap;

use halcyon_model::CqlType;
use halcyon_model::request::ColumnSpec;
use halcyon_model::types::{DURATIONS_IN_SETS, UserType};

use super::names::{Known, cannot_infer};
use super::resolve::{Resolved, SelectorArgument, native_name, scope, time_type};
use super::terms::{SelectionTerm, Usage};
use super::{AggregateCall, Part, Selection, Selector, Step, TimeKind, names};
use crate::plan::functions::{self, Argument, Function, assignable, cast_name};
use crate::plan::restrictions::{find_column, receiver};
use crate::plan::term::{Preparation, Term};
use halcyon_schema::catalog::Table;
use halcyon_syntax::ast::{Name, RawSelector, RawTerm, TypeText};
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
    known: Known,
}

/// What a selector costs, in units of work.
const SELECTOR: u64 = 500;

impl<'a, 'b> Preparing<'a, 'b> {
    pub fn new(table: &'a Table, to: &'a mut Preparation<'b>) -> Preparing<'a, 'b> {
        Preparing { table, to, selection: Selection::default(), known: Known::default() }
    }

    pub fn resolve<'r>(&self, raw: &'r RawSelector) -> Result<Resolved<'r>> {
        let resolved = Resolved::new(raw, self.table, self.to)?;
        resolved.check_entries()?;
        Ok(resolved)
    }

    /// A selector of the result, with its name.
    pub fn item(&mut self, of: &Resolved<'_>) -> Result<(Item, String)> {
        of.add_to(&mut self.known);
        if matches!(of.raw, RawSelector::Tuple(items) if items.len() == 1) {
            return Err(self.cannot_infer(of.raw));
        }
        let item = self.selector(of, None)?;
        Ok((item, self.shown(of.raw)))
    }

    fn shown(&self, raw: &RawSelector) -> String {
        names::shown(raw, &self.known)
    }

    fn cannot_infer(&self, raw: &RawSelector) -> Error {
        cannot_infer(&self.shown(raw))
    }

    fn selector(&mut self, of: &Resolved<'_>, expected: Option<&CqlType>) -> Result<Item> {
        self.to.work.spend(SELECTOR)?;
        let raw = of.raw;
        match (raw, of.parts.as_slice()) {
            (RawSelector::Column(name), _) => self.column(name),
            (RawSelector::WriteTime(_), [part]) => self.time(raw, part, TimeKind::WriteTime),
            (RawSelector::MaxWriteTime(_), [part]) => self.time(raw, part, TimeKind::MaxWriteTime),
            (RawSelector::Ttl(_), [part]) => self.time(raw, part, TimeKind::Ttl),
            (RawSelector::Cast { to, .. }, [part]) => self.cast(raw, part, to),
            (RawSelector::Field { field, .. }, [part]) => self.field(part, field),
            (RawSelector::Element { key, .. }, [part]) => self.element(part, key),
            (RawSelector::Slice { from, to, .. }, [part]) => {
                self.slice(part, [from.as_ref(), to.as_ref()])
            }
            (RawSelector::Term(term), _) => self.term(of, term, expected),
            (RawSelector::TypeHint { .. }, [part]) => self.hinted(of, part),
            (RawSelector::Tuple(_), [only]) if !expected.is_some_and(is_tuple) => {
                self.selector(only, expected)
            }
            _ => match &of.function {
                Some(function) => self.call(function, &of.parts),
                None => self.composed(of, expected),
            },
        }
    }

    fn column(&mut self, name: &Name) -> Result<Item> {
        let column = find_column(self.table, name)?;
        let cql_type = receiver(self.table, column)?.cql_type;
        let fetch = self.selection.fetch(column, false);
        Ok(Item { selector: Selector::Column(fetch), cql_type })
    }

    /// A place among the terms. They are evaluated in the order of their places, once per execution.
    fn reserve(&mut self) -> usize {
        self.selection.terms.push(SelectionTerm::null());
        self.selection.terms.len() - 1
    }

    fn put_term(
        &mut self,
        place: usize,
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
        if let Some(reserved) = self.selection.terms.get_mut(place) {
            *reserved = SelectionTerm { term, usage };
        }
        Ok(place)
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
        of: &Resolved<'_>,
        term: &RawTerm,
        expected: Option<&CqlType>,
    ) -> Result<Item> {
        let cql_type = expected.or(of.exact.as_ref()).cloned();
        let cql_type = cql_type.ok_or_else(|| self.cannot_infer(of.raw))?;
        let place = self.reserve();
        let index = self.put_term(place, term, "[selection]", cql_type.clone(), Usage::Value)?;
        Ok(Item { selector: Selector::Term(index), cql_type })
    }

    fn hinted(&mut self, whole: &Resolved<'_>, of: &Resolved<'_>) -> Result<Item> {
        let to = whole.exact.clone().ok_or_else(|| self.cannot_infer(whole.raw))?;
        let is_asked = match of.raw {
            RawSelector::List(_)
            | RawSelector::Set(_)
            | RawSelector::Map(_)
            | RawSelector::Term(_) => true,
            RawSelector::Tuple(items) => items.len() > 1 || is_tuple(&to),
            _ => false,
        };
        // The type of a hint is frozen, that of a column of cells is not.
        let is_of_cells = matches!(of.raw, RawSelector::Column(_))
            && of.exact.as_ref().is_some_and(CqlType::is_multi_cell);
        let may_fit = match is_asked {
            true => SelectorArgument::new(of, self.to).matches(&to)?.is_assignable(),
            false => !is_of_cells,
        };
        if may_fit {
            let item = self.selector(of, Some(&to))?;
            // The type of a literal follows its elements: those of `(set<varint>) {(int) 1}` make a set of ints.
            if is_asked || assignable(&item.cql_type, &to).is_assignable() {
                return Ok(Item { selector: item.selector, cql_type: to });
            }
        }
        let shown = self.shown(whole.raw);
        Err(Error::InvalidRequest(format!(
            "Cannot assign value {shown} to {shown} of type {}",
            to.freeze().cql_name()
        )))
    }

    fn time(&mut self, raw: &RawSelector, of: &Resolved<'_>, kind: TimeKind) -> Result<Item> {
        let RawSelector::Column(name) = names::timed_column(of.raw) else {
            return Err(self.cannot_infer(raw));
        };
        let column = find_column(self.table, name)?;
        if column.kind.is_key() {
            return Err(Error::InvalidRequest(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                names::time_function(raw),
                name.text
            )));
        }
        let cql_type = receiver(self.table, column)?.cql_type;
        let (steps, _) = self.steps(of.raw, &cql_type)?;
        let fetch = self.selection.fetch(column, true);
        let returns = time_type(kind, &cql_type, of.raw);
        let list = matches!(returns.thawed(), CqlType::List(_));
        Ok(Item {
            selector: Selector::Time { fetch, kind, steps, list, cql_type },
            cql_type: returns,
        })
    }

    /// The steps from a column to what its time is asked of, and the type of that.
    fn steps(&mut self, of: &RawSelector, column: &CqlType) -> Result<(Vec<Step>, CqlType)> {
        let (RawSelector::Element { selector, .. }
        | RawSelector::Slice { selector, .. }
        | RawSelector::Field { selector, .. }) = of
        else {
            return Ok((Vec::new(), column.clone()));
        };
        let (mut steps, cql_type) = self.steps(selector, column)?;
        let (part, result) = match of {
            RawSelector::Element { key, .. } => {
                let (key_type, value_type) = element_types(&cql_type, selector)?;
                let name = element_name(&cql_type, selector);
                let (place, usage) = (self.reserve(), Usage::Element(names::name(selector)));
                let key = self.put_term(place, key, &name, key_type, usage)?;
                (Part::Element(key), value_type.freeze())
            }
            RawSelector::Slice { from, to, .. } => {
                let places = [self.reserve(), self.reserve()];
                let limits = [from.as_ref(), to.as_ref()];
                let [from, to] = self.limits(selector, &cql_type, limits, places)?;
                (Part::Slice(from, to), cql_type.clone())
            }
            RawSelector::Field { field, .. } => {
                let (index, field_type) = field_index(&cql_type, selector, field)?;
                (Part::Field(u16::try_from(index).unwrap_or(u16::MAX)), field_type)
            }
            _ => return Err(self.cannot_infer(of)),
        };
        steps.push(Step { of: cql_type, part });
        Ok((steps, result))
    }

    fn field(&mut self, selected: &Resolved<'_>, field: &Name) -> Result<Item> {
        let of = self.selector(selected, None)?;
        let (index, cql_type) = field_index(&of.cql_type, selected.raw, field)?;
        Ok(Item { selector: Selector::Field { of: Box::new(of.selector), index }, cql_type })
    }

    /// Keys and limits are evaluated before those of what they are of, which is prepared first.
    fn element(&mut self, selected: &Resolved<'_>, key: &RawTerm) -> Result<Item> {
        let place = self.reserve();
        let of = self.selector(selected, None)?;
        let (key_type, value_type) = element_types(&of.cql_type, selected.raw)?;
        let name = element_name(&of.cql_type, selected.raw);
        let usage = Usage::Element(names::name(selected.raw));
        let key = self.put_term(place, key, &name, key_type, usage)?;
        let cql_type = of.cql_type.clone();
        let selector = Selector::Element { of: Box::new(of.selector), cql_type, key };
        Ok(Item { selector, cql_type: value_type.freeze() })
    }

    fn slice(&mut self, selected: &Resolved<'_>, limits: [Option<&RawTerm>; 2]) -> Result<Item> {
        let places = [self.reserve(), self.reserve()];
        let of = self.selector(selected, None)?;
        let [from, to] = self.limits(selected.raw, &of.cql_type, limits, places)?;
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
        [from, to]: [Option<&RawTerm>; 2],
        [from_place, to_place]: [usize; 2],
    ) -> Result<[Option<usize>; 2]> {
        let key_type = sliced_type(cql_type, of)?;
        let (name, shown) = (element_name(cql_type, of), names::name(of));
        let mut limit = |term: Option<&RawTerm>, place: usize, usage: Usage| {
            let put = |term| self.put_term(place, term, &name, key_type.clone(), usage);
            term.map(put).transpose()
        };
        let from = limit(from, from_place, Usage::From(shown.clone()))?;
        Ok([from, limit(to, to_place, Usage::To(shown))?])
    }

    fn call(&mut self, function: &Function, parts: &[Resolved<'_>]) -> Result<Item> {
        let aggregates = self.selection.aggregates.len();
        let mut arguments = Vec::with_capacity(parts.len());
        for (part, expected) in parts.iter().zip(&function.arguments) {
            let expected = is_literal(part.raw).then_some(expected);
            arguments.push(self.selector(part, expected)?.selector);
        }
        self.used_by(function, &arguments);
        self.to.note_call(function);
        let (function, cql_type) = (function.clone(), function.returns.clone());
        if !function.is_aggregate() {
            return Ok(Item { selector: Selector::Call { function, arguments }, cql_type });
        }
        if self.selection.aggregates.len() > aggregates {
            return Err(Error::invalid_request(
                "aggregate functions cannot be used as arguments of aggregate functions",
            ));
        }
        self.selection.aggregates.push(AggregateCall { function, arguments });
        Ok(Item { selector: Selector::Aggregate(self.selection.aggregates.len() - 1), cql_type })
    }

    fn cast(&mut self, whole: &RawSelector, part: &Resolved<'_>, text: &TypeText) -> Result<Item> {
        let of = self.selector(part, None)?;
        let (from, to) = (of.cql_type.base().clone(), self.to.cql_type(text)?);
        if from == to {
            self.known.own_casts.insert(whole);
            return Ok(of);
        }
        let argument = SelectorArgument::new(part, self.to);
        let scope = scope(self.table, self.to);
        let function = match text.text.as_str() {
            // It names no cast.
            "varchar" => None,
            _ => functions::resolve(&native_name(&cast_name(&to)), &[&argument], &scope, None)?,
        };
        let function = function.ok_or_else(|| {
            // Cassandra names the column that the statement selects first.
            let first = self.selection.fetch.first().and_then(|f| self.table.column(f.column));
            let shown = first.map_or_else(|| names::name(part.raw), |def| def.name.clone());
            Error::InvalidRequest(format!("{shown} cannot be cast to {}", text.text))
        })?;
        let arguments = vec![of.selector];
        self.used_by(&function, &arguments);
        Ok(Item { selector: Selector::Call { function, arguments }, cql_type: to })
    }

    /// Collections, tuples and user types made of selectors.
    fn composed(&mut self, of: &Resolved<'_>, expected: Option<&CqlType>) -> Result<Item> {
        let (raw, expected) = (of.raw, expected.map(CqlType::thawed).cloned());
        if let (RawSelector::List(_), Some(expected)) = (raw, &expected) {
            check_dimension(of, expected)?;
        }
        // The first element whose type is known decides, whatever is expected.
        let known = of.exact.clone().and_then(element_of);
        match (raw, expected) {
            (RawSelector::List(_), Some(CqlType::Vector(element, dimension))) => {
                let items = self.uniform(&of.parts, known.as_ref().unwrap_or(&element))?;
                Ok(collection(CqlType::Vector(element, dimension), items))
            }
            (RawSelector::Set(items), Some(map @ CqlType::Map(..))) if items.is_empty() => {
                Ok(collection(map, Vec::new()))
            }
            (RawSelector::List(_) | RawSelector::Set(_), expected) => {
                let element = known.or(expected.and_then(element_of));
                let element = Box::new(element.ok_or_else(|| self.cannot_infer(raw))?.freeze());
                let cql_type = match raw {
                    RawSelector::List(_) => CqlType::List(element.clone()),
                    _ => CqlType::Set(element.clone()),
                };
                if cql_type == CqlType::Set(Box::new(CqlType::Duration)) {
                    return Err(Error::InvalidRequest(format!(
                        "{DURATIONS_IN_SETS}: {}",
                        cql_type.freeze().cql_name()
                    )));
                }
                let items = self.uniform(&of.parts, &element)?;
                Ok(collection(cql_type, items))
            }
            (RawSelector::Map(_), Some(CqlType::Udt(udt))) => self.user_type(of, udt),
            (RawSelector::Map(_), Some(CqlType::Map(key, value))) => {
                let entries = of.found_entries()?;
                let mut items = Vec::with_capacity(2 * entries.len());
                let parts = entries.into_iter().flat_map(|(k, v)| [(k, &key), (v, &value)]);
                for (part, cql_type) in parts {
                    items.push(self.selector(part, Some(cql_type))?);
                }
                let [key, value] = [key, value].map(|of| Box::new(of.freeze()));
                Ok(collection(CqlType::Map(key, value), items))
            }
            (RawSelector::Map(_), Some(_)) => {
                // Cassandra takes it for a map, and looks up what it names first.
                of.found_entries()?;
                Err(self.cannot_infer(raw))
            }
            (RawSelector::Tuple(_), None) if of.exact.is_none() => Err(self.cannot_infer(raw)),
            (RawSelector::Tuple(_), expected) => {
                let hints = match expected {
                    Some(CqlType::Tuple(hints)) => hints,
                    _ => Vec::new(),
                };
                let (mut types, mut selectors) = (Vec::new(), Vec::new());
                for (index, part) in of.parts.iter().enumerate() {
                    let item = self.selector(part, hints.get(index))?;
                    types.push(item.cql_type.freeze());
                    selectors.push(item.selector);
                }
                Ok(Item { selector: Selector::Tuple(selectors), cql_type: CqlType::Tuple(types) })
            }
            _ => Err(self.cannot_infer(raw)),
        }
    }

    /// The last of several values for one field counts.
    fn user_type(&mut self, of: &Resolved<'_>, udt: Box<UserType>) -> Result<Item> {
        let fields = of.found_fields(&udt)?;
        let given: HashMap<&[u8], &Resolved<'_>> =
            fields.into_iter().map(|(name, value, _)| (name.text.as_bytes(), value)).collect();
        let null = RawSelector::Term(RawTerm::Null);
        let null = self.resolve(&null)?;
        let mut selectors = Vec::with_capacity(udt.fields.len());
        for (name, cql_type) in &udt.fields {
            let part = given.get(name.as_slice()).copied().unwrap_or(&null);
            selectors.push(self.selector(part, Some(cql_type))?.selector);
        }
        Ok(Item { selector: Selector::Tuple(selectors), cql_type: CqlType::Udt(udt) })
    }

    fn uniform(&mut self, parts: &[Resolved<'_>], element: &CqlType) -> Result<Vec<Item>> {
        parts.iter().map(|part| self.selector(part, Some(element))).collect()
    }
}

/// The type of the elements of a list or a set.
fn element_of(collection: CqlType) -> Option<CqlType> {
    match collection {
        CqlType::List(element) | CqlType::Set(element) => Some(*element),
        _ => None,
    }
}

/// Refuses a list of another length than the vector that is expected.
fn check_dimension(of: &Resolved<'_>, to: &CqlType) -> Result<()> {
    match to.thawed() {
        CqlType::Vector(_, dimension) if of.parts.len() != *dimension as usize => {
            Err(Error::InvalidRequest(format!(
                "Unable to create a vector selector of type {} from {} elements",
                to.cql_name(),
                of.parts.len()
            )))
        }
        _ => Ok(()),
    }
}

fn is_tuple(cql_type: &CqlType) -> bool {
    matches!(cql_type.thawed(), CqlType::Tuple(_))
}

/// Selectors whose type depends on their receiver.
fn is_literal(raw: &RawSelector) -> bool {
    match raw {
        RawSelector::Term(_) | RawSelector::List(_) | RawSelector::Set(_) | RawSelector::Map(_) => {
            true
        }
        RawSelector::Tuple(items) => items.len() > 1 || items.iter().all(is_literal),
        _ => false,
    }
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
        _ => Err(no_collection("element", cql_type, selector)),
    }
}

fn no_collection(what: &str, cql_type: &CqlType, selector: &RawSelector) -> Error {
    let (name, cql_type) = (names::name(selector), cql_type.clone().freeze().cql_name());
    let is = if what == "element" { "is " } else { "" };
    Error::InvalidRequest(format!(
        "Invalid {what} selection: {name} {is}of type {cql_type} is not a collection"
    ))
}

/// The type of the keys of what is sliced.
fn sliced_type(cql_type: &CqlType, selector: &RawSelector) -> Result<CqlType> {
    if matches!(cql_type.thawed(), CqlType::List(_)) {
        return Err(Error::InvalidRequest(format!(
            "Slice selection is only allowed on sets and maps, but {} is a list",
            names::name(selector)
        )));
    }
    match element_types(cql_type, selector) {
        Ok((key_type, _)) => Ok(key_type),
        Err(_) => Err(no_collection("slice", cql_type, selector)),
    }
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
    Ok((index, cql_type.freeze()))
}
