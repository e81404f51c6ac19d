//! Selection: the selectors of a SELECT and their evaluation on rows.
//!
//! 1. `prepare` turns the select clause into `Selector`s: trees over the columns that are fetched (`Fetch`), over terms
//!    (`terms`, bound once per execution) and over aggregates.
//! 2. The reader of rows fills a `RowValues` with the fetched columns, and `evaluate`s each selector on it.
//! 3. An aggregate's arguments are evaluated on every row of a group; selectors outside of aggregates see the group's
//!    first row.

mod constants;
mod elements;
mod evaluate;
mod evaluation;
mod masked;
mod names;
mod prepare;
mod qualify;
mod resolve;
mod row;
mod terms;
mod times;

use halcyon_model::CqlType;

use crate::plan::functions::Function;
use halcyon_schema::catalog::ColumnRef;

pub use evaluation::Evaluation;
pub use prepare::{Item, Preparing};
pub use qualify::qualify;
pub use resolve::Resolved;
pub use row::{CellTime, RowValues};
pub use terms::{BoundTerms, SelectionTerm};

/// A column that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    pub column: ColumnRef,
    /// Whether write times or TTLs of its cells are selected.
    pub times: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeKind {
    WriteTime,
    MaxWriteTime,
    Ttl,
}

/// A step from a column, or from a part of it, to a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Indexes of terms: of one element, or from and to.
    Element(usize),
    Slice(Option<usize>, Option<usize>),
    /// A field of a user type.
    Field(u16),
}

/// A step with the type that it is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub of: CqlType,
    pub part: Part,
}

#[derive(Debug, Clone)]
pub enum Selector {
    /// By its index in `Selection::fetch`.
    Column(usize),
    Time {
        fetch: usize,
        kind: TimeKind,
        /// From the column to what the time is asked of.
        steps: Vec<Step>,
        /// The column or part has many cells, and the result is a list.
        list: bool,
        cql_type: CqlType,
    },
    Element {
        of: Box<Selector>,
        cql_type: CqlType,
        key: usize,
    },
    Slice {
        of: Box<Selector>,
        cql_type: CqlType,
        from: Option<usize>,
        to: Option<usize>,
    },
    Field {
        of: Box<Selector>,
        index: usize,
    },
    Term(usize),
    Call {
        function: Function,
        arguments: Vec<Selector>,
    },
    Aggregate(usize),
    /// A list, set or map of the type; a map's keys and values come in turn.
    Collection {
        cql_type: CqlType,
        items: Vec<Selector>,
    },
    /// A tuple or user type.
    Tuple(Vec<Selector>),
}

impl Selector {
    fn calls_user_function(&self) -> bool {
        match self {
            Selector::Call { function, arguments } => {
                function.is_user_defined() || arguments.iter().any(Selector::calls_user_function)
            }
            Selector::Element { of, .. }
            | Selector::Slice { of, .. }
            | Selector::Field { of, .. } => of.calls_user_function(),
            Selector::Collection { items, .. } | Selector::Tuple(items) => {
                items.iter().any(Selector::calls_user_function)
            }
            Selector::Column(_)
            | Selector::Time { .. }
            | Selector::Term(_)
            | Selector::Aggregate(_) => false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct AggregateCall {
    pub function: Function,
    pub arguments: Vec<Selector>,
}

#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub fetch: Vec<Fetch>,
    pub selectors: Vec<Selector>,
    pub terms: Vec<SelectionTerm>,
    pub aggregates: Vec<AggregateCall>,
}

impl Selection {
    /// The index of a column among those that are fetched; adds it if it is not one yet.
    pub fn fetch(&mut self, column: ColumnRef, times: bool) -> usize {
        if let Some(index) = self.fetch.iter().position(|fetch| fetch.column == column) {
            if let Some(fetch) = self.fetch.get_mut(index) {
                fetch.times |= times;
            }
            return index;
        }
        self.fetch.push(Fetch { column, times });
        self.fetch.len() - 1
    }

    /// Whether the result of a group calls user-defined functions, which are waited for.
    pub fn calls_user_functions(&self) -> bool {
        self.selectors.iter().any(Selector::calls_user_function)
            || self.aggregates.iter().any(|call| call.function.is_user_defined())
    }

    pub fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty()
    }
}
