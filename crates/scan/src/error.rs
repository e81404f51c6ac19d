//! Why a scan ends early. `query` gives each its words and its code in the protocol.

use halcyon_io::JobLost;
use halcyon_model::request::Consistency;
use halcyon_syntax::Error as CqlError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
pub enum Error {
    /// Of a value or an expression of the statement.
    Cql(CqlError),
    /// A stored value is damaged.
    Corrupt(String),
    /// The budget of requests has no room; the text names the setting.
    Overloaded(String),
    TooLate(Consistency),
    TooManyTombstones(Consistency),
    TooLarge(Box<TooLarge>),
    /// The thread for computations has stopped.
    JobLost(JobLost),
}

/// Why a read is given up, and what it was warned of until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLarge {
    pub text: String,
    pub warnings: Vec<String>,
    pub consistency: Consistency,
}

/// Why a stream is not read to its end.
#[derive(Debug)]
pub enum TakeError<E> {
    Stream(E),
    Scan(Error),
}

impl<E> From<Error> for TakeError<E> {
    fn from(error: Error) -> TakeError<E> {
        TakeError::Scan(error)
    }
}

impl From<CqlError> for Error {
    fn from(error: CqlError) -> Error {
        Error::Cql(error)
    }
}
