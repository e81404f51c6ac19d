//! Selectors are evaluated on the values of a row.

use std::borrow::Cow;

use halcyon_model::CqlType;
use halcyon_model::bytes::Put;

use super::elements::{element, field, slice};
use super::times::time;
use super::{Evaluation, Selector};
use crate::plan::value::checked::sorted_collection;
use crate::plan::value::collection::put_value;
use halcyon_syntax::Result;

pub(super) type Value<'a> = Option<Cow<'a, [u8]>>;

impl<'a> Evaluation<'a> {
    fn all(&self, selectors: &'a [Selector]) -> Result<Vec<Value<'a>>> {
        selectors.iter().map(|selector| selector.evaluate(self)).collect()
    }

    /// The values of selectors that are joined to one.
    fn joined(&self, selectors: &'a [Selector]) -> Result<Vec<Value<'a>>> {
        let values = self.all(selectors)?;
        let bytes = values.iter().flatten().map(|value| value.len());
        self.execution.work.make(bytes.fold(0, usize::saturating_add))?;
        Ok(values)
    }
}

impl Selector {
    /// The value of what is not computed.
    pub fn stored<'a>(&self, on: &Evaluation<'a>) -> Option<&'a [u8]> {
        match self {
            Selector::Column(fetch) => on.row.value(*fetch),
            Selector::Term(index) => on.term(*index),
            Selector::Aggregate(index) => on.aggregates.get(*index)?.as_deref(),
            _ => None,
        }
    }

    pub fn evaluate<'a>(&'a self, on: &Evaluation<'a>) -> Result<Value<'a>> {
        let value = match self {
            Selector::Column(_) | Selector::Term(_) | Selector::Aggregate(_) => {
                self.stored(on).map(Cow::Borrowed)
            }
            Selector::Time { fetch, kind, steps, list, cql_type } => {
                let form = list.then_some(cql_type);
                time(on, *fetch, *kind, steps, form).map(Cow::Owned)
            }
            Selector::Call { function, arguments } => {
                let values = on.all(arguments)?;
                let values: Vec<Option<&[u8]>> =
                    values.iter().map(|value| value.as_deref()).collect();
                function.call(&values, &on.execution)?.map(Cow::Owned)
            }
            Selector::Element { of, cql_type, key } => match (of.evaluate(on)?, on.term(*key)) {
                (Some(collection), Some(key)) => {
                    element(&collection, cql_type, key).map(Cow::Owned)
                }
                _ => None,
            },
            Selector::Slice { of, cql_type, from, to } => {
                let bound = |term: &Option<usize>| term.and_then(|term| on.term(term));
                let (from, to) = (bound(from), bound(to));
                let found = of.evaluate(on)?.map(|all| slice(&all, cql_type, from, to));
                // A collection of cells has no empty value.
                found
                    .filter(|found| !cql_type.is_multi_cell() || *found != 0u32.to_be_bytes())
                    .map(Cow::Owned)
            }
            Selector::Field { of, index } => {
                of.evaluate(on)?.and_then(|value| field(&value, *index)).map(Cow::Owned)
            }
            Selector::Collection { cql_type, items } => {
                return Ok(Some(Cow::Owned(collection(cql_type, &on.joined(items)?))));
            }
            Selector::Tuple(items) => {
                return Ok(Some(Cow::Owned(tuple(&on.joined(items)?))));
            }
        };
        if let Some(Cow::Owned(made)) = &value {
            on.execution.work.make(made.len())?;
        }
        Ok(value)
    }
}

pub(super) fn tuple(items: &[Value<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    items.iter().for_each(|item| put_value(&mut out, item.as_deref()));
    out
}

pub(super) fn collection(cql_type: &CqlType, items: &[Value<'_>]) -> Vec<u8> {
    if let CqlType::Vector(element, _) = cql_type {
        let mut out = Vec::new();
        for item in items {
            let item = item.as_deref().unwrap_or_default();
            if element.fixed_len().is_some() {
                out.put(item);
            } else {
                out.put_vbytes(item);
            }
        }
        return out;
    }
    let per_element = if matches!(cql_type, CqlType::Map(..)) { 2 } else { 1 };
    let mut out = Vec::new();
    out.put_i32(i32::try_from(items.len() / per_element).unwrap_or(i32::MAX));
    items.iter().for_each(|item| put_value(&mut out, item.as_deref()));
    sorted_collection(&out, cql_type).into_owned()
}
