//! The envelope: the header and body of a message, in every version.
//!
//! ```text
//!   0         8        16        24        32         40
//!   +---------+---------+---------+---------+---------+
//!   | version |  flags  |      stream       | opcode  |   version: the top bit marks a response
//!   +---------+---------+---------+---------+---------+
//!   |                length                 |  body …
//!   +---------+---------+---------+---------+
//! ```
//! All numbers are big-endian. Versions 1 and 2 have a stream of one byte and so a header of 8 bytes; they are refused.

use std::fmt;

use crate::Version;

pub(crate) const HEADER: usize = 9;

/// Marks responses.
pub(crate) const RESPONSE: u8 = 0x80;

/// The flags of an envelope. Unknown ones are ignored, as Cassandra does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    pub const COMPRESSED: Flags = Flags(0x01);
    pub const TRACING: Flags = Flags(0x02);
    pub const CUSTOM_PAYLOAD: Flags = Flags(0x04);
    pub const WARNING: Flags = Flags(0x08);
    pub const USE_BETA: Flags = Flags(0x10);

    pub fn contains(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn set(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    Error = 0,
    Startup = 1,
    Ready = 2,
    Authenticate = 3,
    /// Of version 1; refused.
    Credentials = 4,
    Options = 5,
    Supported = 6,
    Query = 7,
    Result = 8,
    Prepare = 9,
    Execute = 10,
    Register = 11,
    Event = 12,
    Batch = 13,
    AuthChallenge = 14,
    AuthResponse = 15,
    AuthSuccess = 16,
}

const OPCODES: [(Opcode, &str); 17] = [
    (Opcode::Error, "ERROR"),
    (Opcode::Startup, "STARTUP"),
    (Opcode::Ready, "READY"),
    (Opcode::Authenticate, "AUTHENTICATE"),
    (Opcode::Credentials, "CREDENTIALS"),
    (Opcode::Options, "OPTIONS"),
    (Opcode::Supported, "SUPPORTED"),
    (Opcode::Query, "QUERY"),
    (Opcode::Result, "RESULT"),
    (Opcode::Prepare, "PREPARE"),
    (Opcode::Execute, "EXECUTE"),
    (Opcode::Register, "REGISTER"),
    (Opcode::Event, "EVENT"),
    (Opcode::Batch, "BATCH"),
    (Opcode::AuthChallenge, "AUTH_CHALLENGE"),
    (Opcode::AuthResponse, "AUTH_RESPONSE"),
    (Opcode::AuthSuccess, "AUTH_SUCCESS"),
];

impl Opcode {
    pub fn from_number(number: u8) -> Option<Opcode> {
        OPCODES.get(usize::from(number)).map(|(opcode, _)| *opcode)
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn name(self) -> &'static str {
        OPCODES.get(usize::from(self.number())).map_or("UNKNOWN", |(_, name)| name)
    }

    pub fn is_request(self) -> bool {
        use Opcode::{
            AuthResponse, Batch, Credentials, Execute, Options, Prepare, Query, Register, Startup,
        };
        matches!(
            self,
            Startup
                | Credentials
                | Options
                | Query
                | Prepare
                | Execute
                | Register
                | Batch
                | AuthResponse
        )
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The fields of a request's header that its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTo {
    pub version: Version,
    pub stream: i16,
    /// Version 1 or 2: the number for their shorter header. The body is encoded for `version`.
    pub(crate) ancient: Option<u8>,
}

impl ReplyTo {
    pub fn new(version: Version, stream: i16) -> ReplyTo {
        ReplyTo { version, stream, ancient: None }
    }

    /// Events answer no request: their stream is −1.
    pub fn event(version: Version) -> ReplyTo {
        ReplyTo::new(version, -1)
    }
}

/// One message; its body is complete and decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub version: Version,
    pub flags: Flags,
    pub stream: i16,
    pub opcode: Opcode,
    pub body: Vec<u8>,
}

impl Envelope {
    pub fn reply_to(&self) -> ReplyTo {
        ReplyTo::new(self.version, self.stream)
    }
}

/// The nine bytes, not validated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    /// Includes the bit that marks a response.
    pub(crate) version: u8,
    pub(crate) flags: Flags,
    pub(crate) stream: i16,
    pub(crate) opcode: u8,
    pub(crate) length: i32,
}

impl Header {
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Header {
        let [version, flags, s0, s1, opcode, l0, l1, l2, l3] = *bytes;
        Header {
            version,
            flags: Flags(flags),
            stream: i16::from_be_bytes([s0, s1]),
            opcode,
            length: i32::from_be_bytes([l0, l1, l2, l3]),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.version, self.flags.0]);
        out.extend(self.stream.to_be_bytes());
        out.push(self.opcode);
        out.extend(self.length.to_be_bytes());
    }
}
