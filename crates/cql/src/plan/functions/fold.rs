//! User-defined aggregates (`UDAggregate`): a function folds rows into a state, another one makes the result of the last state.
//!
//! Rows are sent in batches: a message to the process of the functions costs far more than what it carries.

use std::sync::Arc;

use halcyon_schema::function::UserFunction;
use halcyon_syntax::Result;

use super::user;
use crate::plan::execution::{ASKED, Work};

/// Rows, and their bytes, that may wait.
const ROWS_MAX: usize = 1_000;
const BYTES_MAX: usize = 256 << 10;

/// What a statement knows of an aggregate.
#[derive(Debug, PartialEq)]
pub struct Fold {
    pub state_function: Arc<UserFunction>,
    pub final_function: Option<Arc<UserFunction>>,
    /// INITCOND
    pub initial: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct FoldAccumulator {
    fold: Arc<Fold>,
    /// Of the aggregate.
    arguments: usize,
    state: Option<Vec<u8>>,
    /// The arguments of all rows that wait.
    waiting: Vec<Option<Vec<u8>>>,
    rows: usize,
    bytes: usize,
}

impl FoldAccumulator {
    pub(super) fn new(fold: Arc<Fold>, arguments: usize) -> FoldAccumulator {
        let state = fold.initial.clone();
        FoldAccumulator { fold, arguments, state, waiting: Vec::new(), rows: 0, bytes: 0 }
    }

    pub(super) fn add<'v>(&mut self, arguments: &mut impl Iterator<Item = Option<&'v [u8]>>) {
        let before = self.waiting.len();
        self.waiting.extend(arguments.take(self.arguments).map(|value| value.map(<[u8]>::to_vec)));
        let added = self.waiting.iter().skip(before).flatten().map(Vec::len);
        self.bytes += added.sum::<usize>();
        self.rows += 1;
    }

    pub(super) fn is_behind(&self) -> bool {
        self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    pub(super) fn catch_up(&mut self, work: &Work<'_>) -> Result<()> {
        let mut done = 0;
        while done < self.rows {
            let function = &self.fold.state_function;
            let runner = work.runner(function)?;
            work.spend(ASKED)?;
            let rest = self.waiting.get(done * self.arguments..).unwrap_or_default();
            let (state, count) =
                runner.fold(function, self.state.as_deref(), rest, self.rows - done)?;
            self.state = user::checked(state, &function.returns, work)?;
            done += count.max(1);
        }
        self.waiting.clear();
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    pub(super) fn memory(&self) -> usize {
        let values = self.waiting.capacity() * size_of::<Option<Vec<u8>>>();
        values + self.bytes + self.state.as_ref().map_or(0, Vec::len)
    }

    pub(super) fn result(&mut self, work: &Work<'_>) -> Result<Option<Vec<u8>>> {
        self.catch_up(work)?;
        match &self.fold.final_function {
            Some(function) => user::call(function, &[self.state.as_deref()], work),
            None => Ok(self.state.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Accumulator, Body, Function};
    use super::*;
    use crate::plan::execution::Runner;
    use halcyon_model::CqlType;

    /// Adds bytes, at most three rows at a time, and doubles the last state.
    struct Adder;

    impl Runner for Adder {
        fn call(&self, _: &UserFunction, arguments: &[Option<&[u8]>]) -> Result<Option<Vec<u8>>> {
            Ok(arguments[0].map(|state| vec![state[0] * 2]))
        }

        fn fold(
            &self,
            _: &UserFunction,
            state: Option<&[u8]>,
            arguments: &[Option<Vec<u8>>],
            rows: usize,
        ) -> Result<(Option<Vec<u8>>, usize)> {
            let rows = rows.min(3);
            let added = arguments[..rows].iter().flatten().map(|value| value[0]).sum::<u8>();
            Ok((Some(vec![state.map_or(0, |state| state[0]) + added]), rows))
        }
    }

    /// Proves that rows wait on a thread that cannot run functions, and that all of them are in the result.
    #[test]
    fn rows_are_folded() {
        let function = |name: &str| {
            Arc::new(UserFunction {
                keyspace: "k".to_owned(),
                name: name.to_owned(),
                arguments: Vec::new(),
                returns: CqlType::TinyInt,
                called_on_null: true,
                language: "java".to_owned(),
                body: String::new(),
            })
        };
        let initial = Some(vec![1]);
        let of = |final_function| Function {
            keyspace: "k".to_owned(),
            name: "a".to_owned(),
            arguments: vec![CqlType::TinyInt],
            returns: CqlType::TinyInt,
            body: Body::Fold(Arc::new(Fold {
                state_function: function("s"),
                final_function,
                initial: initial.clone(),
            })),
        };
        let time = || true;
        let work = Work::while_there_is_time(&time).with_runner(&Adder);
        for (final_function, expected) in [(None, 11), (Some(function("f")), 22)] {
            let mut accumulator = Accumulator::new(&of(final_function));
            for value in 0..5_u8 {
                accumulator.add(&mut std::iter::once(Some(&[value][..])));
            }
            assert!(!accumulator.is_behind() && accumulator.memory() > 5);
            assert!(accumulator.result(&Work::small()).is_err());
            assert_eq!(accumulator.result(&work), Ok(Some(vec![expected])));
        }
    }
}
