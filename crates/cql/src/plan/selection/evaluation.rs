//! The values that a selector reads.

use super::RowValues;
use crate::plan::execution::Execution;

/// One row, or one group with its aggregates.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation<'a> {
    pub row: &'a RowValues,
    /// Of `Selection::terms`.
    pub terms: &'a [Option<Vec<u8>>],
    /// Results of `Selection::aggregates`; empty while their arguments are evaluated.
    pub aggregates: &'a [Option<Vec<u8>>],
    pub execution: Execution<'a>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn term(&self, index: usize) -> Option<&'a [u8]> {
        self.terms.get(index)?.as_deref()
    }
}
