//! Errors, one variant for each code of the native protocol; messages are Cassandra's.

use std::fmt;

use halcyon_model::hex;
use halcyon_model::request::Consistency;
use halcyon_scan::{TakeError, TooLarge};
use halcyon_schema::catalog::Table;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 0x0000: a fault of ours.
    #[error("{0}")]
    Server(String),
    /// 0x0000: stored data cannot be read, or new data not written. If a statement reads or writes rows, it becomes
    /// `ReadFailure` or `WriteFailure`.
    #[error("{0}")]
    Storage(StorageFailure),
    /// 0x000A
    #[error("{0}")]
    Protocol(String),
    /// 0x0100
    #[error("{0}")]
    BadCredentials(String),
    /// 0x1000
    #[error("Cannot achieve consistency level {consistency}")]
    Unavailable { consistency: String, level: Consistency, required: i32, alive: i32 },
    /// 0x1001
    #[error("{0}")]
    Overloaded(String),
    /// 0x1002
    #[error("{0}")]
    IsBootstrapping(String),
    /// 0x1003
    #[error("{0}")]
    Truncate(String),
    /// 0x1100
    #[error("Operation timed out - received only {received} responses.")]
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        required: i32,
        write_type: &'static str,
    },
    /// 0x1200
    #[error("Operation timed out - received only {received} responses.")]
    ReadTimeout { consistency: Consistency, received: i32, required: i32, data_present: bool },
    /// 0x1300
    #[error("Operation failed - {failure}")]
    ReadFailure { failure: Failure, consistency: Consistency },
    /// 0x1400
    #[error("{message}")]
    FunctionFailure { message: String, keyspace: String, function: String, arguments: Vec<String> },
    /// 0x1500
    #[error("Operation failed - {failure}")]
    WriteFailure { failure: Failure, consistency: Consistency, write_type: &'static str },
    /// 0x2000
    #[error("{0}")]
    Syntax(String),
    /// 0x2100
    #[error("{0}")]
    Unauthorized(String),
    /// 0x2200
    #[error("{0}")]
    Invalid(String),
    /// 0x2300
    #[error("{0}")]
    Configuration(String),
    /// 0x2400
    #[error("{message}")]
    AlreadyExists { keyspace: String, table: String, message: String },
    /// 0x2500
    #[error("Prepared query with ID {} not found (either the query was not prepared on this host (maybe the host has \
             been restarted?) or you have prepared too many queries and it has been evicted from the internal cache)", hex::encode(.0))]
    Unprepared(Vec<u8>),
}

/// Why the one replica, this node, failed (`RequestFailureReason`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    Unknown(StorageFailure),
    ReadTooManyTombstones,
    IndexNotAvailable,
    /// The read is too large for a guardrail.
    Aborted(AbortReason, Box<TooLarge>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    ReadSize,
    ReadTooManyIndexes,
}

/// What could not be read or written. Clients get its kind and the table; the operator's log has the file and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageFailure {
    kind: &'static str,
    table: Option<String>,
    detail: String,
}

impl StorageFailure {
    pub(crate) fn new(kind: &'static str, detail: String) -> StorageFailure {
        StorageFailure { kind, table: None, detail }
    }

    fn of_table(self, table: &Table) -> StorageFailure {
        StorageFailure { table: Some(table.full_name()), ..self }
    }
}

impl fmt::Display for StorageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StorageFailure { kind, table, .. } = self;
        match table {
            Some(table) => write!(f, "{kind} of {table}; the log of the server says more"),
            None => write!(f, "{kind}; the log of the server says more"),
        }
    }
}

impl Failure {
    /// As protocol 5 sends it.
    pub fn code(&self) -> u16 {
        match self {
            Failure::Unknown(_) => 0,
            Failure::ReadTooManyTombstones => 1,
            Failure::IndexNotAvailable => 6,
            Failure::Aborted(AbortReason::ReadSize, _) => 4,
            Failure::Aborted(AbortReason::ReadTooManyIndexes, _) => 7,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REPLICA: &str = "localhost/127.0.0.1:7000";
        if let Failure::Aborted(reason, what) = self {
            let reason = match reason {
                AbortReason::ReadSize => "READ_SIZE",
                AbortReason::ReadTooManyIndexes => "READ_TOO_MANY_INDEXES",
            };
            let text = &what.text;
            return write!(f, "{text}: {reason} from /127.0.0.1:7000");
        }
        f.write_str("received 0 responses and 1 failures: ")?;
        match self {
            Failure::Unknown(what) => write!(f, "UNKNOWN from {REPLICA} ({what})"),
            Failure::ReadTooManyTombstones => {
                write!(f, "READ_TOO_MANY_TOMBSTONES from {REPLICA}")
            }
            Failure::IndexNotAvailable => write!(f, "INDEX_NOT_AVAILABLE from {REPLICA}"),
            Failure::Aborted(..) => Ok(()),
        }
    }
}

impl Error {
    /// What a read that was given up was warned of.
    pub fn warnings(&self) -> &[String] {
        match self {
            Error::ReadFailure { failure: Failure::Aborted(_, what), .. } => &what.warnings,
            _ => &[],
        }
    }

    /// What the operator should see of it, and clients should not.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Error::Storage(failure)
            | Error::ReadFailure { failure: Failure::Unknown(failure), .. }
            | Error::WriteFailure { failure: Failure::Unknown(failure), .. } => {
                Some(&failure.detail)
            }
            _ => None,
        }
    }

    /// The error of a statement that reads rows.
    pub(crate) fn of_read(self, consistency: Consistency, table: &Table) -> Error {
        match self {
            Error::Storage(what) => {
                let failure = Failure::Unknown(what.of_table(table));
                Error::ReadFailure { failure, consistency }
            }
            other => other,
        }
    }

    /// The error of a statement that writes rows.
    pub(crate) fn of_write(self, consistency: Consistency, write_type: &'static str) -> Error {
        match self {
            Error::Storage(what) => {
                Error::WriteFailure { failure: Failure::Unknown(what), consistency, write_type }
            }
            other => other,
        }
    }
}

impl From<halcyon_syntax::Error> for Error {
    fn from(error: halcyon_syntax::Error) -> Error {
        use halcyon_syntax::Error as Cql;
        let message = error.to_string();
        match error {
            Cql::Syntax { .. } => Error::Syntax(message),
            Cql::Exhausted | Cql::TooLarge { .. } => Error::Overloaded(message),
            Cql::Invalid { .. } | Cql::InvalidRequest(_) | Cql::NotSupportedYet(_) => {
                Error::Invalid(message)
            }
            Cql::Configuration(_) => Error::Configuration(message),
            Cql::Unauthorized(_) => Error::Unauthorized(message),
            Cql::FunctionFailure { function, arguments, message } => {
                let (keyspace, function) =
                    function.split_once('.').unwrap_or(("system", &function));
                let (keyspace, function) = (keyspace.to_owned(), function.to_owned());
                Error::FunctionFailure { message, keyspace, function, arguments }
            }
            Cql::AlreadyExists { keyspace, table, message } => {
                Error::AlreadyExists { keyspace, table, message }
            }
        }
    }
}

impl From<halcyon_engine::Error> for Error {
    fn from(error: halcyon_engine::Error) -> Error {
        use halcyon_engine::Error as Engine;
        match error {
            Engine::Stopped(why) => Error::Overloaded(why),
            Engine::UnknownTable(_) | Engine::Invalid(_) | Engine::IndexNotAvailable(_) => {
                Error::Invalid(error.to_string())
            }
            Engine::Disk(_) | Engine::SSTable(_) | Engine::Merge(_) => {
                Error::Storage(StorageFailure::new("cannot read data", error.to_string()))
            }
            Engine::SetApart(what) => {
                let kind = "cannot read all data (halcyon_views.set_apart has the reason)";
                Error::Storage(StorageFailure::new(kind, what))
            }
            Engine::CommitLog(_) | Engine::Compaction(_) => {
                Error::Storage(StorageFailure::new("cannot write data", error.to_string()))
            }
            Engine::CannotStart(_) | Engine::Schema(_) | Engine::JobLost(_) => {
                Error::Server(error.to_string())
            }
        }
    }
}

impl From<halcyon_scan::Error> for Error {
    fn from(error: halcyon_scan::Error) -> Error {
        use halcyon_scan::Error as Scan;
        match error {
            Scan::Cql(error) => error.into(),
            Scan::Corrupt(what) => Error::Storage(StorageFailure::new("cannot read data", what)),
            Scan::Overloaded(refusal) => Error::Overloaded(refusal),
            Scan::TooLate(consistency) => too_late(consistency),
            Scan::TooManyTombstones(consistency) => {
                Error::ReadFailure { failure: Failure::ReadTooManyTombstones, consistency }
            }
            Scan::TooLarge(what) => {
                let consistency = what.consistency;
                Error::ReadFailure {
                    failure: Failure::Aborted(AbortReason::ReadSize, what),
                    consistency,
                }
            }
            Scan::JobLost(gone) => Error::Server(format!("a computation has failed: {gone}")),
        }
    }
}

impl<E> From<TakeError<E>> for Error
where
    Error: From<E>,
{
    fn from(error: TakeError<E>) -> Error {
        match error {
            TakeError::Stream(error) => error.into(),
            TakeError::Scan(error) => error.into(),
        }
    }
}

/// The error of a read that takes too long.
pub(crate) fn too_late(consistency: Consistency) -> Error {
    Error::ReadTimeout { consistency, received: 0, required: 1, data_present: false }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Error {
        match never {}
    }
}
