//! Decodes the bytes of the socket into envelopes.
//!
//! ```text
//!  feed ─► input ─┬─ bare envelopes (v3, v4, and everything before STARTUP) ─────────────────────────► Packed
//!                 └─ v5 frames ─┬─ self-contained ─► whole envelopes ──────────────────────────────► Packed
//!                               └─ not ─► parts of one large envelope, collected ──────────────────► Packed
//! ```
//! 1. No length from the wire determines an allocation: bytes are collected as they arrive, up to the limits. A compressed body is opened
//!    by its holder ([`Packed::open`]), once the stated length fits into its memory.
//! 2. A bad envelope is reported and skipped. If its end is unknown, the error asks to close the connection, and nothing more is
//!    decoded.
//! 3. Two bad envelopes in a row in one frame close the connection, as in Cassandra with
//!    `consecutive_message_errors_threshold: 1`.

use crate::compressed;
use crate::envelope::{Envelope, Flags, HEADER, Header, Opcode, RESPONSE, ReplyTo};
use crate::frame::{FrameHeader, Framing};
use crate::packed::{Outline, Packed};
use crate::read::Malformed;
use crate::{Compression, Error, ErrorKind, ProtocolError, Version};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `native_transport_max_frame_size`: the largest envelope, with its header, in versions without frames.
    pub max_frame_size: usize,
    /// `native_transport_max_message_size`: the largest body after reassembly and decompression.
    pub max_message_size: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_frame_size: 16 << 20, max_message_size: 16 << 20 }
    }
}

/// The side that sent the envelopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
    Response,
}

#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    expected: Side,
    /// Set by STARTUP.
    version: Option<Version>,
    compression: Compression,
    framing: Option<Framing>,
    input: Vec<u8>,
    /// Bytes of `input` that have been decoded.
    read: usize,
    skip: Option<Skip>,
    /// The payload of a self-contained frame, and the bytes of it that have been decoded.
    contained: Vec<u8>,
    contained_read: usize,
    errors_in_row: u32,
    large: Option<Large>,
    closed: bool,
}

/// Bytes to skip, and the error to report after them.
#[derive(Debug)]
struct Skip {
    left: u64,
    report: Option<ProtocolError>,
}

/// An envelope that spans several frames.
#[derive(Debug)]
struct Large {
    header: Header,
    version: Version,
    opcode: Opcode,
    body: Vec<u8>,
    /// Bytes of the body that have arrived. `body` is shorter if it is too large and therefore dropped.
    received: usize,
    length: usize,
    /// Reported when all of it has arrived; no more of the body is kept.
    refused: Option<Error>,
}

impl Large {
    fn is_kept(&self, limits: Limits) -> bool {
        self.length <= limits.max_message_size && self.refused.is_none()
    }
}

/// Decoded bytes that `input` may keep before they are removed; removing them after every envelope would move bytes too often.
const SLACK: usize = 64 * 1024;

/// Memory that an idle connection may keep.
const KEPT: usize = 16 * 1024;

/// The largest STARTUP or OPTIONS.
const STARTUP_MAX: usize = 16 * 1024;

type Next = Result<Option<Packed>, ProtocolError>;

impl Decoder {
    /// For a server: requests.
    pub fn new(limits: Limits) -> Decoder {
        Decoder {
            limits,
            expected: Side::Request,
            version: None,
            compression: Compression::None,
            framing: None,
            input: Vec::new(),
            read: 0,
            skip: None,
            contained: Vec::new(),
            contained_read: 0,
            errors_in_row: 0,
            large: None,
            closed: false,
        }
    }

    /// For a client: responses.
    pub fn for_client(limits: Limits) -> Decoder {
        Decoder { expected: Side::Response, ..Decoder::new(limits) }
    }

    /// To be called when STARTUP was accepted: later bytes use this version and compression.
    pub fn start(&mut self, version: Version, compression: Compression) {
        self.version = Some(version);
        if version.is_framed() {
            let lz4 = compression == Compression::Lz4;
            self.framing = Some(if lz4 { Framing::Lz4 } else { Framing::Plain });
        } else {
            self.compression = compression;
        }
    }

    /// Takes bytes from the socket.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.rest();
        if self.read > SLACK {
            self.input.drain(..self.read);
            self.read = 0;
        }
        if !self.closed {
            self.input.extend_from_slice(bytes);
        }
    }

    /// Gives back what it needs no more, if all bytes are decoded. To be called before a wait for more.
    pub fn rest(&mut self) {
        if self.read == self.input.len() {
            self.input.clear();
            self.input.shrink_to(KEPT);
            self.read = 0;
        }
        if self.contained_read == self.contained.len() {
            self.contained.clear();
            self.contained.shrink_to(KEPT);
            self.contained_read = 0;
        }
    }

    /// The next envelope; `None` if more bytes are needed. After an error that closes the connection, always `None`.
    #[allow(clippy::should_implement_trait, reason = "not an iterator: None is not the end")]
    pub fn next(&mut self) -> Next {
        if self.closed {
            return Ok(None);
        }
        let next = match self.framing {
            Some(framing) => self.next_framed(framing),
            None => self.next_bare(),
        };
        if next.as_ref().is_err_and(|error| error.close) {
            self.closed = true;
            self.input = Vec::new();
            self.read = 0;
        }
        next
    }

    /// As `next`, and opens the body at once: for a client, which bounds its answers by what it asks.
    pub fn next_open(&mut self) -> Result<Option<Envelope>, ProtocolError> {
        self.next()?.map(Packed::open).transpose()
    }

    /// Bytes that the incomplete message will have, as far as its beginning tells: what is too large is not kept.
    pub fn expected(&self) -> usize {
        let unread = self.unread();
        if let Some(large) = &self.large {
            return unread.len() + if large.is_kept(self.limits) { large.length } else { 0 };
        }
        let stated = self.stated().map_or(0, |(_, total)| total);
        if stated <= self.max_frame_size() { unread.len().max(stated) } else { unread.len() }
    }

    /// The header of the incomplete bare message, and the bytes of all of it.
    fn stated(&self) -> Option<(Header, usize)> {
        let is_next = self.framing.is_none() && self.skip.is_none();
        let header = Header::read(self.unread().first_chunk::<HEADER>().filter(|_| is_next)?);
        Some((header, HEADER.saturating_add(header.length.cast_unsigned() as usize)))
    }

    /// The incomplete message, if its header is known and the rest of it is not dropped.
    pub fn incomplete(&self) -> Option<Outline> {
        if let Some(large) = &self.large {
            let outline =
                Outline { opcode: large.opcode, bytes: large.length, body_len: large.length };
            return large.is_kept(self.limits).then_some(outline);
        }
        let (header, total) = self.stated().filter(|(_, total)| *total <= self.max_frame_size())?;
        let opcode = self.judge(header, Version::from_number(header.version)?).ok()?;
        let sent = total - HEADER;
        let begun = self.unread().get(HEADER..).unwrap_or_default();
        let opened = self.opened_len(header, begun).unwrap_or_default();
        let (bytes, body_len) = opened.map_or((sent, sent), |len| (sent + len, len));
        Some(Outline { opcode, bytes, body_len })
    }

    /// Drops the incomplete message with what will still come of it, and reports the error in its place. False if its header is not known.
    pub fn refuse(&mut self, error: Error) -> bool {
        if self.incomplete().is_none() {
            return false;
        }
        if let Some(large) = &mut self.large {
            (large.body, large.refused) = (Vec::new(), Some(error));
        } else if let Some((header, total)) = self.stated() {
            let reply_to = Some(ReplyTo::new(self.reply_version(), header.stream));
            let report = Some(ProtocolError { reply_to, error, close: false });
            let left = total.saturating_sub(self.unread().len()) as u64;
            self.skip = Some(Skip { left, report });
            self.drop_unread();
        }
        true
    }

    /// Bytes of memory that it has taken.
    pub fn held(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.body.capacity());
        self.input.capacity() + self.contained.capacity() + large
    }

    fn unread(&self) -> &[u8] {
        self.input.get(self.read..).unwrap_or_default()
    }

    fn drop_unread(&mut self) {
        self.read = self.input.len();
    }

    fn next_bare(&mut self) -> Next {
        if let Some(skip) = &mut self.skip {
            let dropped = skip.left.min((self.input.len() - self.read) as u64);
            self.read += dropped as usize;
            skip.left -= dropped;
            if skip.left > 0 {
                return Ok(None);
            }
            if let Some(report) = self.skip.take().and_then(|skip| skip.report) {
                return Err(report);
            }
        }
        let unread = self.unread();
        let Some(&first) = unread.first() else { return Ok(None) };
        let version = Version::from_number(first & !RESPONSE);
        let Some(header) = unread.first_chunk::<HEADER>() else {
            if version.is_some() {
                return Ok(None);
            }
            // Without the whole header the stream is unknown, so no answer can be addressed.
            let error = unsupported(first & !RESPONSE, 0, self.reply_version());
            return Err(ProtocolError { reply_to: None, ..error }.closing());
        };
        let header = Header::read(header);
        let Some(version) = version else {
            let error = unsupported(first & !RESPONSE, header.stream, self.reply_version());
            self.drop_unread();
            return Err(error);
        };
        // Unlike in frames, Cassandra reads this length as unsigned.
        let length = header.length.cast_unsigned();
        let total = u64::from(length) + HEADER as u64;
        let opcode = match self.judge(header, version) {
            Ok(opcode) => opcode,
            Err(error) => {
                self.skip = Some(Skip { left: total, report: None });
                return Err(error);
            }
        };
        if total > self.max_frame_size() as u64 {
            self.skip = Some(Skip { left: total, report: Some(self.too_big(header, total)) });
            return self.next_bare();
        }
        let Some(body) = unread.get(HEADER..HEADER + length as usize) else { return Ok(None) };
        let envelope = self.bare_envelope(header, version, opcode, body);
        self.read += HEADER + length as usize;
        envelope.map(Some)
    }

    /// Who has not started yet sends what is small.
    fn max_frame_size(&self) -> usize {
        match (self.expected, self.version) {
            (Side::Request, None) => self.limits.max_frame_size.min(STARTUP_MAX),
            _ => self.limits.max_frame_size,
        }
    }

    fn too_big(&self, header: Header, total: u64) -> ProtocolError {
        let most = self.max_frame_size();
        let message =
            format!("Request is too big: length {total} exceeds maximum allowed length {most}.");
        let reply_to = ReplyTo::new(self.reply_version(), header.stream);
        let error = Error::new(ErrorKind::Invalid, message);
        ProtocolError { reply_to: Some(reply_to), error, close: false }
    }

    fn bare_envelope(
        &self,
        header: Header,
        version: Version,
        opcode: Opcode,
        body: &[u8],
    ) -> Result<Packed, ProtocolError> {
        let reply_to = ReplyTo::new(self.version.unwrap_or(version), header.stream);
        if let Some(agreed) = self.version.filter(|agreed| *agreed != version) {
            let message = other_version(version, "previous messages", agreed);
            return Err(ProtocolError::envelope(reply_to, message));
        }
        let len = self
            .opened_len(header, body)
            .map_err(|malformed| ProtocolError::envelope(reply_to, malformed.0))?;
        let compressed = len.map(|len| (self.compression, len));
        let (flags, stream, body) = (header.flags, header.stream, body.to_vec());
        Ok(Packed { envelope: Envelope { version, flags, stream, opcode, body }, compressed })
    }

    /// The length of a compressed body when it is open, by its first bytes; `None` for a plain one.
    fn opened_len(&self, header: Header, body: &[u8]) -> Result<Option<usize>, Malformed> {
        // Without an agreed compression, Cassandra ignores the flag.
        if !header.flags.contains(Flags::COMPRESSED) || self.compression == Compression::None {
            return Ok(None);
        }
        compressed::stated_len(body, self.compression, self.limits.max_message_size).map(Some)
    }

    fn next_framed(&mut self, framing: Framing) -> Next {
        loop {
            if self.contained_read < self.contained.len() {
                return self.next_contained().map(Some);
            }
            self.contained.clear();
            self.contained.shrink_to(KEPT);
            self.contained_read = 0;
            self.errors_in_row = 0;
            let header = match FrameHeader::read(self.unread(), framing) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.on_stream(0, error.to_string()).closing()),
            };
            let end = self.read.saturating_add(header.frame_len(framing));
            let Some(frame) = self.input.get(self.read..end) else { return Ok(None) };
            let mut payload = std::mem::take(&mut self.contained);
            let opened = header.open(frame, framing, &mut payload);
            self.read = end;
            if let Err(error) = opened {
                return Err(self.on_stream(0, error.to_string()).closing());
            }
            if header.self_contained {
                self.contained = payload;
            } else if let Some(envelope) = self.gather(&payload)? {
                return Ok(Some(envelope));
            }
        }
    }

    fn on_stream(&self, stream: i16, message: String) -> ProtocolError {
        ProtocolError::envelope(ReplyTo::new(self.reply_version(), stream), message)
    }

    fn next_contained(&mut self) -> Result<Packed, ProtocolError> {
        let rest = self.contained.get(self.contained_read..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<HEADER>() else {
            return Err(self.on_stream(0, undersized(rest.len())).closing());
        };
        let header = Header::read(header);
        let Ok(length) = usize::try_from(header.length) else {
            return Err(self.on_stream(header.stream, negative(header.length)).closing());
        };
        let judged = self.judge_framed(header);
        let body = rest.get(HEADER..).and_then(|rest| rest.get(..length));
        match (judged, body) {
            (Ok((version, opcode)), Some(body)) => {
                let body = body.to_vec();
                self.contained_read += HEADER + length;
                self.errors_in_row = 0;
                let (flags, stream) = (header.flags, header.stream);
                let envelope = Envelope { version, flags, stream, opcode, body };
                Ok(Packed { envelope, compressed: None })
            }
            (Ok(_), None) => {
                let message =
                    format!("Envelope body of {length} bytes exceeds the frame that contains it");
                Err(self.on_stream(header.stream, message).closing())
            }
            (Err(error), _) => {
                self.contained_read =
                    (self.contained_read + HEADER).saturating_add(length).min(self.contained.len());
                self.errors_in_row += 1;
                Err(if self.errors_in_row > 1 { error.closing() } else { error })
            }
        }
    }

    /// Adds a part to the large envelope; `None` while it is incomplete.
    fn gather(&mut self, payload: &[u8]) -> Next {
        let (mut large, part) = match self.large.take() {
            Some(large) => (large, payload),
            None => self.begin_large(payload).map_err(ProtocolError::closing)?,
        };
        large.received = large.received.saturating_add(part.len());
        if large.received > large.length {
            let message = format!("Frames exceed the envelope body of {} bytes", large.length);
            return Err(self.on_stream(large.header.stream, message).closing());
        }
        if large.is_kept(self.limits) {
            large.body.extend_from_slice(part);
        }
        if large.received < large.length {
            self.large = Some(large);
            return Ok(None);
        }
        let Large { header, version, opcode, body, length, refused, .. } = large;
        if let Some(error) = refused {
            let reply_to = Some(ReplyTo::new(version, header.stream));
            return Err(ProtocolError { reply_to, error, close: false });
        }
        let most = self.limits.max_message_size;
        if length > most {
            let message = format!(
                "CQL Message of size {length} bytes exceeds allowed maximum of {most} bytes"
            );
            let error = Error::new(ErrorKind::Invalid, message);
            let reply_to = Some(ReplyTo::new(version, header.stream));
            return Err(ProtocolError { reply_to, error, close: false });
        }
        let (flags, stream) = (header.flags, header.stream);
        let envelope = Envelope { version, flags, stream, opcode, body };
        Ok(Some(Packed { envelope, compressed: None }))
    }

    fn begin_large<'p>(&self, payload: &'p [u8]) -> Result<(Large, &'p [u8]), ProtocolError> {
        let Some((header, part)) = payload.split_first_chunk::<HEADER>() else {
            return Err(self.on_stream(0, undersized(payload.len())));
        };
        let header = Header::read(header);
        let length = usize::try_from(header.length)
            .map_err(|_| self.on_stream(header.stream, negative(header.length)))?;
        let (version, opcode) = self.judge_framed(header)?;
        let body = Vec::new();
        let large = Large { header, version, opcode, body, received: 0, length, refused: None };
        Ok((large, part))
    }

    fn judge_framed(&self, header: Header) -> Result<(Version, Opcode), ProtocolError> {
        let number = header.version & !RESPONSE;
        let version = Version::from_number(number)
            .ok_or_else(|| unsupported(number, header.stream, self.reply_version()))?;
        let opcode = self.judge(header, version)?;
        match self.version.filter(|agreed| *agreed != version) {
            // Cassandra's message has no blank here either.
            Some(agreed) => {
                let message = other_version(version, "previousmessages", agreed);
                Err(self.on_stream(header.stream, message))
            }
            None => Ok((version, opcode)),
        }
    }

    /// Checks the beta flag, opcode and direction.
    fn judge(&self, header: Header, version: Version) -> Result<Opcode, ProtocolError> {
        let fail = |message: String| Err(self.on_stream(header.stream, message));
        if version.is_beta() && !header.flags.contains(Flags::USE_BETA) {
            let message = format!(
                "Beta version of the protocol used ({version}), but USE_BETA flag is unset"
            );
            return Err(ProtocolError::envelope(ReplyTo::new(version, header.stream), message));
        }
        let Some(opcode) = Opcode::from_number(header.opcode) else {
            return fail(format!("Unknown opcode {}", header.opcode.cast_signed()));
        };
        let name = |side| if side == Side::Request { "REQUEST" } else { "RESPONSE" };
        let natural = if opcode.is_request() { Side::Request } else { Side::Response };
        let got = if header.version & RESPONSE == 0 { Side::Request } else { Side::Response };
        if natural != got {
            return fail(format!(
                "Wrong protocol direction (expected {}, got {}) for opcode {} ({opcode})",
                name(natural),
                name(got),
                header.opcode
            ));
        }
        if got != self.expected {
            let (got, expected) = (name(got), name(self.expected));
            return fail(format!("Unexpected {got} message {opcode}, expecting {expected}"));
        }
        Ok(opcode)
    }

    /// The version to answer in when the client's is not supported.
    fn reply_version(&self) -> Version {
        self.version.unwrap_or(Version::CURRENT)
    }
}

fn undersized(actual: usize) -> String {
    format!("Undersized buffer supplied. Expected {HEADER}, actual {actual}")
}

fn negative(length: i32) -> String {
    format!("Invalid value for envelope header body length field: {length}")
}

fn other_version(got: Version, previous: &str, agreed: Version) -> String {
    format!(
        "Invalid message version. Got {got} but {previous} on this connection had version {agreed}"
    )
}

/// Versions 1 and 2 are answered with their own, shorter header, in which the stream has one byte.
fn unsupported(number: u8, stream: i16, reply: Version) -> ProtocolError {
    let mut reply_to = ReplyTo::new(reply, stream);
    if number < Version::V3.number() {
        let [stream, _] = stream.to_be_bytes();
        reply_to.stream = i16::from(stream.cast_signed());
        reply_to.ancient = Some(number).filter(|number| *number > 0);
    }
    ProtocolError::envelope(reply_to, Version::unsupported(number))
}
