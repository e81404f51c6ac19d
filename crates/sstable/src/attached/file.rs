//! The file of an attached index: sorted entries in compressed blocks, or segments of vectors, and a directory of both.
//!
//! ```text
//!  block*     each: LZ4 of entries (`entry.rs`), up to 8 KiB before compression; where it lies stands in the directory
//!  segment*   of an index on vectors (`segment.rs`)
//!  directory  uvint fingerprint length, fingerprint | u64 entries | uvint blocks
//!             per block: uvint offset, uvint bytes, uvint bytes uncompressed, u32 CRC32 of its bytes, its first entry
//!             uvint segments, per segment: uvint offset, uvint bytes, u32 CRC32 of its bytes
//!  footer     u64 offset of the directory | u32 its CRC32 | u64 magic
//! ```
//! 1. The fingerprint is the index's definition: a file of another one is not used.
//! 2. The directory is in memory as long as the SSTable is live. Blocks come through the shard's chunk cache.
//! 3. Tokens and the order of clusterings are computed when a block is read.

use std::path::Path;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use halcyon_codec::{Algorithm, Decompressor, Method, append_once, crc32};
use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};
use halcyon_model::bytes::Put;
use halcyon_model::{Clusterings, Cursor, DecodeError, DecodeResult, path_component};
use halcyon_stream::{PrimaryKey, PrimaryKeyRange};

use super::entry::{Entries, encode_entry};
use super::{Entry, Segment, Terms, Wanted};
use crate::read::ReadCaches;
use crate::read::caches::{Chunk, FileId};
use crate::{Component, Error, Result};

const MAGIC: u64 = u64::from_be_bytes(*b"HalcyIx3");
const FOOTER: u64 = 20;
/// Of a block before compression. A block has at least one entry.
pub(super) const BLOCK: usize = 8 << 10;
/// An entry has at most a term, a key and 32 clustering values, each below 64 KiB.
const MAX_BLOCK: usize = 32 << 20;
const MAX_DIRECTORY: u64 = 4 << 30;

const PREFIX: &str = "Halcyon+";
const SUFFIX: &str = ".db";

/// The name of an index's component, if the index's own can be in the name of a file.
pub fn component_name(index: &str) -> Result<String> {
    let name = format!("{PREFIX}{index}{SUFFIX}");
    path_component(&name).map_err(Error::Invalid)?;
    Ok(name)
}

/// The index of a component's name.
pub fn index_of_component(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

#[derive(Debug, Clone)]
struct Block {
    offset: u64,
    length: usize,
    raw_length: usize,
    crc: u32,
    first: Entry,
}

#[derive(Debug, Clone, Copy)]
struct SegmentAt {
    offset: u64,
    length: usize,
    crc: u32,
}

/// The index of one SSTable, open. Threads share it.
pub struct AttachedIndex {
    pub(super) id: FileId,
    file: ReadFile,
    clusterings: Clusterings,
    fingerprint: Vec<u8>,
    blocks: Vec<Block>,
    segments: Vec<SegmentAt>,
    entries: u64,
}

/// Entries on their way into a file.
#[derive(Default)]
pub(super) struct Encoder {
    raw: Vec<u8>,
    first: Option<Entry>,
    last: Option<Entry>,
    blocks: Vec<Block>,
    segments: Vec<SegmentAt>,
    entries: u64,
    offset: u64,
}

impl Encoder {
    /// Takes the next entry; returns a block if that filled one.
    pub(super) fn add(&mut self, entry: Entry) -> Result<Option<Vec<u8>>> {
        let before = self.last.as_ref();
        if crate::CHECKS {
            assert!(before.is_none_or(|before| *before < entry), "entries in order, each once");
        }
        encode_entry(&entry, before, &mut self.raw);
        self.entries += 1;
        if self.first.is_none() {
            self.first = Some(entry.clone());
        }
        self.last = Some(entry);
        if self.raw.len() >= BLOCK { self.block() } else { Ok(None) }
    }

    /// What is left as a block.
    pub(super) fn block(&mut self) -> Result<Option<Vec<u8>>> {
        self.last = None;
        let Some(first) = self.first.take() else { return Ok(None) };
        let mut bytes = Vec::new();
        append_once(Method::LZ4, &self.raw, &mut bytes)
            .map_err(|e| Error::Invalid(e.to_string()))?;
        let block = Block {
            offset: self.offset,
            length: bytes.len(),
            raw_length: self.raw.len(),
            crc: crc32(&bytes),
            first,
        };
        self.offset += bytes.len() as u64;
        self.raw.clear();
        self.blocks.push(block);
        Ok(Some(bytes))
    }

    /// Counts a segment with `entries` that is written next.
    pub(super) fn segment(&mut self, bytes: &[u8], entries: u64) {
        let (offset, length) = (self.offset, bytes.len());
        self.segments.push(SegmentAt { offset, length, crc: crc32(bytes) });
        self.offset += length as u64;
        self.entries += entries;
    }

    /// Directory and footer, after the last block and segment.
    pub(super) fn finish(self, fingerprint: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_uvint(fingerprint.len() as u64);
        out.put(fingerprint);
        out.put(&self.entries.to_be_bytes());
        out.put_uvint(self.blocks.len() as u64);
        for block in &self.blocks {
            out.put_uvint(block.offset);
            out.put_uvint(block.length as u64);
            out.put_uvint(block.raw_length as u64);
            out.put_u32(block.crc);
            encode_entry(&block.first, None, &mut out);
        }
        out.put_uvint(self.segments.len() as u64);
        for segment in &self.segments {
            out.put_uvint(segment.offset);
            out.put_uvint(segment.length as u64);
            out.put_u32(segment.crc);
        }
        let crc = crc32(&out);
        out.put(&self.offset.to_be_bytes());
        out.put_u32(crc);
        out.put(&MAGIC.to_be_bytes());
        out
    }
}

impl AttachedIndex {
    /// Reads the directory. `id`: unique among the files opened through the same disk.
    pub fn open<'a>(
        disk: &'a Disk,
        path: &'a Path,
        clusterings: &'a Clusterings,
        mode: AccessMode,
    ) -> LocalBoxFuture<'a, Result<AttachedIndex>> {
        Box::pin(async move {
            let file = disk.open(path, mode, Purpose::UserRead).await?;
            let corrupt = |offset, what: String| {
                Error::corrupt(path, Component::Data, DecodeError { offset, what })
            };
            let Some(footer_at) = file.len().checked_sub(FOOTER) else {
                return Err(corrupt(0, format!("an index of {} bytes has no footer", file.len())));
            };
            let footer = file.read_at(footer_at, FOOTER as usize).await?;
            let mut cursor = Cursor::at_offset(&footer, footer_at);
            let decode = |e: DecodeError| Error::corrupt(path, Component::Data, e);
            let directory_at = cursor.u64().map_err(decode)?;
            let crc = cursor.u32().map_err(decode)?;
            if cursor.u64().map_err(decode)? != MAGIC {
                return Err(corrupt(footer_at, "no footer of an index".to_owned()));
            }
            let length =
                footer_at.checked_sub(directory_at).filter(|length| *length <= MAX_DIRECTORY);
            let Some(length) = length else {
                return Err(corrupt(footer_at, format!("a directory at {directory_at}")));
            };
            let bytes = file.read_at(directory_at, length as usize).await?;
            if crc32(&bytes) != crc {
                return Err(corrupt(directory_at, "the directory fails its CRC32".to_owned()));
            }
            let mut cursor = Cursor::at_offset(&bytes, directory_at);
            let directory = directory(&mut cursor, clusterings, directory_at).map_err(decode)?;
            let (fingerprint, entries, blocks, segments) = directory;
            let id = FileId::of(disk.next_id(), Component::Data);
            let clusterings = clusterings.clone();
            Ok(AttachedIndex { id, file, clusterings, fingerprint, blocks, segments, entries })
        })
    }

    pub fn fingerprint(&self) -> &[u8] {
        &self.fingerprint
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn file_length(&self) -> u64 {
        self.file.len()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.blocks.iter().map(|block| size_of::<Block>() + block.first.size()).sum()
    }

    /// Which blocks can have entries of these terms; of a single term, those that can have them at or behind `from`.
    fn blocks_of(&self, terms: &Terms, from: &PrimaryKey) -> std::ops::Range<usize> {
        let is_before = |block: &Block| match terms.single() {
            Some(term) => (&*block.first.term, &block.first.place) <= (term, from),
            None => terms.is_behind(&block.first.term),
        };
        // The block before the first one that begins in the terms may end in them.
        let first = self.blocks.partition_point(is_before).saturating_sub(1);
        let past = self.blocks.partition_point(|block| !terms.is_before(&block.first.term));
        first..past.max(first)
    }

    /// How many entries these terms have, about.
    pub fn estimate(&self, terms: &Terms, from: &PrimaryKey) -> u64 {
        let each = self.entries / (self.blocks.len() as u64).max(1);
        self.blocks_of(terms, from).len() as u64 * each
    }

    /// Gives `take` the places of these terms in a range: of a single term in order, else as the terms come. Until it says `false`.
    /// Places with other tokens than those of `wanted` are left out.
    pub async fn places(
        &self,
        caches: &ReadCaches,
        terms: &Terms,
        range: &PrimaryKeyRange,
        wanted: Option<Wanted<'_>>,
        take: &mut impl FnMut(PrimaryKey) -> bool,
    ) -> Result<()> {
        let is_single = terms.single().is_some();
        for number in self.blocks_of(terms, &range.start) {
            if wanted.is_some_and(|wanted| !self.can_have(number, terms, wanted)) {
                continue;
            }
            let Some((block, raw)) = self.block(caches, number).await? else { continue };
            let mut cursor = Cursor::new(&raw);
            let mut entries = Entries::new(&mut cursor, &self.clusterings);
            let corrupt = |error: DecodeError| self.corrupt(block, &error.to_string());
            while let Some(term) = entries.next_term().map_err(corrupt)? {
                if terms.is_behind(term) {
                    continue;
                }
                if terms.is_before(term) {
                    return Ok(());
                }
                if wanted.is_some_and(|wanted| !wanted.has_token(entries.token())) {
                    continue;
                }
                let place = entries.primary_key().map_err(corrupt)?;
                if range.contains(&place) {
                    if !take(place) {
                        return Ok(());
                    }
                } else if is_single && range.start <= place {
                    return Ok(());
                }
            }
            halcyon_io::yield_now().await;
        }
        Ok(())
    }

    /// Whether a block can have one of these places. Of several terms it can have any.
    fn can_have(&self, number: usize, terms: &Terms, wanted: Wanted<'_>) -> bool {
        let Some(term) = terms.single() else { return true };
        let Some(block) = self.blocks.get(number) else { return true };
        if *block.first.term != *term {
            return true;
        }
        let next = self.blocks.get(number + 1).filter(|next| *next.first.term == *term);
        wanted.is_between(&block.first.place, next.map(|next| &next.first.place))
    }

    /// All entries of a block.
    pub(super) async fn entries_of(
        &self,
        caches: &ReadCaches,
        number: usize,
    ) -> Result<Vec<Entry>> {
        let Some((block, raw)) = self.block(caches, number).await? else { return Ok(Vec::new()) };
        let mut cursor = Cursor::new(&raw);
        let mut entries = Entries::new(&mut cursor, &self.clusterings);
        let mut all = Vec::new();
        while let Some(entry) =
            entries.next().map_err(|error| self.corrupt(block, &error.to_string()))?
        {
            all.push(entry);
        }
        Ok(all)
    }

    /// A block, and its bytes before compression.
    async fn block(&self, caches: &ReadCaches, number: usize) -> Result<Option<(&Block, Chunk)>> {
        let Some(block) = self.blocks.get(number) else { return Ok(None) };
        if let Some(raw) = caches.chunk(self.id, number as u64) {
            return Ok(Some((block, raw)));
        }
        let raw = self.fetch(block).await?;
        caches.count_read(block.length);
        caches.keep_chunk(self.id, number as u64, raw.clone());
        Ok(Some((block, raw)))
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Reads a segment.
    pub(super) async fn segment(&self, number: usize) -> Result<Option<Segment>> {
        let Some(at) = self.segments.get(number).copied() else { return Ok(None) };
        let bytes = self.file.read_at(at.offset, at.length).await?;
        let clusterings = self.clusterings.clone();
        let decoded = halcyon_io::compute(move || {
            let mut cursor = Cursor::at_offset(&bytes, at.offset);
            if crc32(&bytes) != at.crc {
                return Err(cursor.error("a segment fails its CRC32"));
            }
            Segment::decode(&mut cursor, &clusterings)
        });
        let decoded = decoded.await.map_err(|e| Error::Invalid(e.to_string()))?;
        decoded.map(Some).map_err(|error| self.corrupt_at(error))
    }

    pub(super) fn corrupt_at(&self, error: DecodeError) -> Error {
        Error::corrupt(self.file.path(), Component::Data, error)
    }

    async fn fetch(&self, block: &Block) -> Result<Chunk> {
        let bytes = self.file.read_at(block.offset, block.length).await?;
        if crc32(&bytes) != block.crc {
            return Err(self.corrupt(block, "a block fails its CRC32"));
        }
        let mut raw = Vec::new();
        Decompressor::new(Algorithm::Lz4)
            .and_then(|mut lz4| lz4.append(&bytes, block.raw_length, MAX_BLOCK, &mut raw))
            .map_err(|e| self.corrupt(block, &e.to_string()))?;
        Ok(Rc::new(raw.into()))
    }

    fn corrupt(&self, block: &Block, what: &str) -> Error {
        self.corrupt_at(DecodeError { offset: block.offset, what: what.to_owned() })
    }
}

type Directory = (Vec<u8>, u64, Vec<Block>, Vec<SegmentAt>);

/// Fingerprint, entries, blocks, segments.
fn directory(
    cursor: &mut Cursor<'_>,
    clusterings: &Clusterings,
    end: u64,
) -> DecodeResult<Directory> {
    let fingerprint = cursor.vbytes()?.to_vec();
    let entries = cursor.u64()?;
    let count = cursor.count()?;
    let mut blocks = Vec::with_capacity(count.min(cursor.remaining()));
    let mut next = 0;
    for _ in 0..count {
        let (offset, length, raw_length) = (cursor.uvint()?, cursor.uvint()?, cursor.uvint()?);
        if offset != next || length > end - offset || raw_length > MAX_BLOCK as u64 {
            return Err(cursor.error(format!("a block of {length} bytes at {offset}")));
        }
        next = offset + length;
        let crc = cursor.u32()?;
        let first = Entries::new(cursor, clusterings).next()?;
        let first = first.ok_or_else(|| cursor.error("a block without an entry"))?;
        let (length, raw_length) = (length as usize, raw_length as usize);
        blocks.push(Block { offset, length, raw_length, crc, first });
    }
    let count = cursor.count()?;
    let mut segments = Vec::with_capacity(count.min(cursor.remaining()));
    for _ in 0..count {
        let (offset, length, crc) = (cursor.uvint()?, cursor.uvint()?, cursor.u32()?);
        if offset != next || length > end - offset {
            return Err(cursor.error(format!("a segment of {length} bytes at {offset}")));
        }
        next = offset + length;
        segments.push(SegmentAt { offset, length: length as usize, crc });
    }
    if next != end {
        return Err(cursor.error(format!("blocks end at {next}, not at the directory")));
    }
    Ok((fingerprint, entries, blocks, segments))
}
