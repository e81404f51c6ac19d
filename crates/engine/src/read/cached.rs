//! Reads through the row cache, by the rules of `SinglePartitionReadCommand.getThroughCache`.
//!
//! ```text
//!   kept      r1 r2 r3 │                 whole: serves everything
//!   slices    [ r1 … r3 ]                ends within the head: served, in either direction
//!             [ r1 … r3 │ r4 … )         from the head on: served, and the rest is read if the reader comes so far
//!                 [ r2 … r5 ]            anything else is read as if there were no cache
//! ```
//! A miss fills if the whole partition is to be kept, or if the read begins at the head. The rest is read from the memtables and SSTables
//! of the moment when the read began, so that it is one with the head.

use std::rc::Rc;
use std::sync::Arc;

use halcyon_model::BoundKind;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Slice, Slices};

use super::{Inner, Plan, Snapshot, Source, Sources};
use crate::Result;
use crate::caches::rows::{Gathered, Head, gather};
use crate::memtable::MemtableStream;
use crate::shard::{Shard, ShardTable};
use crate::store::Definition;
use crate::version::Version;

impl Plan<'_> {
    pub(super) async fn through_cache(
        &self,
        key: &PartitionKey,
        rows: usize,
        memtables: Vec<Snapshot>,
    ) -> Result<Inner> {
        let cache = &self.shard.rows;
        if let Some(head) = cache.get(&self.definition, key) {
            return self.serve(key, &head, memtables).await;
        }
        if rows != usize::MAX && !self.begins_at_head() {
            return self.sources(key, memtables).await.map(Inner::Sources);
        }
        let Some(filling) = cache.begin(self.definition.table.id, key) else {
            return self.sources(key, memtables).await.map(Inner::Sources);
        };
        let whole = self.with(Slices::all());
        let mut stream = whole.sources(key, memtables.clone()).await?;
        let now = u32::try_from(self.shard.engine().disk.clock().unix_seconds()).unwrap_or(0);
        let limits = (rows, cache.head_max());
        match gather(&self.definition, key, &mut stream, limits, now).await? {
            Gathered::Head(head) => {
                filling.keep(head.clone());
                self.serve(key, &head, memtables).await
            }
            Gathered::Nothing => Ok(Inner::Sources(Sources::Nothing)),
            Gathered::TooLarge => self.sources(key, memtables).await.map(Inner::Sources),
        }
    }

    /// The same read with other slices.
    pub(super) fn with(&self, slices: Slices) -> Plan<'_> {
        Plan {
            shard: self.shard,
            table: self.table,
            definition: self.definition.clone(),
            slices: Rc::new(slices),
            version: self.version.clone(),
        }
    }

    /// `isHeadFilter`
    fn begins_at_head(&self) -> bool {
        matches!(self.slices.slices.as_slice(), [slice] if slice.start.is_none())
            && !self.slices.reversed
    }

    async fn serve(
        &self,
        key: &PartitionKey,
        head: &Head,
        memtables: Vec<Snapshot>,
    ) -> Result<Inner> {
        let of_head = |slices: Rc<Slices>| {
            let partition = head.partition.clone();
            MemtableStream::of_partition(self.layout().clone(), slices, key.clone(), partition)
        };
        let Some(end) = head.end.as_ref().filter(|end| !self.lies_within(end)) else {
            let stream = of_head(self.slices.clone());
            return Ok(Inner::Sources(Sources::One(Source::Memtable(Box::new(stream)))));
        };
        let Some(shard) = self.shard.handle().filter(|_| self.begins_at_head()) else {
            return self.sources(key, memtables).await.map(Inner::Sources);
        };
        let first = Slice { start: None, end: Some(end.clone()) };
        let start = PositionBuf { kind: BoundKind::ExclStart, ..end.clone() };
        let last = self.slices.slices.last().and_then(|slice| slice.end.clone());
        let rest = Slice { start: Some(start), end: last };
        let slices = |slice, statics| Slices { slices: vec![slice], reversed: false, statics };
        Ok(Inner::Head(Box::new(HeadThenTail {
            head: of_head(Rc::new(slices(first, self.slices.statics))),
            tail: Tail {
                shard,
                table: self.table.clone(),
                definition: self.definition.clone(),
                version: self.version.clone(),
                slices: slices(rest, false),
                key: key.clone(),
                memtables,
            },
            phase: Phase::Head,
        })))
    }

    /// Nothing behind `end` is wanted.
    fn lies_within(&self, end: &PositionBuf) -> bool {
        let clusterings = &self.layout().clusterings;
        let within = |slice: &Slice| {
            let last = slice.end.as_ref();
            last.is_some_and(|last| clusterings.compare(last.position(), end.position()).is_le())
        };
        self.slices.slices.iter().all(within)
    }
}

/// The tail after a head, and the means to read it.
struct Tail {
    shard: Rc<Shard>,
    table: Rc<ShardTable>,
    definition: Arc<Definition>,
    version: Arc<Version>,
    slices: Slices,
    key: PartitionKey,
    memtables: Vec<Snapshot>,
}

impl Tail {
    async fn open(&mut self) -> Result<Sources> {
        let plan = Plan {
            shard: &self.shard,
            table: &self.table,
            definition: self.definition.clone(),
            slices: Rc::new(self.slices.clone()),
            version: self.version.clone(),
        };
        plan.sources(&self.key, std::mem::take(&mut self.memtables)).await
    }
}

enum Phase {
    Head,
    Tail(Sources),
    /// The partition's end, if the rest has none of its own.
    End,
}

pub(super) struct HeadThenTail {
    head: MemtableStream,
    tail: Tail,
    phase: Phase,
}

impl HeadThenTail {
    pub(super) async fn advance(&mut self) -> Result<bool> {
        match &mut self.phase {
            Phase::Head => {
                if !self.head.advance().await? {
                    return Ok(false);
                }
                if !matches!(self.head.fragment(), Fragment::End) {
                    return Ok(true);
                }
                let mut tail = self.tail.open().await?;
                // The partition has begun already.
                if !tail.advance().await? {
                    self.phase = Phase::End;
                    return Ok(true);
                }
                tail.advance().await?;
                self.phase = Phase::Tail(tail);
                Ok(true)
            }
            Phase::Tail(tail) => tail.advance().await,
            Phase::End => Ok(false),
        }
    }

    pub(super) fn fragment(&self) -> Fragment<'_> {
        match &self.phase {
            Phase::Head => self.head.fragment(),
            Phase::Tail(tail) => tail.fragment(),
            Phase::End => Fragment::End,
        }
    }
}
