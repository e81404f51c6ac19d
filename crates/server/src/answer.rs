//! Outcomes and errors of `query` in the words of the protocol. The one table of error codes.

use std::net::Ipv4Addr;

use halcyon_cql::plan::ColumnSpec;
use halcyon_protocol::{Column, Consistency, Error, ErrorKind, SchemaChange, SchemaTarget};
use halcyon_query::Error as QueryError;

pub(crate) fn column(spec: &ColumnSpec) -> Column<'_> {
    Column {
        keyspace: &spec.keyspace,
        table: &spec.table,
        name: &spec.name,
        cql_type: &spec.cql_type,
    }
}

pub(crate) fn columns(specs: &[ColumnSpec]) -> Vec<Column<'_>> {
    specs.iter().map(column).collect()
}

pub(crate) fn schema_change(change: halcyon_query::SchemaChange) -> SchemaChange {
    use halcyon_query::SchemaTarget as Target;
    SchemaChange {
        change: change.change,
        target: match change.target {
            Target::Keyspace => SchemaTarget::Keyspace,
            Target::Table => SchemaTarget::Table,
            Target::Type => SchemaTarget::Type,
            Target::Function => SchemaTarget::Function,
            Target::Aggregate => SchemaTarget::Aggregate,
        },
        keyspace: change.keyspace,
        name: change.name,
        arguments: change.arguments,
    }
}

fn level(code: u16) -> Consistency {
    Consistency::from_code(code).unwrap_or(Consistency::One)
}

/// What the client is told.
pub(crate) fn error(error: QueryError) -> Error {
    let message = error.to_string();
    let kind = match error {
        QueryError::Server(_) | QueryError::Storage(_) => ErrorKind::Server,
        QueryError::Protocol(_) => ErrorKind::Protocol,
        QueryError::BadCredentials(_) => ErrorKind::BadCredentials,
        QueryError::Unavailable { code, required, alive, .. } => {
            ErrorKind::Unavailable { consistency: level(code), required, alive }
        }
        QueryError::Overloaded(_) => ErrorKind::Overloaded,
        QueryError::IsBootstrapping(_) => ErrorKind::IsBootstrapping,
        QueryError::Truncate(_) => ErrorKind::Truncate,
        QueryError::WriteTimeout { consistency, received, required, write_type } => {
            ErrorKind::WriteTimeout {
                consistency: level(consistency),
                received,
                block_for: required,
                write_type,
                contentions: None,
            }
        }
        QueryError::ReadTimeout { consistency, received, required, data_present } => {
            ErrorKind::ReadTimeout {
                consistency: level(consistency),
                received,
                block_for: required,
                data_present,
            }
        }
        // The one replica is this node, and it is the one that failed.
        QueryError::ReadFailure { consistency, failure } => ErrorKind::ReadFailure {
            consistency: level(consistency),
            received: 0,
            block_for: 1,
            failures: vec![(Ipv4Addr::LOCALHOST.into(), failure.code())],
            data_present: false,
        },
        QueryError::FunctionFailure { keyspace, function, arguments, .. } => {
            ErrorKind::FunctionFailure { keyspace, function, arguments }
        }
        QueryError::WriteFailure { consistency, write_type, failure } => ErrorKind::WriteFailure {
            consistency: level(consistency),
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
