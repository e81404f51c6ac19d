//! Serialized values: from text, from JSON's numbers, as collections. Nothing here knows a statement.

pub(crate) mod collection;
pub(crate) mod duration;
pub(crate) mod number;
mod number_text;
mod temporal;
pub(crate) mod text;

pub(crate) use number_text::is_exact_double;
