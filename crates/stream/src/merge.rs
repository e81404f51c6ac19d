//! Merges streams of one table into one, reconciling what they say about the same partition, row and cell.
//!
//! How it works:
//! 1. A heap keeps the sources by the key of the partition that each stands before.
//! 2. The sources with the smallest key form the current partition. If there is only one, its fragments pass through
//!    untouched (they are only looked at by whoever comes next: purge, writer).
//! 3. Otherwise, the partition deletion is the superseding one, statics are merged, and then at each step the sources
//!    that stand at the smallest clustering position are merged: rows by `RowMerger`, markers by the rule below.
//!
//! Range tombstones (`RangeTombstoneMarker.Merger`): each source has at most one open deletion; the merged stream's open
//! deletion is the largest of them, if it supersedes the partition deletion.  A marker comes out only where
//! that changes: live→d opens, d→live closes, d₁→d₂ is a boundary.
//!
//! Memory: one row per source and one merged row, whatever the size of a partition.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime};

use crate::fragment::{
    Fragment, FragmentStream, Marker, PartitionKey, PartitionStart, Row, RowBuf,
};
use crate::layout::{Layout, Statics};
use crate::merge_row::{MergeError, RowMerger};

/// What the last `advance` reached.
#[derive(Debug, Clone, Copy)]
enum Reached {
    Nothing,
    /// The fragment of this source, as it is.
    Source(usize),
    Start(DeletionTime),
    Static,
    Row,
    /// A marker at the position of this source.
    Marker {
        source: usize,
        kind: BoundKind,
        close: DeletionTime,
        open: DeletionTime,
    },
    End,
}

/// Where in the current partition the merge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Unstarted,
    /// One source has the partition.
    Single,
    /// Several have it; their starts are merged, nothing beyond.
    Head,
    Rows,
    /// All sources of the partition stand at its end.
    Ended,
}

pub struct Merge<S> {
    layout: Arc<Layout>,
    sources: Vec<S>,
    /// Min-heap by partition key: sources that stand at a partition start.
    heap: Vec<usize>,
    /// The sources that have the current partition.
    current: Vec<usize>,
    /// Open range deletion of each source in `current`.
    open: Vec<DeletionTime>,
    /// Positions in `current` whose fragments made the last output; advanced at the next step.
    consumed: Vec<usize>,
    partition_deletion: DeletionTime,
    phase: Phase,
    reached: Reached,
    merger: RowMerger,
    merged: RowBuf,
    counts: Vec<u64>,
}

impl<S: FragmentStream> Merge<S>
where
    S::Error: From<MergeError>,
{
    /// `sources` have `layout`'s column numbering.
    pub fn new(layout: Arc<Layout>, sources: Vec<S>) -> Self {
        let counts = vec![0; sources.len() + 1];
        Merge {
            merger: RowMerger::new(layout.clone()),
            layout,
            sources,
            heap: Vec::new(),
            current: Vec::new(),
            open: Vec::new(),
            consumed: Vec::new(),
            partition_deletion: DeletionTime::LIVE,
            phase: Phase::Unstarted,
            reached: Reached::Nothing,
            merged: RowBuf::new(),
            counts,
        }
    }

    pub fn sources(&self) -> &[S] {
        &self.sources
    }

    /// `counts()[n]` partitions were found in exactly `n` sources (`CompactionIterator`'s merge counters).
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    fn compare_keys(&self, a: usize, b: usize) -> Ordering {
        self.layout.compare_keys(self.key(a), self.key(b))
    }

    fn key(&self, source: usize) -> &PartitionKey {
        match self.sources[source].fragment() {
            Fragment::Start(start) => start.key,
            _ => unreachable!("a queued source stands at a partition start"),
        }
    }

    fn push(&mut self, source: usize) {
        self.heap.push(source);
        let mut child = self.heap.len() - 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.compare_keys(self.heap[child], self.heap[parent]) != Ordering::Less {
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
        let mut parent = 0;
        loop {
            let (left, right) = (2 * parent + 1, 2 * parent + 2);
            if left >= self.heap.len() {
                break;
            }
            let right_is_less = right < self.heap.len()
                && self.compare_keys(self.heap[right], self.heap[left]) == Ordering::Less;
            let child = if right_is_less { right } else { left };
            if self.compare_keys(self.heap[child], self.heap[parent]) != Ordering::Less {
                break;
            }
            self.heap.swap(child, parent);
            parent = child;
        }
        top
    }

    /// Advances a source that stands at a partition's end (or has not started) and queues it if it has more.
    async fn requeue(&mut self, source: usize) -> Result<(), S::Error> {
        if self.sources[source].advance().await? {
            self.push(source);
        }
        Ok(())
    }

    async fn next_partition(&mut self) -> Result<bool, S::Error> {
        let mut finished = std::mem::take(&mut self.current);
        for source in finished.drain(..) {
            self.requeue(source).await?;
        }
        self.current = finished;
        let Some(first) = self.pop() else {
            self.reached = Reached::Nothing;
            return Ok(false);
        };
        self.current.push(first);
        while let Some(&next) = self.heap.first() {
            if self.compare_keys(next, first) != Ordering::Equal {
                break;
            }
            self.pop();
            self.current.push(next);
        }
        self.counts[self.current.len()] += 1;
        if self.current.len() == 1 {
            self.phase = Phase::Single;
            self.reached = Reached::Source(first);
            return Ok(true);
        }
        // Oldest source first, so that ties are decided the same way whatever the heap's order was.
        self.current.sort_unstable();
        let starts = self.current.iter().map(|&source| match self.sources[source].fragment() {
            Fragment::Start(start) => start.deletion,
            _ => DeletionTime::LIVE,
        });
        self.partition_deletion = starts.fold(DeletionTime::LIVE, DeletionTime::max);
        self.open.clear();
        self.open.resize(self.current.len(), DeletionTime::LIVE);
        self.phase = Phase::Head;
        self.reached = Reached::Start(self.partition_deletion);
        Ok(true)
    }

    /// Leaves the partition start: merges the static rows, if any.
    async fn leave_head(&mut self) -> Result<bool, S::Error> {
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
            return self.next_unfiltered().await;
        }
        let deletion = self.partition_deletion;
        if self.merge_consumed(Statics::Static, deletion)? {
            self.reached = Reached::Static;
            return Ok(true);
        }
        self.next_unfiltered().await
    }

    /// Merges the rows at which the consumed sources stand; false if nothing is left of them.
    fn merge_consumed(&mut self, which: Statics, active: DeletionTime) -> Result<bool, MergeError> {
        let Merge { sources, current, consumed, merger, merged, .. } = self;
        let rows = consumed.iter().filter_map(|&at| row_of(sources[current[at]].fragment()));
        merger.merge(which, rows, active, merged)
    }

    fn open_in_merged(&self) -> DeletionTime {
        let largest = self.open.iter().copied().fold(DeletionTime::LIVE, DeletionTime::max);
        if largest.supersedes(&self.partition_deletion) { largest } else { DeletionTime::LIVE }
    }

    async fn next_unfiltered(&mut self) -> Result<bool, S::Error> {
        loop {
            for at in 0..self.consumed.len() {
                let source = self.current[self.consumed[at]];
                self.sources[source].advance().await?;
            }
            if !self.find_smallest() {
                self.phase = Phase::Ended;
                self.reached = Reached::End;
                return Ok(true);
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
                return Ok(true);
            }
        }
    }

    /// Puts the sources that stand at the smallest position into `consumed`; false if all are at their end.
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
            self.reached = Reached::Source(first);
            return Ok(true);
        }
        self.reached = Reached::Row;
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
        self.reached = Reached::Marker { source: first, kind, close, open };
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
        match self.phase {
            Phase::Unstarted => {
                for source in 0..self.sources.len() {
                    self.requeue(source).await?;
                }
                self.next_partition().await
            }
            Phase::Single => {
                let source = self.current[0];
                self.sources[source].advance().await?;
                if matches!(self.sources[source].fragment(), Fragment::End) {
                    self.phase = Phase::Ended;
                }
                Ok(true)
            }
            Phase::Head => self.leave_head().await,
            Phase::Rows => self.next_unfiltered().await,
            Phase::Ended => self.next_partition().await,
        }
    }

    #[inline]
    fn fragment(&self) -> Fragment<'_> {
        match self.reached {
            Reached::Nothing | Reached::End => Fragment::End,
            Reached::Source(source) => self.sources[source].fragment(),
            Reached::Start(deletion) => {
                Fragment::Start(PartitionStart { key: self.key(self.current[0]), deletion })
            }
            Reached::Static => Fragment::Static(self.merged.row()),
            Reached::Row => Fragment::Row(self.merged.row()),
            Reached::Marker { source, kind, close, open } => {
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
