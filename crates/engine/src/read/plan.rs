//! A read on its way to its sources: which memtables and SSTables can have something of it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_model::clustering::PositionBuf;
use halcyon_sstable::read::SSTableReader;
use halcyon_stream::{Layout, PartitionKey, Primed, Slice, Slices};

use super::source::{Mapped, Source};
use super::sstable::Access;
use crate::columns::ColumnMap;
use crate::current::Current;
use crate::memtable::{MemtableStream, Partition, RingBound, Slot};
use crate::metrics::table::TableMetrics;
use crate::shard::{Shard, ShardTable};
use crate::version::LiveSSTable;
use crate::{RangeBound, Result, TokenRange};

/// A snapshot of a partition in a memtable, in the memtable's layout.
pub(super) type Snapshot = (Arc<Layout>, Partition);

/// A read on its way to its sources.
pub(super) struct Plan<'a> {
    pub(super) shard: &'a Shard,
    pub(super) table: &'a Rc<ShardTable>,
    pub(super) current: Rc<Current>,
    pub(super) slices: Rc<Slices>,
    /// What Cassandra would hold in memory of the largest row index; 0: none, or it is not measured.
    pub(super) row_index: Cell<u64>,
}

/// What an entry of a row index takes in Cassandra's memory beside its bytes (`RowIndexEntry.estimateMaterializedIndexSize`).
const INDEX_ENTRY: u64 = 88;

impl Plan<'_> {
    pub(super) fn metrics(&self) -> &TableMetrics {
        self.table.metrics()
    }

    pub(super) fn layout(&self) -> &Arc<Layout> {
        self.current.layout()
    }

    /// Of the merge.
    pub(super) fn direction(&self) -> &Arc<Layout> {
        if self.slices.reversed { &self.current.definition.reversed } else { self.layout() }
    }

    pub(super) fn access(&self) -> Access<'_> {
        let caches = match self.current.definition.caching.keys {
            true => &self.shard.caches,
            false => &self.shard.caches_without_keys,
        };
        Access { caches, layout: self.layout(), slices: &self.slices }
    }

    /// Measures the row index of a partition, if reads are to.
    pub(super) async fn measure(&self, table: &SSTableReader, key: &PartitionKey) -> Result<()> {
        if !self.shard.options().measures_row_indexes {
            return Ok(());
        }
        let caches = self.access().caches;
        let Some(entry) = table.find(caches, key).await? else { return Ok(()) };
        if let Some((entries, bytes)) = table.promoted_size(caches, &entry).await? {
            let size = entries.saturating_mul(INDEX_ENTRY).saturating_add(bytes);
            self.row_index.set(self.row_index.get().max(size));
        }
        Ok(())
    }

    pub(super) fn of_memtable(&self, layout: &Arc<Layout>, stream: MemtableStream) -> Source {
        if self.current.has_layout(layout) {
            return Source::Memtable(Box::new(stream));
        }
        let map = ColumnMap::between(layout, self.layout());
        Source::Mapped(Box::new(Mapped::new(stream, map)))
    }

    /// The partition's snapshots from the memtables, oldest first.
    pub(super) fn memtables(&self, key: &PartitionKey) -> Vec<Snapshot> {
        let snapshot = |slot: Rc<Slot>| {
            let partition = slot.partition(key)?;
            Some((slot.with(|memtable| memtable.table().layout.clone()), partition))
        };
        self.table.slots().into_iter().filter_map(snapshot).collect()
    }

    /// Sources of what this shard owns of a range, oldest first.
    pub(super) async fn range(&self, range: &TokenRange) -> Result<Vec<Source>> {
        let (behind, until) = self.edges(range);
        let memtables: Vec<Source> = self
            .table
            .slots()
            .iter()
            .filter_map(|slot| self.memtable_range(slot, &behind, &until))
            .collect();
        let access = self.access();
        let mut sources = Vec::new();
        let last = until.as_ref().map_or(i64::MAX, RingBound::token);
        for at in self.current.version.overlapping(behind.token(), last) {
            let Some(live) = self.current.version.get(at) else { continue };
            let ends_before = !behind.is_before(live.table.last_key());
            let first = live.table.first_key();
            let starts_behind = until.as_ref().is_some_and(|until| until.is_before(first));
            if ends_before || starts_behind || !self.may_have(live) {
                continue;
            }
            let Some(reader) = self.current.reader(at) else { continue };
            let stream = access.range(reader, &behind, until.clone()).await?;
            sources.push(Source::SSTable(Box::new(Primed::lazy(stream))));
        }
        sources.extend(memtables);
        Ok(sources)
    }

    fn memtable_range(
        &self,
        slot: &Rc<Slot>,
        behind: &RingBound,
        until: &Option<RingBound>,
    ) -> Option<Source> {
        let (is_empty, layout) =
            slot.with(|memtable| (memtable.is_empty(), memtable.table().layout.clone()));
        // An open memtable may take writes during the read; one that is empty now has no data that the read must return.
        if is_empty {
            return None;
        }
        let stream = MemtableStream::of_range(
            slot.clone(),
            layout.clone(),
            self.slices.clone(),
            behind.clone(),
            until.clone(),
        );
        Some(self.of_memtable(&layout, stream))
    }

    /// The range cut to the shard's own tokens.
    fn edges(&self, range: &TokenRange) -> (RingBound, Option<RingBound>) {
        let (first, last) = self.shard.tokens();
        let own = RingBound::BeforeToken(first);
        let start = match &range.start {
            RangeBound::Open => None,
            RangeBound::BeforeToken(token) => Some(RingBound::BeforeToken(*token)),
            RangeBound::AfterToken(token) => Some(RingBound::AfterToken(*token)),
            RangeBound::BeforeKey(key) => Some(RingBound::BeforeKey(key.clone())),
            RangeBound::AfterKey(key) => Some(RingBound::AfterKey(key.clone())),
        };
        let end = match &range.end {
            RangeBound::Open => None,
            RangeBound::BeforeToken(token) => Some(RingBound::BeforeToken(*token)),
            RangeBound::AfterToken(token) => Some(RingBound::AfterToken(*token)),
            RangeBound::BeforeKey(key) => Some(RingBound::BeforeKey(key.clone())),
            RangeBound::AfterKey(key) => Some(RingBound::AfterKey(key.clone())),
        };
        let behind = start.filter(|edge| edge.token() >= first).unwrap_or(own);
        let until = end.filter(|edge| edge.token() <= last).unwrap_or(RingBound::AfterToken(last));
        (behind, Some(until))
    }

    /// Whether an SSTable can have something in the slices, or something that concerns the whole partition.
    pub(super) fn may_have(&self, live: &LiveSSTable) -> bool {
        let stats = &live.sstable().statistics().stats;
        let statics = self.slices.statics && !live.sstable().layout().statics.is_empty();
        if statics || stats.has_partition_level_deletions || self.slices.is_all() {
            return true;
        }
        if !live.descriptor().version.has_accurate_min_max() {
            return true;
        }
        let clusterings = &self.layout().clusterings;
        let covered = &stats.covered;
        let (first, last) = (covered.start.position(), covered.end.position());
        let slices = &self.slices.slices;
        let ends_before = |slice: &Slice| {
            slice.end.as_ref().is_some_and(|end| clusterings.compare(end.position(), first).is_le())
        };
        let starts_after =
            |start: &PositionBuf| clusterings.compare(last, start.position()).is_le();
        let next = slices.get(slices.partition_point(ends_before));
        next.is_some_and(|slice| !slice.start.as_ref().is_some_and(starts_after))
    }

    /// The same read with other slices.
    pub(super) fn with(&self, slices: Slices) -> Plan<'_> {
        Plan {
            shard: self.shard,
            table: self.table,
            current: self.current.clone(),
            slices: Rc::new(slices),
            row_index: Cell::new(0),
        }
    }
}
