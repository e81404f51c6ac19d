//! Serialized values: numbers to count with, collections. Nothing here knows a statement.

pub(crate) mod checked;
pub(crate) mod collection;
pub(crate) mod composed;
pub(crate) mod number;
