//! Maps errors of `query` to errors of the protocol: the only table of error codes.

use std::net::Ipv4Addr;

use halcyon_protocol::{Error, ErrorKind};
use halcyon_query::Error as QueryError;

/// The error for the client.
pub(crate) fn error(error: QueryError) -> Error {
    let message = error.to_string();
    let kind = match error {
        QueryError::Server(_) | QueryError::Storage(_) => ErrorKind::Server,
        QueryError::Protocol(_) => ErrorKind::Protocol,
        QueryError::BadCredentials(_) => ErrorKind::BadCredentials,
        QueryError::Unavailable { level, required, alive, .. } => {
            ErrorKind::Unavailable { consistency: level, required, alive }
        }
        QueryError::Overloaded(_) => ErrorKind::Overloaded,
        QueryError::IsBootstrapping(_) => ErrorKind::IsBootstrapping,
        QueryError::Truncate(_) => ErrorKind::Truncate,
        QueryError::WriteTimeout { consistency, received, required, write_type } => {
            ErrorKind::WriteTimeout {
                consistency,
                received,
                block_for: required,
                write_type,
                contentions: None,
            }
        }
        QueryError::ReadTimeout { consistency, received, required, data_present } => {
            ErrorKind::ReadTimeout { consistency, received, block_for: required, data_present }
        }
        // The only replica is this node, so it is the one that failed.
        QueryError::ReadFailure { consistency, failure } => ErrorKind::ReadFailure {
            consistency,
            received: 0,
            block_for: 1,
            failures: vec![(Ipv4Addr::LOCALHOST.into(), failure.code())],
            data_present: false,
        },
        QueryError::FunctionFailure { keyspace, function, arguments, .. } => {
            ErrorKind::FunctionFailure { keyspace, function, arguments }
        }
        QueryError::WriteFailure { consistency, write_type, failure } => ErrorKind::WriteFailure {
            consistency,
            received: 0,
            block_for: 1,
            failures: vec![(Ipv4Addr::LOCALHOST.into(), failure.code())],
            write_type,
        },
        QueryError::Syntax(_) => ErrorKind::Syntax,
        QueryError::Unauthorized(_) => ErrorKind::Unauthorized,
        QueryError::Invalid(_) => ErrorKind::Invalid,
        QueryError::Configuration(_) => ErrorKind::Configuration,
        QueryError::AlreadyExists { keyspace, table, .. } => {
            ErrorKind::AlreadyExists { keyspace, table }
        }
        QueryError::Unprepared(id) => ErrorKind::Unprepared { id },
    };
    Error::new(kind, message)
}
