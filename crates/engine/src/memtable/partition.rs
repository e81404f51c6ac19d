//! One partition of a memtable. A clone shares everything and never changes, so it serves as a consistent copy.

use std::sync::Arc;

use halcyon_model::clustering::Position;
use halcyon_model::{Clusterings, DeletionTime};
use halcyon_stream::{Column, MergeError, Mutation, RangeTombstone, RowBuf, RowMerger, Statics};

use super::ranges::Ranges;
use super::rows::{Rows, size_of_row};

#[derive(Debug, Clone)]
pub(crate) struct Partition {
    pub(super) deletion: DeletionTime,
    pub(super) static_row: Option<Arc<RowBuf>>,
    pub(super) rows: Rows,
    pub(super) ranges: Option<Ranges>,
    /// Cells of the row that has or had most.
    widest: u32,
}

impl Default for Partition {
    fn default() -> Partition {
        Partition {
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Rows::Empty,
            ranges: None,
            widest: 0,
        }
    }
}

impl Partition {
    pub(crate) fn deletion(&self) -> DeletionTime {
        self.deletion
    }

    pub(crate) fn static_row(&self) -> Option<&RowBuf> {
        self.static_row.as_deref()
    }

    /// Disjoint and in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.ranges.iter().flat_map(Ranges::iter)
    }

    /// The range tombstone that covers a row.
    pub(crate) fn covering(
        &self,
        clusterings: &Clusterings,
        row: Position<'_>,
    ) -> Option<&RangeTombstone> {
        self.ranges.as_ref()?.covering(clusterings, row)
    }

    /// All rows, including shadowed ones.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &RowBuf> {
        let mut at = self.rows.first();
        std::iter::from_fn(move || {
            let row = self.rows.get(at)?;
            at = self.rows.after(at);
            Some(&**row)
        })
    }

    /// The partition of a single mutation, and its size in bytes.
    pub(crate) fn of(mutation: Mutation) -> Result<(Partition, usize), MergeError> {
        let layout = mutation.layout.clone();
        let mut partition = Partition::default();
        let mut merger = RowMerger::new(layout.clone());
        let bytes = partition.apply(mutation, &layout.clusterings, &mut merger)?;
        Ok((partition, size_of::<Partition>() + usize::try_from(bytes).unwrap_or(0)))
    }

    /// Adds the writes that make this partition to a mutation.
    pub(super) fn write_to(&self, mutation: &mut Mutation) {
        mutation.deletion = self.deletion;
        mutation.static_row = self.static_row().cloned();
        mutation.rows = self.rows().cloned().collect();
        mutation.range_tombstones = self.ranges().cloned().collect();
    }

    pub(crate) fn row(&self, clusterings: &Clusterings, at: Position<'_>) -> Option<&RowBuf> {
        let row = self.rows.get(self.rows.seek(clusterings, at))?;
        clusterings.compare(row.row().position(clusterings.len()), at).is_eq().then_some(row)
    }

    pub(super) fn has_wide(&self) -> bool {
        self.widest > WIDE
    }

    /// Whether the mutation changes a row with enough cells that this may take a millisecond: the row is built again.
    pub(super) fn is_wide(&self, mutation: &Mutation, clusterings: &Clusterings) -> bool {
        let is_wide = |row: &RowBuf| cells(row) > WIDE;
        let is_changed = |row: &RowBuf| {
            self.row(clusterings, row.row().position(clusterings.len())).is_some_and(is_wide)
        };
        self.has_wide()
            && (mutation.static_row.is_some() && self.static_row().is_some_and(is_wide)
                || mutation.rows.iter().any(is_changed))
    }

    /// Applies a mutation whose columns are numbered as `merger`'s. Returns the growth in bytes.
    pub(crate) fn apply(
        &mut self,
        mutation: Mutation,
        clusterings: &Clusterings,
        merger: &mut RowMerger,
    ) -> Result<isize, MergeError> {
        let mut grown = 0;
        self.deletion = self.deletion.max(mutation.deletion);
        for range in mutation.range_tombstones {
            grown += self.ranges.get_or_insert_default().insert(clusterings, range);
        }
        let counts = |which| mutation.layout.columns(which).iter().any(Column::is_counter);
        if let Some(row) = mutation.static_row {
            grown += self.apply_static(row, counts(Statics::Static), merger)?;
        }
        let counts = counts(Statics::Regular);
        for row in mutation.rows {
            let at = row.row().position(clusterings.len());
            let active = if counts { self.active(clusterings, at) } else { DeletionTime::LIVE };
            let widest = &mut self.widest;
            *widest = (*widest).max(cells(&row));
            grown += self.rows.upsert(clusterings, row, |old, new| {
                let merged = merge(merger, Statics::Regular, [old, new], active)?;
                *widest = (*widest).max(cells(&merged));
                Ok(merged)
            })?;
        }
        Ok(grown)
    }

    /// The deletion of the partition or of a range that covers a row.
    fn active(&self, clusterings: &Clusterings, row: Position<'_>) -> DeletionTime {
        let range = self.covering(clusterings, row);
        range.map_or(self.deletion, |range| range.time.max(self.deletion))
    }

    fn apply_static(
        &mut self,
        row: RowBuf,
        counts: bool,
        merger: &mut RowMerger,
    ) -> Result<isize, MergeError> {
        let active = if counts { self.deletion } else { DeletionTime::LIVE };
        let (merged, was) = match &self.static_row {
            Some(old) => {
                let merged = merge(merger, Statics::Static, [old, &row], active)?;
                (merged, size_of_row(old))
            }
            None => (row, 0),
        };
        let grown = size_of_row(&merged) - was;
        self.widest = self.widest.max(cells(&merged));
        self.static_row = Some(Arc::new(merged));
        Ok(grown)
    }
}

/// Cells of a row.
const WIDE: u32 = 10_000;

fn cells(row: &RowBuf) -> u32 {
    u32::try_from(row.parts.cells.len()).unwrap_or(u32::MAX)
}

/// `active`: the deletion that covers a row of counters. A shard that it shadows is left out, because the merged cell would have the
/// timestamp of the newer one, and survive. Of other cells the newer one wins, shadowed or not.
fn merge(
    merger: &mut RowMerger,
    which: Statics,
    [old, new]: [&RowBuf; 2],
    active: DeletionTime,
) -> Result<RowBuf, MergeError> {
    let mut merged = RowBuf::new();
    merged.bytes.reserve_exact(old.bytes.len().max(new.bytes.len()));
    merged.parts.cells.reserve_exact(old.parts.cells.len().max(new.parts.cells.len()));
    let versions = [old.row(), new.row()].into_iter();
    merger.merge(which, versions, active, &mut merged)?;
    Ok(merged)
}
