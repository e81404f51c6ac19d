//! Reads: which sources can have something, and their merge.
//!
//! 1. The version and the memtables are taken without an await in between, so no flush on this shard can end meanwhile: what it moves is
//!    seen in one of the two, and what both have merges to the same.
//! 2. SSTables are left out by token interval, by the clusterings that they cover, by Bloom filter, and when all that they could add is
//!    older than what was found (`point.rs`).
//! 3. One source is the stream itself, several are merged oldest first.
//! 4. If the table enables it, the head of a partition is read from the row cache (`cached.rs`), and what follows it from the sources
//!    (`head.rs`).

mod cached;
mod head;
mod plan;
mod point;
mod source;
mod sstable;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::compute;
use halcyon_model::Clusterings;
use halcyon_sstable::read::ReadCaches;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, PartitionKey, Primed, RowBuf, Slice, Slices, Statics,
    Validator,
};

use crate::columns::ColumnMap;
use crate::current::Current;
use crate::memtable::{Memtable, MemtableStream, RingBound};
use crate::shard::Shard;
use crate::{Error, Read, ReadTarget, Result};
use head::HeadThenTail;
use plan::Plan;
use source::{Source, Sources};
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
    /// What Cassandra would hold in memory of the largest row index.
    row_index: u64,
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
        let row_index = Cell::new(0);
        let plan = Plan { shard: self, table: &table, current: current.clone(), slices, row_index };
        let validator = validator(plan.direction());
        let inner = match &read.target {
            ReadTarget::Partition(key) => plan.partition(key).await?,
            ReadTarget::Range(range) => {
                Inner::Sources(Sources::of(forward, Box::pin(plan.range(range)).await?))
            }
        };
        let shard = self.handle();
        let row_index = plan.row_index.get();
        let scratch = RowBuf::new();
        Ok(ReadStream { inner, map, scratch, validator, row_index, _current: current, shard })
    }
}

impl Plan<'_> {
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
        Ok(ReadStream {
            inner,
            map: None,
            scratch,
            validator,
            row_index: 0,
            _current: current,
            shard: None,
        })
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

    fn row_index_size(&self) -> u64 {
        self.row_index
    }

    fn fragment(&self) -> Fragment<'_> {
        match (self.inner.fragment(), &self.map) {
            (Fragment::Static(_), Some(_)) => Fragment::Static(self.scratch.row()),
            (Fragment::Row(_), Some(_)) => Fragment::Row(self.scratch.row()),
            (fragment, _) => fragment,
        }
    }
}
