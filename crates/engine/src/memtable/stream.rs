//! Reads partitions of a memtable as a `FragmentStream`, restricted to slices, in either direction.
//!
//! 1. Each partition is cloned when the stream reaches it.
//! 2. The rows of each slice are a run of the clone's rows; range tombstones are cut at the slices' bounds and become markers.
//! 3. Rows and markers are merged by position. Cells that the partition's own deletions shadow are left out: the merge requires that of
//!    every source.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_model::{BoundKind, Clusterings, DeletionTime};
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Marker, MergeError, PartitionKey, PartitionStart, RowBuf,
    RowMerger, Slice, Slices, Statics,
};

use super::rows::RowAt;
use super::{Memtable, Partition, RingBound, Slot};

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
    /// Runs of rows to emit, in the direction of the read.
    stretches: VecDeque<(RowAt, RowAt)>,
    markers: VecDeque<CutMarker>,
    open: DeletionTime,
    statics_done: bool,
    shown: Shown,
    scratch: RowBuf,
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
            stretches: VecDeque::new(),
            markers: VecDeque::new(),
            open: DeletionTime::LIVE,
            statics_done: false,
            shown: Shown::Nothing,
            scratch: RowBuf::new(),
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
        self.cut();
        self.open = DeletionTime::LIVE;
        self.statics_done = false;
        self.shown = Shown::Start;
        true
    }

    /// Restricts the partition to the slices.
    fn cut(&mut self) {
        let clusterings = &self.layout.clusterings;
        let rows = &self.partition.rows;
        self.stretches.clear();
        self.markers.clear();
        for slice in &self.slices.slices {
            let from = match &slice.start {
                Some(bound) => rows.seek(clusterings, bound.position()),
                None => rows.first(),
            };
            let to = match &slice.end {
                Some(bound) => rows.seek(clusterings, bound.position()),
                None => rows.end(),
            };
            if from < to {
                self.stretches.push_back((from, to));
            }
            cut_ranges(clusterings, &self.partition, slice, &mut self.markers);
        }
        if self.slices.reversed {
            self.stretches.make_contiguous().reverse();
            self.markers.make_contiguous().reverse();
            for marker in &mut self.markers {
                std::mem::swap(&mut marker.close, &mut marker.open);
            }
        }
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
    fn next_row(&self) -> Option<(RowAt, &Arc<RowBuf>)> {
        let (from, to) = *self.stretches.front()?;
        let rows = &self.partition.rows;
        let at = if self.slices.reversed { rows.before(to) } else { from };
        Some((at, rows.get(at)?))
    }

    fn pass_row(&mut self, at: RowAt) {
        let after = self.partition.rows.after(at);
        let Some((from, to)) = self.stretches.front_mut() else { return };
        if self.slices.reversed {
            *to = at;
        } else {
            *from = after;
        }
        if *from >= *to {
            self.stretches.pop_front();
        }
    }

    fn marker_comes_first(&self, row: &RowBuf) -> bool {
        let Some(marker) = self.markers.front() else { return false };
        let clusterings = &self.layout.clusterings;
        let position = row.row().position(clusterings.len());
        let order = clusterings.compare(marker.at.position(), position);
        if self.slices.reversed { order.is_gt() } else { order.is_lt() }
    }

    fn unfiltered(&mut self) -> Result<(), MergeError> {
        loop {
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
                if row.row().is_empty() {
                    continue;
                }
                self.shown = Shown::Row(row);
                return Ok(());
            }
            if self.shadow(Statics::Regular, &row, active)? {
                self.shown = Shown::MergedRow;
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Result<bool, MergeError> {
        if matches!(self.shown, Shown::Nothing | Shown::End) {
            return Ok(self.next_partition());
        }
        if !self.statics_done && self.static_row()? {
            return Ok(true);
        }
        self.unfiltered()?;
        Ok(true)
    }
}

/// The partition's range tombstones within a slice, as markers in forward order.
fn cut_ranges(
    clusterings: &Clusterings,
    partition: &Partition,
    slice: &Slice,
    markers: &mut VecDeque<CutMarker>,
) {
    let ranges = partition.ranges();
    let before =
        |a: &PositionBuf, b: &PositionBuf| clusterings.compare(a.position(), b.position()).is_lt();
    let first = match &slice.start {
        Some(start) => ranges.partition_point(|range| !before(start, &range.end)),
        None => 0,
    };
    for range in ranges.get(first..).unwrap_or_default() {
        if slice.end.as_ref().is_some_and(|end| !before(&range.start, end)) {
            break;
        }
        if !range.time.supersedes(&partition.deletion) {
            continue;
        }
        let start = match &slice.start {
            Some(start) if before(&range.start, start) => start,
            _ => &range.start,
        };
        let end = match &slice.end {
            Some(end) if before(end, &range.end) => end,
            _ => &range.end,
        };
        match markers.back_mut() {
            Some(last) if !before(&last.at, start) => {
                last.at.kind = last.at.kind.as_boundary();
                last.open = Some(range.time);
            }
            _ => markers.push_back(CutMarker {
                at: start.clone(),
                close: None,
                open: Some(range.time),
            }),
        }
        markers.push_back(CutMarker { at: end.clone(), close: Some(range.time), open: None });
    }
}

impl FragmentStream for MemtableStream {
    type Error = MergeError;

    async fn advance(&mut self) -> Result<bool, MergeError> {
        let stepped = self.step();
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
