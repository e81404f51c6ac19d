//! Reads partitions of a memtable as a `FragmentStream`, restricted to slices, in either direction.
//!
//! 1. Each partition is cloned when the stream reaches it.
//! 2. The rows of each slice are a run of the clone's rows; range tombstones are cut at the slices' bounds and become markers. Slices and
//!    tombstones are looked at when the stream comes to them: there may be very many, of which a page takes few.
//! 3. Rows and markers are merged by position. Cells that the partition's own deletions shadow are left out: the merge requires that of
//!    every source.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_io::yield_now;
use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Marker, MergeError, PartitionKey, PartitionStart, RowBuf,
    RowMerger, Slices, Statics,
};

use super::leaves::At;
use super::{Memtable, Partition, RingBound, Slot};

/// Slices, ranges and rows that are looked at and not shown between two yields, some 200 µs.
const STEPS: usize = 200;

/// The source of the partitions.
enum Source {
    /// A single partition.
    One(Option<(PartitionKey, Partition)>),
    Slot(Rc<Slot>),
    Sealed(Arc<Memtable>),
}

/// A marker to emit; `at` is its forward position.
struct CutMarker {
    at: PositionBuf,
    close: Option<DeletionTime>,
    open: Option<DeletionTime>,
}

enum Shown {
    Nothing,
    Start,
    /// The unchanged static row.
    Static(Arc<RowBuf>),
    Row(Arc<RowBuf>),
    /// A row without its shadowed cells, in `scratch`.
    MergedStatic,
    MergedRow,
    Marker(CutMarker),
    End,
}

pub(crate) struct MemtableStream {
    source: Source,
    /// Of the next partition.
    behind: RingBound,
    /// The first partition behind it is not wanted any more.
    until: Option<RingBound>,
    layout: Arc<Layout>,
    slices: Rc<Slices>,
    merger: RowMerger,
    key: PartitionKey,
    partition: Partition,
    /// Those that come after the current one.
    slices_left: Range<usize>,
    slice: usize,
    /// What is left of the current slice: rows, and range tombstones.
    rows: (At, At),
    ranges: (At, At),
    /// Two at least, while there are more: the end of one range may be the start of the next.
    markers: VecDeque<CutMarker>,
    open: DeletionTime,
    statics_done: bool,
    shown: Shown,
    scratch: RowBuf,
    looked_at: usize,
}

impl MemtableStream {
    /// One partition, of which the snapshot has been taken.
    pub(crate) fn of_partition(
        layout: Arc<Layout>,
        slices: Rc<Slices>,
        key: PartitionKey,
        partition: Partition,
    ) -> MemtableStream {
        MemtableStream::new(Source::One(Some((key, partition))), layout, slices)
    }

    /// The partitions behind `behind` and not behind `until`.
    pub(crate) fn of_range(
        slot: Rc<Slot>,
        layout: Arc<Layout>,
        slices: Rc<Slices>,
        behind: RingBound,
        until: Option<RingBound>,
    ) -> MemtableStream {
        let stream = MemtableStream::new(Source::Slot(slot), layout, slices);
        MemtableStream { behind, until, ..stream }
    }

    /// All partitions.
    pub(crate) fn of_all(memtable: Arc<Memtable>) -> MemtableStream {
        let layout = memtable.table().layout.clone();
        MemtableStream::new(Source::Sealed(memtable), layout, Rc::new(Slices::all()))
    }

    fn new(source: Source, layout: Arc<Layout>, slices: Rc<Slices>) -> MemtableStream {
        MemtableStream {
            source,
            behind: RingBound::BeforeToken(i64::MIN),
            until: None,
            merger: RowMerger::new(layout.clone()),
            layout,
            slices,
            key: PartitionKey::empty(),
            partition: Partition::default(),
            slices_left: 0..0,
            slice: 0,
            rows: Default::default(),
            ranges: Default::default(),
            markers: VecDeque::new(),
            open: DeletionTime::LIVE,
            statics_done: false,
            shown: Shown::Nothing,
            scratch: RowBuf::new(),
            looked_at: 0,
        }
    }

    fn next_partition(&mut self) -> bool {
        let found = match &mut self.source {
            Source::One(partition) => partition.take(),
            Source::Slot(slot) => slot.first_behind(&self.behind),
            Source::Sealed(memtable) => {
                memtable.first_behind(&self.behind).map(|(key, found)| (key.clone(), found.clone()))
            }
        };
        let wanted = |key: &PartitionKey| !self.until.as_ref().is_some_and(|u| u.is_before(key));
        let Some((key, partition)) = found.filter(|(key, _)| wanted(key)) else {
            self.source = Source::One(None);
            self.shown = Shown::Nothing;
            return false;
        };
        if !matches!(self.source, Source::One(_)) {
            self.behind = RingBound::AfterKey(key.clone());
        }
        self.key = key;
        self.partition = partition;
        self.slices_left = 0..self.slices.slices.len();
        (self.rows, self.ranges) = Default::default();
        self.markers.clear();
        self.open = DeletionTime::LIVE;
        self.statics_done = false;
        self.shown = Shown::Start;
        true
    }

    /// Looks at slices and ranges until it is clear what comes next.
    async fn look_ahead(&mut self) {
        loop {
            let has_rows = self.rows.0 < self.rows.1;
            if self.markers.len() > 1 || !(self.cut_range() || !has_rows && self.enter_slice()) {
                return;
            }
            self.count().await;
        }
    }

    /// Counts what was looked at and is not shown, and yields after enough.
    async fn count(&mut self) {
        self.looked_at += 1;
        if self.looked_at.is_multiple_of(STEPS) {
            yield_now().await;
        }
    }

    /// Moves to the next slice; false after the last one.
    fn enter_slice(&mut self) -> bool {
        let left = &mut self.slices_left;
        let next = if self.slices.reversed { left.next_back() } else { left.next() };
        let Some(slice) = next.and_then(|next| self.slices.slices.get(next)) else { return false };
        self.slice = next.unwrap_or_default();
        let clusterings = &self.layout.clusterings;
        let Partition { rows, ranges, .. } = &self.partition;
        let (start, end) = (slice.start.as_ref(), slice.end.as_ref());
        let seek = |bound: &PositionBuf| rows.seek(clusterings, bound.position());
        self.rows = (start.map_or(rows.first(), seek), end.map_or_else(|| rows.end(), seek));
        let met = ranges.as_ref().map(|ranges| ranges.within(clusterings, start, end));
        self.ranges = met.unwrap_or_default();
        true
    }

    /// Makes markers of the next range tombstone within the slice; false after the last one.
    fn cut_range(&mut self) -> bool {
        let reversed = self.slices.reversed;
        let (Some(ranges), (from, to)) = (&self.partition.ranges, &mut self.ranges) else {
            return false;
        };
        if from >= to {
            return false;
        }
        let at = if reversed { ranges.before(*to) } else { *from };
        match reversed {
            true => *to = at,
            false => *from = ranges.after(at),
        }
        let (Some(range), Some(slice)) = (ranges.get(at), self.slices.slices.get(self.slice))
        else {
            return false;
        };
        if !range.time.supersedes(&self.partition.deletion) {
            return true;
        }
        let clusterings = &self.layout.clusterings;
        let before = |a: &PositionBuf, b: &PositionBuf| {
            clusterings.compare(a.position(), b.position()).is_lt()
        };
        let start = match &slice.start {
            Some(start) if before(&range.start, start) => start,
            _ => &range.start,
        };
        let end = match &slice.end {
            Some(end) if before(end, &range.end) => end,
            _ => &range.end,
        };
        let (near, far) = if reversed { (end, start) } else { (start, end) };
        match self.markers.back_mut() {
            Some(last) if clusterings.compare(last.at.position(), near.position()).is_eq() => {
                last.at.kind = last.at.kind.as_boundary();
                last.open = Some(range.time);
            }
            _ => {
                let at = near.clone();
                self.markers.push_back(CutMarker { at, close: None, open: Some(range.time) });
            }
        }
        let at = far.clone();
        self.markers.push_back(CutMarker { at, close: Some(range.time), open: None });
        true
    }

    fn active(&self) -> DeletionTime {
        if self.open.is_live() { self.partition.deletion } else { self.open }
    }

    /// The rest of a row under `active`; false if nothing remains.
    fn shadow(
        &mut self,
        which: Statics,
        row: &RowBuf,
        active: DeletionTime,
    ) -> Result<bool, MergeError> {
        self.merger.merge(which, std::iter::once(row.row()), active, &mut self.scratch)
    }

    fn static_row(&mut self) -> Result<bool, MergeError> {
        self.statics_done = true;
        let row = self.partition.static_row.clone().filter(|_| self.slices.statics);
        let Some(row) = row else { return Ok(false) };
        if self.partition.deletion.is_live() {
            self.shown = Shown::Static(row);
            return Ok(true);
        }
        self.shown = Shown::MergedStatic;
        self.shadow(Statics::Static, &row, self.partition.deletion)
    }

    /// The next row and its index.
    fn next_row(&self) -> Option<(At, &Arc<RowBuf>)> {
        let (from, to) = self.rows;
        if from >= to {
            return None;
        }
        let rows = &self.partition.rows;
        let at = if self.slices.reversed { rows.before(to) } else { from };
        Some((at, rows.get(at)?))
    }

    fn pass_row(&mut self, at: At) {
        match self.slices.reversed {
            true => self.rows.1 = at,
            false => self.rows.0 = self.partition.rows.after(at),
        }
    }

    fn marker_comes_first(&self, row: &RowBuf) -> bool {
        let Some(marker) = self.markers.front() else { return false };
        let clusterings = &self.layout.clusterings;
        let position = row.row().position(clusterings.len());
        let order = clusterings.compare(marker.at.position(), position);
        if self.slices.reversed { order.is_gt() } else { order.is_lt() }
    }

    async fn unfiltered(&mut self) -> Result<(), MergeError> {
        loop {
            self.look_ahead().await;
            let row = self.next_row().filter(|(_, row)| !self.marker_comes_first(row));
            let Some((at, row)) = row.map(|(at, row)| (at, row.clone())) else {
                self.shown = match self.markers.pop_front() {
                    Some(marker) => {
                        self.open = marker.open.unwrap_or(DeletionTime::LIVE);
                        Shown::Marker(marker)
                    }
                    None => Shown::End,
                };
                return Ok(());
            };
            self.pass_row(at);
            let active = self.active();
            if active.is_live() {
                if !row.row().is_empty() {
                    self.shown = Shown::Row(row);
                    return Ok(());
                }
            } else if self.shadow(Statics::Regular, &row, active)? {
                self.shown = Shown::MergedRow;
                return Ok(());
            }
            self.count().await;
        }
    }

    async fn step(&mut self) -> Result<bool, MergeError> {
        if matches!(self.shown, Shown::Nothing | Shown::End) {
            return Ok(self.next_partition());
        }
        if !self.statics_done && self.static_row()? {
            return Ok(true);
        }
        self.unfiltered().await?;
        Ok(true)
    }
}

impl FragmentStream for MemtableStream {
    type Error = MergeError;

    async fn advance(&mut self) -> Result<bool, MergeError> {
        let stepped = self.step().await;
        if stepped.is_err() {
            self.source = Source::One(None);
            self.shown = Shown::Nothing;
        }
        stepped
    }

    fn fragment(&self) -> Fragment<'_> {
        match &self.shown {
            Shown::Nothing | Shown::End => Fragment::End,
            Shown::Start => Fragment::Start(PartitionStart {
                key: &self.key,
                deletion: self.partition.deletion,
            }),
            Shown::Static(row) => Fragment::Static(row.row()),
            Shown::Row(row) => Fragment::Row(row.row()),
            Shown::MergedStatic => Fragment::Static(self.scratch.row()),
            Shown::MergedRow => Fragment::Row(self.scratch.row()),
            Shown::Marker(marker) => {
                let kind: BoundKind = marker.at.kind;
                let kind = if self.slices.reversed { kind.reversed() } else { kind };
                let PositionBuf { count, serialized, .. } = &marker.at;
                Fragment::Marker(Marker {
                    position: Position { kind, count: *count, serialized },
                    close: marker.close,
                    open: marker.open,
                })
            }
        }
    }
}
