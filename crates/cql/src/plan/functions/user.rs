//! User-defined functions, as far as a statement calls them.

use halcyon_model::CqlType;
use halcyon_schema::function::UserFunction;
use halcyon_syntax::Result;

use crate::plan::execution::{ASKED, Work};
use crate::plan::value::checked;

/// The result, in the order and form in which values are stored.
pub(super) fn call(
    function: &UserFunction,
    arguments: &[Option<&[u8]>],
    work: &Work<'_>,
) -> Result<Option<Vec<u8>>> {
    let runner = work.runner(function)?;
    if !function.called_on_null && arguments.contains(&None) {
        return Ok(None);
    }
    work.spend(ASKED)?;
    checked(runner.call(function, arguments)?, &function.returns, work)
}

/// A value that a function has returned.
pub(super) fn checked(
    value: Option<Vec<u8>>,
    of: &CqlType,
    work: &Work<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(value) = value else { return Ok(None) };
    work.make(value.len())?;
    Ok(Some(checked::checked(&value, of)?.into_owned()))
}
