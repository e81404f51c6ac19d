//! Serialized values: numbers to count with, collections. Nothing here knows a statement.

pub(crate) mod collection;
pub(crate) mod number;
