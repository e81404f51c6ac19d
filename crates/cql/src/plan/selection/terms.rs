//! The terms of a selection: bound once per execution, and asked by what uses them whether they may be null or unset.

use crate::plan::execution::{Execution, Given};
use crate::plan::functions::unset_argument;
use crate::plan::term::{Bound, Term};
use halcyon_syntax::{Error, Result};

#[derive(Debug, Clone)]
pub struct SelectionTerm {
    pub(super) term: Term,
    pub(super) usage: Usage,
}

impl SelectionTerm {
    pub(super) fn null() -> SelectionTerm {
        SelectionTerm { term: Term::given(Given::Null, false), usage: Usage::Value }
    }
}

/// Names are those of messages.
#[derive(Debug, Clone)]
pub(super) enum Usage {
    Value,
    /// An argument of the function.
    Argument(String),
    /// An argument of the aggregate, which only sees it if there is a row.
    Aggregated(String),
    /// The key of an element of the selector.
    Element(String),
    /// The limits of a slice of the selector. The upper one is evaluated before the lower one is refused.
    From(String),
    To(String),
}

/// The values of terms.
#[derive(Debug, Default)]
pub struct BoundTerms {
    pub values: Vec<Option<Vec<u8>>>,
    /// Why no row can be aggregated.
    pub unset_argument: Option<Error>,
}

impl BoundTerms {
    pub fn of(terms: &[SelectionTerm], execution: &Execution<'_>) -> Result<BoundTerms> {
        let mut bound = BoundTerms::default();
        let mut lower_limit = None;
        for SelectionTerm { term, usage } in terms {
            let value = term.bind(execution)?;
            if let Some(refused) = lower_limit {
                return Err(refused);
            }
            match (usage, &value) {
                (Usage::Argument(function), Bound::Unset) => return Err(unset_argument(function)),
                (Usage::Aggregated(function), Bound::Unset) => {
                    bound.unset_argument.get_or_insert_with(|| unset_argument(function));
                }
                (Usage::Element(of), Bound::Unset) => return Err(refused("unset", "element", of)),
                (Usage::Element(of), Bound::Null) => return Err(refused("null", "element", of)),
                (Usage::From(of), Bound::Null) => lower_limit = Some(refused("null", "slice", of)),
                (Usage::To(of), Bound::Null) => return Err(refused("null", "slice", of)),
                _ => {}
            }
            bound.values.push(match value {
                // As the value itself, UNSET is seen as no bytes.
                Bound::Unset if matches!(usage, Usage::Value) => Some(Vec::new()),
                value => value.bytes().map(<[u8]>::to_vec),
            });
        }
        Ok(bound)
    }
}

fn refused(value: &str, selection: &str, of: &str) -> Error {
    Error::InvalidRequest(format!("Invalid {value} value for {selection} selection on {of}"))
}
