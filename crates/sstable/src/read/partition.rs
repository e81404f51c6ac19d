//! Streams of one partition, or of a range of partitions, cut to slices, rows in clustering order.

use std::sync::Arc;

use halcyon_io::yield_now;
use halcyon_model::DeletionTime;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, PartitionKey, SeekRows, SliceFilter, Slices,
};

use super::cached_data::CachedData;
use super::caches::ReadCaches;
use super::entry::PartitionEntry;
use super::range_start::RangeStart;
use super::reader::SSTableReader;
use super::row_blocks::RowBlocks;
use crate::data::scanner::SSTableScanner;
use crate::data::window::DataWindow;
use crate::{Error, Result};

/// One partition; jumps by its row index.
pub type PartitionRows = SliceFilter<PartitionScanner>;

/// All partitions from a start to the end of the SSTable; the caller stops at the first partition beyond its range.
pub type RangeRows = SliceFilter<SSTableScanner<CachedData>>;

pub struct PartitionScanner {
    pub(super) scanner: SSTableScanner<CachedData>,
    pub(super) blocks: RowBlocks,
    pub(super) data_position: u64,
    /// Of the key that was looked for. Nothing checks Index.db, and where partitions are of one size, one bit of a position in it leads to
    /// another partition.
    hashes: (i64, i64),
    state: ReadState,
    /// Slices that were looked for.
    sought: usize,
}

/// Slices that are looked for between two yields, some 200 µs. Where no row is in them, nothing else gives the thread a chance to yield.
const SLICES_AT_ONCE: usize = 100;

impl PartitionScanner {
    /// Counts a slice that is looked for.
    pub(super) async fn count_slice(&mut self) {
        self.sought += 1;
        if self.sought.is_multiple_of(SLICES_AT_ONCE) {
            yield_now().await;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadState {
    Start,
    Reading,
    /// The end of the partition comes next.
    Skipped,
    Done,
}

impl SSTableReader {
    /// The rows of a partition; `layout` numbers the columns. `slices` must not be reversed.
    pub async fn rows(
        self: &Arc<Self>,
        caches: &ReadCaches,
        key: &PartitionKey,
        entry: PartitionEntry,
        slices: Slices,
        layout: Arc<Layout>,
    ) -> Result<PartitionRows> {
        let scanner = self.partition_scanner(caches, key, entry, layout.clone()).await?;
        Ok(SliceFilter::new(scanner, layout, slices))
    }

    pub(super) async fn partition_scanner(
        self: &Arc<Self>,
        caches: &ReadCaches,
        key: &PartitionKey,
        entry: PartitionEntry,
        layout: Arc<Layout>,
    ) -> Result<PartitionScanner> {
        let mut scanner = self.scanner(self.data_of(caches, &entry), layout, 1)?;
        scanner.seek(entry.data_position).await?;
        let blocks = RowBlocks::new(self.clone(), caches.clone(), entry.rows);
        let data_position = entry.data_position;
        let (hashes, state) = (key.hashes, ReadState::Start);
        Ok(PartitionScanner { scanner, blocks, data_position, hashes, state, sought: 0 })
    }

    /// All partitions from `start` on, each cut to `slices`. Leaves nothing of the data in the cache.
    pub async fn range(
        self: &Arc<Self>,
        caches: &ReadCaches,
        start: &RangeStart,
        slices: Slices,
        layout: Arc<Layout>,
    ) -> Result<RangeRows> {
        let position = self.position_of(caches, start).await?;
        let data = CachedData::new(self.data().clone(), caches.clone(), true);
        let mut scanner = self.scanner(data, layout.clone(), u64::MAX)?;
        scanner.seek(position).await?;
        Ok(SliceFilter::new(scanner, layout, slices))
    }
}

impl<D: DataWindow> SeekRows for SSTableScanner<D> {}

impl FragmentStream for PartitionScanner {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        match self.state {
            ReadState::Start => {
                let advanced = self.scanner.advance().await?;
                match self.scanner.fragment() {
                    Fragment::Start(start) if start.key.hashes != self.hashes => {
                        let what = "the index leads to the partition of another key";
                        return Err(self.scanner.corrupt(self.data_position, what));
                    }
                    _ => self.state = ReadState::Reading,
                }
                Ok(advanced)
            }
            ReadState::Reading => self.scanner.advance().await,
            ReadState::Skipped => {
                self.state = ReadState::Done;
                Ok(true)
            }
            ReadState::Done => Ok(false),
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        if self.state == ReadState::Reading { self.scanner.fragment() } else { Fragment::End }
    }
}

impl SeekRows for PartitionScanner {
    async fn seek_rows(&mut self, bound: &PositionBuf) -> Result<Option<Option<DeletionTime>>> {
        self.count_slice().await;
        let Some(block) = self.blocks.containing(bound.position()).await? else { return Ok(None) };
        let position = self.data_position.saturating_add(block.offset);
        if position <= self.scanner.next_position() {
            return Ok(None);
        }
        self.scanner.seek_row(position).await?;
        Ok(Some(block.open_at_start))
    }

    async fn skip_partition(&mut self) -> Result<()> {
        self.state = ReadState::Skipped;
        Ok(())
    }
}
