//! A partition's row index against its rows as they go by.
//!
//! ```text
//!   rows     r0 r1 r2 │ r3 r4 │ r5 ⏹          blocks begin where a row begins, and follow one another
//!   blocks   0        │ 1     │ 2             first, last, open range tombstone are those of the rows
//! ```
//!
//! BIG has the start and end of each block, by its first and last clustering and by its bytes. BTI has only the start,
//! by a separator above the last clustering before it and not above its first.
//! 6.0's cursor compaction leaves the end flag out of the last block's width.

use halcyon_model::byte_comparable::encode_position;
use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_model::{Clusterings, DeletionTime};

use super::indexed::IndexedRows;
use super::report::VerifyReport;
use crate::big::PromotedIndex;
use crate::bti::{RowPayload, TrieCursor};
use crate::read::cached_index::CachedIndex;
use crate::read::index_files::IndexSources;
use crate::{Component, Result};

/// A block as its index describes it; offsets are relative to the partition's start.
struct IndexInfo {
    offset: u64,
    open_at_start: Option<DeletionTime>,
    big: Option<BigBlock>,
    separator: Option<Vec<u8>>,
}

struct BigBlock {
    first: PositionBuf,
    last: PositionBuf,
    width: u64,
    open_at_end: Option<DeletionTime>,
}

enum Blocks<'i> {
    Big {
        index: PromotedIndex<'i, CachedIndex<'i>>,
        next: usize,
        open: Option<DeletionTime>,
    },
    Bti {
        cursor: TrieCursor<'i, CachedIndex<'i>, RowPayload>,
        rows: &'i CachedIndex<'i>,
        started: bool,
        /// Blocks to come, and the entry of the partition's end.
        left: u64,
    },
}

pub(super) struct BlockCheck<'i> {
    blocks: Blocks<'i>,
    clusterings: &'i Clusterings,
    component: Component,
    /// Of the partition in the data, for messages.
    partition: u64,
    current: Option<IndexInfo>,
    upcoming: Option<IndexInfo>,
    last: Option<PositionBuf>,
}

/// The head of a partition in the data.
pub(super) struct Header {
    pub(super) partition: u64,
    pub(super) deletion: DeletionTime,
}

impl<'i> BlockCheck<'i> {
    /// `None` if the partition has no row index.
    pub(super) async fn open(
        sources: &'i IndexSources<'i>,
        rows: IndexedRows,
        clusterings: &'i Clusterings,
        (version_is_oa_or_later, header): (bool, Header),
        report: &mut VerifyReport,
    ) -> Result<Option<BlockCheck<'i>>> {
        let (blocks, deletion, component) = match (sources, rows) {
            (IndexSources::Big { index }, IndexedRows::Promoted(range)) => {
                let oa = version_is_oa_or_later;
                let promoted = PromotedIndex::open(oa, clusterings, index, &range).await?;
                let deletion = promoted.layout.deletion;
                let blocks = Blocks::Big { index: promoted, next: 0, open: None };
                (blocks, deletion, Component::Index)
            }
            (IndexSources::Bti { rows, .. }, IndexedRows::Entry(entry)) => {
                let left = entry.blocks.saturating_add(1);
                let cursor = entry.cursor(rows);
                let blocks = Blocks::Bti { cursor, rows, started: false, left };
                (blocks, entry.deletion, Component::Rows)
            }
            _ => return Ok(None),
        };
        if deletion != header.deletion {
            let what = format!("another deletion than the partition at {}", header.partition);
            report.problem(component, None, what);
        }
        let partition = header.partition;
        let (current, upcoming, last) = (None, None, None);
        let mut check =
            BlockCheck { blocks, clusterings, component, partition, current, upcoming, last };
        check.upcoming = check.read().await?;
        Ok(Some(check))
    }

    async fn read(&mut self) -> Result<Option<IndexInfo>> {
        match &mut self.blocks {
            Blocks::Big { index, next, open } => {
                if *next >= index.len() {
                    return Ok(None);
                }
                let open_at_start = *open;
                let info = index.block(*next, |info| IndexInfo {
                    offset: info.offset,
                    open_at_start,
                    big: Some(BigBlock {
                        first: PositionBuf::from(info.first),
                        last: PositionBuf::from(info.last),
                        width: info.width,
                        open_at_end: info.open_at_end,
                    }),
                    separator: None,
                });
                let info = info.await?;
                *next += 1;
                *open = info.big.as_ref().and_then(|big| big.open_at_end);
                Ok(Some(info))
            }
            Blocks::Bti { cursor, rows, started, left } => {
                let payload = if *started { cursor.next().await? } else { cursor.first().await? };
                *started = true;
                let Some(payload) = payload else { return Ok(None) };
                *left = left.checked_sub(1).ok_or_else(|| {
                    rows.corrupt_at(payload.offset, "more blocks in a trie than its entry says")
                })?;
                let mut separator = Vec::new();
                cursor.key(&mut separator);
                Ok(Some(IndexInfo {
                    offset: payload.offset,
                    open_at_start: payload.open,
                    big: None,
                    separator: Some(separator),
                }))
            }
        }
    }

    fn error(&self, what: &str, report: &mut VerifyReport) {
        let what = format!("row index of the partition at {}: {what}", self.partition);
        report.problem(self.component, None, what);
    }

    /// A row or marker at `offset`; `open` is the range tombstone that is open before it.
    pub(super) async fn unfiltered(
        &mut self,
        offset: u64,
        position: Position<'_>,
        open: Option<DeletionTime>,
        report: &mut VerifyReport,
    ) -> Result<()> {
        while let Some(info) = self.upcoming.take_if(|info| info.offset <= offset) {
            if info.offset < offset {
                self.error(&format!("no row begins at {}", info.offset), report);
            } else {
                self.close(offset, open, false, report);
                self.begin(&info, position, open, report);
                self.current = Some(info);
            }
            self.upcoming = self.read().await?;
        }
        if self.current.is_none() && self.last.is_none() {
            self.error(&format!("the row at {offset} is in no block"), report);
        }
        match &mut self.last {
            Some(last) => {
                last.kind = position.kind;
                last.count = position.count;
                last.serialized.clear();
                last.serialized.extend_from_slice(position.serialized);
            }
            None => self.last = Some(PositionBuf::from(position)),
        }
        Ok(())
    }

    fn begin(
        &self,
        info: &IndexInfo,
        position: Position<'_>,
        open: Option<DeletionTime>,
        report: &mut VerifyReport,
    ) {
        let at = info.offset;
        if info.open_at_start != open {
            self.error(&format!("another open range tombstone at {at}"), report);
        }
        if let Some(big) = &info.big
            && big.first != PositionBuf::from(position)
        {
            self.error(&format!("another first clustering at {at}"), report);
        }
        if let Some(separator) = &info.separator {
            self.separates(at, separator, Some(position), report);
        }
    }

    fn separates(
        &self,
        at: u64,
        separator: &[u8],
        first: Option<Position<'_>>,
        report: &mut VerifyReport,
    ) {
        let mut comparable = Vec::new();
        let last_is_above = self.last.as_ref().is_some_and(|last| {
            encode_position(self.clusterings, last.position(), &mut comparable);
            comparable.as_slice() >= separator
        });
        let first_is_below = first.is_some_and(|first| {
            comparable.clear();
            encode_position(self.clusterings, first, &mut comparable);
            comparable.as_slice() < separator
        });
        if last_is_above || first_is_below {
            self.error(&format!("separator at {at} does not separate the rows"), report);
        }
    }

    /// The current block ended before `end`.
    fn close(
        &mut self,
        end: u64,
        open: Option<DeletionTime>,
        is_last: bool,
        report: &mut VerifyReport,
    ) {
        let Some(IndexInfo { offset, big: Some(big), .. }) = self.current.take() else { return };
        let said_end = offset.saturating_add(big.width);
        if said_end != end && !(is_last && said_end == end + 1) {
            self.error(
                &format!("block at {offset} ends at {end}, the index says {said_end}"),
                report,
            );
        }
        if self.last.as_ref().is_some_and(|last| *last != big.last) {
            self.error(&format!("another last clustering of the block at {offset}"), report);
        }
        if big.open_at_end != open {
            self.error(&format!("another open range tombstone behind {offset}"), report);
        }
    }

    /// The end-of-partition flag is at `end`.
    pub(super) async fn end(&mut self, end: u64, report: &mut VerifyReport) -> Result<()> {
        self.close(end, None, true, report);
        if self.component == Component::Rows {
            match self.upcoming.take() {
                Some(IndexInfo { offset, separator: Some(separator), .. }) if offset == end => {
                    self.separates(offset, &separator, None, report);
                    self.upcoming = self.read().await?;
                }
                other => {
                    self.error("no entry of the partition's end", report);
                    self.upcoming = other;
                }
            }
        }
        if let Some(info) = &self.upcoming {
            self.error(&format!("no row begins at {}", info.offset), report);
        }
        let bti = matches!(&self.blocks, Blocks::Bti { left, .. } if *left > 0);
        if bti {
            self.error("fewer blocks than it says", report);
        }
        Ok(())
    }

    /// Bytes from the partition's start to its first row.
    pub(super) fn header_length(&self) -> Option<u64> {
        match &self.blocks {
            Blocks::Big { index, .. } => Some(index.layout.header_length),
            Blocks::Bti { .. } => None,
        }
    }
}
