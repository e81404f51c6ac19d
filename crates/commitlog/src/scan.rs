//! Decodes the bytes of one segment, without I/O.
//!
//! 1. Groups form a chain: each starts where the one before it ended, or at the next block, and says where that was. The first
//!    place without a valid group header is the end, unless a valid group follows later: then the bytes between are damaged.
//! 2. Damage below what was durable is corruption. It ends the scan or is skipped: up to the next record if the length is valid,
//!    otherwise up to the next group.
//! 3. Damage above that is torn: a crash interrupted the write, or took what no sync had made durable. The segment ends there, although
//!    later groups may have survived: a write must not be replayed without those that came before it.

use std::borrow::Cow;

use crate::OnCorruption;
use crate::compression::decompress;
use crate::format::{
    BLOCK_MIN, BadHeader, DecodedRecord, FilePosition, GroupHeader, RECORD_HEADER, Seed,
    SegmentHeader, Version, record_at,
};

/// The state of a segment, by its header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    Used(SegmentHeader),
    /// Prepared, perhaps only in part, and never used.
    Unused(&'static str),
    /// Written by Apache Cassandra.
    Foreign,
    /// In a version of the format that is not known here.
    Newer(u32),
    Damaged(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

/// The result of a scan.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The end of the last group.
    pub(crate) end: usize,
    /// Damage to what was durable; several only if the policy is to ignore it.
    pub(crate) damage: Vec<Damage>,
    /// Damage to what was not durable yet: the segment ends there.
    pub(crate) torn: Option<Damage>,
}

/// The state of a segment whose name has this shard and id.
pub(crate) fn segment_state(bytes: &[u8], shard: u32, id: u64) -> SegmentState {
    let header = match SegmentHeader::decode(bytes) {
        Ok(header) => header,
        Err(BadHeader::Newer(version)) => return SegmentState::Newer(version),
        Err(BadHeader::Damaged(what)) => {
            return match bytes {
                [] => SegmentState::Unused("it is empty"),
                zeros if zeros.iter().all(|byte| *byte == 0) => {
                    SegmentState::Unused("it has only zeros")
                }
                [0, 0, 0, 1..=31, ..] => SegmentState::Foreign,
                _ => SegmentState::Damaged(what),
            };
        }
    };
    if header.shard != shard || header.id > id {
        let said = format!("its header is of segment {} of shard {}", header.id, header.shard);
        return SegmentState::Damaged(said);
    }
    if header.id < id {
        return SegmentState::Unused("its header is of an earlier segment");
    }
    SegmentState::Used(header)
}

/// The valid group headers of a segment, whatever is between them.
pub(crate) fn group_headers<'a>(
    bytes: &'a [u8],
    header: &'a SegmentHeader,
) -> impl Iterator<Item = (usize, GroupHeader)> + 'a {
    let mut from = first_group(header);
    std::iter::from_fn(move || {
        let (at, group) = search(bytes, header, from)?;
        from = match group_end(header, at, &group) {
            end if end <= bytes.len() => end,
            _ => at.saturating_add(header.group_alignment()),
        };
        Some((at, group))
    })
}

fn first_group(header: &SegmentHeader) -> usize {
    header.first_group().max(BLOCK_MIN)
}

/// The first valid group header at this offset or after it.
fn search(bytes: &[u8], header: &SegmentHeader, from: usize) -> Option<(usize, GroupHeader)> {
    let alignment = header.group_alignment();
    let mut offsets = (from.next_multiple_of(alignment)..bytes.len()).step_by(alignment);
    offsets.find_map(|at| Some((at, GroupHeader::at(bytes, header, at)?)))
}

/// Whether the group at `at` is the next one after the group that ended at `end`.
fn follows(header: &SegmentHeader, end: usize, at: usize, group: &GroupHeader) -> bool {
    let is_there = at == end || Some(at) == end.checked_next_multiple_of(header.block as usize);
    is_there && (header.version == Version::One || group.after as usize == end)
}

fn group_end(header: &SegmentHeader, at: usize, group: &GroupHeader) -> usize {
    let end = at.saturating_add(header.group_header()).saturating_add(group.stored as usize);
    end.checked_next_multiple_of(header.group_alignment()).unwrap_or(end)
}

/// Visits the raw offset and the body of every record. `durable`: all groups of the shard's log below it were durable. An error of
/// the visitor ends the scan.
pub(crate) fn scan<E>(
    bytes: &[u8],
    header: &SegmentHeader,
    durable: FilePosition,
    on_corruption: OnCorruption,
    visit: impl FnMut(u32, &[u8]) -> Result<(), E>,
) -> Result<Scanned, E> {
    let first = first_group(header);
    let durable = match durable.segment {
        later if later > header.id => usize::MAX,
        this if this == header.id => durable.offset as usize,
        _ => 0,
    };
    let found = Scanned { end: first, ..Scanned::default() };
    let mut walk =
        Walk { bytes, header, seed: header.seed(), durable, on_corruption, visit, found };
    let mut from = first;
    while let Some((at, group)) = walk.next_group(from) {
        if !follows(header, from, at, &group) {
            walk.damaged(from, "no group starts here, although groups follow".to_owned());
            if walk.ends() {
                break;
            }
        }
        from = walk.group(at, &group)?;
        if walk.ends() {
            break;
        }
    }
    Ok(walk.found)
}

struct Walk<'a, V> {
    bytes: &'a [u8],
    header: &'a SegmentHeader,
    seed: Seed,
    /// All groups below this offset were durable.
    durable: usize,
    on_corruption: OnCorruption,
    visit: V,
    found: Scanned,
}

impl<V> Walk<'_, V> {
    fn next_group(&self, from: usize) -> Option<(usize, GroupHeader)> {
        search(self.bytes, self.header, from)
    }

    fn damaged(&mut self, offset: usize, what: String) {
        let damage = Damage { offset, what };
        if offset < self.durable {
            self.found.damage.push(damage);
        } else {
            self.found.torn = Some(damage);
        }
    }

    /// Whether nothing more is visited.
    fn ends(&self) -> bool {
        let stopped = !self.found.damage.is_empty() && self.on_corruption == OnCorruption::Stop;
        stopped || self.found.torn.is_some()
    }

    /// Visits one group. Returns the earliest offset of the next one.
    fn group<E>(&mut self, at: usize, group: &GroupHeader) -> Result<usize, E>
    where
        V: FnMut(u32, &[u8]) -> Result<(), E>,
    {
        let payload = self.bytes.get(at + self.header.group_header()..).unwrap_or_default();
        let Some(stored) = payload.get(..group.stored as usize) else {
            self.damaged(at, "the group is longer than the segment".to_owned());
            return Ok(at + self.header.group_alignment());
        };
        let end = group_end(self.header, at, group);
        match self.records_of(stored, group) {
            Err(what) => self.damaged(at, what),
            Ok(records) => {
                if self.records(at, &records, group)? {
                    self.found.end = end;
                }
            }
        }
        Ok(end)
    }

    fn records_of<'b>(
        &self,
        stored: &'b [u8],
        group: &GroupHeader,
    ) -> Result<Cow<'b, [u8]>, String> {
        if group.stored == group.raw {
            return Ok(stored.into());
        }
        let raw = group.raw as usize;
        // A group is never larger than a segment: this bounds the allocation.
        let limit = self.bytes.len();
        let decompressed = decompress(self.header.compression, stored, raw, limit);
        decompressed.map(Into::into).map_err(|e| format!("the group does not decompress: {e}"))
    }

    /// Visits the records of a group; `false` if one is damaged.
    fn records<E>(&mut self, at: usize, records: &[u8], group: &GroupHeader) -> Result<bool, E>
    where
        V: FnMut(u32, &[u8]) -> Result<(), E>,
    {
        let (mut from, mut count, mut clean) = (0, 0, true);
        while from < records.len() {
            let raw_offset = group.raw_offset.wrapping_add(from as u32);
            // A compressed record has no file offset of its own: name the group's.
            let uncompressed = group.stored == group.raw;
            let inside = if uncompressed { self.header.group_header() + from } else { 0 };
            let record = record_at(records.get(from..).unwrap_or_default(), self.seed, raw_offset);
            let (length, what) = match record {
                DecodedRecord::Record(body) => {
                    (self.visit)(raw_offset, body)?;
                    self.found.records += 1;
                    self.found.bytes += body.len() as u64;
                    (Some(body.len()), None)
                }
                DecodedRecord::BadBody { length } => {
                    (Some(length), Some("the CRC of a record is wrong"))
                }
                DecodedRecord::BadLength => (None, Some("the CRC of a record's length is wrong")),
            };
            if let Some(what) = what {
                clean = false;
                self.damaged(at + inside, what.to_owned());
            }
            match length {
                Some(length) if !self.ends() => {
                    from += RECORD_HEADER + length;
                    count += 1;
                }
                _ => return Ok(false),
            }
        }
        if clean && count != group.records {
            self.damaged(at, format!("a group of {} records has {count}", group.records));
            return Ok(false);
        }
        Ok(clean)
    }
}
