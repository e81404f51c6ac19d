//! The searches of indexes that find candidates for the rows that a statement wants.
//!
//! Every restriction that an index supports becomes a search, and a row must be found by all of them. Cassandra searches one of its own
//! indexes, the most selective by estimate, or all storage-attached ones: what is returned is the same, because each row that is found
//! is asked all filters.

use std::ops::Bound;

use halcyon_model::analysis::TextAnalysis;
use halcyon_model::similarity::floats;
use halcyon_model::token::join_key;

use super::condition::{BoundFilter, Test};
use super::filter::{bind_entry, bind_filter};
use super::indexes::{has_supporting, supports};
use super::like::answered;
use super::{Entry, Restrictions, What};
use crate::plan::execution::Execution;
use crate::plan::term::Bound as Value;
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_schema::index::{Index, IndexPart, IndexSearch, NearestSearch, Search};
use halcyon_syntax::{Error, Result};

/// An index, and the restriction that it answers.
#[derive(Debug, Clone)]
pub struct PlannedSearch {
    pub index: Index,
    pub column: ColumnRef,
    pub entry: Entry,
}

/// Which indexes answer which of these.
pub(super) fn plan<'a>(
    table: &Table,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Vec<PlannedSearch> {
    let mut planned = Vec::new();
    for entry in entries {
        for column in &entry.columns {
            let answers = |index: &&Index| supports(table, index, *column, &entry.what);
            planned.extend(table.indexes.iter().filter(answers).map(|index| PlannedSearch {
                index: index.clone(),
                column: *column,
                entry: entry.clone(),
            }));
        }
    }
    planned
}

impl Restrictions {
    /// Refuses what Cassandra asks each row again, though it chooses slices: from the first on that an index could answer too.
    pub(super) fn check_asked_clusterings(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<()> {
        let first = self.clustering.iter().position(|entry| has_supporting(table, entry));
        let asked =
            first.filter(|_| self.asks_clusterings).and_then(|at| self.clustering.get(at..));
        let refuse = |entry| bind_filter(table, entry, execution, &mut Vec::new());
        asked.unwrap_or_default().iter().try_for_each(refuse)
    }

    /// All of them must find a row. Empty: no index is used.
    pub fn bind_searches(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<Vec<IndexSearch>> {
        let mut searches = Vec::new();
        for planned in &self.searches {
            let mut filters = Vec::new();
            bind_entry(table, &planned.entry, execution, &mut filters)?;
            filters.retain(|filter| filter.column == planned.column);
            for mut filter in filters {
                // What SASI finds, other indexes of the column need not have.
                let by_terms = answered(table, &mut filter);
                if by_terms.is_some_and(|index| index.name != planned.index.name) {
                    continue;
                }
                for search in searches_of(&planned.index, filter) {
                    check_size(&planned.index, &search)?;
                    searches.push(IndexSearch { index: planned.index.name.clone(), search });
                }
            }
        }
        Ok(searches)
    }
}

impl Restrictions {
    /// What `ORDER BY … ANN OF` asks of which index.
    pub fn bind_nearest(
        &self,
        table: &Table,
        execution: &Execution<'_>,
    ) -> Result<Option<NearestSearch>> {
        for PlannedSearch { index, column, entry } in &self.searches {
            let What::Nearest(term) = &entry.what else { continue };
            let Some(def) = table.column(*column) else { continue };
            let Some(similarity) = index.similarity(&def.cql_type) else { continue };
            let vector = match term.bind(execution)? {
                Value::Bytes(bytes) => floats(&bytes),
                absent => {
                    let what = if absent.is_unset() { "unset" } else { "null" };
                    return Err(Error::InvalidRequest(format!(
                        "Unsupported {what} value for column {}",
                        def.name
                    )));
                }
            };
            if let Some(refusal) = similarity.refusal(&vector) {
                return Err(Error::InvalidRequest(refusal));
            }
            return Ok(Some(NearestSearch { index: index.name.clone(), similarity, vector }));
        }
        Ok(None)
    }

    /// By what analysis texts are compared: that of the index, unless one of Cassandra's own is searched, which Cassandra prefers.
    pub(super) fn analysis(&self, filter: &BoundFilter) -> Option<TextAnalysis> {
        if self.searches.iter().any(|planned| planned.index.is_legacy()) {
            return None;
        }
        let of = |planned: &&PlannedSearch| {
            let is_answered = matches!(
                (&filter.test, planned.index.part),
                (Test::In(_), IndexPart::Value)
                    | (Test::Contains(_), IndexPart::Values)
                    | (Test::ContainsKey(_), IndexPart::Keys)
            );
            is_answered && planned.column == filter.column
        };
        self.searches.iter().filter(of).find_map(|planned| planned.index.analysis())
    }
}

/// Makes of the filters what an index answers. Cassandra looks for the bytes of the value in its own index, and does not ask the row again:
/// of decimals it finds 1.0, and not 1.
pub(in crate::plan) fn narrow(
    planned: &[PlannedSearch],
    searches: &[IndexSearch],
    filters: &mut [(usize, BoundFilter)],
) {
    let ([planned], [IndexSearch { search: Search::Equal(term), .. }]) = (planned, searches) else {
        return;
    };
    if !planned.index.is_legacy() || planned.index.part != IndexPart::Value {
        return;
    }
    for (_, filter) in filters.iter_mut().filter(|(_, filter)| filter.column == planned.column) {
        if matches!(&filter.test, Test::In(values) if values.len() == 1) {
            filter.test = Test::Same(term.clone());
        }
    }
}

fn searches_of(index: &Index, filter: BoundFilter) -> Vec<Search> {
    match filter.test {
        Test::Terms(_, how, asked) if index.sasi().is_some() => {
            asked.into_iter().map(|term| Search::Like(how, term)).collect()
        }
        Test::Terms(..) => Vec::new(),
        _ => search(index, filter).into_iter().collect(),
    }
}

/// The search that finds what satisfies a filter; `None`: an index on this part cannot tell.
fn search(index: &Index, filter: BoundFilter) -> Option<Search> {
    let term = match (index.part, filter.test) {
        (IndexPart::Value, Test::Between { start, end }) => {
            let bound = |side: Option<(Vec<u8>, bool)>| match side {
                None => Bound::Unbounded,
                Some((value, true)) => Bound::Included(value),
                Some((value, false)) => Bound::Excluded(value),
            };
            return Some(Search::Range { start: bound(start), end: bound(end) });
        }
        (IndexPart::Value | IndexPart::Full, Test::In(mut values)) if values.len() == 1 => {
            values.pop()?
        }
        (IndexPart::Values, Test::Contains(value)) => value,
        (IndexPart::Keys, Test::ContainsKey(key)) => key,
        (IndexPart::Entries, Test::Entry(key, value)) => join_key(&[&key, &value])?,
        _ => return None,
    };
    Some(Search::Equal(term))
}

/// Terms of Cassandra's own indexes are keys of partitions.
fn check_size(index: &Index, search: &Search) -> Result<()> {
    match search {
        Search::Equal(term) if index.is_legacy() && term.len() > usize::from(u16::MAX) => {
            Err(Error::invalid_request("Index expression values may not be larger than 64K"))
        }
        _ => Ok(()),
    }
}
