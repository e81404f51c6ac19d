//! The client's side of one connection, without a socket. Crate `client` has the sockets.
//!
//! Call [`Client::startup`] first, [`Client::started`] after READY, then send requests. Each appends to the bytes that
//! [`Client::take`] returns. [`Client::next_answer`] returns the responses.

use std::borrow::Cow;

use halcyon_model::request::{BatchKind, Value};

use crate::envelope::{Envelope, Flags, Header, Opcode};
use crate::frame::{self, Framing, MAX_PAYLOAD};
use crate::read::{Malformed, Reader};
use crate::request::query_flags as flag;
use crate::{
    BatchQuery, Compression, Decoder, Limits, ProtocolError, QueryParameters, Values, Version,
    compressed, write,
};

/// A decoded response, without the types of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Ready,
    Authenticate(String),
    AuthSuccess,
    Supported(Vec<(String, Vec<String>)>),
    Error {
        code: i32,
        message: String,
        /// The fields of this error code after the message.
        rest: Vec<u8>,
    },
    Void,
    SetKeyspace(String),
    /// `CREATED`, `UPDATED`, `DROPPED`.
    SchemaChange(String),
    Prepared {
        id: Vec<u8>,
        /// v5.
        result_metadata_id: Option<Vec<u8>>,
    },
    Rows(Page),
    Event(String),
    /// AUTH_CHALLENGE.
    Challenge,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub paging_state: Option<Vec<u8>>,
    /// v5.
    pub changed_metadata_id: Option<Vec<u8>>,
}

#[derive(Debug)]
pub struct Client {
    version: Version,
    compression: Compression,
    started: bool,
    decoder: Decoder,
    out: Vec<u8>,
    scratch: Vec<u8>,
}

impl Client {
    pub fn new(version: Version, compression: Compression) -> Client {
        let limits = Limits { max_frame_size: 256 << 20, max_message_size: 256 << 20 };
        let decoder = Decoder::for_client(limits);
        let (out, scratch) = (Vec::new(), Vec::new());
        Client { version, compression, started: false, decoder, out, scratch }
    }

    /// STARTUP with the compression of `new`.
    pub fn startup(&mut self, stream: i16) {
        let mut body = Vec::new();
        let name = match self.compression {
            Compression::None => None,
            Compression::Lz4 => Some("lz4"),
            Compression::Snappy => Some("snappy"),
        };
        write::short(&mut body, 1 + u16::from(name.is_some()));
        write::string(&mut body, "CQL_VERSION");
        write::string(&mut body, "3.0.0");
        if let Some(name) = name {
            write::string(&mut body, "COMPRESSION");
            write::string(&mut body, name);
        }
        self.push(stream, Opcode::Startup, &body);
        if !self.version.is_framed() {
            // The answer to STARTUP is already compressed.
            self.decoder.start(self.version, self.compression);
        }
    }

    /// To be called after READY or AUTHENTICATE.
    pub fn started(&mut self) {
        self.started = true;
        self.decoder.start(self.version, self.compression);
    }

    pub fn options(&mut self, stream: i16) {
        self.push(stream, Opcode::Options, &[]);
    }

    /// The token of `PasswordAuthenticator`.
    pub fn credentials(&mut self, stream: i16, user: &str, password: &str) {
        let mut body = Vec::new();
        write::bytes(&mut body, Some(format!("\0{user}\0{password}").as_bytes()));
        self.push(stream, Opcode::AuthResponse, &body);
    }

    pub fn register(&mut self, stream: i16, events: &[&str]) {
        let mut body = Vec::new();
        write::string_list(&mut body, events);
        self.push(stream, Opcode::Register, &body);
    }

    pub fn query(&mut self, stream: i16, text: &str, parameters: &QueryParameters<'_>) {
        let mut body = Vec::new();
        write::long_string(&mut body, text);
        put_parameters(&mut body, parameters, self.version);
        self.push(stream, Opcode::Query, &body);
    }

    pub fn prepare(&mut self, stream: i16, text: &str) {
        let mut body = Vec::new();
        write::long_string(&mut body, text);
        if self.version >= Version::V5 {
            write::int(&mut body, 0);
        }
        self.push(stream, Opcode::Prepare, &body);
    }

    /// `result_metadata_id` is sent in v5 only.
    pub fn execute(
        &mut self,
        stream: i16,
        id: &[u8],
        result_metadata_id: &[u8],
        parameters: &QueryParameters<'_>,
    ) {
        let mut body = Vec::new();
        write::short_bytes(&mut body, id);
        if self.version >= Version::V5 {
            write::short_bytes(&mut body, result_metadata_id);
        }
        put_parameters(&mut body, parameters, self.version);
        self.push(stream, Opcode::Execute, &body);
    }

    pub fn batch(
        &mut self,
        stream: i16,
        kind: BatchKind,
        entries: &[(BatchQuery<'_>, Vec<Value<'_>>)],
        parameters: &QueryParameters<'_>,
    ) {
        let mut body = vec![kind as u8];
        write::short(&mut body, write::count(entries.len()));
        for (query, values) in entries {
            match query {
                BatchQuery::Text(text) => {
                    body.push(0);
                    write::long_string(&mut body, text);
                }
                BatchQuery::Prepared(id) => {
                    body.push(1);
                    write::short_bytes(&mut body, id);
                }
            }
            put_values(&mut body, values);
        }
        put_parameters(&mut body, parameters, self.version);
        self.push(stream, Opcode::Batch, &body);
    }

    /// The bytes for the socket.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Bytes from the socket.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes);
    }

    /// The next response and its stream.
    pub fn next_answer(&mut self) -> Result<Option<(i16, Answer)>, ProtocolError> {
        let Some(envelope) = self.decoder.next_open()? else { return Ok(None) };
        let answer = decode(&envelope).map_err(|Malformed(message)| {
            ProtocolError::envelope(envelope.reply_to(), message).closing()
        })?;
        Ok(Some((envelope.stream, answer)))
    }

    /// Appends an envelope of any opcode, framed and compressed as the connection requires.
    pub fn push(&mut self, stream: i16, opcode: Opcode, body: &[u8]) {
        let mut flags = Flags::default();
        if self.version.is_beta() {
            flags.set(Flags::USE_BETA);
        }
        let mut body = Cow::Borrowed(body);
        let compression = if self.started { self.compression } else { Compression::None };
        if !self.version.is_framed()
            && compressed::compress(body.to_mut(), 0, compression, &mut self.scratch)
        {
            flags.set(Flags::COMPRESSED);
        }
        let length = i32::try_from(body.len()).unwrap_or(i32::MAX);
        let header = Header {
            version: self.version.number(),
            flags,
            stream,
            opcode: opcode.number(),
            length,
        };
        let mut envelope = Vec::new();
        header.write(&mut envelope);
        envelope.extend_from_slice(&body);
        if !(self.started && self.version.is_framed()) {
            self.out.append(&mut envelope);
            return;
        }
        let lz4 = compression == Compression::Lz4;
        let framing = if lz4 { Framing::Lz4 } else { Framing::Plain };
        let whole = envelope.len() <= MAX_PAYLOAD;
        for part in envelope.chunks(MAX_PAYLOAD) {
            let at = frame::begin(&mut self.out, framing);
            self.out.extend_from_slice(part);
            frame::seal(&mut self.out, at, framing, whole, &mut self.scratch);
        }
    }
}

/// A v5 frame with these bytes, at most [`MAX_PAYLOAD`] of them.
pub fn frame_around(payload: &[u8], self_contained: bool, compression: Compression) -> Vec<u8> {
    let lz4 = compression == Compression::Lz4;
    let framing = if lz4 { Framing::Lz4 } else { Framing::Plain };
    let mut out = Vec::new();
    let at = frame::begin(&mut out, framing);
    out.extend(payload.iter().take(MAX_PAYLOAD));
    frame::seal(&mut out, at, framing, self_contained, &mut Vec::new());
    out
}

fn put_value(body: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => write::int(body, -1),
        Value::Unset => write::int(body, -2),
        Value::Bytes(bytes) => write::bytes(body, Some(bytes)),
    }
}

fn put_values(body: &mut Vec<u8>, values: &[Value<'_>]) {
    write::short(body, write::count(values.len()));
    for value in values {
        put_value(body, value);
    }
}

fn flags_of(parameters: &QueryParameters<'_>, version: Version) -> u32 {
    let named = matches!(parameters.values, Values::Named(_));
    let v5 = version >= Version::V5;
    [
        (!parameters.values.is_empty(), flag::VALUES),
        (!parameters.values.is_empty() && named, flag::NAMES_FOR_VALUES),
        (parameters.skip_metadata, flag::SKIP_METADATA),
        (parameters.page_size.is_some(), flag::PAGE_SIZE),
        (parameters.paging_state.is_some(), flag::PAGING_STATE),
        (parameters.serial_consistency.is_some(), flag::SERIAL_CONSISTENCY),
        (parameters.timestamp.is_some(), flag::TIMESTAMP),
        (v5 && parameters.keyspace.is_some(), flag::KEYSPACE),
        (v5 && parameters.now_in_seconds.is_some(), flag::NOW_IN_SECONDS),
    ]
    .into_iter()
    .filter(|(set, _)| *set)
    .fold(0, |flags, (_, flag)| flags | flag)
}

fn put_parameters(body: &mut Vec<u8>, parameters: &QueryParameters<'_>, version: Version) {
    write::short(body, parameters.consistency.code());
    let flags = flags_of(parameters, version);
    match version >= Version::V5 {
        true => body.extend(flags.to_be_bytes()),
        false => body.push(flags as u8),
    }
    let has = |flag: u32| flags & flag != 0;
    match &parameters.values {
        Values::Positional(values) if !values.is_empty() => put_values(body, values),
        Values::Named(values) if !values.is_empty() => {
            write::short(body, write::count(values.len()));
            for (name, value) in values {
                write::string(body, name);
                put_value(body, value);
            }
        }
        _ => {}
    }
    if let Some(size) = parameters.page_size {
        write::int(body, size);
    }
    if let Some(state) = parameters.paging_state {
        write::bytes(body, Some(state));
    }
    if let Some(serial) = parameters.serial_consistency {
        write::short(body, serial.code());
    }
    if let Some(micros) = parameters.timestamp {
        body.extend(micros.to_be_bytes());
    }
    if let Some(keyspace) = parameters.keyspace.filter(|_| has(flag::KEYSPACE)) {
        write::string(body, keyspace);
    }
    if let Some(seconds) = parameters.now_in_seconds.filter(|_| has(flag::NOW_IN_SECONDS)) {
        write::int(body, seconds.cast_signed());
    }
}

fn decode(envelope: &Envelope) -> Result<Answer, Malformed> {
    let mut body = Reader::new(&envelope.body);
    if envelope.flags.contains(Flags::TRACING) {
        body.uuid()?;
    }
    if envelope.flags.contains(Flags::WARNING) {
        body.string_list()?;
    }
    if envelope.flags.contains(Flags::CUSTOM_PAYLOAD) {
        body.bytes_map()?;
    }
    Ok(match envelope.opcode {
        Opcode::Ready => Answer::Ready,
        Opcode::Authenticate => Answer::Authenticate(body.string()?.to_owned()),
        Opcode::AuthSuccess => Answer::AuthSuccess,
        Opcode::AuthChallenge => Answer::Challenge,
        Opcode::Event => Answer::Event(body.string()?.to_owned()),
        Opcode::Supported => {
            let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
            let count = body.short()?;
            let option = |_| Ok((body.string()?.to_owned(), owned(body.string_list()?)));
            Answer::Supported((0..count).map(option).collect::<Result<_, Malformed>>()?)
        }
        Opcode::Error => Answer::Error {
            code: body.int()?,
            message: body.string()?.to_owned(),
            rest: body.rest().to_vec(),
        },
        _ => result(&mut body, envelope.version)?,
    })
}

fn result(body: &mut Reader<'_>, version: Version) -> Result<Answer, Malformed> {
    Ok(match body.int()? {
        1 => Answer::Void,
        2 => Answer::Rows(rows(body)?),
        3 => Answer::SetKeyspace(body.string()?.to_owned()),
        4 => {
            let id = body.short_bytes()?.to_vec();
            let v5 = version >= Version::V5;
            let result_metadata_id = if v5 { Some(body.short_bytes()?.to_vec()) } else { None };
            Answer::Prepared { id, result_metadata_id }
        }
        5 => Answer::SchemaChange(body.string()?.to_owned()),
        kind => return Err(Malformed(format!("Unknown kind id {kind} in RESULT message"))),
    })
}

fn rows(body: &mut Reader<'_>) -> Result<Page, Malformed> {
    let flags = body.int()?;
    let width = body.int()?;
    let has = |flag: i32| flags & flag != 0;
    let mut page = Page::default();
    if has(0x0002) {
        page.paging_state = body.bytes()?.map(<[u8]>::to_vec);
    }
    if has(0x0008) {
        page.changed_metadata_id = Some(body.short_bytes()?.to_vec());
    }
    if !has(0x0004) {
        if has(0x0001) {
            body.string()?;
            body.string()?;
        }
        for _ in 0..width {
            if !has(0x0001) {
                body.string()?;
                body.string()?;
            }
            page.columns.push(body.string()?.to_owned());
            skip_type(body, 0)?;
        }
    }
    let count = body.int()?;
    for _ in 0..count {
        let cell = |_| Ok(body.bytes()?.map(<[u8]>::to_vec));
        page.rows.push((0..width).map(cell).collect::<Result<_, Malformed>>()?);
        // Rows without columns take no bytes, so the body would not bound their number.
        if width <= 0 {
            break;
        }
    }
    Ok(page)
}

fn skip_type(body: &mut Reader<'_>, depth: u8) -> Result<(), Malformed> {
    if depth > 64 {
        return Err("Types are nested too deep".into());
    }
    match body.short()? {
        0x0000 => {
            body.string()?;
        }
        0x0020 | 0x0022 => skip_type(body, depth + 1)?,
        0x0021 => {
            skip_type(body, depth + 1)?;
            skip_type(body, depth + 1)?;
        }
        0x0030 => {
            body.string()?;
            body.string()?;
            for _ in 0..body.short()? {
                body.string()?;
                skip_type(body, depth + 1)?;
            }
        }
        0x0031 => {
            for _ in 0..body.short()? {
                skip_type(body, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}
