//! Encodes responses into bytes for the socket.
//!
//! 1. A response is appended to one buffer: a header with space for the length, the body, then the length is filled in.
//! 2. v3 and v4 with compression: the body is replaced by its compressed form.
//! 3. v5 after STARTUP: responses share a frame until it is full or [`Encoder::take`] asks for the bytes. A response that
//!    is larger than a frame gets several frames, none of them self-contained.
//!
//! The answer to STARTUP is already compressed in v3 and v4, and is never framed in v5.

use crate::envelope::{Flags, HEADER, Header, RESPONSE, ReplyTo};
use crate::frame::{self, Framing, MAX_PAYLOAD, TRAILER};
use crate::{Compression, Error, ErrorKind, ProtocolError, Response, Version, compressed, write};

/// Memory that an idle connection may keep.
const KEPT: usize = 16 * 1024;

/// The optional fields of a response before its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// A timeuuid.
    pub tracing_id: Option<[u8; 16]>,
    /// Not sent in v3.
    pub warnings: Vec<String>,
    /// Not sent in v3.
    pub custom_payload: Vec<(String, Option<Vec<u8>>)>,
}

#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
    scratch: Vec<u8>,
    compression: Compression,
    framing: Option<Framing>,
    /// The next response answers STARTUP, and gets no frame.
    bare_next: bool,
    /// The start of the open frame.
    open: Option<usize>,
}

impl Encoder {
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// STARTUP was accepted; its answer is pushed next.
    pub fn start(&mut self, version: Version, compression: Compression) {
        if version.is_framed() {
            let lz4 = compression == Compression::Lz4;
            self.framing = Some(if lz4 { Framing::Lz4 } else { Framing::Plain });
            self.bare_next = true;
        } else {
            self.compression = compression;
        }
    }

    /// Whether `take` would return no bytes.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The approximate number of bytes that `take` would return.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Bytes of memory that it has taken.
    pub fn held(&self) -> usize {
        self.out.capacity() + self.scratch.capacity()
    }

    /// The bytes for the socket; completes the open frame.
    pub fn take(&mut self) -> Vec<u8> {
        self.seal(true);
        self.scratch.clear();
        self.scratch.shrink_to(KEPT);
        std::mem::take(&mut self.out)
    }

    /// Takes back a buffer from `take` to reuse its memory, unless it is large.
    pub fn reuse(&mut self, mut buffer: Vec<u8>) {
        let wanted = self.out.capacity() + 1..=KEPT;
        if self.out.is_empty() && wanted.contains(&buffer.capacity()) {
            buffer.clear();
            self.out = buffer;
        }
    }

    /// Appends the answer to malformed bytes, if the client could understand one.
    pub fn push_error(&mut self, error: &ProtocolError) {
        if let Some(reply_to) = error.reply_to {
            self.push(reply_to, &Response::Error(error.error.clone()), &Notes::default());
        }
    }

    pub fn push(&mut self, to: ReplyTo, response: &Response<'_>, notes: &Notes) {
        match self.framing {
            Some(framing) if !self.bare_next => self.push_framed(framing, to, response, notes),
            _ => {
                self.bare_next = false;
                self.write_envelope(to, response, notes);
            }
        }
    }

    fn push_framed(
        &mut self,
        framing: Framing,
        to: ReplyTo,
        response: &Response<'_>,
        notes: &Notes,
    ) {
        let header_len = framing.header_len();
        let at = match self.open {
            Some(at) => at,
            None => frame::begin(&mut self.out, framing),
        };
        self.open = Some(at);
        let envelope = self.out.len();
        self.write_envelope(to, response, notes);
        if self.out.len() - at - header_len <= MAX_PAYLOAD {
            return;
        }
        // The response does not fit: close the frame before it.
        let is_first = envelope == at + header_len;
        // Room for all at once: a large response must not be copied again while the buffer grows.
        let frames = (self.out.len() - at).div_ceil(MAX_PAYLOAD) + 1;
        let room = self.out.len() + frames * (header_len + TRAILER);
        let written = std::mem::replace(&mut self.out, Vec::with_capacity(room));
        let (before, tail) = written.split_at_checked(envelope).unwrap_or_default();
        self.out.extend_from_slice(if is_first {
            before.get(..at).unwrap_or_default()
        } else {
            before
        });
        if is_first {
            self.open = None;
        }
        self.seal(true);
        let whole = tail.len() <= MAX_PAYLOAD;
        for part in tail.chunks(MAX_PAYLOAD) {
            self.open = Some(frame::begin(&mut self.out, framing));
            self.out.extend_from_slice(part);
            if !whole {
                self.seal(false);
            }
        }
    }

    fn seal(&mut self, self_contained: bool) {
        if let (Some(framing), Some(at)) = (self.framing, self.open.take()) {
            frame::seal(&mut self.out, at, framing, self_contained, &mut self.scratch);
        }
    }

    fn write_envelope(&mut self, to: ReplyTo, response: &Response<'_>, notes: &Notes) {
        let at = self.out.len();
        self.write_body(to, response, notes);
        let body = self.out.len() - at - header_len(to);
        if i32::try_from(body).is_err() {
            self.out.truncate(at);
            let error = Error::new(ErrorKind::Server, "The response exceeds 2 GiB");
            self.write_body(to, &Response::Error(error), &Notes::default());
        }
        let begin = at + header_len(to);
        if compressed::compress(&mut self.out, begin, self.compression, &mut self.scratch) {
            self.set_flag(at, Flags::COMPRESSED);
        }
        let body = self.out.len() - at - header_len(to);
        let length = i32::try_from(body).unwrap_or(i32::MAX).to_be_bytes();
        let header = self.out.get_mut(at..).and_then(|out| out.get_mut(..header_len(to)));
        if let Some(field) = header.and_then(|header| header.last_chunk_mut()) {
            *field = length;
        }
    }

    /// In the header of the envelope at `at`, whose second byte has the flags.
    fn set_flag(&mut self, at: usize, flag: Flags) {
        if let Some(flags) = self.out.get_mut(at + 1) {
            *flags |= flag.0;
        }
    }

    /// Appends a header without length, and the body.
    fn write_body(&mut self, to: ReplyTo, response: &Response<'_>, notes: &Notes) {
        let version = to.version;
        let notes_since_v4 = version >= Version::V4;
        let warnings = !notes.warnings.is_empty() && notes_since_v4;
        let payload = !notes.custom_payload.is_empty() && notes_since_v4;
        let mut flags = Flags::default();
        for (set, flag) in [
            (notes.tracing_id.is_some(), Flags::TRACING),
            (warnings, Flags::WARNING),
            (payload, Flags::CUSTOM_PAYLOAD),
            (version.is_beta(), Flags::USE_BETA),
        ] {
            if set {
                flags.set(flag);
            }
        }
        let opcode = response.opcode().number();
        match to.ancient {
            Some(number) => {
                let [_, stream] = to.stream.to_be_bytes();
                self.out.extend([number | RESPONSE, flags.0, stream, opcode, 0, 0, 0, 0]);
            }
            None => {
                let number = version.number() | RESPONSE;
                Header { version: number, flags, stream: to.stream, opcode, length: 0 }
                    .write(&mut self.out);
            }
        }
        if let Some(id) = notes.tracing_id {
            self.out.extend(id);
        }
        if warnings {
            write::string_list(&mut self.out, &notes.warnings);
        }
        if payload {
            write::bytes_map(&mut self.out, &notes.custom_payload);
        }
        response.encode(&mut self.out, version);
    }
}

fn header_len(to: ReplyTo) -> usize {
    if to.ancient.is_some() { HEADER - 1 } else { HEADER }
}
