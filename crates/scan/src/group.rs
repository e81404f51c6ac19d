//! One group of a GROUP BY, or the only group of an aggregate, while its rows are read.

use std::borrow::Cow;

use halcyon_cql::plan::Work;
use halcyon_cql::plan::functions::Accumulator;
use halcyon_cql::plan::select::SelectPlan;
use halcyon_cql::plan::selection::{Evaluation, RowValues, Selector};

use crate::page::Last;
use crate::{Result, SMALL};

#[derive(Debug)]
pub(crate) struct Group {
    /// The values of the grouping columns after the partition key.
    by: Vec<Option<Vec<u8>>>,
    pub(crate) first: RowValues,
    accumulators: Vec<Accumulator>,
    /// Its last row.
    at: Last,
    /// Of the arguments since the accumulators were last looked at.
    added: u64,
}

/// The values by which a row belongs to a group.
pub(crate) fn values(plan: &SelectPlan, on: &Evaluation<'_>) -> Result<Vec<Option<Vec<u8>>>> {
    let Some(grouping) = &plan.grouping else { return Ok(Vec::new()) };
    let value =
        |(selector, _): &(Selector, _)| Ok(selector.evaluate(on)?.map(|value| value.into_owned()));
    grouping.by.iter().map(value).collect()
}

/// The arguments of all aggregates on a row.
pub(crate) fn arguments<'a>(
    plan: &'a SelectPlan,
    on: &Evaluation<'a>,
) -> halcyon_syntax::Result<Vec<Option<Cow<'a, [u8]>>>> {
    let argument = |selector: &'a Selector| {
        let value = selector.evaluate(on)?;
        // An accumulator may keep it.
        on.execution.work.make(value.as_ref().map_or(0, |value| value.len()))?;
        Ok(value)
    };
    plan.selection.aggregates.iter().flat_map(|call| &call.arguments).map(argument).collect()
}

impl Group {
    pub(crate) fn new(plan: &SelectPlan, by: Vec<Option<Vec<u8>>>, first: RowValues) -> Group {
        let calls = plan.selection.aggregates.iter();
        let accumulators = calls.map(|call| Accumulator::new(&call.function)).collect();
        Group { by, first, accumulators, at: Last::default(), added: 0 }
    }

    /// Whether a row with these values belongs to the group: values that their types compare as equal do, whatever their bytes.
    pub(crate) fn contains(&self, plan: &SelectPlan, by: &[Option<Vec<u8>>]) -> bool {
        let Some(grouping) = &plan.grouping else { return true };
        let pairs = grouping.by.iter().zip(self.by.iter().zip(by));
        pairs.into_iter().all(|((_, cql_type), pair)| match pair {
            (Some(a), Some(b)) => cql_type.compare(a, b).is_eq(),
            (a, b) => a == b,
        })
    }

    /// The only group of a statement that has read no rows.
    pub(crate) fn empty(plan: &SelectPlan) -> Group {
        Group::new(plan, Vec::new(), RowValues::new(plan.selection.fetch.len()))
    }

    pub(crate) fn end_at(&mut self, key: &[u8], clustering: Option<&[u8]>) {
        self.at.set(key, clustering);
    }

    /// Its last row; none of no rows.
    pub(crate) fn last(self) -> Option<Last> {
        (!self.at.key.is_empty()).then_some(self.at)
    }

    /// Adds the arguments of all aggregates on one row.
    pub(crate) fn add<'v>(&mut self, arguments: impl Iterator<Item = Option<&'v [u8]>>) {
        let added = &mut self.added;
        let mut arguments =
            arguments.inspect(|value| *added += value.map_or(0, <[u8]>::len) as u64);
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.add(&mut arguments));
    }

    /// Bytes that the accumulators keep, if they may have become more since this was asked last.
    pub(crate) fn memory(&mut self) -> Option<u64> {
        if self.added <= SMALL {
            return None;
        }
        self.added = 0;
        Some(self.accumulators.iter().map(Accumulator::memory).sum::<usize>() as u64)
    }

    /// Whether many rows wait for users' functions.
    pub(crate) fn is_behind(&self) -> bool {
        self.accumulators.iter().any(Accumulator::is_behind)
    }

    /// Where it may be waited for them.
    pub(crate) fn catch_up(&mut self, work: &Work<'_>) -> halcyon_syntax::Result<()> {
        // What functions have made of their states is not known.
        self.added = self.added.saturating_add(SMALL);
        self.accumulators.iter_mut().try_for_each(|accumulator| accumulator.catch_up(work))
    }

    pub(crate) fn results(
        &mut self,
        work: &Work<'_>,
    ) -> halcyon_syntax::Result<Vec<Option<Vec<u8>>>> {
        self.accumulators.iter_mut().map(|accumulator| accumulator.result(work)).collect()
    }
}
