//! Reads: which sources can have something, and their merge.
//!
//! 1. The version and the memtables are taken without an await in between, so no flush on this shard can end meanwhile: what it moves is
//!    seen in one of the two, and what both have merges to the same.
//! 2. SSTables are left out by token interval, by the clusterings that they cover, by Bloom filter, and when all that they could add is
//!    older than what was found (`point.rs`).
//! 3. One source is the stream itself, several are merged oldest first.
//! 4. If the table enables it, the head of a partition is read from the row cache (`cached.rs`).

mod cached;
mod point;
mod source;
mod sstable;

use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::compute;
use halcyon_model::Clusterings;
use halcyon_model::clustering::PositionBuf;
use halcyon_sstable::read::ReadCaches;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Merge, PartitionKey, Primed, RowBuf, Slice, Slices, Statics,
    Validator,
};

use crate::columns::ColumnMap;
use crate::current::Current;
use crate::memtable::{Memtable, MemtableStream, Partition, RingBound, Slot};
use crate::metrics::table::TableMetrics;
use crate::shard::{Shard, ShardTable};
use crate::version::LiveSSTable;
use crate::{Error, RangeBound, Read, ReadTarget, Result, TokenRange};
use cached::HeadThenTail;
use source::{Mapped, Source};
use sstable::Access;

/// A merged stream of a table's fragments, in the layout of `Read::table` (reversed where the read is): deletions and expired
/// cells are still in it.
pub struct ReadStream {
    inner: Inner,
    /// Where `Read::table` is not the table's current definition.
    map: Option<ColumnMap>,
    scratch: RowBuf,
    /// With CHECKS: what leaves the merge follows the grammar.
    validator: Option<Box<Validator>>,
    /// Its files stay for as long as they are read.
    _current: Rc<Current>,
    /// Reports errors.
    shard: Option<Rc<Shard>>,
}

enum Inner {
    Sources(Sources),
    Head(Box<HeadThenTail>),
}

impl Inner {
    async fn advance(&mut self) -> Result<bool> {
        match self {
            Inner::Sources(sources) => sources.advance().await,
            Inner::Head(head) => Box::pin(head.advance()).await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match self {
            Inner::Sources(sources) => sources.fragment(),
            Inner::Head(head) => head.fragment(),
        }
    }
}

enum Sources {
    Nothing,
    One(Source),
    Merged(Box<Merge<Source>>),
}

impl Sources {
    fn of(layout: &Arc<Layout>, mut sources: Vec<Source>) -> Sources {
        match sources.len() {
            0 => Sources::Nothing,
            1 => sources.pop().map_or(Sources::Nothing, Sources::One),
            _ => Sources::Merged(Box::new(Merge::new(layout.clone(), sources))),
        }
    }
}

impl FragmentStream for Sources {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        match self {
            Sources::Nothing => Ok(false),
            Sources::One(source) => source.advance().await,
            Sources::Merged(merge) => merge.advance().await,
        }
    }

    fn fragment(&self) -> Fragment<'_> {
        match self {
            Sources::Nothing => Fragment::End,
            Sources::One(source) => source.fragment(),
            Sources::Merged(merge) => merge.fragment(),
        }
    }
}

/// A snapshot of a partition in a memtable, in the memtable's layout.
type Snapshot = (Arc<Layout>, Partition);

/// A read on its way to its sources.
struct Plan<'a> {
    shard: &'a Shard,
    table: &'a Rc<ShardTable>,
    current: Rc<Current>,
    slices: Rc<Slices>,
}

impl Shard {
    pub async fn read(&self, read: Read) -> Result<ReadStream> {
        let opened = self.open_stream(read).await;
        opened.inspect_err(|error| self.reporter().read_failed(error))
    }

    async fn open_stream(&self, read: Read) -> Result<ReadStream> {
        let layout = read.table.layout.clone();
        let slices = Rc::new(match read.slices.are_many() {
            true => compute(move || joined(read.slices, &layout.clusterings)).await?,
            false => joined(read.slices, &layout.clusterings),
        });
        // From here on nothing is awaited until the version and the memtables are taken.
        let table = self.table(&read.table)?;
        self.tables().check_readable(&table.store)?;
        let current = table.current();
        let forward = current.layout();
        if slices.reversed && matches!(read.target, ReadTarget::Range(_)) {
            return Err(Error::Invalid("a range of partitions is read forwards".to_owned()));
        }
        let map = (!current.has_layout(&read.table.layout))
            .then(|| ColumnMap::between(forward, &read.table.layout));
        let plan = Plan { shard: self, table: &table, current: current.clone(), slices };
        let validator = validator(plan.direction());
        let inner = match &read.target {
            ReadTarget::Partition(key) => plan.partition(key).await?,
            ReadTarget::Range(range) => {
                Inner::Sources(Sources::of(forward, Box::pin(plan.range(range)).await?))
            }
        };
        let shard = self.handle();
        Ok(ReadStream { inner, map, scratch: RowBuf::new(), validator, _current: current, shard })
    }
}

impl Plan<'_> {
    fn metrics(&self) -> &TableMetrics {
        self.table.metrics()
    }

    fn layout(&self) -> &Arc<Layout> {
        self.current.layout()
    }

    /// Of the merge.
    fn direction(&self) -> &Arc<Layout> {
        if self.slices.reversed { &self.current.definition.reversed } else { self.layout() }
    }

    fn access(&self) -> Access<'_> {
        let caches = match self.current.definition.caching.keys {
            true => &self.shard.caches,
            false => &self.shard.caches_without_keys,
        };
        Access { caches, layout: self.layout(), slices: &self.slices }
    }

    fn of_memtable(&self, layout: &Arc<Layout>, stream: MemtableStream) -> Source {
        if self.current.has_layout(layout) {
            return Source::Memtable(Box::new(stream));
        }
        let map = ColumnMap::between(layout, self.layout());
        Source::Mapped(Box::new(Mapped::new(stream, map)))
    }

    async fn partition(&self, key: &PartitionKey) -> Result<Inner> {
        let device_reads = self.shard.caches.device_reads();
        let memtables = self.memtables(key);
        let found = match self.current.definition.caching.rows {
            Some(rows) if !self.shard.rows.is_off() => {
                // Boxed, as few tables have it: the others' reads need not be so large.
                Box::pin(self.through_cache(key, rows, memtables)).await
            }
            _ => self.sources(key, memtables).await.map(Inner::Sources),
        };
        // A read that waits for nothing shares the shard with no other one meanwhile.
        if device_reads == self.shard.caches.device_reads() {
            self.table.store.heat.note(key, &self.slices, self.layout());
        }
        found
    }

    /// The partition's snapshots from the memtables, oldest first.
    fn memtables(&self, key: &PartitionKey) -> Vec<Snapshot> {
        let snapshot = |slot: Rc<Slot>| {
            let partition = slot.partition(key)?;
            Some((slot.with(|memtable| memtable.table().layout.clone()), partition))
        };
        self.table.slots().into_iter().filter_map(snapshot).collect()
    }

    /// Sources of what this shard owns of a range, oldest first.
    async fn range(&self, range: &TokenRange) -> Result<Vec<Source>> {
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
    fn may_have(&self, live: &LiveSSTable) -> bool {
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
}

fn validator(layout: &Arc<Layout>) -> Option<Box<Validator>> {
    crate::CHECKS.then(|| Box::new(Validator::new(layout.clone())))
}

/// Slices of which none touches the next.
fn joined(mut slices: Slices, clusterings: &Clusterings) -> Slices {
    let touch = |slice: &Slice, next: &Slice| match (&slice.end, &next.start) {
        (Some(end), Some(start)) => clusterings.compare(end.position(), start.position()).is_ge(),
        _ => true,
    };
    if slices.slices.windows(2).any(|pair| matches!(pair, [slice, next] if touch(slice, next))) {
        Arc::make_mut(&mut slices.slices).dedup_by(|next, slice| {
            let touches = touch(slice, next);
            if touches {
                slice.end = next.end.take();
            }
            touches
        });
    }
    slices
}

impl ReadStream {
    /// Everything of a table, of all shards: for the start, when there are none.
    pub(crate) async fn of_all(
        current: Rc<Current>,
        memtable: Option<Arc<Memtable>>,
        caches: &ReadCaches,
    ) -> Result<ReadStream> {
        let layout = current.layout();
        let access = Access { caches, layout, slices: &Slices::all() };
        let mut sources = Vec::new();
        for live in current.version.sstables() {
            let stream = access.range(&live.table, &RingBound::BeforeToken(i64::MIN), None).await?;
            sources.push(Source::SSTable(Box::new(Primed::lazy(stream))));
        }
        let stream = memtable.map(MemtableStream::of_all);
        sources.extend(stream.map(|stream| Source::Memtable(Box::new(stream))));
        let inner = Inner::Sources(Sources::of(layout, sources));
        let (scratch, validator) = (RowBuf::new(), validator(layout));
        Ok(ReadStream { inner, map: None, scratch, validator, _current: current, shard: None })
    }

    async fn advance_inner(&mut self) -> Result<bool> {
        let advanced = self.inner.advance().await;
        if let (Err(error), Some(shard)) = (&advanced, &self.shard) {
            shard.reporter().read_failed(error);
        }
        if let (Ok(true), Some(validator)) = (&advanced, &mut self.validator)
            && let Err(violation) = validator.check(self.inner.fragment())
        {
            panic!("a read yields what no table can have: {violation}");
        }
        advanced
    }
}

impl FragmentStream for ReadStream {
    type Error = Error;

    async fn advance(&mut self) -> Result<bool> {
        while self.advance_inner().await? {
            let Some(map) = &self.map else { return Ok(true) };
            let kept = match self.inner.fragment() {
                Fragment::Static(row) => map.copy(Statics::Static, row, &mut self.scratch),
                Fragment::Row(row) => map.copy(Statics::Regular, row, &mut self.scratch),
                _ => true,
            };
            if kept {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn fragment(&self) -> Fragment<'_> {
        match (self.inner.fragment(), &self.map) {
            (Fragment::Static(_), Some(_)) => Fragment::Static(self.scratch.row()),
            (Fragment::Row(_), Some(_)) => Fragment::Row(self.scratch.row()),
            (fragment, _) => fragment,
        }
    }
}
