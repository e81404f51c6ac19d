//! Groups: the records of one durable write.
//!
//! The open group is built in the aligned buffer that will be written. `append` copies a record into it; it is copied again only by
//! compression or when the buffer grows.

use std::rc::Rc;

use halcyon_io::clock::Instant;
use halcyon_io::{AlignedBuf, BufferPool};

use crate::ReplayPosition;
use crate::compression::GroupCompressor;
use crate::format::{self, GROUP_HEADER, GroupHeader, PreviousSegment, RECORD_HEADER, Seed};
use crate::ticket::Ticket;

/// The size of a new buffer; it doubles when it is full.
const BUFFER_MIN: usize = 64 << 10;

/// Where a group starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupStart {
    pub(crate) segment: u64,
    pub(crate) seed: Seed,
    /// The file offset.
    pub(crate) offset: u32,
    /// The raw offset of the first record.
    pub(crate) raw_offset: u32,
    pub(crate) previous: PreviousSegment,
}

pub(crate) struct OpenGroup {
    at: GroupStart,
    buffer: AlignedBuf,
    /// Bytes of the buffer that are used, with the space for the header.
    len: usize,
    records: u32,
    ticket: Rc<Ticket>,
    started: Instant,
}

/// A group that is ready to be written.
pub(crate) struct SealedGroup {
    pub(crate) segment: u64,
    pub(crate) offset: u32,
    pub(crate) buffer: AlignedBuf,
    /// Padded to a block.
    pub(crate) len: usize,
    pub(crate) raw: usize,
    pub(crate) ticket: Rc<Ticket>,
    pub(crate) started: Instant,
}

/// Cannot fail: the pool is unbounded, and a segment's size bounds `len`.
pub(crate) fn take(pool: &BufferPool, len: usize) -> AlignedBuf {
    #[expect(clippy::expect_used, reason = "an unbounded pool never refuses")]
    pool.try_take(len).expect("an unbounded pool has room for a group")
}

impl OpenGroup {
    pub(crate) fn start(pool: &BufferPool, at: GroupStart, now: Instant) -> OpenGroup {
        let (buffer, ticket) = (take(pool, BUFFER_MIN), Rc::default());
        OpenGroup { at, buffer, len: GROUP_HEADER, records: 0, ticket, started: now }
    }

    /// Bytes of the records.
    pub(crate) fn raw(&self) -> usize {
        self.len - GROUP_HEADER
    }

    pub(crate) fn raw_offset(&self) -> u32 {
        self.at.raw_offset + self.raw() as u32
    }

    pub(crate) fn ticket(&self) -> &Rc<Ticket> {
        &self.ticket
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Adds a record; the caller has checked that the segment has room.
    pub(crate) fn push(&mut self, pool: &BufferPool, record: &[u8]) -> ReplayPosition {
        let raw_offset = self.raw_offset();
        let end = self.len + RECORD_HEADER + record.len();
        if end > self.buffer.len() {
            let mut larger = take(pool, end.max(self.buffer.len() * 2));
            larger[..self.len].copy_from_slice(&self.buffer[..self.len]);
            self.buffer = larger;
        }
        let header = format::record_header(self.at.seed, raw_offset, record);
        self.buffer[self.len..self.len + RECORD_HEADER].copy_from_slice(&header);
        self.buffer[self.len + RECORD_HEADER..end].copy_from_slice(record);
        self.len = end;
        self.records += 1;
        ReplayPosition { segment: self.at.segment, offset: raw_offset }
    }

    /// Compresses and pads the group and writes its header.
    pub(crate) fn seal(
        mut self,
        pool: &BufferPool,
        block: usize,
        compressor: &mut GroupCompressor,
    ) -> SealedGroup {
        let raw = self.raw();
        let mut stored = raw;
        if let Some(smaller) = compressor.compress(&self.buffer[GROUP_HEADER..self.len]) {
            stored = smaller.len();
            self.buffer[GROUP_HEADER..GROUP_HEADER + stored].copy_from_slice(smaller);
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
            raw_offset: self.at.raw_offset,
            previous: self.at.previous,
        };
        let header = header.encode(self.at.seed, self.at.offset);
        self.buffer[..GROUP_HEADER].copy_from_slice(&header);
        SealedGroup {
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
