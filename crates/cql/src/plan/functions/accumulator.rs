//! Aggregates, while they take rows in: native ones, and those that users define.

use super::accumulate::NativeAccumulator;
use super::aggregate::Aggregate;
use super::fold::FoldAccumulator;
use super::{Body, Function};
use crate::plan::execution::Work;
use halcyon_syntax::Result;

/// One aggregate of one group.
#[derive(Debug, Clone)]
pub enum Accumulator {
    Native(NativeAccumulator),
    Fold(FoldAccumulator),
}

impl Accumulator {
    pub fn new(function: &Function) -> Accumulator {
        match &function.body {
            Body::Fold(fold) => {
                Accumulator::Fold(FoldAccumulator::new(fold.clone(), function.arguments.len()))
            }
            Body::Aggregate(aggregate) => {
                Accumulator::Native(NativeAccumulator::new(*aggregate, function))
            }
            Body::Scalar(_) | Body::User(_) => {
                Accumulator::Native(NativeAccumulator::new(Aggregate::CountRows, function))
            }
        }
    }

    /// Takes in one row's arguments, of which it takes its own.
    pub fn add<'v>(&mut self, arguments: &mut impl Iterator<Item = Option<&'v [u8]>>) {
        match self {
            Accumulator::Native(native) => native.add_row(arguments),
            Accumulator::Fold(fold) => fold.add(arguments),
        }
    }

    /// Whether many rows wait for a user's function.
    pub fn is_behind(&self) -> bool {
        matches!(self, Accumulator::Fold(fold) if fold.is_behind())
    }

    /// Lets a user's function take in the rows that wait for it.
    pub fn catch_up(&mut self, work: &Work<'_>) -> Result<()> {
        match self {
            Accumulator::Native(_) => Ok(()),
            Accumulator::Fold(fold) => fold.catch_up(work),
        }
    }

    /// Bytes of what it keeps of values that may be large.
    pub fn memory(&self) -> usize {
        match self {
            Accumulator::Native(native) => native.memory(),
            Accumulator::Fold(fold) => fold.memory(),
        }
    }

    /// `None` is null.
    pub fn result(&mut self, work: &Work<'_>) -> Result<Option<Vec<u8>>> {
        match self {
            Accumulator::Native(native) => Ok(native.result()),
            Accumulator::Fold(fold) => fold.result(work),
        }
    }
}
