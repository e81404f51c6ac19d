//! What a log knows: the group that gathers, the groups that wait for the device, the segments and who needs them.
//!
//! ```text
//!   segments   7 (full) ── 8 (full) ── 9 current            spares  10
//!   groups                    in flight │ sealed │ sealed │ gathering ◄── append
//! ```
//!
//! 1. `append` needs no file: ids, offsets and salt are known ahead, and the writer waits for the file if it must.
//! 2. A segment in which no table has a record that it still needs, and whose groups are all written, is recycled.
//! 3. A failed write fails the log for good: what the device has after it is unknown, and no later success may hide that.
//!    A file that cannot be had for want of space fails only what has waited for it. Those positions are never given
//!    again: the log goes on in a later segment.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use halcyon_io::clock::Instant;
use halcyon_io::{BlockFile, BufferPool};

use crate::format::{Before, GROUP_HEADER, RECORD_HEADER, Seed, SegmentHeader};
use crate::group::{Gathering, Place, Sealed};
use crate::signal::Ticket;
use crate::{Dirty, Error, LogCompression, ReplayPosition, Result, TableId};

/// A group of this size is sealed, and the next begins: writes get no faster beyond it.
pub(crate) const GROUP_MAX: usize = 1 << 20;

/// What all segments of a log share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) shard: u32,
    pub(crate) salt: u64,
    pub(crate) block: usize,
    pub(crate) segment_size: u32,
    pub(crate) total_space: u64,
    pub(crate) compression: LogCompression,
}

impl Shape {
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

/// A segment that has groups, or will.
struct Segment {
    id: u64,
    /// The last record of each table that is still needed.
    dirty: HashMap<TableId, u32>,
    /// Groups that are not written yet.
    waiting: usize,
}

/// A file that is ready to be filled.
pub(crate) struct Spare {
    pub(crate) id: u64,
    pub(crate) file: BlockFile,
}

pub(crate) struct State {
    pub(crate) shape: Shape,
    pub(crate) pool: BufferPool,
    scratch: Vec<u8>,
    /// Oldest first; the last is the current one.
    segments: VecDeque<Segment>,
    seed: Seed,
    /// Where the next group of the current segment starts.
    offset: u32,
    /// Where its first record will be.
    place: u32,
    before: Before,
    gathering: Option<Gathering>,
    sealed: VecDeque<Sealed>,
    in_flight: Option<(Rc<Ticket>, Instant)>,
    /// Bytes of records that are not durable.
    pub(crate) unsynced: usize,
    /// Somebody waits for the group that gathers: it is written without waiting for its window.
    pub(crate) wanted: bool,
    pub(crate) failed: Option<Error>,
    pub(crate) closing: bool,
    pub(crate) spares: VecDeque<Spare>,
    /// Ids of segments that nobody needs.
    pub(crate) free: Vec<u64>,
    /// The id of the next file that is made ready.
    pub(crate) next_ready: u64,
}

impl State {
    pub(crate) fn first(shape: Shape, first_segment: u64) -> State {
        let mut state = State {
            shape,
            pool: BufferPool::unbounded(),
            scratch: Vec::new(),
            segments: VecDeque::new(),
            seed: shape.seed(first_segment),
            offset: 0,
            place: 0,
            before: Before::default(),
            gathering: None,
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

    /// Makes a segment that has no group yet the current one.
    fn enter(&mut self, id: u64) {
        self.segments.push_back(Segment { id, dirty: HashMap::new(), waiting: 0 });
        self.seed = self.shape.seed(id);
        self.offset = self.shape.header(id).first_group() as u32;
        self.place = self.offset + GROUP_HEADER as u32;
    }

    fn current(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.id)
    }

    pub(crate) fn position(&self) -> ReplayPosition {
        let offset = self.gathering.as_ref().map_or(self.place, Gathering::place);
        ReplayPosition { segment: self.current(), offset }
    }

    pub(crate) fn refuse(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.closing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Puts a record into the group that gathers.
    pub(crate) fn append(
        &mut self,
        record: &[u8],
        tables: &[TableId],
        now: impl FnOnce() -> Instant,
    ) -> Result<(ReplayPosition, Rc<Ticket>)> {
        self.refuse()?;
        let (len, max) = (record.len(), self.shape.record_max());
        if len > max {
            return Err(Error::RecordTooLarge { len, max });
        }
        let needed = RECORD_HEADER + len;
        self.make_room(needed);
        let at = Place {
            segment: self.current(),
            seed: self.seed,
            offset: self.offset,
            place: self.place,
            before: self.before,
        };
        let pool = &self.pool;
        let gathering = self.gathering.get_or_insert_with(|| Gathering::start(pool, at, now()));
        let position = gathering.push(pool, record);
        let ticket = gathering.ticket().clone();
        self.unsynced += needed;
        if let Some(segment) = self.segments.back_mut() {
            for table in tables {
                segment.dirty.insert(*table, position.offset);
            }
        }
        Ok((position, ticket))
    }

    /// Seals the group, and leaves the segment, if `needed` bytes more do not fit.
    fn make_room(&mut self, needed: usize) {
        let gathered = self.gathering.as_ref().map_or(0, Gathering::raw);
        let end = self.offset as usize + GROUP_HEADER + gathered + needed;
        let place_fits = self.place as u64 + (gathered + needed) as u64 <= u64::from(u32::MAX);
        if end > self.shape.segment_size as usize || !place_fits {
            self.seal();
            // What was sealed may have been compressed, so there may be room now.
            let end = self.offset as usize + GROUP_HEADER + needed;
            let place_fits = self.place as u64 + needed as u64 <= u64::from(u32::MAX);
            if end > self.shape.segment_size as usize || !place_fits {
                let left = self.current();
                self.before = Before { segment: left, end: self.offset };
                self.enter(left + 1);
                self.release_unneeded();
            }
        } else if gathered > 0 && gathered + needed > GROUP_MAX {
            self.seal();
        }
    }

    /// Hands the gathering group to the writer.
    pub(crate) fn seal(&mut self) {
        self.wanted = false;
        let Some(gathering) = self.gathering.take() else { return };
        let Shape { compression, block, .. } = self.shape;
        let sealed = gathering.seal(&self.pool, compression, block, &mut self.scratch);
        self.offset += sealed.len as u32;
        self.place = match compression {
            LogCompression::None => self.offset.saturating_add(GROUP_HEADER as u32),
            _ => self.place + sealed.raw as u32,
        };
        if let Some(segment) = self.segments.back_mut() {
            segment.waiting += 1;
        }
        self.sealed.push_back(sealed);
    }

    /// When the gathering group began.
    pub(crate) fn gathering_since(&self) -> Option<Instant> {
        self.gathering.as_ref().map(Gathering::started)
    }

    pub(crate) fn next_sealed(&mut self) -> Option<Sealed> {
        let sealed = self.sealed.pop_front()?;
        self.in_flight = Some((sealed.ticket.clone(), sealed.started));
        Some(sealed)
    }

    /// A group is durable.
    pub(crate) fn written(&mut self, segment: u64, raw: usize) {
        self.in_flight = None;
        self.unsynced -= raw;
        if let Some(segment) = self.segments.iter_mut().find(|s| s.id == segment) {
            segment.waiting -= 1;
        }
        self.release_unneeded();
    }

    /// The last group that is not durable yet.
    pub(crate) fn last_ticket(&self) -> Option<Rc<Ticket>> {
        let gathering = self.gathering.as_ref().map(Gathering::ticket);
        let sealed = || self.sealed.back().map(|sealed| &sealed.ticket);
        let in_flight = || self.in_flight.as_ref().map(|(ticket, _)| ticket);
        gathering.or_else(sealed).or_else(in_flight).cloned()
    }

    /// Since when the oldest record waits to become durable.
    pub(crate) fn unsynced_since(&self) -> Option<Instant> {
        let in_flight = self.in_flight.as_ref().map(|(_, since)| *since);
        let sealed = || self.sealed.front().map(|sealed| sealed.started);
        in_flight.or_else(sealed).or_else(|| self.gathering_since())
    }

    /// Everything that is not durable is lost. The tickets are to be answered.
    fn drop_unsynced(&mut self) -> Vec<Rc<Ticket>> {
        let in_flight = self.in_flight.take().map(|(ticket, _)| ticket);
        let sealed = self.sealed.drain(..).map(|sealed| sealed.ticket);
        let tickets = in_flight.into_iter().chain(sealed).collect::<Vec<_>>();
        let gathering = self.gathering.take().map(|gathering| gathering.ticket().clone());
        self.unsynced = 0;
        tickets.into_iter().chain(gathering).collect()
    }

    /// Fails the log for good.
    pub(crate) fn fail(&mut self, error: &Error) -> Vec<Rc<Ticket>> {
        self.failed.get_or_insert_with(|| error.clone());
        self.drop_unsynced()
    }

    /// There is no file for segment `id`, nor for a later one: goes on in the one after all that positions were given of.
    pub(crate) fn abandon_from(&mut self, id: u64) -> Vec<Rc<Ticket>> {
        let tickets = self.drop_unsynced();
        let next = self.current() + 1;
        self.segments.retain(|segment| segment.id < id);
        if self.before.segment >= id {
            // Where the last real segment ended is not known any more.
            self.before = Before::default();
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

    /// Frees the oldest segments that nobody needs, but never one behind another that stays: what is replayed is then always the
    /// end of the history, and no write comes back whose deletion is not replayed too.
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

    /// At the end, the current one too.
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

    /// Whether one file more would be too many, and a flush would help.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.segments.len() > 1 && !self.may_have_files(self.segments.len() + 1)
    }

    fn may_have_files(&self, count: usize) -> bool {
        count as u64 * u64::from(self.shape.segment_size) <= self.shape.total_space
    }

    /// Whether a free file is worth keeping.
    pub(crate) fn wants_free(&self) -> bool {
        self.spares.is_empty() || self.may_have_files(self.segments.len() + self.spares.len() + 1)
    }
}
