//! Merges streams of one table and reconciles their versions of a partition, row and cell.
//!
//! 1. A heap orders the sources by the key of their next partition. It has their tokens, so that a comparison reads no source.
//! 2. The sources with the smallest key have the current partition. If there is one source, it stays at the top of the heap, and its
//!    fragments pass through by reference.
//! 3. Otherwise the newest partition deletion wins and the static rows are merged. Then each step merges the fragments at
//!    the smallest clustering position: rows by `RowMerger`, markers by the rule below.
//!
//! Range tombstones (`RangeTombstoneMarker.Merger`): each source has at most one open deletion. The open deletion of the merged
//! stream is the newest of them, if it supersedes the partition deletion. The merge emits a marker only where that
//! changes: live→d opens, d→live closes, d₁→d₂ is a boundary.
//!
//! Memory: one row per source and one merged row, however large the partition is.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime, Partitioner};

use crate::fragment::{
    Fragment, FragmentStream, Marker, PartitionKey, PartitionStart, Row, RowBuf,
};
use crate::layout::{Layout, Statics};
use crate::merge_row::{MergeError, RowMerger};

/// What `fragment` shows.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Nothing,
    /// The current fragment of this source.
    Source(usize),
    Start(DeletionTime),
    Static,
    Row,
    /// A marker at the position of this source's fragment.
    Marker {
        source: usize,
        kind: BoundKind,
        close: DeletionTime,
        open: DeletionTime,
    },
    End,
}

/// The merge's progress in the current partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unstarted,
    /// Only one source has the partition.
    Single,
    /// Several sources have the partition; only their starts are merged.
    Head,
    Rows,
    /// All sources of the partition are at its end.
    Ended,
}

/// A source in the heap.
#[derive(Debug, Clone, Copy)]
struct Queued {
    /// Of the partition that the source stands at; 0 where the partitioner does not order by tokens of its own.
    token: i64,
    source: usize,
}

pub struct Merge<S> {
    layout: Arc<Layout>,
    sources: Vec<S>,
    /// A min-heap by partition key of the sources that are at a partition start. `BinaryHeap` cannot order by the sources' state.
    heap: Vec<Queued>,
    has_tokens: bool,
    /// The sources that have the current partition. A single one is at the top of the heap, others are not in it.
    current: Vec<usize>,
    /// The open range deletion of each source in `current`.
    open: Vec<DeletionTime>,
    /// Indexes in `current` of the sources whose fragments were merged; the next step advances them.
    consumed: Vec<usize>,
    partition_deletion: DeletionTime,
    phase: Phase,
    shown: Shown,
    merger: RowMerger,
    merged: RowBuf,
    counts: Vec<u64>,
}

impl<S: FragmentStream> Merge<S>
where
    S::Error: From<MergeError>,
{
    /// `sources` number their columns as `layout` does.
    pub fn new(layout: Arc<Layout>, sources: Vec<S>) -> Self {
        let counts = vec![0; sources.len() + 1];
        Merge {
            merger: RowMerger::new(layout.clone()),
            has_tokens: layout.partitioner == Partitioner::Murmur3,
            layout,
            sources,
            heap: Vec::new(),
            current: Vec::new(),
            open: Vec::new(),
            consumed: Vec::new(),
            partition_deletion: DeletionTime::LIVE,
            phase: Phase::Unstarted,
            shown: Shown::Nothing,
            merged: RowBuf::new(),
            counts,
        }
    }

    pub fn sources(&self) -> &[S] {
        &self.sources
    }

    /// `counts()[n]` partitions were in exactly `n` sources (`CompactionIterator`'s merge counters).
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    #[inline]
    fn compare(&self, a: Queued, b: Queued) -> Ordering {
        let keys = || self.layout.compare_keys(self.key(a.source), self.key(b.source));
        a.token.cmp(&b.token).then_with(keys)
    }

    fn key(&self, source: usize) -> &PartitionKey {
        match self.sources[source].fragment() {
            Fragment::Start(start) => start.key,
            _ => unreachable!("a queued source stands at a partition start"),
        }
    }

    fn queued(&self, source: usize) -> Queued {
        let token = if self.has_tokens { self.key(source).token } else { 0 };
        Queued { token, source }
    }

    fn push(&mut self, source: usize) {
        self.heap.push(self.queued(source));
        let mut child = self.heap.len() - 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.compare(self.heap[child], self.heap[parent]) != Ordering::Less {
                break;
            }
            self.heap.swap(child, parent);
            child = parent;
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let last = self.heap.len().checked_sub(1)?;
        self.heap.swap(0, last);
        let top = self.heap.pop();
        self.sift_top_down();
        top.map(|queued| queued.source)
    }

    fn sift_top_down(&mut self) {
        let mut parent = 0;
        loop {
            let (left, right) = (2 * parent + 1, 2 * parent + 2);
            if left >= self.heap.len() {
                break;
            }
            let right_is_less = right < self.heap.len()
                && self.compare(self.heap[right], self.heap[left]) == Ordering::Less;
            let child = if right_is_less { right } else { left };
            if self.compare(self.heap[child], self.heap[parent]) != Ordering::Less {
                break;
            }
            self.heap.swap(child, parent);
            parent = child;
        }
    }

    /// Advances a source from a partition's end, or to its first partition, and pushes it unless the source has ended.
    async fn requeue(&mut self, source: usize) -> Result<(), S::Error> {
        if self.sources[source].advance().await? {
            self.push(source);
        }
        Ok(())
    }

    /// Takes the sources of the current partition to their next ones.
    async fn leave_partition(&mut self) -> Result<(), S::Error> {
        if let [single] = self.current[..] {
            self.current.clear();
            if self.sources[single].advance().await? {
                self.heap[0] = self.queued(single);
                self.sift_top_down();
            } else {
                self.pop();
            }
            return Ok(());
        }
        let mut finished = std::mem::take(&mut self.current);
        for source in finished.drain(..) {
            self.requeue(source).await?;
        }
        self.current = finished;
        Ok(())
    }

    async fn next_partition(&mut self) -> Result<bool, S::Error> {
        self.leave_partition().await?;
        let Some(&first) = self.heap.first() else {
            self.shown = Shown::Nothing;
            return Ok(false);
        };
        let is_same = |other: &Queued| self.compare(*other, first) == Ordering::Equal;
        if !self.heap.iter().skip(1).take(2).any(is_same) {
            self.current.push(first.source);
            self.counts[1] += 1;
            self.phase = Phase::Single;
            self.shown = Shown::Source(first.source);
            return Ok(true);
        }
        while let Some(&next) = self.heap.first() {
            if self.compare(next, first) != Ordering::Equal {
                break;
            }
            self.pop();
            self.current.push(next.source);
        }
        self.counts[self.current.len()] += 1;
        // Oldest source first: a tie must not depend on the order of the heap.
        self.current.sort_unstable();
        let starts = self.current.iter().map(|&source| match self.sources[source].fragment() {
            Fragment::Start(start) => start.deletion,
            _ => DeletionTime::LIVE,
        });
        self.partition_deletion = starts.fold(DeletionTime::LIVE, DeletionTime::max);
        self.open.clear();
        self.open.resize(self.current.len(), DeletionTime::LIVE);
        self.phase = Phase::Head;
        self.shown = Shown::Start(self.partition_deletion);
        Ok(true)
    }

    /// Merges the static rows that follow the partition start, if there are any.
    async fn leave_head(&mut self, patience: u32) -> Result<Option<bool>, S::Error> {
        self.consumed.clear();
        for at in 0..self.current.len() {
            let source = self.current[at];
            self.sources[source].advance().await?;
            if matches!(self.sources[source].fragment(), Fragment::Static(_)) {
                self.consumed.push(at);
            }
        }
        self.phase = Phase::Rows;
        if self.consumed.is_empty() {
            return self.next_unfiltered(patience).await;
        }
        let deletion = self.partition_deletion;
        if self.merge_consumed(Statics::Static, deletion)? {
            self.shown = Shown::Static;
            return Ok(Some(true));
        }
        self.next_unfiltered(patience).await
    }

    /// Merges the current rows of the consumed sources; false if nothing remains.
    fn merge_consumed(&mut self, which: Statics, active: DeletionTime) -> Result<bool, MergeError> {
        let Merge { sources, current, consumed, merger, merged, .. } = self;
        let rows = consumed.iter().filter_map(|&at| row_of(sources[current[at]].fragment()));
        merger.merge(which, rows, active, merged)
    }

    fn open_in_merged(&self) -> DeletionTime {
        let largest = self.open.iter().copied().fold(DeletionTime::LIVE, DeletionTime::max);
        if largest.supersedes(&self.partition_deletion) { largest } else { DeletionTime::LIVE }
    }

    /// `None` after a number of positions of which a deletion leaves nothing.
    async fn next_unfiltered(&mut self, patience: u32) -> Result<Option<bool>, S::Error> {
        for _ in 0..patience {
            for at in 0..self.consumed.len() {
                let source = self.current[self.consumed[at]];
                self.sources[source].advance().await?;
            }
            if !self.find_smallest() {
                self.phase = Phase::Ended;
                self.shown = Shown::End;
                return Ok(Some(true));
            }
            let first = self.current[self.consumed[0]];
            let found = match self.sources[first].fragment() {
                Fragment::Marker(marker) => {
                    let kind = marker.position.kind;
                    self.merge_markers(first, kind)
                }
                _ => self.merge_rows(first)?,
            };
            if found {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Puts the sources at the smallest position into `consumed`; false if all sources are at the partition's end. Linear, unlike
    /// the heap of partitions: few SSTables have the same partition.
    fn find_smallest(&mut self) -> bool {
        let Merge { sources, current, consumed, layout, .. } = self;
        consumed.clear();
        let mut smallest: Option<Position<'_>> = None;
        for (at, &source) in current.iter().enumerate() {
            let Some(position) = sources[source].fragment().position(layout.clusterings.len())
            else {
                continue;
            };
            let order = match smallest {
                None => Ordering::Less,
                Some(least) => layout.clusterings.compare(position, least),
            };
            if order == Ordering::Less {
                consumed.clear();
                smallest = Some(position);
            }
            if order != Ordering::Greater {
                consumed.push(at);
            }
        }
        !consumed.is_empty()
    }

    fn merge_rows(&mut self, first: usize) -> Result<bool, MergeError> {
        let open = self.open_in_merged();
        let active = if open.is_live() { self.partition_deletion } else { open };
        if self.consumed.len() == 1 && active.is_live() {
            self.shown = Shown::Source(first);
            return Ok(true);
        }
        self.shown = Shown::Row;
        self.merge_consumed(Statics::Regular, active)
    }

    fn merge_markers(&mut self, first: usize, kind: BoundKind) -> bool {
        let close = self.open_in_merged();
        for &at in &self.consumed {
            if let Fragment::Marker(marker) = self.sources[self.current[at]].fragment() {
                self.open[at] = marker.open.unwrap_or(DeletionTime::LIVE);
            }
        }
        let open = self.open_in_merged();
        if close == open {
            return false;
        }
        let kind = match (close.is_live(), open.is_live()) {
            (true, _) => kind.as_open(),
            (false, true) => kind.as_close(),
            (false, false) => kind.as_boundary(),
        };
        self.shown = Shown::Marker { source: first, kind, close, open };
        true
    }
}

fn row_of(fragment: Fragment<'_>) -> Option<Row<'_>> {
    match fragment {
        Fragment::Row(row) | Fragment::Static(row) => Some(row),
        _ => None,
    }
}

impl<S: FragmentStream> FragmentStream for Merge<S>
where
    S::Error: From<MergeError>,
{
    type Error = S::Error;

    async fn advance(&mut self) -> Result<bool, S::Error> {
        loop {
            if let Some(advanced) = self.advance_within(u32::MAX).await? {
                return Ok(advanced);
            }
        }
    }

    async fn advance_within(&mut self, patience: u32) -> Result<Option<bool>, S::Error> {
        match self.phase {
            Phase::Unstarted => {
                for source in 0..self.sources.len() {
                    self.requeue(source).await?;
                }
                self.next_partition().await.map(Some)
            }
            Phase::Single => {
                let source = self.current[0];
                self.sources[source].advance().await?;
                if matches!(self.sources[source].fragment(), Fragment::End) {
                    self.phase = Phase::Ended;
                }
                Ok(Some(true))
            }
            Phase::Head => self.leave_head(patience).await,
            Phase::Rows => self.next_unfiltered(patience).await,
            Phase::Ended => self.next_partition().await.map(Some),
        }
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match self.shown {
            Shown::Nothing | Shown::End => Fragment::End,
            Shown::Source(source) => self.sources[source].fragment(),
            Shown::Start(deletion) => {
                Fragment::Start(PartitionStart { key: self.key(self.current[0]), deletion })
            }
            Shown::Static => Fragment::Static(self.merged.row()),
            Shown::Row => Fragment::Row(self.merged.row()),
            Shown::Marker { source, kind, close, open } => {
                let serialized =
                    self.sources[source].fragment().position(self.layout.clusterings.len());
                let (count, serialized) =
                    serialized.map_or((0, &[][..]), |p| (p.count, p.serialized));
                Fragment::Marker(Marker {
                    position: Position { kind, count, serialized },
                    close: (!close.is_live()).then_some(close),
                    open: (!open.is_live()).then_some(open),
                })
            }
        }
    }
}
