//! Reads of one partition from SSTables (`SinglePartitionReadCommand`).
//!
//! ```text
//!   newest ──► oldest    ┌ interval has the token? ┌ slices? ┌ Bloom filter? ┌ read
//!   SSTables             4000        ─►      40    ─►   30   ─►    2         ─► 1, then the result is newer than all remaining SSTables
//! ```
//! 1. The version's index gives the SSTables whose token interval has the key. They are examined newest first; clusterings and Bloom
//!    filter are checked only when their turn comes.
//! 2. None is read that is not newer than the newest partition deletion found so far, nor any behind it (`queryMemtableAndDisk`).
//! 3. A read of named rows ends when each of them is complete: deleted, or with a liveness and a cell of every column, by writes newer than
//!    all that is left (`queryMemtableAndSSTablesInTimestampOrder`). Not so for counters, which add up, and collections, which have no
//!    newest cell.
//! 4. Several are read at once. Cassandra reads one after the other; on a device the reads of a few cost the time of one. Named rows begin
//!    with one SSTable, since it often has everything, and then take four times as many each time.

use std::sync::Arc;

use futures_util::future::join_all;
use halcyon_io::spent;
use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{
    Fragment, Layout, Mutation, PartitionKey, Primed, RangeTombstone, RowBuf, RowMerger, Slice,
    Slices,
};

use super::plan::{Plan, Snapshot};
use super::source::{Source, Sources};
use super::sstable::{Access, SSTableStream};
use crate::Result;
use crate::memtable::{Collector, MemtableStream, Partition};
use crate::metrics::samplers::Sampler;
use crate::metrics::table::Measure;
use crate::version::LiveSSTable;

/// SSTables that one read waits for at the same time.
const AT_ONCE: usize = 8;

/// SSTables that may have the partition, newest first.
pub(super) struct Candidates<'a> {
    plan: &'a Plan<'a>,
    key: &'a PartitionKey,
    /// Not read yet, oldest first; positions in the version.
    left: Vec<u32>,
    /// The next one, if it is known.
    next: Option<Candidate<'a>>,
}

#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    at: u32,
    live: &'a LiveSSTable,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, key: &'a PartitionKey) -> Candidates<'a> {
        let left = plan.current.version.overlapping(key.token, key.token);
        Candidates { plan, key, left, next: None }
    }

    /// The newest one that is left and has anything that `deletion` does not shadow.
    pub(super) fn peek(&mut self, deletion: DeletionTime) -> Option<Candidate<'a>> {
        while self.next.is_none() {
            let at = self.left.pop()?;
            let live = self.plan.current.version.get(at)?;
            if !self.plan.may_have(live) {
                continue;
            }
            match live.table.may_contain(self.key) {
                true => self.next = Some(Candidate { at, live }),
                false => self.plan.metrics().filter_absent.up(),
            }
        }
        let shadowed = |next: &Candidate<'_>| {
            !deletion.is_live() && next.live.max_timestamp() <= deletion.marked_for_delete_at
        };
        if self.next.as_ref().is_some_and(shadowed) {
            // The others are older still.
            self.left.clear();
            self.next = None;
        }
        self.next
    }

    fn take(&mut self, most: usize, deletion: DeletionTime) -> Vec<Candidate<'a>> {
        let mut taken = Vec::new();
        while taken.len() < most && self.peek(deletion).is_some() {
            taken.extend(self.next.take());
        }
        taken
    }
}

impl Plan<'_> {
    /// One partition from memtables and SSTables.
    pub(super) async fn sources(
        &self,
        key: &PartitionKey,
        snapshots: Vec<Snapshot>,
    ) -> Result<Sources> {
        let deletions = snapshots.iter().map(|(_, partition)| partition.deletion());
        let deletion = deletions.fold(DeletionTime::LIVE, DeletionTime::max);
        let mut candidates = Candidates::new(self, key);
        if candidates.peek(deletion).is_none() {
            self.note_sstables(key, 0, !snapshots.is_empty());
            let streams = snapshots.into_iter().map(|snapshot| self.snapshot(key, snapshot));
            return Ok(Sources::of(self.direction(), streams.collect()));
        }
        // Boxed, so that a read from memory is small.
        Box::pin(self.with_sstables(key, snapshots, deletion, candidates)).await
    }

    /// Counts a read of one partition by the SSTables that had it.
    fn note_sstables(&self, key: &PartitionKey, count: usize, is_found: bool) {
        let (now, count) = (self.shard.now(), count as u64);
        spent::sstables(count);
        let metrics = self.metrics();
        metrics.record(Measure::SSTablesPerRead, count, now);
        if is_found && metrics.samplers.are_on() {
            metrics.samplers.add(Sampler::Reads, &key.bytes, 1);
            metrics.samplers.add(Sampler::ReadSSTableCount, &key.bytes, count);
        }
    }

    fn snapshot(&self, key: &PartitionKey, (layout, partition): Snapshot) -> Source {
        let stream = MemtableStream::of_partition(
            layout.clone(),
            self.slices.clone(),
            key.clone(),
            partition,
        );
        self.of_memtable(&layout, stream)
    }

    async fn with_sstables(
        &self,
        key: &PartitionKey,
        snapshots: Vec<Snapshot>,
        deletion: DeletionTime,
        mut candidates: Candidates<'_>,
    ) -> Result<Sources> {
        let sampled = self.shard.samples();
        let count = |wave: &[Candidate<'_>]| {
            if sampled {
                wave.iter().for_each(|next| next.live.identity.hotness.sampled());
            }
        };
        let first = candidates.take(1, deletion);
        let is_last = candidates.peek(deletion).is_none();
        let names =
            self.current.definition.single_cells.then(|| names(&self.slices, self.layout()));
        if let Some(names) = names.flatten().filter(|_| !is_last || !snapshots.is_empty()) {
            candidates.put_back(first);
            return self.named(key, &names, snapshots, candidates, count).await;
        }
        let mut sources = Vec::new();
        let mut wave = first;
        if !is_last {
            wave.extend(candidates.take(AT_ONCE - 1, deletion));
        }
        let mut deletion = deletion;
        while !wave.is_empty() {
            count(&wave);
            let access = self.access();
            let prime = !is_last;
            let streams = wave.iter().map(|next| self.open(&access, next.at, key, prime));
            for stream in join_all(streams).await {
                let Some(stream) = stream? else { continue };
                if let Some(Fragment::Start(start)) = stream.first() {
                    deletion = deletion.max(start.deletion);
                }
                sources.push(Source::SSTable(Box::new(stream)));
            }
            wave = candidates.take(AT_ONCE, deletion);
        }
        self.note_sstables(key, sources.len(), !(sources.is_empty() && snapshots.is_empty()));
        // The order of a merge's inputs is oldest first.
        sources.reverse();
        sources.extend(snapshots.into_iter().map(|snapshot| self.snapshot(key, snapshot)));
        Ok(Sources::of(self.direction(), sources))
    }

    /// `None` if the SSTable does not have the partition. `prime` fetches the first fragment, so that the SSTables of a wave wait for the
    /// device together.
    async fn open(
        &self,
        access: &Access<'_>,
        at: u32,
        key: &PartitionKey,
        prime: bool,
    ) -> Result<Option<Primed<SSTableStream>>> {
        let Some(reader) = self.current.reader(at) else { return Ok(None) };
        let Some(stream) = access.partition(reader, key).await? else {
            self.metrics().filter_false.up();
            return Ok(None);
        };
        self.measure(reader, key).await?;
        self.metrics().sstables_read.up();
        let stream = if prime { Primed::fetch(stream).await? } else { Primed::lazy(stream) };
        Ok(Some(stream))
    }

    /// Rows that are named one by one, merged until they are complete.
    async fn named(
        &self,
        key: &PartitionKey,
        names: &[Position<'_>],
        snapshots: Vec<Snapshot>,
        mut candidates: Candidates<'_>,
        count: impl Fn(&[Candidate<'_>]),
    ) -> Result<Sources> {
        let layout = self.layout();
        let forward = Slices { reversed: false, ..Slices::clone(&self.slices) };
        let access = Access { slices: &forward, ..self.access() };
        let mut found =
            NamedRows { partition: None, merger: RowMerger::new(layout.clone()), layout };
        let collector =
            || Collector::new(self.current.definition.table.id, layout.clone(), key.clone());
        let whole = self.with(forward.clone());
        for snapshot in snapshots {
            let mut source = whole.snapshot(key, snapshot);
            found.merge(collector().collect(&mut source).await?)?;
        }
        let (mut at_once, mut sstables) = (1, 0);
        while let Some(next) = candidates.peek(found.deletion())
            && !found.is_complete(names, forward.statics, next.live.max_timestamp())
        {
            let wave = candidates.take(at_once, found.deletion());
            at_once = (4 * at_once).min(AT_ONCE);
            count(&wave);
            let streams = wave.iter().map(async |next| {
                let stream = self.open(&access, next.at, key, false).await?;
                let Some(mut stream) = stream else { return Ok(None) };
                collector().collect(&mut stream).await
            });
            for mutation in join_all(streams).await {
                let mutation = mutation?;
                sstables += usize::from(mutation.is_some());
                found.merge(mutation)?;
            }
        }
        self.note_sstables(key, sstables, found.partition.is_some());
        let stream = found.partition.map(|partition| {
            let slices = self.slices.clone();
            MemtableStream::of_partition(layout.clone(), slices, key.clone(), partition)
        });
        let source = stream.map(|stream| Source::Memtable(Box::new(stream)));
        Ok(Sources::of(self.direction(), source.into_iter().collect()))
    }
}

impl<'a> Candidates<'a> {
    /// The one that was taken first, before anything is done with it.
    fn put_back(&mut self, first: Vec<Candidate<'a>>) {
        self.left.extend(self.next.take().map(|next| next.at));
        self.next = first.into_iter().next();
    }
}

/// The named rows as far as they are known.
struct NamedRows<'a> {
    /// `None`: no source has had the partition.
    partition: Option<Partition>,
    merger: RowMerger,
    layout: &'a Arc<Layout>,
}

impl NamedRows<'_> {
    fn merge(&mut self, mutation: Option<Mutation>) -> Result<()> {
        let Some(mutation) = mutation else { return Ok(()) };
        let partition = self.partition.get_or_insert_default();
        partition.apply(mutation, &self.layout.clusterings, &mut self.merger)?;
        Ok(())
    }

    fn deletion(&self) -> DeletionTime {
        self.partition.as_ref().map_or(DeletionTime::LIVE, Partition::deletion)
    }

    /// Whether no write up to `timestamp` can change these rows.
    fn is_complete(&self, names: &[Position<'_>], statics: bool, timestamp: i64) -> bool {
        let Some(partition) = &self.partition else { return false };
        let statics = if statics { self.layout.statics.len() } else { 0 };
        let static_row = partition.static_row();
        let statics_complete =
            statics == 0 || static_row.is_some_and(|row| has_cells(row, statics, timestamp));
        let row = |name: &Position<'_>| {
            let clusterings = &self.layout.clusterings;
            let row = partition.row(clusterings, *name);
            let deleted = |range: &RangeTombstone| range.time.marked_for_delete_at >= timestamp;
            row.is_some_and(|row| is_row_complete(row, self.layout.regulars.len(), timestamp))
                || partition.covering(clusterings, *name).is_some_and(deleted)
        };
        statics_complete && names.iter().all(row)
    }
}

/// `isRowComplete`
fn is_row_complete(row: &RowBuf, columns: usize, timestamp: i64) -> bool {
    let RowBuf { parts, .. } = row;
    let deletion = &parts.deletion;
    let deleted = !deletion.shadowable
        && !deletion.time.is_live()
        && deletion.time.marked_for_delete_at >= timestamp;
    let inserted = !parts.liveness.is_empty() && parts.liveness.timestamp > timestamp;
    deleted || (inserted && has_cells(row, columns, timestamp))
}

/// A cell of every column, all newer. Only for rows without collections: there a column has one cell.
fn has_cells(row: &RowBuf, columns: usize, timestamp: i64) -> bool {
    let cells = &row.parts.cells;
    cells.len() == columns && cells.iter().all(|cell| cell.timestamp > timestamp)
}

/// The rows that the slices name one by one; `None` if one of them is a range, or if they are too many to merge without holding
/// the shard.
fn names<'a>(slices: &'a Slices, layout: &Layout) -> Option<Vec<Position<'a>>> {
    let count = layout.clusterings.len();
    if slices.are_many() {
        return None;
    }
    if count == 0 {
        let only = Position { kind: BoundKind::Clustering, count, serialized: &[] };
        return Some(slices.slices.iter().map(|_| only).collect());
    }
    let name = |slice: &'a Slice| {
        let (start, end) = (slice.start.as_ref()?, slice.end.as_ref()?);
        let one = start.kind == BoundKind::InclStart
            && end.kind == BoundKind::InclEnd
            && (start.count, end.count) == (count, count)
            && start.serialized == end.serialized;
        let serialized = &start.serialized;
        one.then_some(Position { kind: BoundKind::Clustering, count, serialized })
    };
    slices.slices.iter().map(name).collect()
}
