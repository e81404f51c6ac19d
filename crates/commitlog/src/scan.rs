//! One segment's bytes, from its header to the last group: pure.
//!
//! 1. Groups follow one another from block to block. The first block without a valid group header is the end, unless a
//!    valid group stands further on: then what lies between is damage.
//! 2. A group whose header is valid and whose records are not is torn if no valid group follows, because it was never
//!    acknowledged: its writer was the last. Otherwise it is damage.
//! 3. Damage stops the scan, or is skipped: to the next record if the length can be believed, else to the next group.
//!
//! Whether a tear is believed is the caller's to decide, who knows what stands in the segments after this one.

use crate::OnCorruption;
use crate::compression::decompress;
use crate::format::{
    BLOCK_MIN, Before, Found, GROUP_HEADER, GroupHeader, MAGIC, RECORD_HEADER, Seed, SegmentHeader,
    record_at,
};

/// What a segment is, by its front.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Used(SegmentHeader),
    /// Made ready, or on the way there, and never filled.
    Unused,
    /// Apache Cassandra's.
    Foreign,
    Damaged(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) offset: usize,
    pub(crate) what: String,
}

/// What was found behind the header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) groups: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// What the first group says about the segment before.
    pub(crate) before: Option<Before>,
    /// Behind the last group.
    pub(crate) end: usize,
    /// With valid groups behind it. More than one only if it is ignored.
    pub(crate) damage: Vec<Damage>,
    /// With nothing behind it.
    pub(crate) torn: Option<Damage>,
}

/// What the front of the file says; `shard` and `id` are its name's.
pub(crate) fn front(bytes: &[u8], shard: u32, id: u64) -> Front {
    let header = match SegmentHeader::decode(bytes) {
        Ok(header) => header,
        Err(what) => {
            let cassandra = matches!(bytes, [0, 0, 0, 1..=31, ..]);
            return if bytes.iter().all(|byte| *byte == 0) {
                Front::Unused
            } else if cassandra && !bytes.starts_with(&MAGIC) {
                Front::Foreign
            } else {
                Front::Damaged(what)
            };
        }
    };
    if header.shard != shard || header.id > id {
        let said = format!("its header is of segment {} of shard {}", header.id, header.shard);
        return Front::Damaged(said);
    }
    // Renamed for its next use, which never began.
    if header.id < id { Front::Unused } else { Front::Used(header) }
}

/// Visits the place and the bytes of every record. An error of the visitor ends it.
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

    /// Visits one group. Returns where the next one may start; `None`: no further.
    fn group<E>(&mut self, at: usize, on_corruption: OnCorruption) -> Result<Option<usize>, E>
    where
        V: FnMut(u32, &[u8]) -> Result<(), E>,
    {
        let Some(header) = self.group_header(at) else { return Ok(None) };
        self.found.before.get_or_insert(header.before);
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
        // A group gathers no more than a segment holds, whatever its header says.
        if raw > self.bytes.len() {
            return Err(format!("the group says that it has {raw} bytes of records"));
        }
        let decompressed = decompress(self.header.compression, stored, raw);
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

    /// Visits the records of a group; `false` if one of them is bad.
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
            let place = header.place.wrapping_add(from as u32);
            // In a compressed group only the group's offset means something to whoever looks at the file.
            let offset = if header.stored == header.raw { at + GROUP_HEADER + from } else { at };
            let (length, what) = match record_at(&records[from..], self.seed, place) {
                Found::Record(body) => {
                    (self.visit)(place, body)?;
                    self.found.records += 1;
                    self.found.bytes += body.len() as u64;
                    (Some(body.len()), None)
                }
                Found::BadBody { length } => (Some(length), Some("the CRC of a record is wrong")),
                Found::BadLength => (None, Some("the CRC of a record's length is wrong")),
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
