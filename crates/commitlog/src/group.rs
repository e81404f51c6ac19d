//! Groups: the records of one write.
//!
//! The open group is built in the aligned buffer that will be written. `append` copies a record into it; it is copied again only by
//! compression or when the buffer grows.
//!
//! Whole blocks are written. A group that starts within a block therefore writes the start of that block again, as it is: to write
//! only a part of a page that is not in the page cache, the kernel would have to read it first.

use std::rc::Rc;

use halcyon_io::clock::Instant;
use halcyon_io::{AlignedBuf, BufferPool};

use crate::ReplayPosition;
use crate::compression::GroupCompressor;
use crate::format::{
    self, FilePosition, GROUP_ALIGNMENT, GROUP_HEADER, GroupHeader, RECORD_HEADER, Seed, put,
};
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
    pub(crate) previous: FilePosition,
    /// Where the group before it ended.
    pub(crate) after: u32,
}

pub(crate) struct OpenGroup {
    at: GroupStart,
    buffer: AlignedBuf,
    /// Bytes in front of the group: the start of its first block.
    start: usize,
    /// Bytes of the buffer that are used, with the space for the header.
    len: usize,
    records: u32,
    ticket: Rc<Ticket>,
    started: Instant,
}

/// A group that is ready to be written.
pub(crate) struct SealedGroup {
    pub(crate) segment: u64,
    /// The file offset of the buffer's first byte.
    pub(crate) offset: u32,
    pub(crate) buffer: AlignedBuf,
    /// Bytes of the buffer to write: whole blocks.
    pub(crate) len: usize,
    /// The file offset at which the group ends.
    pub(crate) end: u32,
    pub(crate) raw: usize,
    pub(crate) records: u32,
    pub(crate) ticket: Rc<Ticket>,
}

/// Cannot fail: the pool is unbounded, and a segment's size bounds `len`.
pub(crate) fn take(pool: &BufferPool, len: usize) -> AlignedBuf {
    #[expect(clippy::expect_used, reason = "an unbounded pool never refuses")]
    pool.try_take(len).expect("an unbounded pool has room for a group")
}

impl SealedGroup {
    /// The start of the block in which the group ends.
    pub(crate) fn last_block(&self, block: usize) -> &[u8] {
        let end = (self.end - self.offset) as usize;
        self.buffer.get(end - end % block..end).unwrap_or_default()
    }
}

impl OpenGroup {
    /// A group in a block that starts with these bytes.
    pub(crate) fn start(
        pool: &BufferPool,
        at: GroupStart,
        block: &[u8],
        now: Instant,
    ) -> OpenGroup {
        let (mut buffer, start) = (take(pool, BUFFER_MIN), block.len());
        put(&mut buffer, 0, block);
        let (len, ticket) = (start + GROUP_HEADER, Rc::default());
        OpenGroup { at, buffer, start, len, records: 0, ticket, started: now }
    }

    /// Bytes of the records.
    pub(crate) fn raw(&self) -> usize {
        self.len - self.start - GROUP_HEADER
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
            self.grow(pool, end.max(self.buffer.len() * 2));
        }
        let header = format::record_header(self.at.seed, raw_offset, record);
        put(&mut self.buffer, self.len, &header);
        put(&mut self.buffer, self.len + RECORD_HEADER, record);
        self.len = end;
        self.records += 1;
        ReplayPosition { segment: self.at.segment, offset: raw_offset }
    }

    fn grow(&mut self, pool: &BufferPool, len: usize) {
        let mut larger = take(pool, len);
        put(&mut larger, 0, self.buffer.get(..self.len).unwrap_or_default());
        self.buffer = larger;
    }

    /// Compresses the group, writes its header, and fills up the last block with zeros. `durable` is what the header says.
    pub(crate) fn seal(
        mut self,
        pool: &BufferPool,
        block: usize,
        durable: FilePosition,
        compressor: &mut GroupCompressor,
    ) -> SealedGroup {
        let (raw, payload) = (self.raw(), self.start + GROUP_HEADER);
        let records = self.buffer.get(payload..self.len).unwrap_or_default();
        let mut stored = raw;
        if let Some(smaller) = compressor.compress(records) {
            stored = smaller.len();
            put(&mut self.buffer, payload, smaller);
        }
        self.len = payload + stored;
        let end = self.len.next_multiple_of(GROUP_ALIGNMENT);
        let len = end.next_multiple_of(block);
        if len > self.buffer.len() {
            self.grow(pool, len);
        }
        if let Some(padding) = self.buffer.get_mut(self.len..len) {
            padding.fill(0);
        }
        let header = GroupHeader {
            stored: stored as u32,
            raw: raw as u32,
            records: self.records,
            raw_offset: self.at.raw_offset,
            previous: self.at.previous,
            durable,
            after: self.at.after,
        };
        let header = header.encode(self.at.seed, self.at.offset);
        put(&mut self.buffer, self.start, &header);
        let offset = self.at.offset - self.start as u32;
        SealedGroup {
            segment: self.at.segment,
            offset,
            buffer: self.buffer,
            len,
            end: offset + end as u32,
            raw,
            records: self.records,
            ticket: self.ticket,
        }
    }
}
