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

use halcyon_model::BoundKind;
use halcyon_model::clustering::PositionBuf;
use halcyon_stream::{PartitionKey, Slice, Slices};

use super::Inner;
use super::head::{HeadThenTail, Tail};
use super::plan::{Plan, Snapshot};
use super::source::{Source, Sources};
use crate::Result;
use crate::caches::rows::{Gathered, Head, gather};
use crate::memtable::MemtableStream;

impl Plan<'_> {
    pub(super) async fn through_cache(
        &self,
        key: &PartitionKey,
        rows: usize,
        memtables: Vec<Snapshot>,
    ) -> Result<Inner> {
        let cache = &self.shard.rows;
        if let Some(head) = cache.get(&self.current.definition, key) {
            self.metrics().row_cache_hits.up();
            return self.serve(key, &head, memtables).await;
        }
        self.metrics().row_cache_misses.up();
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
        Ok(Inner::Head(Box::new(HeadThenTail::new(
            of_head(Rc::new(slices(first, self.slices.statics))),
            Tail {
                shard,
                table: self.table.clone(),
                current: self.current.clone(),
                slices: slices(rest, false),
                key: key.clone(),
                memtables,
            },
        ))))
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
