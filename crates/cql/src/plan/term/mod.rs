//! Terms: literals, bind markers, collections and calls, type-checked against what receives them.
//!
//! 1. `Term::prepare` checks a raw term against its receiver and folds constant parts to their serialized values.
//! 2. The other parts depend on a marker or on a function that is not pure; `Term::bind` evaluates them once per execution (`eval`).
//! 3. Bytes from a client are validated by the receiver's type; sets and maps are put in order.

mod constant;
mod literal;
mod preparation;
mod prepare;
mod raw;
#[cfg(test)]
mod tests;

use halcyon_model::request::ColumnSpec;

use self::prepare::Preparing;
use super::eval::Node;
use super::execution::{Execution, Given};
use halcyon_syntax::Result;
use halcyon_syntax::ast::RawTerm;

pub use super::eval::Bound;
pub use constant::constant;
pub use literal::parse_literal;
pub use preparation::Preparation;
pub(crate) use prepare::{shown_type, with_keyspace};
pub(crate) use raw::{Inference, RawArgument, resolve_type, unfit};

/// A term that is ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Term(Node);

impl Term {
    /// Checks a term against its receiver; messages are Cassandra's. A bind marker is noted with the receiver as its spec.
    pub fn prepare(raw: &RawTerm, receiver: &ColumnSpec, to: &mut Preparation<'_>) -> Result<Term> {
        prepare::prepare_node(raw, receiver, &mut Preparing::new(to)).map(Term)
    }

    /// The value of a column in a JSON literal.
    pub(crate) fn given(given: Given, default_unset: bool) -> Term {
        Term(match given {
            Given::Value(value) => Node::Value(value),
            Given::Nothing if default_unset => Node::Unset,
            Given::Nothing | Given::Null => Node::Null,
        })
    }

    /// The value of a column in the JSON of a marker: an index into `Execution::json`.
    pub(crate) fn of_json(at: usize, default_unset: bool) -> Term {
        Term(Node::Json { at, default_unset })
    }

    /// The value in one execution. Bytes that a client sent are validated.
    pub fn bind<'v>(&'v self, execution: &Execution<'v>) -> Result<Bound<'v>> {
        self.0.bind(execution)
    }

    /// Whether two executions could differ.
    pub fn is_constant(&self) -> bool {
        self.0.is_constant()
    }

    /// `NULL` as it stands in the text.
    pub fn is_null(&self) -> bool {
        self.0 == Node::Null
    }

    /// Whether it is one bind marker and nothing else.
    pub fn is_marker(&self) -> bool {
        matches!(self.0, Node::Marker { .. })
    }
}
