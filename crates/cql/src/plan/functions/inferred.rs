//! Functions whose types follow from their arguments (collections, masks, vectors): what they have in common.

use halcyon_model::CqlType;

use super::matching::Argument;
use halcyon_syntax::{Error, Result};

/// The types of such a function for the arguments of one call.
pub(super) struct Shape {
    pub(super) arguments: Vec<CqlType>,
    pub(super) returns: CqlType,
}

/// The error of functions that check their own number of arguments.
pub(super) fn wrong_number(name: &str, wanted: &str) -> Error {
    Error::InvalidRequest(format!(
        "Invalid number of arguments for function system.{name}({wanted})"
    ))
}

/// The type of the first argument, which may be any: its own, or else that of the receiver.
pub(super) fn inferred(
    name: &str,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
    what: &str,
) -> Result<Option<CqlType>> {
    let Some(argument) = arguments.first() else { return Ok(None) };
    if let Some(cql_type) = argument.compatible_type()?.or_else(|| receiver.cloned()) {
        return Ok(Some(cql_type));
    }
    Err(Error::InvalidRequest(format!(
        "Cannot infer type of argument {} in call to function system.{name}({what}): use type casts to disambiguate",
        argument.text()
    )))
}
