//! ERROR messages, and malformed bytes.

use std::net::IpAddr;

use halcyon_model::request::Consistency;

use crate::{Envelope, ReplyTo, Version, write};

/// An ERROR message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    pub kind: ErrorKind,
}

/// The codes with their fields. Write types are Cassandra's (`SIMPLE`, `BATCH`, `CAS` …).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    Server,
    Protocol,
    BadCredentials,
    Unavailable {
        consistency: Consistency,
        required: i32,
        alive: i32,
    },
    Overloaded,
    IsBootstrapping,
    Truncate,
    WriteTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        write_type: &'static str,
        /// How often a conditional write met contention; sent in v5.
        contentions: Option<u16>,
    },
    ReadTimeout {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        data_present: bool,
    },
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        /// Reason codes by replica; v4 sends only their number.
        failures: Vec<(IpAddr, u16)>,
        data_present: bool,
    },
    FunctionFailure {
        keyspace: String,
        function: String,
        arguments: Vec<String>,
    },
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<(IpAddr, u16)>,
        write_type: &'static str,
    },
    CdcWriteFailure,
    CasWriteUnknown {
        consistency: Consistency,
        received: i32,
        block_for: i32,
    },
    Syntax,
    Unauthorized,
    Invalid,
    Configuration,
    AlreadyExists {
        keyspace: String,
        /// Empty if the error is about a keyspace.
        table: String,
    },
    Unprepared {
        id: Vec<u8>,
    },
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { message: message.into(), kind }
    }

    pub fn code(&self) -> i32 {
        self.kind.code()
    }
}

impl ErrorKind {
    pub fn code(&self) -> i32 {
        match self {
            ErrorKind::Server => 0x0000,
            ErrorKind::Protocol => 0x000A,
            ErrorKind::BadCredentials => 0x0100,
            ErrorKind::Unavailable { .. } => 0x1000,
            ErrorKind::Overloaded => 0x1001,
            ErrorKind::IsBootstrapping => 0x1002,
            ErrorKind::Truncate => 0x1003,
            ErrorKind::WriteTimeout { .. } => 0x1100,
            ErrorKind::ReadTimeout { .. } => 0x1200,
            ErrorKind::ReadFailure { .. } => 0x1300,
            ErrorKind::FunctionFailure { .. } => 0x1400,
            ErrorKind::WriteFailure { .. } => 0x1500,
            ErrorKind::CdcWriteFailure => 0x1600,
            ErrorKind::CasWriteUnknown { .. } => 0x1700,
            ErrorKind::Syntax => 0x2000,
            ErrorKind::Unauthorized => 0x2100,
            ErrorKind::Invalid => 0x2200,
            ErrorKind::Configuration => 0x2300,
            ErrorKind::AlreadyExists { .. } => 0x2400,
            ErrorKind::Unprepared { .. } => 0x2500,
        }
    }
}

/// The error that an older client gets instead.
fn downgrade(error: &Error, version: Version) -> Option<Error> {
    let timed_out = |received| format!("Operation timed out - received only {received} responses.");
    let downgraded = match &error.kind {
        ErrorKind::ReadFailure { consistency, received, block_for, data_present, .. }
            if version < Version::V4 =>
        {
            let (consistency, received, block_for) = (*consistency, *received, *block_for);
            let data_present = *data_present;
            let kind = ErrorKind::ReadTimeout { consistency, received, block_for, data_present };
            Error::new(kind, timed_out(received))
        }
        ErrorKind::WriteFailure { consistency, received, block_for, write_type, .. }
            if version < Version::V4 =>
        {
            let kind = write_timeout(*consistency, *received, *block_for, write_type);
            Error::new(kind, timed_out(*received))
        }
        ErrorKind::FunctionFailure { .. } if version < Version::V4 => {
            let message = format!("ERROR FUNCTION_FAILURE: {}", error.message);
            Error::new(ErrorKind::Invalid, message)
        }
        ErrorKind::CdcWriteFailure if version < Version::V4 => {
            let message = format!("ERROR CDC_WRITE_FAILURE: {}", error.message);
            Error::new(ErrorKind::Invalid, message)
        }
        ErrorKind::WriteTimeout {
            consistency, received, block_for, contentions: Some(_), ..
        }
        | ErrorKind::CasWriteUnknown { consistency, received, block_for }
            if version < Version::V5 =>
        {
            let kind = write_timeout(*consistency, *received, *block_for, "CAS");
            Error::new(kind, timed_out(*received))
        }
        _ => return None,
    };
    Some(downgraded)
}

fn write_timeout(
    consistency: Consistency,
    received: i32,
    block_for: i32,
    write_type: &'static str,
) -> ErrorKind {
    ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions: None }
}

pub(crate) fn encode(out: &mut Vec<u8>, error: &Error, version: Version) {
    match downgrade(error, version) {
        Some(older) => encode_as_is(out, &older, version),
        None => encode_as_is(out, error, version),
    }
}

fn encode_as_is(out: &mut Vec<u8>, error: &Error, version: Version) {
    write::int(out, error.code());
    write::string(out, &error.message);
    match &error.kind {
        ErrorKind::Unavailable { consistency, required, alive } => {
            answers(out, *consistency, *required, *alive);
        }
        ErrorKind::WriteTimeout { consistency, received, block_for, write_type, contentions } => {
            answers(out, *consistency, *received, *block_for);
            write::string(out, write_type);
            if let Some(contentions) = contentions {
                write::short(out, *contentions);
            }
        }
        ErrorKind::ReadTimeout { consistency, received, block_for, data_present } => {
            answers(out, *consistency, *received, *block_for);
            out.push(u8::from(*data_present));
        }
        ErrorKind::ReadFailure { consistency, received, block_for, failures, data_present } => {
            answers(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            out.push(u8::from(*data_present));
        }
        ErrorKind::WriteFailure { consistency, received, block_for, failures, write_type } => {
            answers(out, *consistency, *received, *block_for);
            put_failures(out, failures, version);
            write::string(out, write_type);
        }
        ErrorKind::FunctionFailure { keyspace, function, arguments } => {
            write::string(out, keyspace);
            write::string(out, function);
            write::string_list(out, arguments);
        }
        ErrorKind::CasWriteUnknown { consistency, received, block_for } => {
            answers(out, *consistency, *received, *block_for);
        }
        ErrorKind::AlreadyExists { keyspace, table } => {
            write::string(out, keyspace);
            write::string(out, table);
        }
        ErrorKind::Unprepared { id } => write::short_bytes(out, id),
        _ => {}
    }
}

fn answers(out: &mut Vec<u8>, consistency: Consistency, first: i32, second: i32) {
    write::short(out, consistency.code());
    write::int(out, first);
    write::int(out, second);
}

fn put_failures(out: &mut Vec<u8>, failures: &[(IpAddr, u16)], version: Version) {
    write::int(out, i32::try_from(failures.len()).unwrap_or(i32::MAX));
    if version < Version::V5 {
        return;
    }
    for (replica, reason) in failures {
        match replica {
            IpAddr::V4(address) => {
                out.push(4);
                out.extend(address.octets());
            }
            IpAddr::V6(address) => {
                out.push(16);
                out.extend(address.octets());
            }
        }
        write::short(out, *reason);
    }
}

/// Bytes from a client that are not a valid message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .error.message)]
pub struct ProtocolError {
    /// Where the answer goes; `None` if the client could not understand one.
    pub reply_to: Option<ReplyTo>,
    pub error: Error,
    /// Later bytes on this connection cannot be decoded: close it after the answer.
    pub close: bool,
}

impl ProtocolError {
    /// One bad envelope; the next one can be valid.
    pub(crate) fn envelope(reply_to: ReplyTo, message: impl Into<String>) -> ProtocolError {
        let error = Error::new(ErrorKind::Protocol, message);
        ProtocolError { reply_to: Some(reply_to), error, close: false }
    }

    /// A valid request that is refused.
    pub fn refusing(envelope: &Envelope, message: impl Into<String>) -> ProtocolError {
        ProtocolError::envelope(envelope.reply_to(), message)
    }

    #[must_use]
    pub(crate) fn closing(mut self) -> ProtocolError {
        self.close = true;
        self
    }
}
