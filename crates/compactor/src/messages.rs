//! The messages of docs/formats/compaction-protocol.md: requests are decoded, replies are encoded.

use halcyon_model::bytes::{Cursor, DecodeError, DecodeResult, Put};

use crate::frame::Frame;
pub use crate::task_request::{Split, TaskRequest};

/// The only one that is spoken: jar and program are installed together.
pub const VERSION: u16 = 5;
const MAGIC: u32 = u32::from_be_bytes(*b"HCMP");

mod kind {
    pub(super) const HELLO: u8 = 0x01;
    pub(super) const TASK: u8 = 0x02;
    pub(super) const BOUNDS: u8 = 0x03;
    pub(super) const GRANTED: u8 = 0x04;
    pub(super) const GO_ON: u8 = 0x05;
    pub(super) const STOP: u8 = 0x06;
    pub(super) const PING: u8 = 0x07;
    pub(super) const WELCOME: u8 = 0x81;
    pub(super) const ASK_BOUND: u8 = 0x82;
    pub(super) const ASK_OUTPUT: u8 = 0x83;
    pub(super) const TICK: u8 = 0x84;
    pub(super) const DONE: u8 = 0x85;
    pub(super) const FAILED: u8 = 0x86;
    pub(super) const PONG: u8 = 0x87;
}

/// Text of names and paths; classes of deep types are longer.
const LONGEST_TEXT: usize = 64 << 10;
/// Bounds of one answer.
const MOST_KEYS: usize = 1 << 16;

/// What Cassandra says.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Hello(Hello),
    Task(Box<TaskRequest>),
    /// The answer to [`Reply::AskBound`].
    Bounds(Bounds),
    /// The answer to [`Reply::AskOutput`]: the path of its Data.db.
    Granted(String),
    /// The answer to [`Reply::Tick`]: no key's bound is below this one.
    GoOn(i64),
    Stop,
    Ping(u64),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Of the key that was asked for.
    pub bound: i64,
    /// Keys of the inputs behind it, in their order, and their bounds.
    pub ahead: Vec<(Vec<u8>, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The versions of the protocol that the other side speaks.
    pub oldest: u16,
    pub newest: u16,
    /// Of Cassandra, for messages.
    pub node: String,
    /// Bytes of memory that this process may hold.
    pub memory: u64,
    pub idle: Idle,
}

/// Whether tasks run at idle priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    Never,
    Always,
    /// As long as that leaves them a share of the cores.
    WithAShare,
}

impl Request {
    pub fn decode(frame: &Frame) -> DecodeResult<Request> {
        let mut body = Cursor::new(&frame.body);
        let cursor = &mut body;
        let request = match frame.kind {
            kind::HELLO => Request::Hello(hello(cursor)?),
            kind::TASK => Request::Task(Box::new(TaskRequest::decode(cursor)?)),
            kind::BOUNDS => Request::Bounds(bounds(cursor)?),
            kind::GRANTED => Request::Granted(text(cursor)?),
            kind::GO_ON => Request::GoOn(cursor.i64()?),
            kind::STOP => Request::Stop,
            kind::PING => Request::Ping(cursor.u64()?),
            other => return Err(cursor.error(format!("unknown kind of request {other:#04x}"))),
        };
        match body.remaining() {
            0 => Ok(request),
            more => Err(body.error(format!("{more} bytes behind the message"))),
        }
    }
}

fn bounds(cursor: &mut Cursor<'_>) -> DecodeResult<Bounds> {
    let bound = cursor.i64()?;
    let ahead = (0..count(cursor, MOST_KEYS)?).map(|_| {
        let length = usize::from(cursor.u16()?);
        Ok((cursor.take(length)?.to_vec(), cursor.i64()?))
    });
    Ok(Bounds { bound, ahead: ahead.collect::<DecodeResult<_>>()? })
}

fn hello(cursor: &mut Cursor<'_>) -> DecodeResult<Hello> {
    if cursor.u32()? != MAGIC {
        return Err(cursor.error("HCMP expected"));
    }
    let (oldest, newest) = (cursor.u16()?, cursor.u16()?);
    let node = text(cursor)?;
    let memory = cursor.u64()?;
    let idle = match cursor.u8()? {
        0 => Idle::Never,
        1 => Idle::Always,
        2 => Idle::WithAShare,
        other => return Err(cursor.error(format!("unknown priority {other}"))),
    };
    Ok(Hello { oldest, newest, node, memory, idle })
}

/// u32 count of items that take at least a byte each.
pub(crate) fn count(cursor: &mut Cursor<'_>, most: usize) -> DecodeResult<usize> {
    let count = cursor.u32()? as usize;
    if count > most.min(cursor.remaining()) {
        return Err(cursor.error(format!("{count} items: at most {most}, and no more than bytes")));
    }
    Ok(count)
}

/// u32 length, UTF-8.
pub(crate) fn text(cursor: &mut Cursor<'_>) -> DecodeResult<String> {
    let length = count(cursor, LONGEST_TEXT)?;
    let bytes = cursor.take(length)?;
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|e| DecodeError { offset: cursor.offset(), what: e.to_string() })
}

/// A component of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFile {
    pub name: String,
    pub length: u64,
    /// CRC32 of its bytes; `None` for large files.
    pub checksum: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFiles {
    /// The path of Data.db.
    pub path: String,
    pub components: Vec<ComponentFile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    pub outputs: Vec<OutputFiles>,
    /// Stored bytes of the inputs and outputs.
    pub file_read: u64,
    pub file_written: u64,
    pub partitions: u64,
    /// `[n]`: partitions that were in exactly n inputs.
    pub merged: Vec<u64>,
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureKind {
    Stopped = 1,
    /// An input is damaged.
    CorruptInput = 2,
    DiskFull = 3,
    /// The task cannot be done as it was asked for.
    Invalid = 4,
    /// An output did not pass its verification.
    BadOutput = 5,
    Other = 6,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub kind: FailureKind,
    /// The file that it is about, or nothing.
    pub path: String,
    pub message: String,
}

/// How far a task is. Bytes so far, for `nodetool compactionstats`: all but `stored` are uncompressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tick {
    /// Stored bytes read since the last tick.
    pub stored: u64,
    pub read: u64,
    pub total: u64,
    pub written: u64,
    pub partitions: u64,
    /// Microseconds of processors, so far, on all of its threads.
    pub cpu: u64,
    /// Bytes that it may hold; 0 while it waits for them.
    pub memory: u64,
}

/// What this process says.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Welcome {
        version: u16,
        program: String,
        pid: u32,
    },
    /// Keys come in token order; up to this many bounds of the following keys are welcome.
    AskBound {
        key: Vec<u8>,
        ahead: u32,
    },
    /// The token of the output's first partition.
    AskOutput(i64),
    Tick(Tick),
    Done(Done),
    Failed(Failed),
    Pong(u64),
}

impl Reply {
    pub fn frame(&self, task: u64) -> Frame {
        let mut body = Vec::new();
        let kind = match self {
            Reply::Welcome { version, program, pid } => {
                body.put_u32(MAGIC);
                body.put_u16(*version);
                put_text(&mut body, program);
                body.put_u32(*pid);
                kind::WELCOME
            }
            Reply::AskBound { key, ahead } => {
                body.put_u32(*ahead);
                body.put_u16(key.len() as u16);
                body.put(key);
                kind::ASK_BOUND
            }
            Reply::AskOutput(first) => {
                body.put_i64(*first);
                kind::ASK_OUTPUT
            }
            Reply::Tick(Tick { stored, read, total, written, partitions, cpu, memory }) => {
                [stored, read, total, written, partitions, cpu, memory]
                    .iter()
                    .for_each(|n| put_u64(&mut body, **n));
                kind::TICK
            }
            Reply::Done(done) => {
                put_done(&mut body, done);
                kind::DONE
            }
            Reply::Failed(failed) => {
                body.put_u8(failed.kind as u8);
                put_text(&mut body, &failed.path);
                put_text(&mut body, &failed.message);
                kind::FAILED
            }
            Reply::Pong(number) => {
                put_u64(&mut body, *number);
                kind::PONG
            }
        };
        Frame { kind, task, body }
    }
}

fn put_u64(body: &mut Vec<u8>, number: u64) {
    body.put(&number.to_be_bytes());
}

/// Cut off where the other side would refuse it.
fn put_text(body: &mut Vec<u8>, text: &str) {
    let end = (0..=text.len().min(LONGEST_TEXT)).rev().find(|end| text.is_char_boundary(*end));
    let text = text.get(..end.unwrap_or(0)).unwrap_or_default();
    body.put_u32(text.len() as u32);
    body.put(text.as_bytes());
}

fn put_done(body: &mut Vec<u8>, done: &Done) {
    body.put_u32(done.outputs.len() as u32);
    for output in &done.outputs {
        put_text(body, &output.path);
        body.put_u32(output.components.len() as u32);
        for component in &output.components {
            put_text(body, &component.name);
            put_u64(body, component.length);
            body.put_bool(component.checksum.is_some());
            body.put_u32(component.checksum.unwrap_or(0));
        }
    }
    [done.file_read, done.file_written, done.partitions].iter().for_each(|n| put_u64(body, *n));
    body.put_u32(done.merged.len() as u32);
    done.merged.iter().for_each(|n| put_u64(body, *n));
}
