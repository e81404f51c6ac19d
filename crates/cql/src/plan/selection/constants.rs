//! What a selection computes without a row: functions of constants are called once for each execution, so what one of them refuses is
//! refused where no row is found (`AbstractFunctionSelector.newFactory`).

use std::borrow::Cow;

use super::evaluate::{Value, collection, tuple};
use super::{AggregateCall, Evaluation, RowValues, Selection, Selector};
use crate::plan::execution::Execution;
use crate::plan::functions::{Body, Scalar};
use halcyon_syntax::Result;

impl Selection {
    /// Calls the functions of constants. `terms`: the values of `Selection::terms`.
    pub fn check_constants(
        &self,
        terms: &[Option<Vec<u8>>],
        execution: &Execution<'_>,
    ) -> Result<()> {
        if self.terms.is_empty() {
            return Ok(());
        }
        let row = RowValues::new(0);
        let on = Evaluation { row: &row, terms, aggregates: &[], execution: *execution };
        let calls = &self.aggregates;
        self.selectors.iter().try_for_each(|of| of.constant(calls, &on).map(drop))
    }
}

impl Selector {
    /// The value if it is the same for each row. `calls`: those of aggregates.
    fn constant<'a>(
        &'a self,
        calls: &'a [AggregateCall],
        on: &Evaluation<'a>,
    ) -> Result<Option<Value<'a>>> {
        let all = |selectors: &'a [Selector]| {
            let values = selectors.iter().map(|of| of.constant(calls, on));
            values.collect::<Result<Vec<Option<Value<'a>>>>>()
        };
        let each = |values: Vec<Option<Value<'a>>>| values.into_iter().collect::<Option<Vec<_>>>();
        let made = match self {
            Selector::Term(index) => return Ok(Some(on.term(*index).map(Cow::Borrowed))),
            Selector::Call { function, arguments } => {
                let values = all(arguments)?;
                if let Body::Scalar(Scalar::Mask(mask)) = &function.body {
                    mask.check(function, &values)?;
                }
                match each(values).filter(|_| function.is_pure()) {
                    Some(values) => {
                        let values: Vec<Option<&[u8]>> =
                            values.iter().map(Option::as_deref).collect();
                        Some(function.call(&values, &on.execution)?)
                    }
                    None => None,
                }
            }
            Selector::Collection { cql_type, items } => {
                each(all(items)?).map(|values| Some(collection(cql_type, &values)))
            }
            Selector::Tuple(items) => each(all(items)?).map(|values| Some(tuple(&values))),
            Selector::Element { of, .. }
            | Selector::Slice { of, .. }
            | Selector::Field { of, .. } => {
                of.constant(calls, on)?;
                None
            }
            Selector::Aggregate(index) => {
                let call = calls.get(*index);
                call.map(|call| all(&call.arguments)).transpose()?;
                None
            }
            Selector::Column(_) | Selector::Time { .. } => None,
        };
        if let Some(Some(made)) = &made {
            on.execution.work.make(made.len())?;
        }
        Ok(made.map(|value| value.map(Cow::Owned)))
    }
}
