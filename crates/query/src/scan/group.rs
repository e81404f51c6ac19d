//! One group of a GROUP BY, or the only group of an aggregate, while its rows are read.

use std::borrow::Cow;

use halcyon_cql::plan::functions::Accumulator;
use halcyon_cql::plan::select::SelectPlan;
use halcyon_cql::plan::selection::{AggregateCall, Evaluation, RowValues, Selector};

use super::page::Last;
use crate::{Result, SMALL};

#[derive(Debug)]
pub(super) struct Group {
    /// The values of the grouping columns after the partition key.
    by: Vec<Option<Vec<u8>>>,
    pub(super) first: RowValues,
    accumulators: Vec<Accumulator>,
    pub(super) last: Last,
    /// Of the arguments since the accumulators were last looked at.
    added: u64,
}

/// The values by which a row belongs to a group.
pub(super) fn values(plan: &SelectPlan, on: &Evaluation<'_>) -> Result<Vec<Option<Vec<u8>>>> {
    let Some(grouping) = &plan.grouping else { return Ok(Vec::new()) };
    let value =
        |(selector, _): &(Selector, _)| Ok(selector.evaluate(on)?.map(|value| value.into_owned()));
    grouping.by.iter().map(value).collect()
}

/// The arguments of the aggregates on a row.
pub(super) fn arguments<'a>(
    plan: &'a SelectPlan,
    on: &Evaluation<'a>,
) -> halcyon_syntax::Result<Vec<Option<Cow<'a, [u8]>>>> {
    let argument = |call: &'a AggregateCall| {
        let Some(selector) = call.arguments.first() else { return Ok(None) };
        let value = selector.evaluate(on)?;
        // An accumulator may keep it.
        on.execution.work.make(value.as_ref().map_or(0, |value| value.len()))?;
        Ok(value)
    };
    plan.selection.aggregates.iter().map(argument).collect()
}

impl Group {
    pub(super) fn new(plan: &SelectPlan, by: Vec<Option<Vec<u8>>>, first: RowValues) -> Group {
        let accumulators = accumulators(&plan.selection.aggregates).collect();
        Group { by, first, accumulators, last: Last::default(), added: 0 }
    }

    /// Whether a row with these values belongs to the group: values that their types compare as equal do, whatever their bytes.
    pub(super) fn contains(&self, plan: &SelectPlan, by: &[Option<Vec<u8>>]) -> bool {
        let Some(grouping) = &plan.grouping else { return true };
        let pairs = grouping.by.iter().zip(self.by.iter().zip(by));
        pairs.into_iter().all(|((_, cql_type), pair)| match pair {
            (Some(a), Some(b)) => cql_type.compare(a, b).is_eq(),
            (a, b) => a == b,
        })
    }

    /// Adds the arguments of the aggregates on one row.
    pub(super) fn add<'v>(
        &mut self,
        arguments: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<()> {
        for (argument, accumulator) in arguments.zip(&mut self.accumulators) {
            accumulator.add(argument)?;
            self.added += argument.map_or(0, <[u8]>::len) as u64;
        }
        Ok(())
    }

    /// Bytes that the accumulators keep, if they may have become more since this was asked last.
    pub(super) fn memory(&mut self) -> Option<u64> {
        if self.added <= SMALL {
            return None;
        }
        self.added = 0;
        Some(self.accumulators.iter().map(Accumulator::memory).sum::<usize>() as u64)
    }

    pub(super) fn results(&self) -> Result<Vec<Option<Vec<u8>>>> {
        self.accumulators.iter().map(|accumulator| Ok(accumulator.result()?)).collect()
    }
}

/// The results of aggregates over no rows.
pub(super) fn empty_results(calls: &[AggregateCall]) -> Result<Vec<Option<Vec<u8>>>> {
    accumulators(calls).map(|accumulator| Ok(accumulator.result()?)).collect()
}

fn accumulators(calls: &[AggregateCall]) -> impl Iterator<Item = Accumulator> {
    calls.iter().map(|call| Accumulator::new(&call.function))
}
