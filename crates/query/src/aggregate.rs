//! The aggregates of one group while its rows come in.

use halcyon_cql::plan::functions::Accumulator;
use halcyon_cql::plan::selection::AggregateCall;

use crate::Result;

#[derive(Debug)]
pub(crate) struct Accumulators(Vec<Accumulator>);

impl Accumulators {
    pub(crate) fn new(calls: &[AggregateCall]) -> Accumulators {
        Accumulators(calls.iter().map(|call| Accumulator::new(&call.function)).collect())
    }

    pub(crate) fn add(&mut self, index: usize, argument: Option<&[u8]>) -> Result<()> {
        if let Some(accumulator) = self.0.get_mut(index) {
            accumulator.add(argument)?;
        }
        Ok(())
    }

    pub(crate) fn results(&self) -> Result<Vec<Option<Vec<u8>>>> {
        self.0.iter().map(|accumulator| Ok(accumulator.result()?)).collect()
    }
}
