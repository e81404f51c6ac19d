//! Restrictions: the keys, slices and filters of a WHERE clause.
//!
//! ```text
//!  relations ─► relation: one entry per column or tuple ─► analysis: Restrictions ─► bind ─► keys, slices, filters
//! ```
//!
//! 1. Each relation becomes an `Entry`; entries of the same columns merge, or exclude each other.
//! 2. The analysis decides which restrictions select partitions, which select slices, and which remain as filters on
//!    each row, and refuses, with Cassandra's messages, restrictions that need ALLOW FILTERING.
//! 3. Restrictions that indexes support become searches, which need no ALLOW FILTERING; they stay filters too.
//! 4. Bound with values, they are partition keys or a token range, `Slices`, searches, and filters.

mod analysis;
mod bind;
mod condition;
mod filter;
mod indexes;
mod like;
pub(in crate::plan) mod product;
mod relation;
mod search;

use crate::plan::term::Term;
use halcyon_model::schema::ColumnKind;
use halcyon_schema::catalog::ColumnRef;

pub use analysis::{CANNOT_FILTER, Context, NEEDS_FILTERING};
pub(in crate::plan) use analysis::{add_clustering, add_entry, add_token};
pub use bind::{BoundKeys, TokenBounds};
pub(super) use bind::{Form, in_turn, token_bounds, tuple, tuple_list};
pub use condition::{BoundFilter, Test};
pub(super) use relation::{check_operator, entry, token};
pub(crate) use relation::{find as find_column, receiver};
pub use search::PlannedSearch;
pub(in crate::plan) use search::narrow;

/// A value for each of some columns.
#[derive(Debug, Clone)]
pub enum TupleTerm {
    /// Of a column without parentheses.
    One(Term),
    /// Of columns in parentheses, also of one.
    Columns(Vec<Term>),
    /// One marker for all of them: a tuple.
    Whole(Term),
}

/// Several such tuples.
#[derive(Debug, Clone)]
pub enum TupleList {
    Each(Vec<TupleTerm>),
    /// One marker for the whole list; its elements are tuples if `tuples` is set.
    List {
        term: Term,
        tuples: bool,
    },
}

#[derive(Debug, Clone)]
pub struct BoundTerm {
    pub term: TupleTerm,
    /// How many of the entry's columns it bounds.
    pub count: usize,
    pub inclusive: bool,
}

#[derive(Debug, Clone)]
pub enum What {
    Equal(TupleTerm),
    In(TupleList),
    Slice {
        start: Option<BoundTerm>,
        end: Option<BoundTerm>,
    },
    /// Of a collection: elements, keys, entries.
    Contains {
        values: Vec<Term>,
        keys: Vec<Term>,
        entries: Vec<(Term, Term)>,
    },
    /// Of texts: a pattern.
    Like(Term),
    /// `ORDER BY … ANN OF`: an index finds the rows that are next to a vector.
    Nearest(Term),
}

/// The restriction of one column, or of several clustering columns together.
#[derive(Debug, Clone)]
pub struct Entry {
    pub columns: Vec<ColumnRef>,
    /// The tuple notation was used.
    pub tuple: bool,
    pub what: What,
}

impl Entry {
    fn is_of_partition_key(&self) -> bool {
        self.columns.iter().all(|column| column.kind == ColumnKind::PartitionKey)
    }
}

#[derive(Debug, Clone)]
pub enum Keys {
    /// Every partition, or those that filters leave.
    All,
    /// For each partition key column its entry: an `Equal` or an `In`.
    Columns(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub struct Restrictions {
    pub keys: Keys,
    /// On `token(...)`: chooses the range, or some of the keys.
    pub token: Option<What>,
    /// Those that choose slices, in the order of the clustering columns without a gap; only the last may be a slice.
    pub clustering: Vec<Entry>,
    /// Asked of each row.
    pub filters: Vec<Entry>,
    /// More than the partitions of given keys is read.
    pub key_range: bool,
    /// A partition key column is restricted by several values.
    pub keys_in: bool,
    /// What chooses slices is asked of each row too.
    pub asks_clusterings: bool,
    /// A partition key column or the token is restricted.
    pub key_restricted: bool,
    pub clustering_restricted: bool,
    pub regulars_restricted: bool,
    /// A column that is neither in the primary key nor static is restricted, or a static one.
    pub others_restricted: bool,
    /// Restricted to one value each.
    pub equal: Vec<ColumnRef>,
    /// Rows are found through indexes.
    pub uses_index: bool,
    pub searches: Vec<PlannedSearch>,
    /// The column of `ORDER BY … ANN OF`.
    pub nearest: Option<ColumnRef>,
    /// No index supports all that is asked of rows.
    pub needs_filtering: bool,
}

impl Restrictions {
    /// Neither clustering nor regular columns are restricted: a partition that has only a static row counts.
    pub fn full_partitions(&self) -> bool {
        !self.clustering_restricted && !self.regulars_restricted
    }

    /// Whether the statement's WHERE is about the column.
    pub(crate) fn restricts(&self, column: ColumnRef) -> bool {
        let keys = match &self.keys {
            Keys::All => &[][..],
            Keys::Columns(entries) => entries,
        };
        let mut entries = keys.iter().chain(&self.clustering).chain(&self.filters);
        entries.any(|entry| entry.columns.contains(&column))
            || self.token.is_some() && column.kind == ColumnKind::PartitionKey
    }

    /// Whether rows are asked for the values of several columns outside of their keys, or of a static one and of another
    /// (`RowFilter.isMutableIntersection`).
    pub fn intersects(&self) -> bool {
        let asked = self.clustering.iter().filter(|_| self.asks_clusterings).chain(&self.filters);
        let (mut expressions, mut others, mut has_static) = (0, Vec::new(), false);
        for entry in asked {
            expressions += entry.what.expressions();
            has_static |= entry.columns.iter().any(|column| column.kind == ColumnKind::Static);
            let is_new = |column: &&ColumnRef| !column.kind.is_key() && !others.contains(*column);
            let new: Vec<ColumnRef> = entry.columns.iter().filter(is_new).copied().collect();
            others.extend(new);
        }
        others.len() > 1 || has_static && expressions > 1
    }

    pub fn is_equal(&self, column: ColumnRef) -> bool {
        self.equal.contains(&column)
    }
}

impl What {
    /// How many tests of a row it is.
    fn expressions(&self) -> usize {
        match self {
            What::Slice { start, end } => usize::from(start.is_some()) + usize::from(end.is_some()),
            What::Contains { values, keys, entries } => values.len() + keys.len() + entries.len(),
            What::Equal(_) | What::In(_) | What::Like(_) | What::Nearest(_) => 1,
        }
    }

    pub fn is_slice(&self) -> bool {
        matches!(self, What::Slice { .. })
    }
}
