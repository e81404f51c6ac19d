//! Why a text was refused, and where.

use crate::lexer::Place;

/// Fix the text at the place that is named, and try again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no CQL.
    #[error("line {place} {expected} expected, found {found}{hint}")]
    Syntax { place: Place, expected: String, found: String, hint: String },
    /// The text is CQL, but what it says cannot be.
    #[error("line {place} {what}")]
    Invalid { place: Place, what: String },
}

impl Error {
    pub fn place(&self) -> Place {
        match self {
            Error::Syntax { place, .. } | Error::Invalid { place, .. } => *place,
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
