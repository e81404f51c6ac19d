//! One partition backwards: an ordinary stream of the reversed layout.
//!
//! ```text
//!   row index   │ block 0 │ block 1 │ block 2 │
//!   file        r1 r2 r3    r4 [ r5   r6 ] r7         [ ] range tombstone
//!   comes out   r7 [ r6 r5 ] r4 r3 r2 r1              (what closed opens now)
//! ```
//!
//! 1. Slices are taken from the last to the first. The block that holds a slice's end is read forwards into memory, then
//!    handed out backwards; then the block before it, until the slice's start is reached.
//! 2. A range tombstone that is open at a slice's end is opened there, one that is open at its start closed there. Between
//!    blocks no marker is added: a range tombstone that is open at the end of one is open at the start of the next.
//!
//! Memory: one block, or a partition that is too small for an index.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Marker, PartitionKey, RowBuf, Slice, Slices,
};

use super::caches::ReadCaches;
use super::entry::PartitionEntry;
use super::partition::PartitionScanner;
use super::reader::SSTableReader;
use super::row_blocks::RowBlock;
use crate::{Error, Result};

enum Item {
    Row(RowBuf),
    /// Already as the reversed stream sees it.
    Marker {
        bound: PositionBuf,
        close: Option<DeletionTime>,
        open: Option<DeletionTime>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Start,
    Statics,
    /// At the end of the slice of this number plus one; 0: all are done.
    SliceEnd(usize),
    Within(usize),
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Inner,
    Item,
    End,
}

pub struct ReversedRows {
    inner: PartitionScanner,
    /// Forwards: that of the file's order.
    layout: Arc<Layout>,
    slices: Slices,
    phase: Phase,
    shown: Shown,
    /// The next item is the last one.
    items: Vec<Item>,
    current: Option<Item>,
    /// The start of the rows; without a row index only.
    rows_position: u64,
    /// The block that was read last, if there are blocks.
    block: Option<RowBlock>,
}

impl SSTableReader {
    /// The rows of a partition backwards. `layout` is the forward one; the fragments are in `layout.reversed()`.
    pub async fn reversed_rows(
        self: &Arc<Self>,
        caches: &ReadCaches,
        key: &PartitionKey,
        entry: PartitionEntry,
        slices: Slices,
        layout: Arc<Layout>,
    ) -> Result<ReversedRows> {
        let inner = self.partition_scanner(caches, key, entry, layout.clone()).await?;
        let (phase, shown) = (Phase::Start, Shown::End);
        Ok(ReversedRows {
            inner,
            layout,
            slices,
            phase,
            shown,
            items: Vec::new(),
            current: None,
            rows_position: 0,
            block: None,
        })
    }
}

/// The range tombstones that are open at the ends of a block.
struct BlockRead {
    open_at_end: Option<DeletionTime>,
    /// Open where the slice begins, if it begins in this block.
    open_at_start: Option<Option<DeletionTime>>,
}

fn reversed_bound(bound: &PositionBuf) -> PositionBuf {
    PositionBuf { kind: bound.kind.reversed(), ..bound.clone() }
}

impl ReversedRows {
    fn against(&self, bound: &PositionBuf) -> Option<Ordering> {
        let clusterings = &self.layout.clusterings;
        let position = self.inner.fragment().position(clusterings.len())?;
        Some(clusterings.compare(position, bound.position()))
    }

    /// Reads the rows of the slice forwards, from `offset` to `end` of the data.
    async fn read_block(
        &mut self,
        slice: &Slice,
        offset: u64,
        open_at_start: Option<DeletionTime>,
        end: u64,
    ) -> Result<BlockRead> {
        let mut open = open_at_start;
        let mut open_before_slice = None;
        let mut forwards = Vec::new();
        self.inner.scanner.seek_row(offset).await?;
        loop {
            self.inner.advance().await?;
            if self.inner.scanner.fragment_position() >= end {
                break;
            }
            let at_end = slice.end.as_ref().and_then(|bound| self.against(bound));
            if matches!(at_end, Some(Ordering::Equal | Ordering::Greater)) {
                break;
            }
            let at_start = slice.start.as_ref().and_then(|bound| self.against(bound));
            let before = matches!(at_start, Some(Ordering::Less | Ordering::Equal));
            match self.inner.fragment() {
                Fragment::Row(row) if !before => {
                    let mut buf = RowBuf::new();
                    buf.copy_from(row);
                    forwards.push(Item::Row(buf));
                }
                Fragment::Marker(marker) => {
                    open = marker.open;
                    if !before {
                        let position = marker.position;
                        let bound = PositionBuf {
                            kind: position.kind.reversed(),
                            count: position.count,
                            serialized: position.serialized.to_vec(),
                        };
                        forwards.push(Item::Marker {
                            bound,
                            close: marker.open,
                            open: marker.close,
                        });
                    }
                }
                Fragment::Row(_) => {}
                _ => break,
            }
            if before {
                open_before_slice = Some(open);
            }
        }
        self.items = forwards;
        Ok(BlockRead { open_at_end: open, open_at_start: open_before_slice })
    }

    /// Reads the block at the end of slice `number`.
    async fn enter(&mut self, number: usize) -> Result<()> {
        self.phase = Phase::Within(number);
        self.inner.count_slice().await;
        let Some(slice) = self.slices.slices.get(number).cloned() else { return Ok(()) };
        let blocks = &self.inner.blocks;
        self.block = match &slice.end {
            Some(end) => blocks.containing(end.position()).await?,
            None => blocks.last().await?,
        };
        let read = self.load(&slice, u64::MAX).await?;
        if let (Some(open), Some(end)) = (read.open_at_end, &slice.end) {
            let bound = reversed_bound(end);
            self.items.push(Item::Marker { bound, close: None, open: Some(open) });
        }
        Ok(())
    }

    /// Reads the part of the current block that is in the slice. If the slice begins in this block, it is the last one to read.
    async fn load(&mut self, slice: &Slice, end: u64) -> Result<BlockRead> {
        let (offset, open) = match &self.block {
            Some(block) => (self.inner.data_position + block.offset, block.open_at_start),
            None => (self.rows_position, None),
        };
        let read = self.read_block(slice, offset, open, end).await?;
        let first = match &self.block {
            Some(block) => self.inner.blocks.before(block).await?.is_none(),
            None => true,
        };
        // A slice that begins before all rows has nothing open at its start.
        let open_at_start = read.open_at_start.or(first.then_some(open));
        if let (Some(Some(close)), Some(start)) = (open_at_start, &slice.start) {
            let bound = reversed_bound(start);
            self.items.insert(0, Item::Marker { bound, close: Some(close), open: None });
        }
        if open_at_start.is_some() {
            self.block = None;
        }
        Ok(read)
    }

    /// The next item of slice `number`; false when it has none left.
    async fn within(&mut self, number: usize) -> Result<bool> {
        loop {
            if let Some(item) = self.items.pop() {
                self.current = Some(item);
                self.shown = Shown::Item;
                return Ok(true);
            }
            let Some(block) = self.block.take() else { return Ok(false) };
            let end = self.inner.data_position + block.offset;
            self.block = self.inner.blocks.before(&block).await?;
            let slice = self.slices.slices.get(number).cloned();
            let (Some(_), Some(slice)) = (&self.block, slice) else { return Ok(false) };
            self.load(&slice, end).await?;
        }
    }

    async fn statics(&mut self) -> Result<bool> {
        self.phase = Phase::SliceEnd(self.slices.slices.len());
        self.inner.advance().await?;
        if !matches!(self.inner.fragment(), Fragment::Static(_)) {
            self.rows_position = self.inner.scanner.fragment_position();
            return Ok(false);
        }
        self.rows_position = self.inner.scanner.next_position();
        self.shown = Shown::Inner;
        Ok(self.slices.statics)
    }
}

impl FragmentStream for ReversedRows {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        loop {
            match self.phase {
                Phase::Start => {
                    self.phase = Phase::Statics;
                    self.shown = Shown::Inner;
                    return self.inner.advance().await;
                }
                Phase::Statics => {
                    if self.statics().await? {
                        return Ok(true);
                    }
                }
                Phase::SliceEnd(0) => {
                    self.phase = Phase::Over;
                    self.shown = Shown::End;
                    return Ok(true);
                }
                Phase::SliceEnd(number) => self.enter(number - 1).await?,
                Phase::Within(number) => {
                    if self.within(number).await? {
                        return Ok(true);
                    }
                    self.phase = Phase::SliceEnd(number);
                }
                Phase::Over => return Ok(false),
            }
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match (self.shown, &self.current) {
            (Shown::Inner, _) => self.inner.fragment(),
            (Shown::Item, Some(Item::Row(row))) => Fragment::Row(row.row()),
            (Shown::Item, Some(Item::Marker { bound, close, open })) => {
                Fragment::Marker(Marker { position: bound.position(), close: *close, open: *open })
            }
            _ => Fragment::End,
        }
    }
}
