//! Decodes the bytes of one segment, without I/O.
//!
//! 1. Groups follow each other at block boundaries. The first block without a valid group header is the end, unless a valid group
//!    follows later: then the bytes between are damaged.
//! 2. A group with a valid header and invalid records is torn if no valid group follows: the crash interrupted its write, so it
//!    was not acknowledged. Otherwise it is damaged.
//! 3. Damage ends the scan or is skipped: up to the next record if the length is valid, otherwise up to the next group.
//!
//! A torn end is only a candidate here: the caller checks it against the segments that follow.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::OnCorruption;
use crate::compression::decompress;
use crate::format::{
    BLOCK_MIN, DecodedRecord, GROUP_HEADER, GroupHeader, MAGIC, PreviousSegment, RECORD_HEADER,
    Seed, SegmentHeader, record_at,
};

/// The state of a segment, by its header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    Used(SegmentHeader),
    /// Prepared, perhaps only in part, and never used.
    Unused,
    /// Written by Apache Cassandra.
    Foreign,
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
    pub(crate) groups: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The previous segment, as the first group names it.
    pub(crate) previous: Option<PreviousSegment>,
    /// The end of the last group.
    pub(crate) end: usize,
    /// Damage with valid groups after it; several only if the policy is to ignore it.
    pub(crate) damage: Vec<Damage>,
    /// Damage at the end.
    pub(crate) torn: Option<Damage>,
}

/// The state of a segment whose name has this shard and id.
pub(crate) fn segment_state(bytes: &[u8], shard: u32, id: u64) -> SegmentState {
    let header = match SegmentHeader::decode(bytes) {
        Ok(header) => header,
        Err(what) => {
            let cassandra = matches!(bytes, [0, 0, 0, 1..=31, ..]);
            return if bytes.iter().all(|byte| *byte == 0) {
                SegmentState::Unused
            } else if cassandra && !bytes.starts_with(&MAGIC) {
                SegmentState::Foreign
            } else {
                SegmentState::Damaged(what)
            };
        }
    };
    if header.shard != shard || header.id > id {
        let said = format!("its header is of segment {} of shard {}", header.id, header.shard);
        return SegmentState::Damaged(said);
    }
    // Renamed to be recycled; the crash came before its new header.
    if header.id < id { SegmentState::Unused } else { SegmentState::Used(header) }
}

/// Visits the raw offset and the body of every record. An error of the visitor ends the scan.
pub(crate) fn scan<E>(
    bytes: &[u8],
    header: &SegmentHeader,
    on_corruption: OnCorruption,
    visit: impl FnMut(u32, &[u8]) -> Result<(), E>,
) -> Result<Scanned, E> {
    let block = (header.block as usize).max(BLOCK_MIN);
    let mut walk = Walk {
        bytes,
        header,
        seed: header.seed(),
        block,
        visit,
        found: Scanned { end: block, ..Scanned::default() },
    };
    let mut at = block;
    while let Some(group) = walk.next_group(at) {
        if group > at {
            walk.damaged(at, "no group starts here, although groups follow");
            if on_corruption == OnCorruption::Stop {
                break;
            }
        }
        match walk.group(group, on_corruption)? {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(walk.found)
}

struct Walk<'a, V> {
    bytes: &'a [u8],
    header: &'a SegmentHeader,
    seed: Seed,
    block: usize,
    visit: V,
    found: Scanned,
}

impl<V> Walk<'_, V> {
    fn group_header(&self, at: usize) -> Option<GroupHeader> {
        GroupHeader::decode(self.bytes.get(at..)?, self.seed, u32::try_from(at).ok()?)
    }

    /// The first valid group header at this block or after it.
    fn next_group(&self, from: usize) -> Option<usize> {
        (from..self.bytes.len()).step_by(self.block).find(|at| self.group_header(*at).is_some())
    }

    fn damaged(&mut self, offset: usize, what: &str) {
        self.found.damage.push(Damage { offset, what: what.to_owned() });
    }

    /// Visits one group. Returns the earliest offset of the next one; `None` ends the scan.
    fn group<E>(&mut self, at: usize, on_corruption: OnCorruption) -> Result<Option<usize>, E>
    where
        V: FnMut(u32, &[u8]) -> Result<(), E>,
    {
        let Some(header) = self.group_header(at) else { return Ok(None) };
        self.found.previous.get_or_insert(header.previous);
        let next = at
            .saturating_add(GROUP_HEADER)
            .saturating_add(header.stored as usize)
            .next_multiple_of(self.block);
        let payload = self.bytes.get(at + GROUP_HEADER..).unwrap_or_default();
        let whole = payload.get(..header.stored as usize);
        let follow = if whole.is_some() { next } else { at + self.block };
        let last = self.next_group(follow).is_none();
        let records = match whole {
            None => Err("the group is longer than the segment".to_owned()),
            Some(stored) => self.records_of(stored, &header),
        };
        match records {
            Err(what) => self.bad(at, what, last),
            Ok(records) => {
                let clean = self.records(at, &records, &header, last, on_corruption)?;
                if clean {
                    self.found.groups += 1;
                    self.found.end = next;
                }
            }
        }
        let stop = !self.found.damage.is_empty() && on_corruption == OnCorruption::Stop;
        Ok((!stop && self.found.torn.is_none()).then_some(follow))
    }

    fn records_of<'b>(
        &self,
        stored: &'b [u8],
        header: &GroupHeader,
    ) -> Result<std::borrow::Cow<'b, [u8]>, String> {
        if header.stored == header.raw {
            return Ok(stored.into());
        }
        let raw = header.raw as usize;
        // A group is never larger than a segment: this bounds the allocation.
        let limit = self.bytes.len();
        let decompressed = decompress(self.header.compression, stored, raw, limit);
        decompressed.map(Into::into).map_err(|e| format!("the group does not decompress: {e}"))
    }

    fn bad(&mut self, offset: usize, what: String, last: bool) {
        let damage = Damage { offset, what };
        if last {
            self.found.torn = Some(damage);
        } else {
            self.found.damage.push(damage);
        }
    }

    /// Visits the records of a group; `false` if one is damaged.
    fn records<E>(
        &mut self,
        at: usize,
        records: &[u8],
        header: &GroupHeader,
        last: bool,
        on_corruption: OnCorruption,
    ) -> Result<bool, E>
    where
        V: FnMut(u32, &[u8]) -> Result<(), E>,
    {
        let (mut from, mut count, mut clean) = (0, 0, true);
        while from < records.len() {
            let raw_offset = header.raw_offset.wrapping_add(from as u32);
            // A compressed record has no file offset of its own: name the group's.
            let offset = if header.stored == header.raw { at + GROUP_HEADER + from } else { at };
            let (length, what) =
                match record_at(records.get(from..).unwrap_or_default(), self.seed, raw_offset) {
                    DecodedRecord::Record(body) => {
                        (self.visit)(raw_offset, body)?;
                        self.found.records += 1;
                        self.found.bytes += body.len() as u64;
                        (Some(body.len()), None)
                    }
                    DecodedRecord::BadBody { length } => {
                        (Some(length), Some("the CRC of a record is wrong"))
                    }
                    DecodedRecord::BadLength => {
                        (None, Some("the CRC of a record's length is wrong"))
                    }
                };
            if let Some(what) = what {
                clean = false;
                self.bad(offset, what.to_owned(), last);
            }
            match length {
                Some(length) if clean || (!last && on_corruption == OnCorruption::Ignore) => {
                    from += RECORD_HEADER + length;
                    count += 1;
                }
                _ => return Ok(false),
            }
        }
        if clean && count != header.records {
            let what = format!("a group of {} records has {count}", header.records);
            self.bad(at, what, last);
            return Ok(false);
        }
        Ok(clean)
    }
}
