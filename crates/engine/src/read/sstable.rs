//! What a read takes from one SSTable.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_sstable::read::{
    PartitionRows, RangeRows, RangeStart, ReadCaches, ReversedRows, SSTableReader,
};
use halcyon_stream::{Fragment, FragmentStream, Layout, PartitionKey, Slices};

use crate::memtable::Edge;
use crate::{Error, Result};

pub(super) struct SSTableStream {
    rows: Rows,
    /// At its first fragment already; the next `advance` is for it.
    primed: bool,
}

enum Rows {
    Forward(PartitionRows),
    Reversed(ReversedRows),
    Range(Until),
}

/// Partitions up to an edge.
pub(super) struct Until {
    rows: RangeRows,
    until: Option<Edge>,
    over: bool,
}

/// How to look into SSTables.
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
        Ok(Some(SSTableStream::of(if slices.reversed {
            Rows::Reversed(table.reversed_rows(self.caches, found, slices, layout).await?)
        } else {
            Rows::Forward(table.rows(self.caches, found, slices, layout).await?)
        })))
    }

    pub(super) async fn range(
        &self,
        table: &Arc<SSTableReader>,
        behind: &Edge,
        until: Option<Edge>,
    ) -> Result<SSTableStream> {
        let start = match behind {
            Edge::BeforeToken(token) => RangeStart::AtToken(*token),
            Edge::AfterToken(token) => RangeStart::AfterToken(*token),
            Edge::BeforeKey(key) => RangeStart::AtKey(key.clone()),
            Edge::AfterKey(key) => RangeStart::AfterKey(key.clone()),
        };
        let (slices, layout) = (self.slices.clone(), self.layout.clone());
        let rows = table.range(self.caches, &start, slices, layout).await?;
        Ok(SSTableStream::of(Rows::Range(Until { rows, until, over: false })))
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

impl SSTableStream {
    fn of(rows: Rows) -> SSTableStream {
        SSTableStream { rows, primed: false }
    }

    /// Reads up to the first fragment.
    pub(super) async fn prime(&mut self) -> Result<()> {
        self.primed = self.advance().await?;
        Ok(())
    }

    /// The partition's deletion, once primed.
    pub(super) fn start_deletion(&self) -> DeletionTime {
        match self.primed.then(|| self.fragment()) {
            Some(Fragment::Start(start)) => start.deletion,
            _ => DeletionTime::LIVE,
        }
    }
}

impl FragmentStream for SSTableStream {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        if std::mem::take(&mut self.primed) {
            return Ok(true);
        }
        match &mut self.rows {
            Rows::Forward(rows) => Ok(rows.advance().await?),
            Rows::Reversed(rows) => Ok(rows.advance().await?),
            Rows::Range(rows) => rows.advance().await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match &self.rows {
            Rows::Forward(rows) => rows.fragment(),
            Rows::Reversed(rows) => rows.fragment(),
            Rows::Range(rows) if rows.over => Fragment::End,
            Rows::Range(rows) => rows.rows.fragment(),
        }
    }
}
