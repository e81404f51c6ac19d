//! The state of a log: the open group, the sealed groups, the segments and the tables that need them.
//!
//! ```text
//!   segments   7 (full) ── 8 (full) ── 9 current            spares  10
//!   groups                         in flight │ sealed │ sealed │ open ◄── append
//! ```
//!
//! 1. `append` never waits for a file: ids, offsets and salt are known in advance. Only the writer waits for the file.
//! 2. A segment is recycled once all its groups are written and no table needs one of its records.
//! 3. A failed write fails the log for good: the contents of the device are unknown after it, and a later success must not hide
//!    that (PostgreSQL's fsync errors of 2018 are the warning). If a file cannot be created for want of space, only the records
//!    fail that wait for it. Their positions are never reused: the log continues in a later segment.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use halcyon_io::clock::Instant;
use halcyon_io::{BlockFile, BufferPool};

use crate::compression::GroupCompressor;
use crate::format::{GROUP_HEADER, PreviousSegment, RECORD_HEADER, Seed, SegmentHeader};
use crate::group::{GroupStart, OpenGroup, SealedGroup};
use crate::ticket::Ticket;
use crate::{Dirty, Error, LogCompression, ReplayPosition, Result, TableId};

/// A group of this size is sealed: larger writes have no higher throughput.
pub(crate) const GROUP_MAX: usize = 1 << 20;

/// The parameters of all segments of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentParameters {
    pub(crate) shard: u32,
    pub(crate) salt: u64,
    pub(crate) block: usize,
    pub(crate) segment_size: u32,
    pub(crate) total_space: u64,
    pub(crate) compression: LogCompression,
}

impl SegmentParameters {
    pub(crate) fn header(&self, id: u64) -> SegmentHeader {
        SegmentHeader {
            id,
            salt: self.salt,
            shard: self.shard,
            block: self.block as u32,
            size: self.segment_size,
            compression: self.compression,
        }
    }

    fn seed(&self, id: u64) -> Seed {
        self.header(id).seed()
    }

    /// Half a segment, as Cassandra's `max_mutation_size`.
    pub(crate) fn record_max(&self) -> usize {
        self.segment_size as usize / 2 - RECORD_HEADER
    }
}

/// A segment in use.
struct Segment {
    id: u64,
    /// For each table that needs the segment, the raw offset of its last record.
    dirty: HashMap<TableId, u32>,
    /// Groups that are not written.
    waiting: usize,
}

/// A segment file that is ready for use.
pub(crate) struct Spare {
    pub(crate) id: u64,
    pub(crate) file: BlockFile,
}

pub(crate) struct State {
    pub(crate) parameters: SegmentParameters,
    pub(crate) pool: BufferPool,
    compressor: GroupCompressor,
    /// Oldest first; the last one is current.
    segments: VecDeque<Segment>,
    seed: Seed,
    /// The file offset of the current segment's next group.
    offset: u32,
    /// The raw offset of that group's first record.
    raw_offset: u32,
    previous: PreviousSegment,
    open: Option<OpenGroup>,
    sealed: VecDeque<SealedGroup>,
    in_flight: Option<(Rc<Ticket>, Instant)>,
    /// Bytes of the records that are not durable.
    pub(crate) unsynced: usize,
    /// Under `periodic`, a blocked writer waits for the open group: it is written before its window ends.
    pub(crate) wanted: bool,
    pub(crate) failed: Option<Error>,
    pub(crate) closing: bool,
    pub(crate) spares: VecDeque<Spare>,
    /// Ids of segments that can be recycled.
    pub(crate) free: Vec<u64>,
    /// The id of the next file to prepare.
    pub(crate) next_ready: u64,
}

impl State {
    pub(crate) fn first(parameters: SegmentParameters, first_segment: u64) -> State {
        let mut state = State {
            parameters,
            pool: BufferPool::unbounded(),
            compressor: GroupCompressor::new(parameters.compression),
            segments: VecDeque::new(),
            seed: parameters.seed(first_segment),
            offset: 0,
            raw_offset: 0,
            previous: PreviousSegment::default(),
            open: None,
            sealed: VecDeque::new(),
            in_flight: None,
            unsynced: 0,
            wanted: false,
            failed: None,
            closing: false,
            spares: VecDeque::new(),
            free: Vec::new(),
            next_ready: first_segment,
        };
        state.enter(first_segment);
        state
    }

    /// Makes an empty segment current.
    fn enter(&mut self, id: u64) {
        self.segments.push_back(Segment { id, dirty: HashMap::new(), waiting: 0 });
        self.seed = self.parameters.seed(id);
        self.offset = self.parameters.header(id).first_group() as u32;
        self.raw_offset = self.offset + GROUP_HEADER as u32;
    }

    fn current(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.id)
    }

    pub(crate) fn position(&self) -> ReplayPosition {
        let offset = self.open.as_ref().map_or(self.raw_offset, OpenGroup::raw_offset);
        ReplayPosition { segment: self.current(), offset }
    }

    pub(crate) fn refuse(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.closing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Adds a record to the open group.
    pub(crate) fn append(
        &mut self,
        record: &[u8],
        tables: &[TableId],
        now: impl FnOnce() -> Instant,
    ) -> Result<(ReplayPosition, Rc<Ticket>)> {
        self.refuse()?;
        let (len, max) = (record.len(), self.parameters.record_max());
        if len > max {
            return Err(Error::RecordTooLarge { len, max });
        }
        let needed = RECORD_HEADER + len;
        self.make_room(needed);
        let at = GroupStart {
            segment: self.current(),
            seed: self.seed,
            offset: self.offset,
            raw_offset: self.raw_offset,
            previous: self.previous,
        };
        let pool = &self.pool;
        let open = self.open.get_or_insert_with(|| OpenGroup::start(pool, at, now()));
        let position = open.push(pool, record);
        let ticket = open.ticket().clone();
        self.unsynced += needed;
        if let Some(segment) = self.segments.back_mut() {
            for table in tables {
                segment.dirty.insert(*table, position.offset);
            }
        }
        Ok((position, ticket))
    }

    /// Seals the open group if `needed` more bytes do not fit, and changes the segment if they still do not.
    fn make_room(&mut self, needed: usize) {
        let gathered = self.open.as_ref().map_or(0, OpenGroup::raw);
        let end = self.offset as usize + GROUP_HEADER + gathered + needed;
        let raw_offset_fits =
            self.raw_offset as u64 + (gathered + needed) as u64 <= u64::from(u32::MAX);
        if end > self.parameters.segment_size as usize || !raw_offset_fits {
            self.seal();
            // Compression may have shrunk the sealed group, so the segment may have room.
            let end = self.offset as usize + GROUP_HEADER + needed;
            let raw_offset_fits = self.raw_offset as u64 + needed as u64 <= u64::from(u32::MAX);
            if end > self.parameters.segment_size as usize || !raw_offset_fits {
                let left = self.current();
                self.previous = PreviousSegment { segment: left, end: self.offset };
                self.enter(left + 1);
                self.release_unneeded();
            }
        } else if gathered > 0 && gathered + needed > GROUP_MAX {
            self.seal();
        }
    }

    /// Hands the open group to the writer.
    pub(crate) fn seal(&mut self) {
        self.wanted = false;
        let Some(open) = self.open.take() else { return };
        let SegmentParameters { compression, block, .. } = self.parameters;
        let sealed = open.seal(&self.pool, block, &mut self.compressor);
        self.offset += sealed.len as u32;
        self.raw_offset = match compression {
            LogCompression::None => self.offset.saturating_add(GROUP_HEADER as u32),
            _ => self.raw_offset + sealed.raw as u32,
        };
        if let Some(segment) = self.segments.back_mut() {
            segment.waiting += 1;
        }
        self.sealed.push_back(sealed);
    }

    /// When the open group got its first record.
    pub(crate) fn open_since(&self) -> Option<Instant> {
        self.open.as_ref().map(OpenGroup::started)
    }

    pub(crate) fn next_sealed(&mut self) -> Option<SealedGroup> {
        let sealed = self.sealed.pop_front()?;
        self.in_flight = Some((sealed.ticket.clone(), sealed.started));
        Some(sealed)
    }

    /// Accounts for a group that is durable.
    pub(crate) fn written(&mut self, segment: u64, raw: usize) {
        self.in_flight = None;
        self.unsynced -= raw;
        if let Some(segment) = self.segments.iter_mut().find(|s| s.id == segment) {
            segment.waiting -= 1;
        }
        self.release_unneeded();
    }

    /// The newest group that is not durable.
    pub(crate) fn last_ticket(&self) -> Option<Rc<Ticket>> {
        let open = self.open.as_ref().map(OpenGroup::ticket);
        let sealed = || self.sealed.back().map(|sealed| &sealed.ticket);
        let in_flight = || self.in_flight.as_ref().map(|(ticket, _)| ticket);
        open.or_else(sealed).or_else(in_flight).cloned()
    }

    /// When the oldest record that is not durable was appended.
    pub(crate) fn unsynced_since(&self) -> Option<Instant> {
        let in_flight = self.in_flight.as_ref().map(|(_, since)| *since);
        let sealed = || self.sealed.front().map(|sealed| sealed.started);
        in_flight.or_else(sealed).or_else(|| self.open_since())
    }

    /// Drops all records that are not durable. The caller must answer the tickets.
    fn drop_unsynced(&mut self) -> Vec<Rc<Ticket>> {
        let in_flight = self.in_flight.take().map(|(ticket, _)| ticket);
        let sealed = self.sealed.drain(..).map(|sealed| sealed.ticket);
        let tickets = in_flight.into_iter().chain(sealed).collect::<Vec<_>>();
        let open = self.open.take().map(|open| open.ticket().clone());
        self.unsynced = 0;
        tickets.into_iter().chain(open).collect()
    }

    /// Fails the log for good.
    pub(crate) fn fail(&mut self, error: &Error) -> Vec<Rc<Ticket>> {
        self.failed.get_or_insert_with(|| error.clone());
        self.drop_unsynced()
    }

    /// Drops segment `id` and later ones, which have no file. The log continues after the last segment that has given out a position.
    pub(crate) fn abandon_from(&mut self, id: u64) -> Vec<Rc<Ticket>> {
        let tickets = self.drop_unsynced();
        let next = self.current() + 1;
        self.segments.retain(|segment| segment.id < id);
        if self.previous.segment >= id {
            // The end of the last segment that has a file is unknown by now.
            self.previous = PreviousSegment::default();
        }
        self.enter(next);
        self.next_ready = next;
        tickets
    }

    pub(crate) fn discard_below(&mut self, table: TableId, position: ReplayPosition) {
        for segment in &mut self.segments {
            let needed =
                |last: &u32| ReplayPosition { segment: segment.id, offset: *last } >= position;
            if segment.dirty.get(&table).is_some_and(|last| !needed(last)) {
                segment.dirty.remove(&table);
            }
        }
        self.release_unneeded();
    }

    /// Frees the oldest segments that no table needs, but none after a segment that stays. The log is thus always a suffix of
    /// the history: a write cannot be replayed without the deletions that followed it. Cassandra frees clean segments in any order:
    /// its SSTables record the commit log intervals that they cover, and the replay skips those.
    fn release_unneeded(&mut self) {
        let current = self.current();
        while let Some(oldest) = self.segments.front() {
            if oldest.id == current || oldest.waiting > 0 || !oldest.dirty.is_empty() {
                break;
            }
            self.free.push(oldest.id);
            self.segments.pop_front();
        }
    }

    /// Frees the current segment too; for a closed log.
    pub(crate) fn release_current(&mut self) {
        let free = &mut self.free;
        self.segments.retain(|segment| {
            if segment.dirty.is_empty() {
                free.push(segment.id);
            }
            !segment.dirty.is_empty()
        });
    }

    pub(crate) fn oldest_dirty(&self) -> Option<Dirty> {
        let oldest = self.segments.iter().find(|segment| !segment.dirty.is_empty())?;
        let mut tables: Vec<TableId> = oldest.dirty.keys().copied().collect();
        tables.sort_unstable();
        Some(Dirty { segment: oldest.id, tables })
    }

    /// Whether another segment would exceed the total space, and a flush could free one.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.segments.len() > 1 && !self.may_have_files(self.segments.len() + 1)
    }

    fn may_have_files(&self, count: usize) -> bool {
        count as u64 * u64::from(self.parameters.segment_size) <= self.parameters.total_space
    }

    /// Whether to keep a free file for recycling.
    pub(crate) fn wants_free(&self) -> bool {
        self.spares.is_empty() || self.may_have_files(self.segments.len() + self.spares.len() + 1)
    }
}
