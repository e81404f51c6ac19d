//! Derives what changes in the views on a table from what changes in one of its partitions (`TableViews.generateViewUpdates`).
//!
//! The rows that a write may change are read, on the shard that owns the partition and under its lock, and merged with the write. What
//! the row was and what it becomes say what changes in each view.
//!
//! What a deletion changes has no bound: a partition may have any number of rows, in any number of views. Where it is more than a record
//! holds, it is applied in pieces, in the order of the rows (`Pieces`):
//!
//! ```text
//!  piece   the deletion from the last piece's end to a row | what it changes in views        one record each
//!  the rest of the views' changes, and the deletion as it was asked for
//! ```

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_engine::{Read, ReadTarget, Shard};
use halcyon_model::clustering::{Position, PositionBuf};
use halcyon_model::{BoundKind, DeletionTime};
use halcyon_scan::pace::Pace;
use halcyon_schema::catalog::Table;
use halcyon_stream::{
    Fragment, FragmentStream, Layout, Mutation, PartitionKey, RangeTombstone, Row, RowBuf,
    RowMerger, Slice, Slices, Statics,
};

use super::plan::ViewPlan;
use super::update::Updates;
use crate::error::StorageFailure;
use crate::shards::apply_whole;
use crate::{Error, Result};

/// The changes that some mutations of one partition make together.
struct Change {
    layout: Arc<Layout>,
    count: usize,
    deletion: DeletionTime,
    ranges: Vec<RangeTombstone>,
    /// In clustering order, each clustering once.
    rows: Vec<RowBuf>,
}

impl Change {
    fn of(base: &Table, mutations: &[Mutation]) -> Result<Change> {
        let layout = base.layout.clone();
        let count = base.schema.clustering.len();
        let mut rows: Vec<RowBuf> = Vec::new();
        let mut all: Vec<&RowBuf> = mutations.iter().flat_map(|mutation| &mutation.rows).collect();
        let order = |a: &RowBuf, b: &RowBuf| {
            layout.clusterings.compare(a.row().position(count), b.row().position(count))
        };
        all.sort_by(|a, b| order(a, b));
        let mut merger = RowMerger::new(layout.clone());
        for same in all.chunk_by(|a, b| order(a, b).is_eq()) {
            let mut row = RowBuf::new();
            let versions = same.iter().map(|row| row.row());
            merger
                .merge(Statics::Regular, versions, DeletionTime::LIVE, &mut row)
                .map_err(corrupt)?;
            rows.push(row);
        }
        let ranges = mutations.iter().flat_map(|mutation| &mutation.range_tombstones).cloned();
        Ok(Change {
            count,
            deletion: mutations
                .iter()
                .map(|m| m.deletion)
                .fold(DeletionTime::LIVE, DeletionTime::max),
            ranges: ranges.collect(),
            rows,
            layout,
        })
    }

    fn compare(&self, a: Position<'_>, b: Position<'_>) -> Ordering {
        self.layout.clusterings.compare(a, b)
    }

    /// The deletion that covers a row from outside.
    fn deletion_of(&self, row: Position<'_>) -> DeletionTime {
        let covers = |range: &&RangeTombstone| {
            self.compare(range.start.position(), row).is_lt()
                && self.compare(row, range.end.position()).is_lt()
        };
        let ranges = self.ranges.iter().filter(covers).map(|range| range.time);
        ranges.fold(self.deletion, DeletionTime::max)
    }

    /// What it deletes from one place to another.
    fn deletions_within(&self, start: &PositionBuf, end: &PositionBuf) -> Vec<RangeTombstone> {
        let whole = RangeTombstone { start: start.clone(), end: end.clone(), time: self.deletion };
        let later = |a: &PositionBuf, b: &PositionBuf| {
            let is_later = self.compare(a.position(), b.position()).is_gt();
            if is_later { a.clone() } else { b.clone() }
        };
        let earlier = |a: &PositionBuf, b: &PositionBuf| {
            let is_earlier = self.compare(a.position(), b.position()).is_lt();
            if is_earlier { a.clone() } else { b.clone() }
        };
        let cut = |range: &RangeTombstone| RangeTombstone {
            start: later(&range.start, start),
            end: earlier(&range.end, end),
            time: range.time,
        };
        let is_some = |range: &RangeTombstone| {
            self.compare(range.start.position(), range.end.position()).is_lt()
        };
        let whole = std::iter::once(whole).filter(|range| !range.time.is_live());
        whole.chain(self.ranges.iter().map(cut).filter(is_some)).collect()
    }

    /// The rows that it may change.
    fn slices(&self) -> Slices {
        if !self.deletion.is_live() || self.count == 0 {
            return Slices { statics: false, ..Slices::all() };
        }
        let bound = |kind, row: &RowBuf| {
            let serialized = row.row().clustering.to_vec();
            Some(PositionBuf { kind, count: self.count, serialized })
        };
        let rows = self.rows.iter().map(|row| Slice {
            start: bound(BoundKind::InclStart, row),
            end: bound(BoundKind::InclEnd, row),
        });
        let ranges = self
            .ranges
            .iter()
            .map(|range| Slice { start: Some(range.start.clone()), end: Some(range.end.clone()) });
        let mut all: Vec<Slice> = rows.chain(ranges).collect();
        all.sort_by(|a, b| self.compare(a.start_position(), b.start_position()));
        let mut slices: Vec<Slice> = Vec::with_capacity(all.len());
        for slice in all {
            match slices.last_mut() {
                Some(last) if self.compare(slice.start_position(), last.end_position()).is_lt() => {
                    if self.compare(last.end_position(), slice.end_position()).is_lt() {
                        last.end = slice.end;
                    }
                }
                _ => slices.push(slice),
            }
        }
        Slices { slices: slices.into(), reversed: false, statics: false }
    }
}

fn corrupt(error: impl ToString) -> Error {
    Error::Storage(StorageFailure::new("cannot read data", error.to_string()))
}

/// Merges versions of rows, one after the other, and keeps the memory.
struct Versions {
    merger: RowMerger,
    existing: RowBuf,
    update: RowBuf,
    before: RowBuf,
    after: RowBuf,
}

impl Versions {
    fn new(layout: Arc<Layout>) -> Versions {
        let row = RowBuf::new;
        Versions {
            merger: RowMerger::new(layout),
            existing: row(),
            update: row(),
            before: row(),
            after: row(),
        }
    }

    /// What a row was, and what it becomes; each version with the deletion that covers it.
    fn tell(
        &mut self,
        existing: Option<Row<'_>>,
        (existing_deletion, update_deletion): (DeletionTime, DeletionTime),
        update: Option<Row<'_>>,
        updates: &mut [Updates],
    ) -> Result<()> {
        let Some(any) = existing.or(update) else { return Ok(()) };
        let prepare = |row: Option<Row<'_>>, deletion: DeletionTime, to: &mut RowBuf| {
            match row {
                Some(row) => to.copy_from(row),
                None => {
                    to.clear();
                    to.parts.clustering = to.store(any.clustering);
                }
            }
            if deletion.supersedes(&to.parts.deletion.time) {
                to.parts.deletion.time = deletion;
                to.parts.deletion.shadowable = false;
            }
        };
        prepare(existing, existing_deletion, &mut self.existing);
        prepare(update, update_deletion, &mut self.update);
        let (old, new) = (self.existing.row(), self.update.row());
        let live = DeletionTime::LIVE;
        let before = std::iter::once(old);
        let was = self.merger.merge(Statics::Regular, before, live, &mut self.before);
        let was = was.map_err(corrupt)?;
        let after = [old, new].into_iter();
        let is = self.merger.merge(Statics::Regular, after, live, &mut self.after);
        if !is.map_err(corrupt)? {
            return Ok(());
        }
        let before = was.then(|| self.before.row());
        updates.iter_mut().try_for_each(|of| of.add(before, self.after.row()))
    }
}

/// Applies a part of a deletion before the rest is derived. A reader may see it, and a kill may leave it, but the views with it.
pub(super) struct Pieces<'s> {
    shard: &'s Rc<Shard>,
    base: Arc<Table>,
    /// Where the next piece begins.
    start: PositionBuf,
    /// Bytes of one.
    most: u64,
}

impl<'s> Pieces<'s> {
    /// `most`: bytes of memory.
    pub(super) fn new(shard: &'s Rc<Shard>, base: Arc<Table>, most: u64) -> Pieces<'s> {
        let record = u64::from(shard.options().commitlog.segment_size) / 2;
        let start = PositionBuf { kind: BoundKind::InclStart, count: 0, serialized: Vec::new() };
        Pieces { shard, base, start, most: (record / 4).min(most / 2) }
    }

    /// The row that a piece ends with, if it has become large.
    fn end(&self, fragment: Fragment<'_>, updates: &[Updates]) -> Option<Vec<u8>> {
        match fragment {
            Fragment::Row(row) if bytes_of(updates) > self.most => Some(row.clustering.to_vec()),
            _ => None,
        }
    }

    /// Up to a row, which is a part of it.
    async fn apply(
        &mut self,
        change: &Change,
        key: &PartitionKey,
        clustering: Vec<u8>,
        updates: &mut [Updates],
    ) -> Result<()> {
        let behind =
            PositionBuf { kind: BoundKind::ExclStart, count: change.count, serialized: clustering };
        let end = PositionBuf { kind: BoundKind::InclEnd, ..behind.clone() };
        let mut mutation = Mutation::new(self.base.id, self.base.layout.clone(), key.clone());
        mutation.range_tombstones = change.deletions_within(&self.start, &end);
        self.start = behind;
        let mut piece = vec![mutation];
        for of in updates {
            let next = of.again();
            piece.extend(std::mem::replace(of, next).finish());
        }
        apply_whole(self.shard, piece).await
    }
}

/// What some mutations of one partition of a table change in its views. `most`: bytes that it may become; of deletions, what is more is
/// applied in `pieces`, where that may be.
pub(super) async fn derive(
    shard: &Shard,
    plans: &[Arc<ViewPlan>],
    key: &PartitionKey,
    mutations: &[Mutation],
    (now, most, mut pieces): (u32, u64, Option<Pieces<'_>>),
) -> Result<Vec<Mutation>> {
    let affected = plans.iter().filter(|plan| plan.rows.has_partition(key));
    let mut updates: Vec<Updates> =
        affected.map(|plan| Updates::new(plan.clone(), key, now)).collect();
    let Some(base) = plans.first().map(|plan| &plan.base) else { return Ok(Vec::new()) };
    let change = Change::of(base, mutations)?;
    let slices = change.slices();
    if updates.is_empty() || slices.slices.is_empty() {
        return Ok(Vec::new());
    }
    let target = ReadTarget::Partition(key.clone());
    let mut stream = shard.read(Read { table: base.clone(), target, slices }).await?;
    let mut versions = Versions::new(base.layout.clone());
    let (mut partition, mut range) = (DeletionTime::LIVE, DeletionTime::LIVE);
    let (mut pace, mut left) = (Pace::default(), change.rows.as_slice());
    while stream.advance().await? {
        let fragment = stream.fragment();
        let existing = partition.max(range);
        // What is written before the row or bound that is there.
        while let Some((next, rest)) = left.split_first() {
            let at = next.row().position(change.count);
            let before = |there| change.compare(at, there).is_lt();
            if !fragment.position(change.count).is_some_and(before) {
                break;
            }
            let deletions = (existing, change.deletion_of(at));
            versions.tell(None, deletions, Some(next.row()), &mut updates)?;
            left = rest;
        }
        match fragment {
            Fragment::Start(start) => partition = start.deletion,
            Fragment::Marker(marker) => range = marker.open.unwrap_or(DeletionTime::LIVE),
            Fragment::Row(row) => {
                let at = row.position(change.count);
                let same =
                    |next: &RowBuf| change.compare(next.row().position(change.count), at).is_eq();
                let update = left.split_first().filter(|(next, _)| same(next));
                let deletions = (existing, change.deletion_of(at));
                if let Some((next, rest)) = update {
                    versions.tell(Some(row), deletions, Some(next.row()), &mut updates)?;
                    left = rest;
                } else if !deletions.1.is_live() {
                    versions.tell(Some(row), deletions, None, &mut updates)?;
                }
            }
            Fragment::Static(_) | Fragment::End => {}
        }
        if let Some(pieces) = &mut pieces
            && let Some(clustering) = pieces.end(fragment, &updates)
        {
            Box::pin(pieces.apply(&change, key, clustering, &mut updates)).await?;
        }
        if pace.step() {
            pace.pause().await;
        }
        check_size(&updates, most)?;
    }
    for next in left {
        let deletions = (partition, change.deletion_of(next.row().position(change.count)));
        versions.tell(None, deletions, Some(next.row()), &mut updates)?;
    }
    check_size(&updates, most)?;
    Ok(updates.into_iter().flat_map(Updates::finish).collect())
}

fn bytes_of(updates: &[Updates]) -> u64 {
    updates.iter().map(Updates::bytes).sum()
}

fn check_size(updates: &[Updates], most: u64) -> Result<()> {
    if bytes_of(updates) <= most {
        return Ok(());
    }
    Err(Error::Overloaded(format!(
        "the write changes more than {most} bytes of materialized views: write fewer rows at once, or raise \
         native_transport_max_request_data_in_flight"
    )))
}

/// What the rows of a partition are in a view, taken as new; `row` is one of them, `deletion` covers it.
pub(super) struct Building {
    versions: Versions,
    pub(super) updates: Updates,
}

impl Building {
    pub(super) fn new(plan: &Arc<ViewPlan>, key: &PartitionKey, now: u32) -> Building {
        let versions = Versions::new(plan.base.layout.clone());
        Building { versions, updates: Updates::new(plan.clone(), key, now) }
    }

    /// What was made so far; the next rows begin from empty.
    pub(super) fn take(&mut self) -> Updates {
        let next = self.updates.again();
        std::mem::replace(&mut self.updates, next)
    }

    pub(super) fn add(&mut self, row: Row<'_>, deletion: DeletionTime) -> Result<()> {
        let deletions = (DeletionTime::LIVE, deletion);
        self.versions.tell(None, deletions, Some(row), std::slice::from_mut(&mut self.updates))
    }
}
