//! The rows of one SSTable for a read.

use std::sync::Arc;

use halcyon_sstable::read::{
    PartitionRows, RangeRows, RangeStart, ReadCaches, ReversedRows, SSTableReader,
};
use halcyon_stream::{Fragment, FragmentStream, Layout, PartitionKey, Slices};

use crate::memtable::RingBound;
use crate::{Error, Result};

pub(super) enum SSTableStream {
    Forward(PartitionRows),
    Reversed(ReversedRows),
    Range(Until),
}

/// Partitions up to a ring position.
pub(super) struct Until {
    rows: RangeRows,
    until: Option<RingBound>,
    over: bool,
}

/// What all reads of SSTables for one request share.
pub(super) struct Access<'a> {
    pub(super) caches: &'a ReadCaches,
    /// Forward layout of the fragments.
    pub(super) layout: &'a Arc<Layout>,
    pub(super) slices: &'a Slices,
}

impl Access<'_> {
    /// The partition's slices, of an SSTable whose filter passes the key; `None` if it does not have the partition.
    pub(super) async fn partition(
        &self,
        table: &Arc<SSTableReader>,
        key: &PartitionKey,
    ) -> Result<Option<SSTableStream>> {
        let Some(found) = table.find(self.caches, key).await? else { return Ok(None) };
        let (slices, layout) = (self.slices.clone(), self.layout.clone());
        Ok(Some(if slices.reversed {
            let rows = table.reversed_rows(self.caches, key, found, slices, layout).await?;
            SSTableStream::Reversed(rows)
        } else {
            SSTableStream::Forward(table.rows(self.caches, key, found, slices, layout).await?)
        }))
    }

    pub(super) async fn range(
        &self,
        table: &Arc<SSTableReader>,
        behind: &RingBound,
        until: Option<RingBound>,
    ) -> Result<SSTableStream> {
        let start = match behind {
            RingBound::BeforeToken(token) => RangeStart::AtToken(*token),
            RingBound::AfterToken(token) => RangeStart::AfterToken(*token),
            RingBound::BeforeKey(key) => RangeStart::AtKey(key.clone()),
            RingBound::AfterKey(key) => RangeStart::AfterKey(key.clone()),
        };
        let (slices, layout) = (self.slices.clone(), self.layout.clone());
        let rows = table.range(self.caches, &start, slices, layout).await?;
        Ok(SSTableStream::Range(Until { rows, until, over: false }))
    }
}

impl Until {
    async fn advance(&mut self) -> Result<bool> {
        if self.over || !self.rows.advance().await? {
            self.over = true;
            return Ok(false);
        }
        if let (Fragment::Start(start), Some(until)) = (self.rows.fragment(), &self.until) {
            self.over = until.is_before(start.key);
        }
        Ok(!self.over)
    }
}

impl FragmentStream for SSTableStream {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        match self {
            SSTableStream::Forward(rows) => Ok(rows.advance().await?),
            SSTableStream::Reversed(rows) => Ok(rows.advance().await?),
            SSTableStream::Range(rows) => rows.advance().await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match self {
            SSTableStream::Forward(rows) => rows.fragment(),
            SSTableStream::Reversed(rows) => rows.fragment(),
            SSTableStream::Range(rows) if rows.over => Fragment::End,
            SSTableStream::Range(rows) => rows.rows.fragment(),
        }
    }
}
