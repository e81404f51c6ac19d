//! The bytes of a segment.
//!
//! ```text
//! segment  := header, padded to a block │ group │ group │ … │ zeros, or bytes of an earlier use
//! group    := group header (48) │ payload │ zeros up to the next multiple of 8, or up to the next block
//! payload  := record*             compressed if that makes it smaller
//! record   := length u32 │ CRC of the length u32 │ CRC of the body u32 │ body
//! ```
//!
//! 1. A group is the unit of a write. The first group after a sync starts at a block, and all before it is padded to one, so no durable
//!    byte is ever written again: a torn write can damage only what was not durable. (Cassandra writes the last, partial page of a
//!    segment again with the next sync.) Where each write is durable, each group is padded; under `periodic`, the groups between two
//!    syncs follow each other closely.
//! 2. Every CRC (CRC-32C) is seeded with the segment's id, its salt and the offset. So neither the bytes that an earlier use of a
//!    recycled file left, nor bytes that a client put into a record, can pass for a group or record of this segment.
//! 3. A record's *raw offset* counts uncompressed bytes. Without compression it equals the file offset; with compression, the
//!    group header has the raw offset of its first record.
//! 4. Groups form a chain: a header says where the group before it ended, in this segment and in the previous one. This tells a
//!    segment that lost bytes from one that was never filled further.
//! 5. A group header says what was durable when it was written. Damage below that is corruption, damage above it is what a crash may
//!    leave of writes that were not durable yet.
//! 6. Segments of version 1 ("HALCLOG1") are read. All their groups are padded, and durable before the next one was written.
//!
//! All integers are big-endian.

use halcyon_codec::{crc32c, crc32c_append};

use crate::LogCompression;

const MAGIC_1: [u8; 8] = *b"HALCLOG1";
const MAGIC: [u8; 8] = *b"HALCYLOG";
/// The version that is written.
pub(crate) const VERSION: u32 = 2;
pub(crate) const SEGMENT_HEADER: usize = 52;
const SEGMENT_HEADER_1: usize = 48;
pub(crate) const GROUP_HEADER: usize = 48;
const GROUP_HEADER_1: usize = 32;
pub(crate) const RECORD_HEADER: usize = 12;
/// A group starts at a multiple of this.
pub(crate) const GROUP_ALIGNMENT: usize = 8;
/// The smallest block; the largest is 64 KiB.
pub(crate) const BLOCK_MIN: usize = 512;
pub(crate) const BLOCK_MAX: usize = 64 << 10;

/// A version of the format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The header of a segment.
///
/// ```text
///  0  8  magic "HALCYLOG"
///  8  4  version of the format
/// 12  4  CRC-32C of these 12 bytes, in every version
/// 16  8  segment id
/// 24  8  salt: differs at every start of the log
/// 32  4  shard
/// 36  4  bytes of a block
/// 40  4  bytes of the segment
/// 44  4  compression: 0 none, 1 LZ4, 2 Snappy, 3 Deflate, 4 Zstd
/// 48  4  CRC-32C of all that
/// ```
///
/// In version 1, "HALCLOG1" is followed by the fields from the id on, four zeros, and the CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: Version,
    pub(crate) id: u64,
    pub(crate) salt: u64,
    pub(crate) shard: u32,
    pub(crate) block: u32,
    pub(crate) size: u32,
    pub(crate) compression: LogCompression,
}

/// Why a header is not one that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Damaged(String),
    /// A version of the format that is not known here.
    Newer(u32),
}

/// The header of a group.
///
/// ```text
///  0  4  CRC-32C of id, salt and file offset of the group, then of the bytes that follow
///  4  4  stored: bytes of the payload
///  8  4  raw: bytes of the records; equals `stored` if they are not compressed
/// 12  4  records
/// 16  4  raw offset of the first record
/// 20  8  id of the shard's previous segment; 0: none
/// 28  4  where its last group ended
/// 32  8  id of a segment: all groups of earlier segments were durable when this one was written …
/// 40  4  … and those that begin below this offset in it
/// 44  4  where the group before this one ended; the first block, if this is the first group
/// ```
///
/// In version 1 the last three are missing: each group was durable before the next one was written. Its groups end at a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) records: u32,
    pub(crate) raw_offset: u32,
    pub(crate) previous: FilePosition,
    pub(crate) durable: FilePosition,
    pub(crate) after: u32,
}

/// A segment, and an offset in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FilePosition {
    pub(crate) segment: u64,
    pub(crate) offset: u32,
}

/// The seed of all CRCs of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(u32);

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Writes bytes where there is room for them: the caller has made it.
pub(crate) fn put(header: &mut [u8], at: usize, field: &[u8]) {
    let slot = header.get_mut(at..).and_then(|rest| rest.get_mut(..field.len()));
    debug_assert!(slot.is_some(), "{} bytes at {at}", field.len());
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
    /// In the version that is written.
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        put_magic(&mut bytes, MAGIC, VERSION);
        put(&mut bytes, 16, &self.id.to_be_bytes());
        put(&mut bytes, 24, &self.salt.to_be_bytes());
        let words = [self.shard, self.block, self.size, self.compression as u32];
        for (at, word) in (32..).step_by(4).zip(words) {
            put(&mut bytes, at, &word.to_be_bytes());
        }
        if let Some((fields, crc)) = bytes.split_last_chunk_mut() {
            *crc = crc32c(fields).to_be_bytes();
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, BadHeader> {
        let (version, len, fields) = if bytes.starts_with(&MAGIC_1) {
            (Version::One, SEGMENT_HEADER_1, MAGIC_1.len())
        } else {
            match version_of(bytes, MAGIC).map_err(BadHeader::Damaged)? {
                VERSION => (Version::Two, SEGMENT_HEADER, VERSIONED_MAGIC),
                newer => return Err(BadHeader::Newer(newer)),
            }
        };
        SegmentHeader::fields(bytes, version, len, fields).map_err(BadHeader::Damaged)
    }

    /// The fields from offset `at` of a header of `len` bytes.
    fn fields(bytes: &[u8], version: Version, len: usize, at: usize) -> Result<Self, String> {
        let short = || "it is shorter than its header".to_owned();
        let header = bytes.get(..len).ok_or_else(short)?;
        let checked = header.get(..len - 4).unwrap_or_default();
        if Some(crc32c(checked)) != word(header, len - 4) {
            return Err("the CRC of its header is wrong".to_owned());
        }
        let field = |from| word(header, at + from).ok_or_else(short);
        let (shard, block, size, codec) = (field(16)?, field(20)?, field(24)?, field(28)?);
        let block_fits = (BLOCK_MIN..=BLOCK_MAX).contains(&(block as usize));
        if !block_fits || !block.is_power_of_two() {
            return Err(format!("its header says blocks of {block} bytes"));
        }
        let compression = *LogCompression::ALL
            .get(codec as usize)
            .ok_or_else(|| format!("its header says compression {codec}"))?;
        let id = long(header, at).ok_or_else(short)?;
        let salt = long(header, at + 8).ok_or_else(short)?;
        Ok(SegmentHeader { version, id, salt, shard, block, size, compression })
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(crc32c_append(crc32c(&self.id.to_be_bytes()), &self.salt.to_be_bytes()))
    }

    /// The file offset of the first group.
    pub(crate) fn first_group(&self) -> usize {
        self.block as usize
    }

    /// Bytes of a group's header.
    pub(crate) fn group_header(&self) -> usize {
        match self.version {
            Version::One => GROUP_HEADER_1,
            Version::Two => GROUP_HEADER,
        }
    }

    /// What the offsets of groups are multiples of.
    pub(crate) fn group_alignment(&self) -> usize {
        match self.version {
            Version::One => (self.block as usize).max(BLOCK_MIN),
            Version::Two => GROUP_ALIGNMENT,
        }
    }
}

/// Magic, version, and the CRC of both.
pub(crate) const VERSIONED_MAGIC: usize = 16;

pub(crate) fn put_magic(header: &mut [u8], magic: [u8; 8], version: u32) {
    put(header, 0, &magic);
    put(header, 8, &version.to_be_bytes());
    let crc = crc32c(header.get(..VERSIONED_MAGIC - 4).unwrap_or_default());
    put(header, VERSIONED_MAGIC - 4, &crc.to_be_bytes());
}

/// The version that follows the magic; `Err` describes the damage.
pub(crate) fn version_of(bytes: &[u8], magic: [u8; 8]) -> Result<u32, String> {
    if !bytes.starts_with(&magic) {
        return Err(format!("it does not begin with {}", magic.escape_ascii()));
    }
    let crc = bytes.get(..VERSIONED_MAGIC - 4).map(crc32c);
    match word(bytes, 8) {
        Some(version) if crc.is_some() && crc == word(bytes, VERSIONED_MAGIC - 4) => Ok(version),
        _ => Err("the CRC of its version is wrong".to_owned()),
    }
}

impl GroupHeader {
    pub(crate) fn encode(&self, seed: Seed, offset: u32) -> [u8; GROUP_HEADER] {
        let mut bytes = [0; GROUP_HEADER];
        let words = [self.stored, self.raw, self.records, self.raw_offset];
        for (at, word) in (4..).step_by(4).zip(words) {
            put(&mut bytes, at, &word.to_be_bytes());
        }
        for (at, position) in [(20, self.previous), (32, self.durable)] {
            put(&mut bytes, at, &position.segment.to_be_bytes());
            put(&mut bytes, at + 8, &position.offset.to_be_bytes());
        }
        put(&mut bytes, 44, &self.after.to_be_bytes());
        let crc = GroupHeader::crc(seed, offset, &bytes);
        put(&mut bytes, 0, &crc.to_be_bytes());
        bytes
    }

    fn crc(seed: Seed, offset: u32, header: &[u8]) -> u32 {
        let placed = crc32c_append(seed.0, &offset.to_be_bytes());
        crc32c_append(placed, header.get(4..).unwrap_or_default())
    }

    /// The header at this offset of a segment, if it is valid.
    pub(crate) fn at(segment: &[u8], of: &SegmentHeader, offset: usize) -> Option<GroupHeader> {
        let header = segment.get(offset..)?.get(..of.group_header())?;
        let offset = u32::try_from(offset).ok()?;
        let (stored, raw, records) = (word(header, 4)?, word(header, 8)?, word(header, 12)?);
        // Most bytes that are not a header are recognised without the CRC.
        if stored > raw
            || records == 0
            || word(header, 0)? != GroupHeader::crc(of.seed(), offset, header)
        {
            return None;
        }
        let position =
            |at| Some(FilePosition { segment: long(header, at)?, offset: word(header, at + 8)? });
        let (durable, after) = match of.version {
            Version::One => (FilePosition { segment: of.id, offset }, offset),
            Version::Two => (position(32)?, word(header, 44)?),
        };
        let (raw_offset, previous) = (word(header, 16)?, position(20)?);
        if after > offset || durable > (FilePosition { segment: of.id, offset }) {
            return None;
        }
        Some(GroupHeader { stored, raw, records, raw_offset, previous, durable, after })
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
