//! User-defined functions, as far as a statement calls them.

use halcyon_schema::function::UserFunction;
use halcyon_syntax::Result;

use crate::plan::execution::Execution;
use crate::plan::value::collection;

/// The result, in the order and form in which values are stored.
pub(super) fn call(
    function: &UserFunction,
    arguments: &[Option<&[u8]>],
    execution: &Execution<'_>,
) -> Result<Option<Vec<u8>>> {
    let runner = execution.work.runner()?;
    if !function.called_on_null && arguments.contains(&None) {
        return Ok(None);
    }
    let Some(value) = runner.call(function, arguments)? else { return Ok(None) };
    execution.work.make(value.len())?;
    Ok(Some(collection::checked(&value, &function.returns)?.into_owned()))
}
