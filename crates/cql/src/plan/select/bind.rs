//! A SELECT with its values: everything owned, so that it can move to the shard that has the data.

use std::sync::Arc;

use halcyon_guardrails::Threshold;
use halcyon_model::schema::ColumnKind;
use halcyon_schema::change::violated;
use halcyon_stream::Slices;

use super::plan::SelectPlan;
use crate::plan::execution::Execution;
use crate::plan::restrictions::{BoundFilter, BoundKeys, Keys, narrow};
use crate::plan::selection::BoundTerms;
use crate::plan::term::{Bound, Term};
use halcyon_schema::index::{IndexSearch, NearestSearch};
use halcyon_syntax::{Error, Result};

/// The value for "no limit". It is counted down like a limit, as Cassandra's paging states show.
pub const NO_LIMIT: u32 = i32::MAX as u32;

/// How many rows may be returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub rows: u32,
    pub per_partition: u32,
}

#[derive(Debug, Clone)]
pub struct BoundSelect {
    pub plan: Arc<SelectPlan>,
    /// `None`: nothing can be found.
    pub keys: Option<BoundKeys>,
    pub slices: Slices,
    /// Searches that all find what is wanted; none: all rows are read.
    pub index: Vec<IndexSearch>,
    /// Only the rows that are nearest to a vector are wanted.
    pub nearest: Option<NearestSearch>,
    /// Each with the index of the fetched column that it tests.
    pub filters: Vec<(usize, BoundFilter)>,
    pub limits: Limits,
    /// Values of `Selection::terms`.
    pub terms: Vec<Option<Vec<u8>>>,
    /// Why no row can be aggregated.
    pub unset_argument: Option<Error>,
}

impl SelectPlan {
    pub fn bind(self: &Arc<SelectPlan>, execution: &Execution<'_>) -> Result<BoundSelect> {
        let restrictions = &self.restrictions;
        let limits = Limits {
            rows: limit(self.limit.as_ref(), execution)?,
            per_partition: limit(self.per_partition_limit.as_ref(), execution)?,
        };
        // Of several wrong values, Cassandra refuses that of a selected term, then that of a filter, then that of a partition key.
        let BoundTerms { values: terms, unset_argument } =
            BoundTerms::of(&self.selection.terms, execution)?;
        self.selection.check_constants(&terms, execution)?;
        let filters = restrictions.bind_filters(&self.table, execution)?;
        let statics = !self.table.schema.statics.is_empty();
        // Named keys are looked at first, a range of them last, and of no rows not at all.
        let named = match &restrictions.keys {
            Keys::Columns(_) => Some(restrictions.bind_keys(&self.table, execution)?),
            Keys::All => None,
        };
        if let (Some(Some(BoundKeys::Partitions(keys))), Some(guard)) = (&named, execution.guard)
            && restrictions.keys_in
        {
            let count = i64::try_from(keys.len()).unwrap_or(i64::MAX);
            let checked =
                guard.check(Threshold::PartitionKeysInSelect, count, &self.table.schema.name);
            checked.map_err(violated)?;
        }
        let slices = match &named {
            Some(Some(BoundKeys::Partitions(keys))) if keys.is_empty() => {
                Slices { slices: Vec::new().into(), reversed: self.reversed, statics }
            }
            _ => restrictions.bind_slices(&self.table, execution, self.reversed, statics)?,
        };
        let mut keys = match named {
            // Without a key, not even static rows are read.
            Some(Some(BoundKeys::Partitions(keys))) if keys.is_empty() => {
                Some(BoundKeys::Partitions(keys))
            }
            _ if slices.slices.is_empty() => {
                self.check_keys_without_rows(named.flatten().as_ref())?;
                None
            }
            Some(keys) => keys,
            None => restrictions.bind_keys(&self.table, execution)?,
        };
        keys.as_ref().map_or(Ok(()), BoundKeys::check)?;
        let at = |filter: BoundFilter| {
            let found = self.filter_fetch.iter().find(|(column, _)| *column == filter.column);
            (found.map_or(usize::MAX, |(_, fetch)| *fetch), filter)
        };
        let mut filters: Vec<(usize, BoundFilter)> = filters.into_iter().map(at).collect();
        let search = || restrictions.bind_searches(&self.table, execution);
        let index = keys.as_ref().map(|_| search()).transpose()?.unwrap_or_default();
        if filters.iter().any(|(_, filter)| filter.is_never()) {
            keys = None;
        }
        narrow(&restrictions.searches, &index, &mut filters);
        let nearest = restrictions.bind_nearest(&self.table, execution)?;
        Ok(BoundSelect {
            plan: self.clone(),
            keys,
            slices,
            index,
            nearest,
            filters,
            limits,
            terms,
            unset_argument,
        })
    }

    /// Where no row matches those that are named, Cassandra still reads the static columns, and looks at the keys first.
    fn check_keys_without_rows(&self, named: Option<&BoundKeys>) -> Result<()> {
        let fetch = &self.selection.fetch;
        let has_statics = match fetch.iter().all(|f| f.column.kind.is_key()) {
            // For keys alone, all columns are read.
            true => !self.table.schema.statics.is_empty(),
            false => fetch.iter().any(|f| f.column.kind == ColumnKind::Static),
        };
        let is_read = has_statics && self.restrictions.names_rows(&self.table);
        named.filter(|_| is_read).map_or(Ok(()), BoundKeys::check)
    }
}

fn limit(term: Option<&Term>, execution: &Execution<'_>) -> Result<u32> {
    let Some(term) = term else { return Ok(NO_LIMIT) };
    let bytes = match term.bind(execution)? {
        Bound::Unset => return Ok(NO_LIMIT),
        Bound::Null => {
            return Err(Error::invalid_request("Invalid null value of limit"));
        }
        Bound::Bytes(bytes) => bytes,
    };
    let value = <[u8; 4]>::try_from(bytes.as_ref()).map(i32::from_be_bytes);
    let value = value.map_err(|_| Error::invalid_request("Invalid limit value"))?;
    match u32::try_from(value) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(Error::invalid_request("LIMIT must be strictly positive")),
    }
}
