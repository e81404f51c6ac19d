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

use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{Fragment, FragmentStream, PartitionKey, Slice, Slices};

use super::{Inner, Plan, Snapshot, Source, Sources};
use crate::Result;
use crate::caches::rows::{Gathered, Head, gather};
use crate::current::Current;
use crate::memtable::MemtableStream;
use crate::shard::{Shard, ShardTable};

impl Plan<'_> {
    pub(super) async fn through_cache(
        &self,
        key: &PartitionKey,
        rows: usize,
        memtables: Vec<Snapshot>,
    ) -> Result<Inner> {
        let cache = &self.shard.rows;
        if let Some(head) = cache.get(&self.current.definition, key) {
            return self.serve(key, &head, memtables).await;
        }
        if rows != usize::MAX && !self.begins_at_head() {
            return self.sources(key, memtables).await.map(Inner::Sources);
        }
        let Some(filling) = cache.begin(self.current.definition.table.id, key) else {
            return self.sources(key, memtables).await.map(Inner::Sources);
        };
        let whole = self.with(Slices::all());
        let mut stream = whole.sources(key, memtables.clone()).await?;
        let now = u32::try_from(self.shard.disk().clock().unix_seconds()).unwrap_or(0);
        let limits = (rows, cache.head_max());
        match gather(&self.current.definition, key, &mut stream, limits, now).await? {
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
            current: self.current.clone(),
            slices: Rc::new(slices),
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
        let slices =
            |slice, statics| Slices { slices: vec![slice].into(), reversed: false, statics };
        Ok(Inner::Head(Box::new(HeadThenTail {
            head: of_head(Rc::new(slices(first, self.slices.statics))),
            tail: Tail {
                shard,
                table: self.table.clone(),
                current: self.current.clone(),
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
    current: Rc<Current>,
    slices: Slices,
    key: PartitionKey,
    memtables: Vec<Snapshot>,
}

impl Tail {
    /// The rest at its first fragment behind the partition's start; `None` if there is nothing.
    async fn open(&mut self) -> Result<Option<Sources>> {
        let plan = Plan {
            shard: &self.shard,
            table: &self.table,
            current: self.current.clone(),
            slices: Rc::new(self.slices.clone()),
        };
        let mut rest = plan.sources(&self.key, std::mem::take(&mut self.memtables)).await?;
        // The partition has begun already.
        Ok((rest.advance().await? && rest.advance().await?).then_some(rest))
    }

    fn begins_at(&self, position: Position<'_>) -> bool {
        let start = self.slices.slices.first().and_then(|slice| slice.start.as_ref());
        let clusterings = &self.current.layout().clusterings;
        start.is_some_and(|start| clusterings.compare(start.position(), position).is_eq())
    }
}

enum Phase {
    Head,
    /// The head's last marker closes a range tombstone where the rest, which is at its first fragment, begins.
    Closed(Option<Sources>),
    /// As before, and the rest opens one there: both are one boundary, which opens this deletion.
    Boundary(Sources, DeletionTime),
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
        match std::mem::replace(&mut self.phase, Phase::Head) {
            Phase::Head => {
                if !self.head.advance().await? {
                    return Ok(false);
                }
                match self.head.fragment() {
                    Fragment::End => self.phase = Phase::after(self.tail.open().await?),
                    Fragment::Marker(marker)
                        if marker.open.is_none() && self.tail.begins_at(marker.position) =>
                    {
                        self.phase = Phase::closed(self.tail.open().await?);
                    }
                    _ => {}
                }
                Ok(true)
            }
            Phase::Closed(rest) => {
                self.phase = Phase::after(rest);
                Ok(true)
            }
            Phase::Boundary(mut rest, _) | Phase::Tail(mut rest) => {
                let more = rest.advance().await?;
                self.phase = Phase::Tail(rest);
                Ok(more)
            }
            Phase::End => {
                self.phase = Phase::End;
                Ok(false)
            }
        }
    }

    pub(super) fn fragment(&self) -> Fragment<'_> {
        match &self.phase {
            Phase::Head | Phase::Closed(_) => self.head.fragment(),
            Phase::Boundary(_, open) => match self.head.fragment() {
                Fragment::Marker(mut marker) => {
                    marker.position.kind = marker.position.kind.as_boundary();
                    marker.open = Some(*open);
                    Fragment::Marker(marker)
                }
                fragment => fragment,
            },
            Phase::Tail(tail) => tail.fragment(),
            Phase::End => Fragment::End,
        }
    }
}

impl Phase {
    /// Behind the head, or behind the marker that closes it.
    fn after(rest: Option<Sources>) -> Phase {
        rest.map_or(Phase::End, Phase::Tail)
    }

    fn closed(rest: Option<Sources>) -> Phase {
        let opened = rest.as_ref().and_then(|rest| match rest.fragment() {
            Fragment::Marker(marker) if marker.close.is_none() => marker.open,
            _ => None,
        });
        match (rest, opened) {
            (Some(rest), Some(open)) => Phase::Boundary(rest, open),
            (rest, _) => Phase::Closed(rest),
        }
    }
}
