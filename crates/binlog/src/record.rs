//! The full query log's format, version 1. docs/formats/full-query-log.md draws it.
//!
//! A record says all that is needed to send its request again: texts instead of ids of prepared statements, values as they came, the
//! options of the message, and the timestamp that the node has given it. Integers are big-endian.

use halcyon_codec::Crc32;
use halcyon_model::request::{BatchKind, Consistency};

/// The first bytes of a file: a magic, the version, and two bytes that are zero.
pub const HEADER: [u8; 8] = *b"HFQL\0\x01\0\0";
/// Ends the name of a file.
pub const ENDING: &str = "fql";
/// Bytes before a record's own: its length, and the CRC32 of length and record.
pub const FRAME: usize = 8;
/// No record is larger: a request is at most as large as a frame of the protocol may be.
pub const RECORD_MAX: u32 = 512 << 20;

/// A value as a message has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Unset,
    Bytes(Vec<u8>),
}

impl From<&halcyon_model::request::Value<'_>> for Value {
    fn from(value: &halcyon_model::request::Value<'_>) -> Value {
        match value {
            halcyon_model::request::Value::Null => Value::Null,
            halcyon_model::request::Value::Unset => Value::Unset,
            halcyon_model::request::Value::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        }
    }
}

impl Value {
    pub fn as_value(&self) -> halcyon_model::request::Value<'_> {
        match self {
            Value::Null => halcyon_model::request::Value::Null,
            Value::Unset => halcyon_model::request::Value::Unset,
            Value::Bytes(bytes) => halcyon_model::request::Value::Bytes(bytes),
        }
    }
}

/// A statement and its values, in the order of its markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub text: String,
    pub values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Single(Query),
    Batch(BatchKind, Vec<Query>),
}

/// The options of a QUERY, EXECUTE or BATCH message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    pub consistency: Consistency,
    pub serial_consistency: Option<Consistency>,
    pub page_size: Option<i32>,
    pub paging_state: Option<Vec<u8>>,
    /// Microseconds; the client's.
    pub timestamp: Option<i64>,
    pub now_in_seconds: Option<u32>,
}

/// A request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds since 1970.
    pub query_start_time: i64,
    pub protocol_version: u8,
    /// Microseconds; `None`: the node needed none.
    pub generated_timestamp: Option<i64>,
    pub generated_now_in_seconds: Option<i64>,
    /// In force when it was executed.
    pub keyspace: Option<String>,
    pub options: Options,
    pub request: Request,
}

/// Why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

type Result<T, E = Malformed> = std::result::Result<T, E>;

const SINGLE: u8 = 0;
const BATCH: u8 = 1;

/// Bits of the options that are there.
const SERIAL: u8 = 1;
const PAGE_SIZE: u8 = 2;
const PAGING_STATE: u8 = 4;
const TIMESTAMP: u8 = 8;
const NOW: u8 = 16;

impl Record {
    /// The record with its frame, as a file has it; `None`: it is larger than a record may be.
    pub fn framed(&self) -> Option<Vec<u8>> {
        let mut out = vec![0; FRAME];
        self.encode(&mut out);
        let length =
            u32::try_from(out.len() - FRAME).ok().filter(|length| *length <= RECORD_MAX)?;
        let (frame, body) = out.split_at_mut(FRAME);
        let (of_length, of_sum) = frame.split_at_mut(4);
        of_length.copy_from_slice(&length.to_be_bytes());
        of_sum.copy_from_slice(&checksum(length, body).to_be_bytes());
        Some(out)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.request {
            Request::Single(_) => SINGLE,
            Request::Batch(..) => BATCH,
        });
        out.extend(self.query_start_time.to_be_bytes());
        out.push(self.protocol_version);
        out.extend(self.generated_timestamp.unwrap_or(i64::MIN).to_be_bytes());
        out.extend(self.generated_now_in_seconds.unwrap_or(i64::MIN).to_be_bytes());
        put(out, self.keyspace.as_deref().map(str::as_bytes));
        self.options.encode(out);
        match &self.request {
            Request::Single(query) => query.encode(out),
            Request::Batch(kind, queries) => {
                out.push(*kind as u8);
                put_count(out, queries.len());
                queries.iter().for_each(|query| query.encode(out));
            }
        }
    }

    /// What a frame holds.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        let mut from = Cursor { bytes };
        let kind = from.byte()?;
        let query_start_time = from.long()?;
        let protocol_version = from.byte()?;
        let given = |value: i64| (value != i64::MIN).then_some(value);
        let generated_timestamp = given(from.long()?);
        let generated_now_in_seconds = given(from.long()?);
        let keyspace = from.optional()?.map(text).transpose()?;
        let options = Options::decode(&mut from)?;
        let request = match kind {
            SINGLE => Request::Single(Query::decode(&mut from)?),
            BATCH => {
                let kind = batch_kind(from.byte()?)?;
                // The shortest query has two counts.
                let count = from.count(8)?;
                let queries = (0..count).map(|_| Query::decode(&mut from));
                Request::Batch(kind, queries.collect::<Result<_>>()?)
            }
            _ => return Err(Malformed("a record of unknown type")),
        };
        if !from.bytes.is_empty() {
            return Err(Malformed("a record with bytes behind its end"));
        }
        Ok(Record {
            query_start_time,
            protocol_version,
            generated_timestamp,
            generated_now_in_seconds,
            keyspace,
            options,
            request,
        })
    }
}

pub(crate) fn checksum(length: u32, body: &[u8]) -> u32 {
    let mut sum = Crc32::new();
    sum.update(&length.to_be_bytes());
    sum.update(body);
    sum.finalize()
}

fn batch_kind(code: u8) -> Result<BatchKind> {
    match code {
        0 => Ok(BatchKind::Logged),
        1 => Ok(BatchKind::Unlogged),
        2 => Ok(BatchKind::Counter),
        _ => Err(Malformed("a batch of unknown type")),
    }
}

fn consistency(code: u16) -> Result<Consistency> {
    Consistency::from_code(code).ok_or(Malformed("an unknown consistency level"))
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a text that is not UTF-8"))
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // A message has at most 65,535 values or statements.
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

/// A length and bytes; the length of nothing is −1.
fn put(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.extend((-1_i32).to_be_bytes()),
        Some(bytes) => {
            out.extend(i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend(bytes);
        }
    }
}

impl Options {
    fn encode(&self, out: &mut Vec<u8>) {
        let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        out.extend(self.consistency.code().to_be_bytes());
        out.push(
            bit(self.serial_consistency.is_some(), SERIAL)
                | bit(self.page_size.is_some(), PAGE_SIZE)
                | bit(self.paging_state.is_some(), PAGING_STATE)
                | bit(self.timestamp.is_some(), TIMESTAMP)
                | bit(self.now_in_seconds.is_some(), NOW),
        );
        if let Some(level) = self.serial_consistency {
            out.extend(level.code().to_be_bytes());
        }
        if let Some(size) = self.page_size {
            out.extend(size.to_be_bytes());
        }
        if let Some(state) = &self.paging_state {
            put(out, Some(state));
        }
        if let Some(timestamp) = self.timestamp {
            out.extend(timestamp.to_be_bytes());
        }
        if let Some(now) = self.now_in_seconds {
            out.extend(now.to_be_bytes());
        }
    }

    fn decode(from: &mut Cursor<'_>) -> Result<Options> {
        let level = consistency(from.short()?)?;
        let bits = from.byte()?;
        let has = |bit: u8| bits & bit != 0;
        if bits >= 2 * NOW {
            return Err(Malformed("an unknown option of a request"));
        }
        Ok(Options {
            consistency: level,
            serial_consistency: match has(SERIAL) {
                true => Some(consistency(from.short()?)?),
                false => None,
            },
            page_size: if has(PAGE_SIZE) { Some(from.int()?) } else { None },
            paging_state: match has(PAGING_STATE) {
                true => from.optional()?.map(<[u8]>::to_vec),
                false => None,
            },
            timestamp: if has(TIMESTAMP) { Some(from.long()?) } else { None },
            now_in_seconds: if has(NOW) { Some(from.int()?.cast_unsigned()) } else { None },
        })
    }
}

impl Query {
    fn encode(&self, out: &mut Vec<u8>) {
        put(out, Some(self.text.as_bytes()));
        put_count(out, self.values.len());
        for value in &self.values {
            match value {
                Value::Null => put(out, None),
                Value::Unset => out.extend((-2_i32).to_be_bytes()),
                Value::Bytes(bytes) => put(out, Some(bytes)),
            }
        }
    }

    fn decode(from: &mut Cursor<'_>) -> Result<Query> {
        let text = text(from.optional()?.ok_or(Malformed("a query without a text"))?)?;
        // The shortest value has a length.
        let count = from.count(4)?;
        let values = (0..count).map(|_| from.value());
        Ok(Query { text, values: values.collect::<Result<_>>()? })
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let ends = Malformed("a record that ends early");
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(ends)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn short(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn int(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A number of things that take at least `least` bytes each: more than fit are refused before memory is taken for them.
    fn count(&mut self, least: usize) -> Result<usize> {
        let count = u32::from_be_bytes(self.array()?) as usize;
        match count.checked_mul(least) {
            Some(bytes) if bytes <= self.bytes.len() => Ok(count),
            _ => Err(Malformed("a record that ends early")),
        }
    }

    fn optional(&mut self) -> Result<Option<&'a [u8]>> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn value(&mut self) -> Result<Value> {
        match self.int()? {
            -1 => Ok(Value::Null),
            -2 => Ok(Value::Unset),
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed("a wrong length"))?;
                Ok(Value::Bytes(self.take(length)?.to_vec()))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn samples() -> Vec<Record> {
        let query = |text: &str, values: Vec<Value>| Query { text: text.to_owned(), values };
        let values = vec![Value::Null, Value::Unset, Value::Bytes(vec![0; 40])];
        let single = Record {
            query_start_time: 1_777_896_000_123,
            protocol_version: 5,
            generated_timestamp: Some(1_777_896_000_123_000),
            generated_now_in_seconds: None,
            keyspace: Some("ks".to_owned()),
            options: Options::default(),
            request: Request::Single(query("SELECT 漢 FROM t", values.clone())),
        };
        let options = Options {
            consistency: Consistency::LocalQuorum,
            serial_consistency: Some(Consistency::LocalSerial),
            page_size: Some(-1),
            paging_state: Some(vec![1, 2, 3]),
            timestamp: Some(-5),
            now_in_seconds: Some(7),
        };
        let queries = vec![query("INSERT", values), query("", Vec::new())];
        let batch = Record {
            keyspace: None,
            generated_timestamp: None,
            generated_now_in_seconds: Some(-1),
            options,
            request: Request::Batch(BatchKind::Unlogged, queries),
            ..single.clone()
        };
        vec![single, batch]
    }

    /// Proves that records come back as they were, and that no shorter or longer bytes are taken for one.
    #[test]
    fn records_round_trip() {
        for record in samples() {
            let framed = record.framed().unwrap();
            let body = &framed[FRAME..];
            assert_eq!(Record::decode(body), Ok(record));
            for end in 0..body.len() {
                assert!(Record::decode(&body[..end]).is_err(), "{end}");
            }
            let longer = [body, &[0]].concat();
            assert!(Record::decode(&longer).is_err());
        }
    }
}
