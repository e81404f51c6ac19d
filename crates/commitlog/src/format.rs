//! The bytes of a segment.
//!
//! ```text
//! segment  := header, padded to a block │ group │ group │ … │ zeros, or bytes of an earlier use
//! group    := group header (32) │ payload │ zeros up to the next block
//! payload  := record*             compressed if that makes it smaller
//! record   := length u32 │ CRC of the length u32 │ CRC of the body u32 │ body
//! ```
//!
//! 1. A group is the unit of a durable write. It starts at a block and is padded to one, so no acknowledged byte is ever
//!    written again: a torn write can damage only records that were not acknowledged. (Cassandra writes the last, partial page of
//!    a segment again with the next sync.)
//! 2. Every CRC (CRC-32C) is seeded with the segment's id, its salt and the offset. So neither the bytes that an earlier use of a
//!    recycled file left, nor bytes that a client put into a record, can pass for a group or record of this segment.
//! 3. A record's *raw offset* counts uncompressed bytes. Without compression it equals the file offset; with compression, the
//!    group header has the raw offset of its first record.
//! 4. A group header names the shard's previous segment and where that one ended. This tells a segment that lost its end from one
//!    that was never filled further.
//!
//! All integers are big-endian.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use halcyon_codec::{crc32c, crc32c_append};

use crate::LogCompression;

pub(crate) const MAGIC: [u8; 8] = *b"HALCLOG1";
pub(crate) const SEGMENT_HEADER: usize = 48;
pub(crate) const GROUP_HEADER: usize = 32;
pub(crate) const RECORD_HEADER: usize = 12;
/// The smallest block; the largest is 64 KiB.
pub(crate) const BLOCK_MIN: usize = 512;
pub(crate) const BLOCK_MAX: usize = 64 << 10;

/// The header of a segment.
///
/// ```text
///  0  8  magic "HALCLOG1"
///  8  8  segment id
/// 16  8  salt: differs at every start of the log
/// 24  4  shard
/// 28  4  bytes of a block
/// 32  4  bytes of the segment
/// 36  4  compression: 0 none, 1 LZ4, 2 Snappy, 3 Deflate, 4 Zstd
/// 40  4  zero
/// 44  4  CRC-32C of all that
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) id: u64,
    pub(crate) salt: u64,
    pub(crate) shard: u32,
    pub(crate) block: u32,
    pub(crate) size: u32,
    pub(crate) compression: LogCompression,
}

/// The header of a group.
///
/// ```text
///  0  4  CRC-32C of id, salt and file offset of the group, then of the 28 bytes that follow
///  4  4  stored: bytes of the payload
///  8  4  raw: bytes of the records; equals `stored` if they are not compressed
/// 12  4  records
/// 16  4  raw offset of the first record
/// 20  8  id of the shard's previous segment; 0: none
/// 28  4  where its last group ended, padding included
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) records: u32,
    pub(crate) raw_offset: u32,
    pub(crate) previous: PreviousSegment,
}

/// A shard's previous segment, and the end of its last group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PreviousSegment {
    pub(crate) segment: u64,
    pub(crate) end: u32,
}

/// The seed of all CRCs of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(u32);

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Writes a field of a header. Offsets are constants of the format, so every field fits.
fn put(header: &mut [u8], at: usize, field: &[u8]) {
    let slot = header.get_mut(at..).and_then(|rest| rest.get_mut(..field.len()));
    debug_assert!(slot.is_some(), "a field of {} bytes at {at}", field.len());
    if let Some(slot) = slot {
        slot.copy_from_slice(field);
    }
}

impl LogCompression {
    const ALL: [LogCompression; 5] = [
        LogCompression::None,
        LogCompression::Lz4,
        LogCompression::Snappy,
        LogCompression::Deflate,
        LogCompression::Zstd,
    ];
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &self.id.to_be_bytes());
        put(&mut bytes, 16, &self.salt.to_be_bytes());
        let words = [self.shard, self.block, self.size, self.compression as u32];
        for (at, word) in (24..).step_by(4).zip(words) {
            put(&mut bytes, at, &word.to_be_bytes());
        }
        if let Some((fields, crc)) = bytes.split_last_chunk_mut() {
            *crc = crc32c(fields).to_be_bytes();
        }
        bytes
    }

    /// `Err` describes the damage.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, String> {
        let short = || "the segment is shorter than its header".to_owned();
        let header = bytes.get(..SEGMENT_HEADER).ok_or_else(short)?;
        if !header.starts_with(&MAGIC) {
            return Err("it does not begin with HALCLOG1".to_owned());
        }
        let at = |at| word(header, at).ok_or_else(short);
        let fields = header.get(..SEGMENT_HEADER - 4).unwrap_or_default();
        if crc32c(fields) != at(SEGMENT_HEADER - 4)? {
            return Err("the CRC of the segment's header is wrong".to_owned());
        }
        let (shard, block, size, codec) = (at(24)?, at(28)?, at(32)?, at(36)?);
        let block_fits = (BLOCK_MIN..=BLOCK_MAX).contains(&(block as usize));
        if !block_fits || !block.is_power_of_two() {
            return Err(format!("the segment's header says blocks of {block} bytes"));
        }
        let compression = *LogCompression::ALL
            .get(codec as usize)
            .ok_or_else(|| format!("the segment's header says compression {codec}"))?;
        let id = long(header, 8).ok_or_else(short)?;
        let salt = long(header, 16).ok_or_else(short)?;
        Ok(SegmentHeader { id, salt, shard, block, size, compression })
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(crc32c_append(crc32c(&self.id.to_be_bytes()), &self.salt.to_be_bytes()))
    }

    /// The file offset of the first group.
    pub(crate) fn first_group(&self) -> usize {
        self.block as usize
    }
}

impl GroupHeader {
    pub(crate) fn encode(&self, seed: Seed, offset: u32) -> [u8; GROUP_HEADER] {
        let mut bytes = [0; GROUP_HEADER];
        let words = [self.stored, self.raw, self.records, self.raw_offset];
        for (at, word) in (4..).step_by(4).zip(words) {
            put(&mut bytes, at, &word.to_be_bytes());
        }
        put(&mut bytes, 20, &self.previous.segment.to_be_bytes());
        put(&mut bytes, 28, &self.previous.end.to_be_bytes());
        let crc = GroupHeader::crc(seed, offset, &bytes);
        put(&mut bytes, 0, &crc.to_be_bytes());
        bytes
    }

    fn crc(seed: Seed, offset: u32, header: &[u8]) -> u32 {
        let placed = crc32c_append(seed.0, &offset.to_be_bytes());
        crc32c_append(placed, header.get(4..GROUP_HEADER).unwrap_or_default())
    }

    /// The header at the start of `bytes`, if it is valid.
    pub(crate) fn decode(bytes: &[u8], seed: Seed, offset: u32) -> Option<GroupHeader> {
        let header = bytes.get(..GROUP_HEADER)?;
        if word(header, 0)? != GroupHeader::crc(seed, offset, header) {
            return None;
        }
        let (stored, raw) = (word(header, 4)?, word(header, 8)?);
        let (records, raw_offset) = (word(header, 12)?, word(header, 16)?);
        let previous = PreviousSegment { segment: long(header, 20)?, end: word(header, 28)? };
        Some(GroupHeader { stored, raw, records, raw_offset, previous })
    }
}

fn length_crc(seed: Seed, raw_offset: u32, length: u32) -> u32 {
    crc32c_append(crc32c_append(seed.0, &raw_offset.to_be_bytes()), &length.to_be_bytes())
}

/// The header of a record.
pub(crate) fn record_header(seed: Seed, raw_offset: u32, body: &[u8]) -> [u8; RECORD_HEADER] {
    let mut bytes = [0; RECORD_HEADER];
    let length = body.len() as u32;
    let length_crc = length_crc(seed, raw_offset, length);
    let body_crc = crc32c_append(length_crc, body);
    for (at, word) in (0..).step_by(4).zip([length, length_crc, body_crc]) {
        put(&mut bytes, at, &word.to_be_bytes());
    }
    bytes
}

/// The result of decoding a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodedRecord<'a> {
    Record(&'a [u8]),
    /// The length is valid, the body is not; the next record can be found.
    BadBody {
        length: usize,
    },
    BadLength,
}

/// Decodes the record at the start of `bytes`.
pub(crate) fn record_at(bytes: &[u8], seed: Seed, raw_offset: u32) -> DecodedRecord<'_> {
    let words = (word(bytes, 0), word(bytes, 4), word(bytes, 8));
    let (Some(length), Some(crc), Some(body_crc)) = words else { return DecodedRecord::BadLength };
    if crc != length_crc(seed, raw_offset, length) {
        return DecodedRecord::BadLength;
    }
    let length = length as usize;
    let bodies = bytes.get(RECORD_HEADER..).unwrap_or_default();
    match bodies.get(..length) {
        None => DecodedRecord::BadLength,
        Some(body) if crc32c_append(crc, body) == body_crc => DecodedRecord::Record(body),
        Some(_) => DecodedRecord::BadBody { length },
    }
}

/// `CommitLog-<shard>-<id>.log`.
pub(crate) fn file_name(shard: u32, id: u64) -> String {
    format!("CommitLog-{shard}-{id}.log")
}

/// Shard and id from the name of a segment.
pub(crate) fn parse_file_name(name: &str) -> Option<(u32, u64)> {
    let (shard, id) = name.strip_prefix("CommitLog-")?.strip_suffix(".log")?.split_once('-')?;
    let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    if !digits(shard) || !digits(id) {
        return None;
    }
    Some((shard.parse().ok()?, id.parse().ok()?))
}
