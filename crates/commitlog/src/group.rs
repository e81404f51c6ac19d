//! The records that the next durable write will carry.
//!
//! A group gathers in the buffer that will be written: `append` copies a record there, and nothing copies it again unless
//! it is compressed or the buffer grows.

use std::rc::Rc;

use halcyon_io::clock::Instant;
use halcyon_io::{AlignedBuf, BufferPool};

use crate::compression::compress;
use crate::format::{self, Before, GROUP_HEADER, GroupHeader, RECORD_HEADER, Seed};
use crate::signal::Ticket;
use crate::{LogCompression, ReplayPosition};

/// Buffers begin with this size, and double.
const BUFFER_MIN: usize = 64 << 10;

/// Where a group will stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) seed: Seed,
    /// In the file.
    pub(crate) offset: u32,
    /// Of the first record.
    pub(crate) place: u32,
    pub(crate) before: Before,
}

pub(crate) struct Gathering {
    at: Place,
    buffer: AlignedBuf,
    /// Of the buffer, the header's room included.
    len: usize,
    records: u32,
    ticket: Rc<Ticket>,
    started: Instant,
}

/// A group as it will be written.
pub(crate) struct Sealed {
    pub(crate) segment: u64,
    pub(crate) offset: u32,
    pub(crate) buffer: AlignedBuf,
    /// Padded to a block.
    pub(crate) len: usize,
    pub(crate) raw: usize,
    pub(crate) ticket: Rc<Ticket>,
    pub(crate) started: Instant,
}

/// The pool has no ceiling, and a segment bounds what is asked.
pub(crate) fn take(pool: &BufferPool, len: usize) -> AlignedBuf {
    pool.try_take(len).expect("an unbounded pool has room for a group")
}

impl Gathering {
    pub(crate) fn start(pool: &BufferPool, at: Place, now: Instant) -> Gathering {
        let (buffer, ticket) = (take(pool, BUFFER_MIN), Rc::default());
        Gathering { at, buffer, len: GROUP_HEADER, records: 0, ticket, started: now }
    }

    /// Bytes of the records.
    pub(crate) fn raw(&self) -> usize {
        self.len - GROUP_HEADER
    }

    pub(crate) fn place(&self) -> u32 {
        self.at.place + self.raw() as u32
    }

    pub(crate) fn ticket(&self) -> &Rc<Ticket> {
        &self.ticket
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The caller has made sure that the segment has room.
    pub(crate) fn push(&mut self, pool: &BufferPool, record: &[u8]) -> ReplayPosition {
        let place = self.place();
        let end = self.len + RECORD_HEADER + record.len();
        if end > self.buffer.len() {
            let mut larger = take(pool, end.max(self.buffer.len() * 2));
            larger[..self.len].copy_from_slice(&self.buffer[..self.len]);
            self.buffer = larger;
        }
        let header = format::record_header(self.at.seed, place, record);
        self.buffer[self.len..self.len + RECORD_HEADER].copy_from_slice(&header);
        self.buffer[self.len + RECORD_HEADER..end].copy_from_slice(record);
        self.len = end;
        self.records += 1;
        ReplayPosition { segment: self.at.segment, offset: place }
    }

    /// Compresses, pads, and writes the header. `scratch` is only here to be used again.
    pub(crate) fn seal(
        mut self,
        pool: &BufferPool,
        compression: LogCompression,
        block: usize,
        scratch: &mut Vec<u8>,
    ) -> Sealed {
        let raw = self.raw();
        let mut stored = raw;
        if let Some(smaller) = compress(compression, &self.buffer[GROUP_HEADER..self.len], scratch)
        {
            self.buffer[GROUP_HEADER..GROUP_HEADER + smaller].copy_from_slice(&scratch[..smaller]);
            stored = smaller;
        }
        let end = GROUP_HEADER + stored;
        let len = end.next_multiple_of(block);
        if len > self.buffer.len() {
            let mut larger = take(pool, len);
            larger[..end].copy_from_slice(&self.buffer[..end]);
            self.buffer = larger;
        }
        self.buffer[end..len].fill(0);
        let header = GroupHeader {
            stored: stored as u32,
            raw: raw as u32,
            records: self.records,
            place: self.at.place,
            before: self.at.before,
        };
        let header = header.encode(self.at.seed, self.at.offset);
        self.buffer[..GROUP_HEADER].copy_from_slice(&header);
        Sealed {
            segment: self.at.segment,
            offset: self.at.offset,
            buffer: self.buffer,
            len,
            raw,
            ticket: self.ticket,
            started: self.started,
        }
    }
}
