//! Errors of a text, with their location.

use crate::lexer::Location;

/// Correct the text at the location in the message, and try again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `SyntaxException`: the text is not CQL. The message is Cassandra's, and usually has the position.
    #[error("{message}")]
    Syntax { location: Location, message: String },
    /// The text is CQL, but contradicts itself or the schema.
    #[error("line {location} {what}")]
    Invalid { location: Location, what: String },
    /// `InvalidRequestException`: the message is Cassandra's.
    #[error("{0}")]
    InvalidRequest(String),
    /// `ConfigurationException`.
    #[error("{0}")]
    Configuration(String),
    /// `AlreadyExistsException`; `table` is empty for a keyspace.
    #[error("{message}")]
    AlreadyExists { keyspace: String, table: String, message: String },
    /// `UnauthorizedException`.
    #[error("{0}")]
    Unauthorized(String),
    /// `FunctionExecutionException`; `function` is its full name, `arguments` the names of its types.
    #[error("{message}")]
    FunctionFailure { function: String, arguments: Vec<String>, message: String },
    /// It would take longer than it may. Who gave the time makes of it what the client sees.
    #[error("the statement takes too long to compute")]
    Exhausted,
    /// It would make more than `max` bytes.
    #[error(
        "the statement makes more than {limit} bytes of the values that it is given: ask for less at once, or raise \
         native_transport_max_request_data_in_flight"
    )]
    TooLarge { limit: u64 },
    #[error("not supported yet: {0}")]
    NotSupportedYet(String),
}

impl Error {
    pub fn location(&self) -> Location {
        match self {
            Error::Syntax { location, .. } | Error::Invalid { location, .. } => *location,
            _ => Location { line: 1, column: 0 },
        }
    }

    pub fn invalid(location: Location, what: impl Into<String>) -> Error {
        Error::Invalid { location, what: what.into() }
    }

    pub fn invalid_request(message: impl Into<String>) -> Error {
        Error::InvalidRequest(message.into())
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
