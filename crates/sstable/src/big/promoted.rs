//! The promoted index of a wide partition: its blocks of rows, with an offsets table for binary search.
//!
//! ```text
//!   header length | DeletionTime | count | IndexInfo 0 | IndexInfo 1 | … | 0 | offset 1 | …
//!                                        ^infos                          ^table: i32 × count
//! ```
//!
//! 1. `PromotedLayout` is read from the first few bytes and has the positions of the infos and of the table.
//! 2. A search reads two neighbouring offsets from the table, and the info between them, once per halving: a large index
//!    is never read as a whole.
//!
//! The last block's width may or may not include the end-of-partition flag, depending on the writer's version.

use std::cmp::Ordering;
use std::ops::Range;

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, Clusterings, Cursor, DecodeError, DecodeResult, DeletionTime};

use super::index::read_entry;
use crate::format::deletion_time::read_deletion_time;
use crate::row_index::{IndexSource, OrCorrupt};

/// Widths are stored as their distance from this.
pub(crate) const WIDTH_BASE: i64 = 64 * 1024;
/// The fewest bytes of an `IndexInfo` (two empty clusterings) with its slot in the table.
const MIN_INFO: u64 = 5 + 4;
/// Enough bytes for `PromotedLayout::read`.
const MAX_PROMOTED_HEAD: usize = 9 + 12 + 9;

/// One block of rows. Offsets are relative to the partition's start.
#[derive(Debug, Clone, Copy)]
pub struct IndexInfo<'a> {
    pub first: Position<'a>,
    pub last: Position<'a>,
    pub offset: u64,
    pub width: u64,
    /// Range tombstone still open where the block ends.
    pub open_at_end: Option<DeletionTime>,
}

/// The positions of the parts of a promoted index in Index.db.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromotedLayout {
    /// Bytes from the partition's start to its first unfiltered.
    pub header_length: u64,
    pub deletion: DeletionTime,
    pub count: usize,
    /// Absolute: the infos, and the table of their offsets.
    pub infos: Range<u64>,
    pub table: Range<u64>,
}

impl PromotedLayout {
    /// `cursor` is at `promoted.start` and has `MAX_PROMOTED_HEAD` bytes, or all that there are.
    fn read(
        version_is_oa_or_later: bool,
        cursor: &mut Cursor<'_>,
        promoted: &Range<u64>,
    ) -> DecodeResult<PromotedLayout> {
        let header_length = cursor.uvint()?;
        cursor.note(|| format!("partition header of {header_length} bytes"));
        let deletion = read_deletion_time(version_is_oa_or_later, cursor)?;
        cursor.note(|| format!("partition deletion {deletion:?}"));
        let at = cursor.offset();
        let count = cursor.count()?;
        cursor.note(|| format!("{count} blocks"));
        let start = cursor.offset();
        let room = promoted.end.checked_sub(start);
        let table = 4 * count as u64;
        match room {
            Some(room) if count > 0 && MIN_INFO.saturating_mul(count as u64) <= room => {
                let infos = start..promoted.end - table;
                let table = infos.end..promoted.end;
                Ok(PromotedLayout { header_length, deletion, count, infos, table })
            }
            _ => Err(DecodeError {
                offset: at,
                what: format!("promoted index cannot hold {count} blocks"),
            }),
        }
    }
}

/// The promoted index of one partition; only the entries that a search visits are read.
pub struct PromotedIndex<'a, S> {
    pub layout: PromotedLayout,
    source: &'a S,
    clusterings: &'a Clusterings,
    version_is_oa_or_later: bool,
}

impl<'a, S: IndexSource> PromotedIndex<'a, S> {
    /// `promoted` is `Entry::promoted`, and not empty; `source` is Index.db.
    pub async fn open(
        version_is_oa_or_later: bool,
        clusterings: &'a Clusterings,
        source: &'a S,
        promoted: &Range<u64>,
    ) -> Result<PromotedIndex<'a, S>, S::Error> {
        let head = source.read(promoted.start, MAX_PROMOTED_HEAD).await?;
        let mut cursor = Cursor::at_offset(head.as_ref(), promoted.start);
        let layout = PromotedLayout::read(version_is_oa_or_later, &mut cursor, promoted);
        let layout = layout.or_corrupt(source)?;
        Ok(PromotedIndex { layout, source, clusterings, version_is_oa_or_later })
    }

    pub fn len(&self) -> usize {
        self.layout.count
    }

    pub fn is_empty(&self) -> bool {
        self.layout.count == 0
    }

    /// Shows block `i`, which must be below `len`.
    pub async fn block<T>(
        &self,
        i: usize,
        see: impl FnOnce(IndexInfo<'_>) -> T,
    ) -> Result<T, S::Error> {
        let range = self.block_range(i).await?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let bytes = self.source.read(range.start, len).await?;
        let mut cursor = Cursor::at_offset(bytes.as_ref(), range.start);
        read_info(self.version_is_oa_or_later, self.clusterings, &mut cursor)
            .map(see)
            .or_corrupt(self.source)
    }

    /// The range of the info of block `i`: from its offset to that of the next.
    async fn block_range(&self, i: usize) -> Result<Range<u64>, S::Error> {
        let slot = self.layout.table.start.saturating_add(4 * i as u64);
        let bytes = self.source.read(slot, 8).await?;
        let mut table = Cursor::at_offset(bytes.as_ref(), slot);
        let infos = &self.layout.infos;
        let mut bound = |exists: bool| match exists {
            true => Ok(infos.start.saturating_add(u64::from(table.u32()?))),
            false => Ok(infos.end),
        };
        let start = bound(i < self.len()).or_corrupt(self.source)?;
        let end = bound(i + 1 < self.len()).or_corrupt(self.source)?;
        if start >= end || end > infos.end {
            let what = format!("block {i} cannot be from {start} to {end}");
            return Err(self.source.corrupt(DecodeError { offset: slot, what }));
        }
        Ok(start..end)
    }

    /// The first block whose last position is not before `position`; `len` if there is none. A position between two
    /// blocks belongs to the later one.
    pub async fn find(&self, position: Position<'_>) -> Result<usize, S::Error> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.block(middle, |info| self.clusterings.compare(info.last, position));
            match order.await? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        Ok(low)
    }

    /// Range tombstone open where block `i` begins.
    pub async fn open_at_start(&self, i: usize) -> Result<Option<DeletionTime>, S::Error> {
        match i.checked_sub(1) {
            Some(before) => self.block(before, |info| info.open_at_end).await,
            None => Ok(None),
        }
    }
}

/// Reads one block, naming its bytes.
fn read_info<'a>(
    version_is_oa_or_later: bool,
    clusterings: &Clusterings,
    cursor: &mut Cursor<'a>,
) -> DecodeResult<IndexInfo<'a>> {
    let first = read_prefix(clusterings, cursor)?;
    cursor.note(|| format!("block from {:?}", first.kind));
    let last = read_prefix(clusterings, cursor)?;
    cursor.note(|| format!("block to {:?}", last.kind));
    let offset = cursor.uvint()?;
    let at = cursor.offset();
    let width = cursor.svint()?.checked_add(WIDTH_BASE).and_then(|width| u64::try_from(width).ok());
    let Some(width) = width else {
        return Err(DecodeError { offset: at, what: "block of negative width".into() });
    };
    cursor.note(|| format!("block at {offset}, {width} bytes"));
    let open_at_end = match cursor.bool()? {
        true => Some(read_deletion_time(version_is_oa_or_later, cursor)?),
        false => None,
    };
    cursor.note(|| format!("open deletion at the end {open_at_end:?}"));
    Ok(IndexInfo { first, last, offset, width, open_at_end })
}

/// Skips the count and the blocks of an index, one behind the other as a saved key cache has them.
pub(crate) fn skip_index(
    version_is_oa_or_later: bool,
    clusterings: &Clusterings,
    cursor: &mut Cursor<'_>,
) -> DecodeResult<()> {
    let offset = cursor.offset();
    let count = cursor.uvint32()?;
    let count = u32::try_from(count)
        .map_err(|_| DecodeError { offset, what: format!("index of {count} blocks") })?;
    for _ in 0..count {
        read_info(version_is_oa_or_later, clusterings, cursor)?;
    }
    Ok(())
}

/// Reads one entry of Index.db with its promoted index, naming every byte.
pub fn describe_entry(
    version_is_oa_or_later: bool,
    clusterings: &Clusterings,
    cursor: &mut Cursor<'_>,
) -> DecodeResult<()> {
    let entry = read_entry(cursor)?;
    if entry.promoted.is_empty() {
        return Ok(());
    }
    let layout = PromotedLayout::read(version_is_oa_or_later, cursor, &entry.promoted)?;
    for _ in 0..layout.count {
        read_info(version_is_oa_or_later, clusterings, cursor)?;
    }
    for i in 0..layout.count {
        let offset = cursor.i32()?;
        cursor.note(|| format!("block {i} is described at {offset}"));
    }
    Ok(())
}

fn read_prefix<'a>(
    clusterings: &Clusterings,
    cursor: &mut Cursor<'a>,
) -> DecodeResult<Position<'a>> {
    let offset = cursor.offset();
    let ordinal = cursor.u8()?;
    let kind = match BoundKind::from_ordinal(ordinal) {
        Some(kind) if kind != BoundKind::Static => kind,
        _ => {
            let what = format!("kind of clustering prefix expected, found {ordinal}");
            return Err(DecodeError { offset, what });
        }
    };
    let count = match kind {
        BoundKind::Clustering => clusterings.len(),
        _ => usize::from(cursor.u16()?),
    };
    let serialized = clusterings.read(cursor, count)?;
    Ok(Position { kind, count, serialized })
}
