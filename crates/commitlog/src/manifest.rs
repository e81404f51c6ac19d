//! The manifest of a shard's log: the segments that exist.
//!
//! ```text
//! file := slot │ slot                                           each of 16 KiB
//! slot := magic "HALCMANI" │ version u32 │ CRC u32 of these 12 bytes │ sequence u64 │ shard u32 │ count u32 │ range* │ CRC u32
//! range := first segment id u64 │ last segment id u64
//! ```
//!
//! 1. A segment is listed once its header is durable and before its first group is written, and no longer before it is deleted or
//!    recycled. So a listed segment that is missing, empty or without its header was lost.
//! 2. An update is one durable write to the slot that does not have the newest contents: a torn write leaves the other one. It needs no
//!    space, since a full disk must not keep segments from being recycled, and no descriptor but the one that is open.
//! 3. The task that prepares segments updates it, never a write to the log.
//!
//! All integers are big-endian, the CRCs are CRC-32C.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use halcyon_codec::crc32c;
use halcyon_io::{AccessMode, BlockFile, BufferPool, Disk, Purpose};

use crate::Result;
use crate::format::{BadHeader, VERSIONED_MAGIC, long, put, put_magic, version_of, word};

const MAGIC: [u8; 8] = *b"HALCMANI";
pub(crate) const VERSION: u32 = 1;
const SLOT: usize = 16 << 10;
const HEADER: usize = VERSIONED_MAGIC + 16;
const RANGE: usize = 16;
const RANGES_MAX: usize = (SLOT - HEADER - 4) / RANGE;
/// Of a new manifest, whose other slot is empty.
const FIRST: u64 = 1;
/// More entries are corruption: an allocation must not be sized by what a file says.
const LISTED_MAX: u64 = 1 << 22;

/// `CommitLog-<shard>.manifest`.
pub(crate) fn manifest_path(directory: &Path, shard: u32) -> PathBuf {
    directory.join(format!("CommitLog-{shard}.manifest"))
}

/// The shard, from the name of a manifest.
pub(crate) fn parse_manifest_name(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("CommitLog-")?.strip_suffix(".manifest")?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The manifest of a log that is open.
pub(crate) struct Manifest {
    file: BlockFile,
    pool: BufferPool,
    shard: u32,
    sequence: Cell<u64>,
    listed: RefCell<BTreeSet<u64>>,
}

impl Manifest {
    /// Replaces the manifest of an earlier start, whose segments are replayed and deleted. Those that are kept, because they have writes
    /// that could not be replayed, stay listed.
    pub(crate) async fn create(
        disk: &Disk,
        directory: &Path,
        shard: u32,
        kept: BTreeSet<u64>,
    ) -> Result<Manifest> {
        let path = manifest_path(directory, shard);
        let unfinished = path.with_extension("manifest.tmp");
        match disk.remove(&unfinished).await {
            Err(e) if !e.is_not_found() => return Err(e.into()),
            _ => {}
        }
        let (mode, len) = (AccessMode::Standard, 2 * SLOT as u64);
        let file = disk.create_blocks(&unfinished, mode, Purpose::CommitLog, len).await?;
        let manifest = Manifest::opened(file, shard, 0);
        manifest.listed.replace(kept);
        manifest.write().await?;
        disk.rename(&unfinished, &path).await?;
        disk.sync_dir(directory).await?;
        Ok(manifest)
    }

    fn opened(file: BlockFile, shard: u32, sequence: u64) -> Manifest {
        let pool = BufferPool::unbounded();
        Manifest { file, pool, shard, sequence: Cell::new(sequence), listed: RefCell::default() }
    }

    /// Lists a segment, durably.
    pub(crate) async fn add(&self, segment: u64) -> Result<()> {
        self.listed.borrow_mut().insert(segment);
        self.write().await
    }

    /// Lists segments no longer, durably.
    pub(crate) async fn remove(&self, segments: &[u64]) -> Result<()> {
        self.listed.borrow_mut().retain(|id| !segments.contains(id));
        self.write().await
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.borrow().is_empty()
    }

    async fn write(&self) -> Result<()> {
        let sequence = self.sequence.get() + 1;
        self.sequence.set(sequence);
        let bytes = encode(sequence, self.shard, &self.listed.borrow());
        let mut buffer = crate::group::take(&self.pool, SLOT);
        buffer.fill(0);
        put(&mut buffer, 0, &bytes);
        let len = bytes.len().next_multiple_of(self.file.block());
        let (outcome, _) = self.file.write_durable(slot_of(sequence), buffer, len).await;
        Ok(outcome?)
    }
}

fn slot_of(sequence: u64) -> u64 {
    sequence % 2 * SLOT as u64
}

fn encode(sequence: u64, shard: u32, segments: &BTreeSet<u64>) -> Vec<u8> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &id in segments {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    // Each gap is from a disk that was full. If the ranges do not all fit, a loss in the oldest ones is noticed only by the
    // segment that follows.
    ranges.drain(..ranges.len().saturating_sub(RANGES_MAX));
    let mut bytes = vec![0; HEADER + ranges.len() * RANGE + 4];
    put_magic(&mut bytes, MAGIC, VERSION);
    put(&mut bytes, VERSIONED_MAGIC, &sequence.to_be_bytes());
    put(&mut bytes, VERSIONED_MAGIC + 8, &shard.to_be_bytes());
    put(&mut bytes, VERSIONED_MAGIC + 12, &(ranges.len() as u32).to_be_bytes());
    for (at, (first, last)) in (HEADER..).step_by(RANGE).zip(ranges) {
        put(&mut bytes, at, &first.to_be_bytes());
        put(&mut bytes, at + 8, &last.to_be_bytes());
    }
    if let Some((fields, crc)) = bytes.split_last_chunk_mut() {
        *crc = crc32c(fields).to_be_bytes();
    }
    bytes
}

/// The contents of a manifest that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) segments: BTreeSet<u64>,
    /// It lists all: no ranges were left out, and no slot is damaged, which may have been the newer one.
    pub(crate) is_whole: bool,
    sequence: u64,
}

impl Listed {
    /// The newest valid slot.
    pub(crate) fn decode(bytes: &[u8], shard: u32) -> Result<Listed, BadHeader> {
        let slot = |at| Listed::slot(bytes.get(at..).unwrap_or_default(), shard);
        match (slot(0), slot(SLOT)) {
            (Err(newer @ BadHeader::Newer(_)), _) | (_, Err(newer @ BadHeader::Newer(_))) => {
                Err(newer)
            }
            (Ok(one), Ok(other)) => Ok(if one.sequence > other.sequence { one } else { other }),
            (Err(_), Ok(listed)) | (Ok(listed), Err(_)) => {
                let is_whole = listed.is_whole && listed.sequence == FIRST;
                Ok(Listed { is_whole, ..listed })
            }
            (Err(damaged), Err(_)) => Err(damaged),
        }
    }

    fn slot(bytes: &[u8], shard: u32) -> Result<Listed, BadHeader> {
        match version_of(bytes, MAGIC).map_err(BadHeader::Damaged)? {
            VERSION => Listed::fields(bytes, shard).map_err(BadHeader::Damaged),
            newer => Err(BadHeader::Newer(newer)),
        }
    }

    fn fields(bytes: &[u8], shard: u32) -> Result<Listed, String> {
        let short = || "it is shorter than its header".to_owned();
        let sequence = long(bytes, VERSIONED_MAGIC).ok_or_else(short)?;
        let count = word(bytes, VERSIONED_MAGIC + 12).ok_or_else(short)? as usize;
        let end = HEADER + count.min(RANGES_MAX) * RANGE;
        let crc = bytes.get(..end).map(crc32c);
        if count > RANGES_MAX || crc.is_none() || crc != word(bytes, end) {
            return Err("its CRC is wrong".to_owned());
        }
        let of = word(bytes, VERSIONED_MAGIC + 8).ok_or_else(short)?;
        if of != shard {
            return Err(format!("it is of shard {of}"));
        }
        let (mut segments, mut total) = (BTreeSet::new(), 0u64);
        for at in (HEADER..end).step_by(RANGE) {
            let (first, last) = (long(bytes, at), long(bytes, at + 8));
            let (first, last) = first.zip(last).ok_or_else(short)?;
            total = total.saturating_add(last.saturating_sub(first)).saturating_add(1);
            if total > LISTED_MAX {
                return Err(format!("it lists more than {LISTED_MAX} segments"));
            }
            segments.extend(first..=last);
        }
        Ok(Listed { segments, is_whole: count < RANGES_MAX, sequence })
    }

    /// Has the manifest on the disk list nothing: its segments will be deleted.
    pub(crate) async fn clear(&self, disk: &Disk, path: &Path, shard: u32) -> Result<()> {
        let file = disk.open_blocks(path, AccessMode::Standard, Purpose::CommitLog).await?;
        Manifest::opened(file, shard, self.sequence).write().await
    }
}

/// The bytes of a shard's manifest; `None` if it has none.
pub(crate) async fn read(disk: &Disk, path: &Path) -> Result<Option<Vec<u8>>> {
    match disk.read(path, 4 * SLOT as u64).await {
        Err(e) if e.is_not_found() => Ok(None),
        bytes => Ok(Some(bytes?)),
    }
}
