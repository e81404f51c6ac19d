//! Requests, borrowed from the envelope's body.
//!
//! Bytes after a complete message and undefined flags are ignored, as in Cassandra.

use std::borrow::Cow;
use std::collections::HashMap;

use halcyon_model::request::{BatchKind, Consistency, Value};

use crate::envelope::{Envelope, Flags, Opcode};
use crate::read::{Malformed, Reader, Result};
use crate::{Compression, ProtocolError, Version};

/// An envelope's body.
#[derive(Debug, Clone, PartialEq)]
pub struct Body<'a> {
    pub request: Request<'a>,
    pub tracing: bool,
    /// Since v4.
    pub custom_payload: Vec<(&'a str, Option<&'a [u8]>)>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request<'a> {
    Startup(Startup),
    Options,
    /// The token; null is read as an empty token.
    AuthResponse(&'a [u8]),
    Query {
        text: &'a str,
        parameters: QueryParameters<'a>,
    },
    Prepare {
        text: &'a str,
        /// Since v5.
        keyspace: Option<&'a str>,
    },
    Execute {
        id: &'a [u8],
        /// The id of the result metadata that the client has cached; since v5.
        result_metadata_id: Option<&'a [u8]>,
        parameters: QueryParameters<'a>,
    },
    Register(Vec<EventType>),
    Batch {
        kind: BatchKind,
        entries: Vec<(BatchQuery<'a>, Vec<Value<'a>>)>,
        /// Without values.
        parameters: QueryParameters<'a>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchQuery<'a> {
    Text(&'a str),
    Prepared(&'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    TopologyChange,
    StatusChange,
    SchemaChange,
    /// Defined by Cassandra, sent by no driver.
    TraceComplete,
}

impl EventType {
    /// Whether clients of a version can register for it.
    pub fn is_in(self, version: Version) -> bool {
        self != EventType::TraceComplete || version >= Version::V4
    }

    fn named(name: &str) -> Option<EventType> {
        Some(match name.to_uppercase().as_str() {
            "TOPOLOGY_CHANGE" => EventType::TopologyChange,
            "STATUS_CHANGE" => EventType::StatusChange,
            "SCHEMA_CHANGE" => EventType::SchemaChange,
            "TRACE_COMPLETE" => EventType::TraceComplete,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values<'a> {
    Positional(Vec<Value<'a>>),
    /// If a name occurs twice, the first value is taken.
    Named(Vec<(&'a str, Value<'a>)>),
}

impl Default for Values<'_> {
    fn default() -> Self {
        Values::Positional(Vec::new())
    }
}

impl<'a> Values<'a> {
    pub fn len(&self) -> usize {
        match self {
            Values::Positional(values) => values.len(),
            Values::Named(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values for markers of these names, in the markers' order. A marker without a value is left out: the numbers of values
    /// and markers then differ, which is the error that Cassandra reports.
    pub fn in_order<'n>(&self, markers: impl IntoIterator<Item = &'n str>) -> Cow<'_, [Value<'a>]> {
        match self {
            Values::Positional(values) => Cow::Borrowed(values),
            Values::Named(values) => {
                let of_name: HashMap<&str, Value<'a>> = values.iter().rev().copied().collect();
                let value = |marker: &str| of_name.get(marker).copied();
                markers.into_iter().filter_map(value).collect()
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct QueryParameters<'a> {
    pub consistency: Consistency,
    pub values: Values<'a>,
    pub skip_metadata: bool,
    /// Zero or negative: no paging.
    pub page_size: Option<i32>,
    pub paging_state: Option<&'a [u8]>,
    pub serial_consistency: Option<Consistency>,
    /// Microseconds.
    pub timestamp: Option<i64>,
    /// Since v5.
    pub keyspace: Option<&'a str>,
    /// Since v5; unsigned, as in Cassandra.
    pub now_in_seconds: Option<u32>,
}

impl QueryParameters<'_> {
    pub fn new(consistency: Consistency) -> Self {
        QueryParameters {
            consistency,
            values: Values::default(),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}

/// The flags of query parameters.
pub(crate) mod query_flags {
    pub(crate) const VALUES: u32 = 0x0001;
    pub(crate) const SKIP_METADATA: u32 = 0x0002;
    pub(crate) const PAGE_SIZE: u32 = 0x0004;
    pub(crate) const PAGING_STATE: u32 = 0x0008;
    pub(crate) const SERIAL_CONSISTENCY: u32 = 0x0010;
    pub(crate) const TIMESTAMP: u32 = 0x0020;
    pub(crate) const NAMES_FOR_VALUES: u32 = 0x0040;
    pub(crate) const KEYSPACE: u32 = 0x0080;
    pub(crate) const NOW_IN_SECONDS: u32 = 0x0100;
}

/// The options of a STARTUP; keys are in upper case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Startup {
    pub options: Vec<(String, String)>,
}

/// The options are kept as long as the connection: more than any driver sends.
const OPTIONS_MAX: usize = 64;
const OPTIONS_BYTES_MAX: usize = 4096;

impl Startup {
    /// The last value of that name.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.iter().rev().find(|(name, _)| name == option).map(|(_, value)| value.as_str())
    }

    /// Checks CQL_VERSION and COMPRESSION; an error is the text of a PROTOCOL_ERROR.
    pub fn check(&self, version: Version) -> std::result::Result<Compression, String> {
        let bytes: usize = self.options.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.options.len() > OPTIONS_MAX || bytes > OPTIONS_BYTES_MAX {
            return Err(format!(
                "STARTUP has {} options of {bytes} bytes; allowed: {OPTIONS_MAX} options of {OPTIONS_BYTES_MAX} bytes",
                self.options.len()
            ));
        }
        let Some(cql) = self.get("CQL_VERSION") else {
            return Err("Missing value CQL_VERSION in STARTUP message".to_owned());
        };
        let asked = release(cql).ok_or_else(|| format!("Invalid version value: {cql}"))?;
        // Cassandra accepts 2.99 as a preview of 3.
        if asked < (2, 99, 0, true) {
            return Err(format!(
                "CQL version {cql} is not supported by the binary protocol (supported version are >= 3.0.0)"
            ));
        }
        match self.get("COMPRESSION").map(str::to_lowercase).as_deref() {
            None => Ok(Compression::None),
            Some("lz4") => Ok(Compression::Lz4),
            Some("snappy") if version >= Version::V5 => {
                Err("Snappy compression is not supported in protocol V5".to_owned())
            }
            Some("snappy") => Ok(Compression::Snappy),
            Some(other) => Err(format!("Unknown compression algorithm: {other}")),
        }
    }
}

/// The key by which versions compare (CassandraVersion): major, minor, patch, and whether the version is a final release.
/// `1.2[.3[.4]][-preview][+build]`; behind four numbers a build may begin with a dot.
fn release(version: &str) -> Option<(u32, u32, u32, bool)> {
    let is_made_of = |text: &str, more: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || more.contains(c);
        !text.is_empty() && text.chars().all(fits)
    };
    let (before, build) = version.split_once('+').map_or((version, None), |(v, b)| (v, Some(b)));
    let (numbers, preview) = before.split_once('-').map_or((before, None), |(v, p)| (v, Some(p)));
    let mut parts = numbers.splitn(5, '.');
    let number = |text: Option<&str>| {
        let digits = text?.bytes().all(|b| b.is_ascii_digit());
        text?.parse::<u32>().ok().filter(|number| digits && i32::try_from(*number).is_ok())
    };
    let (major, minor) = (number(parts.next())?, number(parts.next())?);
    let patch = parts.next().map_or(Some(0), |part| number(Some(part)))?;
    parts.next().map_or(Some(0), |part| number(Some(part)))?;
    let more = parts.next();
    let is_valid = preview.is_none_or(|preview| is_made_of(preview, "-."))
        && build.is_none_or(|build| is_made_of(build, "."))
        && more.is_none_or(|more| preview.is_none() && build.is_none() && is_made_of(more, "."));
    is_valid.then_some((major, minor, patch, preview.is_none()))
}

impl<'a> Request<'a> {
    /// Decodes the body of an envelope. An error fails this request only, but a malformed STARTUP closes the connection.
    pub fn decode(envelope: &'a Envelope) -> std::result::Result<Body<'a>, ProtocolError> {
        decode(envelope).map_err(|Malformed(message)| {
            let error = ProtocolError::envelope(envelope.reply_to(), message);
            match envelope.opcode {
                Opcode::Startup => ProtocolError { reply_to: None, ..error }.closing(),
                _ => error,
            }
        })
    }
}

fn decode(envelope: &Envelope) -> Result<Body<'_>> {
    let version = envelope.version;
    let mut body = Reader::new(&envelope.body);
    let mut custom_payload = Vec::new();
    if envelope.flags.contains(Flags::CUSTOM_PAYLOAD) {
        custom_payload = body.bytes_map()?;
        if version < Version::V4 {
            return Err(
                "Received frame with CUSTOM_PAYLOAD flag for native protocol version < 4".into()
            );
        }
    }
    let request = match envelope.opcode {
        Opcode::Startup => {
            let upper = |(key, value): (&str, &str)| (key.to_uppercase(), value.to_owned());
            Request::Startup(Startup {
                options: body.string_map()?.into_iter().map(upper).collect(),
            })
        }
        Opcode::Options => Request::Options,
        Opcode::AuthResponse => Request::AuthResponse(body.bytes()?.unwrap_or_default()),
        Opcode::Query => Request::Query {
            text: body.long_string()?,
            parameters: parameters(&mut body, version)?,
        },
        Opcode::Prepare => prepare(&mut body, version)?,
        Opcode::Execute => {
            let id = body.short_bytes()?;
            let result_metadata_id =
                if version >= Version::V5 { Some(body.short_bytes()?) } else { None };
            Request::Execute { id, result_metadata_id, parameters: parameters(&mut body, version)? }
        }
        Opcode::Register => Request::Register(
            (0..body.short()?).map(|_| event_type(body.string()?)).collect::<Result<_>>()?,
        ),
        Opcode::Batch => batch(&mut body, version)?,
        _ => return Err("Unsupported message".into()),
    };
    let tracing = envelope.flags.contains(Flags::TRACING);
    Ok(Body { request, tracing, custom_payload })
}

fn event_type(name: &str) -> Result<EventType> {
    EventType::named(name).ok_or_else(|| Malformed(format!("Invalid value '{name}' for Type")))
}

fn prepare<'a>(body: &mut Reader<'a>, version: Version) -> Result<Request<'a>> {
    let text = body.long_string()?;
    let has_keyspace = version >= Version::V5 && body.int()? & 1 == 1;
    let keyspace = if has_keyspace { Some(body.string()?) } else { None };
    Ok(Request::Prepare { text, keyspace })
}

fn batch<'a>(body: &mut Reader<'a>, version: Version) -> Result<Request<'a>> {
    let kind = body.byte()?;
    let mut entries = Vec::new();
    for _ in 0..body.short()? {
        let query = match body.byte()? {
            0 => BatchQuery::Text(body.long_string()?),
            1 => BatchQuery::Prepared(body.short_bytes()?),
            other => {
                let what = "Invalid query kind in BATCH messages. Must be 0 or 1 but got";
                return Err(Malformed(format!("{what} {}", other.cast_signed())));
            }
        };
        entries.push((query, positional(body, version)?));
    }
    let parameters = parameters(body, version)?;
    let kind = match kind {
        0 => BatchKind::Logged,
        1 => BatchKind::Unlogged,
        2 => BatchKind::Counter,
        other => {
            return Err(Malformed(format!("Invalid BATCH message type {}", other.cast_signed())));
        }
    };
    Ok(Request::Batch { kind, entries, parameters })
}

fn value<'a>(body: &mut Reader<'a>, version: Version) -> Result<Value<'a>> {
    match body.int()? {
        -1 => Ok(Value::Null),
        length if length < 0 && version < Version::V4 => Ok(Value::Null),
        -2 => Ok(Value::Unset),
        length => match usize::try_from(length) {
            Ok(length) => body.raw(length).map(Value::Bytes),
            Err(_) => Err(Malformed(format!("Invalid ByteBuf length {length}"))),
        },
    }
}

fn positional<'a>(body: &mut Reader<'a>, version: Version) -> Result<Vec<Value<'a>>> {
    (0..body.short()?).map(|_| value(body, version)).collect()
}

fn parameters<'a>(body: &mut Reader<'a>, version: Version) -> Result<QueryParameters<'a>> {
    use query_flags as flag;
    let mut parameters = QueryParameters::new(body.consistency()?);
    let flags = match version >= Version::V5 {
        true => body.int()?.cast_unsigned(),
        false => u32::from(body.byte()?),
    };
    let has = |flag: u32| flags & flag != 0;
    if has(flag::VALUES) && has(flag::NAMES_FOR_VALUES) {
        let count = body.short()?;
        let named = (0..count).map(|_| Ok((body.string()?, value(body, version)?)));
        parameters.values = Values::Named(named.collect::<Result<_>>()?);
    } else if has(flag::VALUES) {
        parameters.values = Values::Positional(positional(body, version)?);
    }
    parameters.skip_metadata = has(flag::SKIP_METADATA);
    if has(flag::PAGE_SIZE) {
        parameters.page_size = Some(body.int()?);
    }
    if has(flag::PAGING_STATE) {
        parameters.paging_state = body.bytes()?;
    }
    if has(flag::SERIAL_CONSISTENCY) {
        parameters.serial_consistency = Some(body.consistency()?);
    }
    if has(flag::TIMESTAMP) {
        parameters.timestamp = Some(timestamp(body.long()?)?);
    }
    if has(flag::KEYSPACE) {
        parameters.keyspace = Some(body.string()?);
    }
    if has(flag::NOW_IN_SECONDS) {
        parameters.now_in_seconds = Some(body.int()?.cast_unsigned());
    }
    Ok(parameters)
}

fn timestamp(micros: i64) -> Result<i64> {
    if micros == i64::MIN {
        let (least, most) = (i64::MIN + 1, i64::MAX);
        return Err(Malformed(format!(
            "Out of bound timestamp, must be in [{least}, {most}] (got {micros})"
        )));
    }
    Ok(micros)
}
