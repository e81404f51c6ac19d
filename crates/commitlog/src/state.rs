//! The state of a log: the open group, the sealed groups, the segments and the tables that need them.
//!
//! ```text
//!   segments   7 (full) ── 8 (full) ── 9 current            spares  10
//!   groups                         in flight │ sealed │ sealed │ open ◄── append
//! ```
//!
//! 1. `append` never waits for a file: ids, offsets and salt are known in advance. Only the writer waits for the file.
//! 2. A segment is recycled once all its groups are durable and no table needs one of its records.
//! 3. A failed write or sync fails the log for good: the contents of the device are unknown after it, and a later success must not hide
//!    that (PostgreSQL's fsync errors of 2018 are the warning). If a file cannot be created for want of space, only the records
//!    fail that wait for it. Their positions are never reused: the log continues in a later segment.
//! 4. A record may have writes for tables of other shards, whose flush this log does not see. The caller that applies them keeps a
//!    `Hold` of the segment until they are flushed.
//! 5. Under `periodic`, a group is written to the page cache and synced later. A sync begins with a cut: what was appended before is
//!    written and then synced, what is appended later starts at a new block.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::clock::Instant;
use halcyon_io::{BlockFile, BufferPool};

use crate::compression::GroupCompressor;
use crate::format::{FilePosition, GROUP_HEADER, RECORD_HEADER, Seed, SegmentHeader, Version};
use crate::group::{GroupStart, OpenGroup, SealedGroup};
use crate::metrics::LogMetrics;
use crate::ticket::Ticket;
use crate::{Dirty, Error, Hold, LogCompression, Oldest, ReplayPosition, Result, TableId};

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
    /// Groups are written to the page cache, and synced later.
    pub(crate) cached: bool,
}

impl SegmentParameters {
    pub(crate) fn header(&self, id: u64) -> SegmentHeader {
        SegmentHeader {
            version: Version::Two,
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
    dirty: BTreeMap<TableId, u32>,
    /// Those whom others' records wait for have clones of it.
    hold: Arc<()>,
    /// Of records of several shards: the tables, and their oldest writes.
    spanning: Oldest,
    /// Of what is flushed: the same, in this segment and those before it.
    flushed: Oldest,
}

impl Segment {
    fn is_held(&self) -> bool {
        Arc::strong_count(&self.hold) > 1
    }

    fn is_needed(&self) -> bool {
        !self.dirty.is_empty() || self.is_held()
    }
}

/// Records that were appended since a cut, and are not durable.
#[derive(Debug, Clone, Copy, Default)]
struct Unsynced {
    /// When the first one was appended.
    since: Option<Instant>,
    bytes: usize,
}

/// A file that was written to the page cache since the last sync.
pub(crate) struct CachedWrites {
    pub(crate) segment: u64,
    pub(crate) file: BlockFile,
    /// The offset of the first write.
    pub(crate) from: u32,
}

/// A segment file that is ready for use.
pub(crate) struct Spare {
    pub(crate) id: u64,
    pub(crate) file: BlockFile,
}

pub(crate) struct State {
    pub(crate) parameters: SegmentParameters,
    metrics: Arc<LogMetrics>,
    pub(crate) pool: BufferPool,
    compressor: GroupCompressor,
    /// Oldest first; the last one is current.
    segments: VecDeque<Segment>,
    seed: Seed,
    /// The file offset of the current segment's next group.
    offset: u32,
    /// The raw offset of that group's first record.
    raw_offset: u32,
    /// Where the current segment's last group ended.
    after: u32,
    /// The bytes of the block in which the next group starts, up to its start.
    last_block: Vec<u8>,
    previous: FilePosition,
    /// All groups below it are durable.
    durable: FilePosition,
    open: Option<OpenGroup>,
    sealed: VecDeque<SealedGroup>,
    in_flight: Option<Rc<Ticket>>,
    /// The records that are not written, and their bytes.
    pub(crate) waiting: usize,
    pub(crate) unwritten: usize,
    /// Under `periodic`, what was appended since the last cut, and what the sync under way makes durable.
    unsynced: Unsynced,
    syncing: Unsynced,
    pub(crate) cached_writes: Vec<CachedWrites>,
    /// Under `periodic`, writers that are held up wait for a sync: it does not wait for the period to end.
    pub(crate) hurried: bool,
    /// Under `periodic`, answered by the next sync.
    pub(crate) sync_wanted: Option<Rc<Ticket>>,
    pub(crate) failed: Option<Error>,
    pub(crate) closing: bool,
    pub(crate) spares: VecDeque<Spare>,
    /// Ids of segments that can be recycled, oldest first: those that a crash leaves must not have a gap.
    pub(crate) free: VecDeque<u64>,
    /// The id of the next file to prepare.
    pub(crate) next_ready: u64,
}

impl State {
    pub(crate) fn first(
        parameters: SegmentParameters,
        first_segment: u64,
        metrics: Arc<LogMetrics>,
    ) -> State {
        let mut state = State {
            parameters,
            metrics,
            pool: BufferPool::unbounded(),
            compressor: GroupCompressor::new(parameters.compression),
            segments: VecDeque::new(),
            seed: parameters.seed(first_segment),
            offset: 0,
            raw_offset: 0,
            after: 0,
            last_block: Vec::new(),
            previous: FilePosition::default(),
            durable: FilePosition { segment: first_segment, offset: 0 },
            open: None,
            sealed: VecDeque::new(),
            in_flight: None,
            waiting: 0,
            unwritten: 0,
            unsynced: Unsynced::default(),
            syncing: Unsynced::default(),
            cached_writes: Vec::new(),
            hurried: false,
            sync_wanted: None,
            failed: None,
            closing: false,
            spares: VecDeque::new(),
            free: VecDeque::new(),
            next_ready: first_segment,
        };
        state.enter(first_segment);
        state
    }

    /// Makes an empty segment current.
    fn enter(&mut self, id: u64) {
        self.segments.push_back(Segment {
            id,
            dirty: BTreeMap::new(),
            hold: Arc::default(),
            spanning: Oldest::default(),
            flushed: Oldest::default(),
        });
        self.seed = self.parameters.seed(id);
        self.offset = self.parameters.header(id).first_group() as u32;
        self.after = self.offset;
        self.last_block.clear();
        self.raw_offset = self.offset + GROUP_HEADER as u32;
        self.note_bytes();
    }

    /// Publishes the size of all segments.
    fn note_bytes(&self) {
        let files = self.segments.len() + self.spares.len() + self.free.len();
        self.metrics.bytes.set(files as u64 * u64::from(self.parameters.segment_size));
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
            after: self.after,
        };
        let (pool, block) = (&self.pool, &self.last_block);
        let open = self.open.get_or_insert_with(|| OpenGroup::start(pool, at, block, now()));
        let position = open.push(pool, record);
        let (ticket, started) = (open.ticket().clone(), open.started());
        self.waiting += 1;
        self.metrics.appended.up();
        self.metrics.pending.set(self.waiting as u64);
        self.unwritten += needed;
        if self.parameters.cached {
            self.unsynced.since.get_or_insert(started);
            self.unsynced.bytes += needed;
        }
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
                self.previous = FilePosition { segment: left, offset: self.after };
                self.enter(left + 1);
                self.release_unneeded();
            }
        } else if gathered > 0 && gathered + needed > GROUP_MAX {
            self.seal();
        }
    }

    /// Of the record that was just appended.
    pub(crate) fn hold(&mut self, oldest_writes: &Oldest) -> Option<Hold> {
        let shard = self.parameters.shard;
        let segment = self.segments.back_mut()?;
        segment.spanning.lower(oldest_writes);
        Some(Hold { shard, segment: segment.id, _held: segment.hold.clone() })
    }

    pub(crate) fn spanning(&self) -> Oldest {
        self.oldest(|segment| &segment.spanning)
    }

    pub(crate) fn flushed(&self) -> Oldest {
        self.oldest(|segment| &segment.flushed)
    }

    fn oldest(&self, of: impl Fn(&Segment) -> &Oldest) -> Oldest {
        let mut all = Oldest::default();
        self.segments.iter().for_each(|segment| all.lower(of(segment)));
        all
    }

    pub(crate) fn note_flushed(&mut self, table: TableId, position: ReplayPosition, oldest: i64) {
        let of_position = |segment: &&mut Segment| segment.id == position.segment;
        if let Some(segment) = self.segments.iter_mut().find(of_position) {
            segment.flushed.lower_one(table, oldest);
        }
    }

    /// Hands the open group to the writer.
    pub(crate) fn seal(&mut self) {
        let Some(open) = self.open.take() else { return };
        let SegmentParameters { block, cached, .. } = self.parameters;
        // Where each write is durable, everything before it is.
        let own = FilePosition { segment: self.current(), offset: self.offset };
        let durable = if cached { self.durable } else { own };
        let sealed = open.seal(&self.pool, block, durable, &mut self.compressor);
        self.after = sealed.end;
        self.last_block.clear();
        if cached {
            self.last_block.extend_from_slice(sealed.last_block(block));
            self.offset = sealed.end;
        } else {
            self.offset = sealed.end.next_multiple_of(block as u32);
        }
        let raw = sealed.raw as u32;
        self.raw_offset = self.next_raw_offset(self.raw_offset + raw);
        self.sealed.push_back(sealed);
    }

    /// The raw offset of the next group, if that of a compressed one is this.
    fn next_raw_offset(&self, compressed: u32) -> u32 {
        match self.parameters.compression {
            LogCompression::None => self.offset.saturating_add(GROUP_HEADER as u32),
            _ => compressed,
        }
    }

    /// Begins a sync: what is appended from now on starts at a new block. Returns the end of what it makes durable, and the last
    /// group of that which is not written yet.
    pub(crate) fn cut(&mut self) -> (FilePosition, Option<Rc<Ticket>>) {
        self.seal();
        self.hurried = false;
        self.offset = self.offset.next_multiple_of(self.parameters.block as u32);
        self.last_block.clear();
        self.raw_offset = self.next_raw_offset(self.raw_offset);
        self.syncing = std::mem::take(&mut self.unsynced);
        (FilePosition { segment: self.current(), offset: self.after }, self.last_ticket())
    }

    /// Accounts for a sync that has ended.
    pub(crate) fn synced(&mut self, cut: FilePosition) {
        self.syncing = Unsynced::default();
        self.durable = cut;
        self.release_unneeded();
    }

    /// Notes a write to the page cache that has ended; whether it is the file's first one since a sync.
    pub(crate) fn note_cached(&mut self, segment: u64, file: &BlockFile, from: u32) -> bool {
        let known = self.cached_writes.iter().any(|writes| writes.segment == segment);
        if !known {
            self.cached_writes.push(CachedWrites { segment, file: file.clone(), from });
        }
        !known
    }

    /// Under `periodic`: bytes of the records that are not durable, and when the oldest was appended.
    pub(crate) fn unsynced(&self) -> (usize, Option<Instant>) {
        let bytes = self.syncing.bytes + self.unsynced.bytes;
        (bytes, self.syncing.since.or(self.unsynced.since))
    }

    /// Under `periodic`: as `unsynced`, of what no sync has begun with.
    pub(crate) fn uncut(&self) -> (usize, Option<Instant>) {
        (self.unsynced.bytes, self.unsynced.since)
    }

    /// When the open group got its first record.
    pub(crate) fn open_since(&self) -> Option<Instant> {
        self.open.as_ref().map(OpenGroup::started)
    }

    pub(crate) fn next_sealed(&mut self) -> Option<SealedGroup> {
        let sealed = self.sealed.pop_front()?;
        self.in_flight = Some(sealed.ticket.clone());
        Some(sealed)
    }

    /// Accounts for a group that is written.
    pub(crate) fn written(&mut self, end: FilePosition, raw: usize, records: u32) {
        self.in_flight = None;
        // Nothing is left to count of a log that failed meanwhile.
        self.waiting = self.waiting.saturating_sub(records as usize);
        self.metrics.pending.set(self.waiting as u64);
        self.unwritten = self.unwritten.saturating_sub(raw);
        if !self.parameters.cached {
            self.durable = end;
            self.release_unneeded();
        }
    }

    /// The newest group that is not written.
    pub(crate) fn last_ticket(&self) -> Option<Rc<Ticket>> {
        let open = self.open.as_ref().map(OpenGroup::ticket);
        let sealed = || self.sealed.back().map(|sealed| &sealed.ticket);
        open.or_else(sealed).or(self.in_flight.as_ref()).cloned()
    }

    /// Drops all records that are not written. The caller must answer the tickets.
    fn drop_unwritten(&mut self) -> Vec<Rc<Ticket>> {
        let in_flight = self.in_flight.take();
        let sealed = self.sealed.drain(..).map(|sealed| sealed.ticket);
        let tickets = in_flight.into_iter().chain(sealed).collect::<Vec<_>>();
        let open = self.open.take().map(|open| open.ticket().clone());
        self.waiting = 0;
        self.metrics.pending.set(0);
        self.unwritten = 0;
        tickets.into_iter().chain(open).collect()
    }

    /// Fails the log for good.
    pub(crate) fn fail(&mut self, error: &Error) -> Vec<Rc<Ticket>> {
        self.failed.get_or_insert_with(|| error.clone());
        let mut tickets = self.drop_unwritten();
        tickets.extend(self.sync_wanted.take());
        tickets
    }

    /// Drops segment `id` and later ones, which have no file. The log continues after the last segment that has given out a position.
    pub(crate) fn abandon_from(&mut self, id: u64) -> Vec<Rc<Ticket>> {
        let tickets = self.drop_unwritten();
        let next = self.current() + 1;
        self.segments.retain(|segment| segment.id < id);
        if self.previous.segment >= id {
            // The end of the last segment that has a file is unknown by now.
            self.previous = FilePosition::default();
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
    pub(crate) fn release_unneeded(&mut self) {
        let current = self.current();
        while let Some(oldest) = self.segments.front() {
            let durable = oldest.id < self.durable.segment;
            if oldest.id == current || !durable || oldest.is_needed() {
                break;
            }
            self.free.push_back(oldest.id);
            self.segments.pop_front();
        }
    }

    /// Frees the current segment too; for a closed log.
    pub(crate) fn release_current(&mut self) {
        let free = &mut self.free;
        self.segments.retain(|segment| {
            if !segment.is_needed() {
                free.push_back(segment.id);
            }
            segment.is_needed()
        });
    }

    pub(crate) fn oldest_dirty(&self) -> Option<Dirty> {
        let oldest = self.segments.iter().find(|segment| segment.is_needed())?;
        let tables = oldest.dirty.keys().copied().collect();
        let held = match oldest.is_held() {
            true => oldest.spanning.tables().collect(),
            false => Vec::new(),
        };
        Some(Dirty { segment: oldest.id, tables, held })
    }

    /// Whether another segment would exceed the total space, and a flush could free one.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.segments.len() > 1 && !self.may_have_files(self.segments.len() + 1)
    }

    fn may_have_files(&self, count: usize) -> bool {
        count as u64 * u64::from(self.parameters.segment_size) <= self.parameters.total_space
    }

    /// Whether the file of a later segment, of which so much is written, is to be written further: it is to be there when the current
    /// segment is half full.
    pub(crate) fn wants_more_of(&self, id: u64, filled: u64) -> bool {
        self.closing
            || self.failed.is_some()
            || self.current() >= id
            || filled <= 2 * u64::from(self.offset)
    }

    /// Whether to keep a free file for recycling.
    pub(crate) fn wants_free(&self) -> bool {
        self.spares.is_empty() || self.may_have_files(self.segments.len() + self.spares.len() + 1)
    }
}
