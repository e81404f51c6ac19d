//! Reads the live rows that a modification depends on, and the tombstones and deletions of counters.

use std::sync::Arc;

use halcyon_cql::plan::modify::{CurrentCounter, CurrentPartition, CurrentRow};
use halcyon_engine::{Measure, Read, ReadTarget, Shard};
use halcyon_io::clock;
use halcyon_model::clustering::PositionBuf;
use halcyon_model::schema::ColumnKind;
use halcyon_model::{BoundKind, DeletionTime, NO_TIMESTAMP};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_stream::{
    Fragment, FragmentStream, Marker, PartitionKey, RangeTombstone, Row, Slice, Slices,
};

use crate::{Error, Result};

/// The rows and columns to read.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Serialized clusterings; `None` is the first row that lives.
    pub rows: Option<Vec<Vec<u8>>>,
    /// The columns to read; other columns are ignored.
    pub columns: Vec<ColumnRef>,
}

impl Wanted {
    fn slices(&self, table: &Table) -> Slices {
        let Some(rows) = &self.rows else { return Slices::all() };
        let count = table.schema.clustering.len();
        if count == 0 {
            return Slices::all();
        }
        let bound = |kind, row: &Vec<u8>| PositionBuf { kind, count, serialized: row.clone() };
        let mut slices: Vec<Slice> = rows
            .iter()
            .map(|row| Slice {
                start: Some(bound(BoundKind::InclStart, row)),
                end: Some(bound(BoundKind::InclEnd, row)),
            })
            .collect();
        let clusterings = &table.layout.clusterings;
        slices.sort_by(|a, b| match (&a.start, &b.start) {
            (Some(a), Some(b)) => clusterings.compare(a.position(), b.position()),
            _ => std::cmp::Ordering::Equal,
        });
        let is_same = |a: &Option<PositionBuf>, b: &Option<PositionBuf>| match (a, b) {
            (Some(a), Some(b)) => clusterings.compare(a.position(), b.position()).is_eq(),
            _ => false,
        };
        slices.dedup_by(|a, b| is_same(&a.start, &b.start));
        Slices { slices: slices.into(), reversed: false, statics: true }
    }

    fn wants(&self, kind: ColumnKind, index: u16) -> bool {
        self.columns.contains(&ColumnRef { kind, index })
    }
}

/// The stored rows.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub partition: CurrentPartition,
    /// The newest timestamp (µs) of all that was read, live or dead: of cells of all columns, liveness and deletions.
    pub newest: i64,
}

pub(super) async fn read(
    shard: &Shard,
    table: &Arc<Table>,
    key: &PartitionKey,
    wanted: &Wanted,
    now: u32,
) -> Result<Stored> {
    let read = Read {
        table: table.clone(),
        target: ReadTarget::Partition(key.clone()),
        slices: wanted.slices(table),
    };
    let began = clock::now();
    let mut stream = shard.read(read).await.map_err(Error::from)?;
    let mut partition = CurrentPartition::default();
    let mut range_deletion = DeletionTime::LIVE;
    let mut newest = NO_TIMESTAMP;
    let mut deletions = Deletions::of(table);
    while stream.advance().await.map_err(Error::from)? {
        match stream.fragment() {
            Fragment::Start(start) => {
                newest = newest.max(start.deletion.marked_for_delete_at);
                partition.deletion = start.deletion;
            }
            Fragment::Static(row) => {
                newest = newest.max(newest_of(&row));
                let live =
                    live_row(&row, (table, ColumnKind::Static), partition.deletion, wanted, now);
                partition.static_row = live;
            }
            Fragment::Row(row) => {
                newest = newest.max(newest_of(&row));
                deletions.row(&row);
                let deletion = partition.deletion.max(range_deletion);
                let live = live_row(&row, (table, ColumnKind::Regular), deletion, wanted, now);
                live.into_iter().for_each(|row| partition.push(row));
                if wanted.rows.is_none() && !partition.rows().is_empty() {
                    break;
                }
            }
            Fragment::Marker(marker) => {
                range_deletion = marker.open.unwrap_or(DeletionTime::LIVE);
                newest = newest.max(range_deletion.marked_for_delete_at);
                deletions.marker(&marker);
            }
            Fragment::End => {}
        }
    }
    let rows = partition.rows().len() as u64;
    shard.observe_read(table.id, Measure::LocalRead, (began, clock::now()), (rows, 0));
    if shard.is_profiled()
        && let Some(samples) = shard.read_samples(table.id)
    {
        samples.partition(&key.bytes, rows, 0);
    }
    partition.range_tombstones = deletions.found;
    Ok(Stored { partition, newest })
}

/// The deletions of ranges and rows of counters that a read meets.
struct Deletions {
    /// Clustering columns; `None`: the table has no counters.
    count: Option<usize>,
    open: Option<(PositionBuf, DeletionTime)>,
    found: Vec<RangeTombstone>,
}

impl Deletions {
    fn of(table: &Table) -> Deletions {
        let count = table.is_counter().then(|| table.layout.clusterings.len());
        Deletions { count, open: None, found: Vec::new() }
    }

    fn marker(&mut self, marker: &Marker<'_>) {
        if self.count.is_none() {
            return;
        }
        if let Some((start, time)) = self.open.take() {
            self.found.push(RangeTombstone { start, end: marker.position.into(), time });
        }
        self.open = marker.open.map(|time| (marker.position.into(), time));
    }

    fn row(&mut self, row: &Row<'_>) {
        let time = row.deletion.time;
        if let Some(count) = self.count.filter(|_| !time.is_live()) {
            let bound = |kind| PositionBuf { kind, count, serialized: row.clustering.to_vec() };
            let (start, end) = (bound(BoundKind::InclStart), bound(BoundKind::InclEnd));
            self.found.push(RangeTombstone { start, end, time });
        }
    }
}

fn newest_of(row: &Row<'_>) -> i64 {
    let deletions = row.complex_deletions.iter().map(|deletion| deletion.time);
    let deletions = deletions.chain([row.deletion.time]).map(|time| time.marked_for_delete_at);
    let cells = row.cells.iter().map(|cell| cell.timestamp);
    cells.chain(deletions).fold(row.liveness.timestamp, i64::max)
}

/// `None` if nothing of it lives.
fn live_row(
    row: &Row<'_>,
    (table, kind): (&Table, ColumnKind),
    outer: DeletionTime,
    wanted: &Wanted,
    now: u32,
) -> Option<CurrentRow> {
    let deletion = outer.max(row.deletion.time);
    let liveness = row.liveness;
    let alive = !liveness.is_empty()
        && !deletion.deletes(liveness.timestamp)
        && (!liveness.is_expiring() || now < liveness.local_expiration_time);
    let counts = table.is_counter();
    let mut current = CurrentRow::new(row.clustering);
    for cell in row.cells {
        let complex = row.complex_deletions.iter().find(|d| d.column == cell.column);
        let deletion = complex.map_or(deletion, |complex| deletion.max(complex.time));
        if !wanted.wants(kind, cell.column) || deletion.deletes(cell.timestamp) {
            continue;
        }
        if counts {
            let (timestamp, is_tombstone) = (cell.timestamp, cell.is_tombstone());
            current.push_counter(CurrentCounter { column: cell.column, timestamp, is_tombstone });
        }
        if cell.is_live(now) {
            current.push(cell.column, cell.path.of(row.bytes), cell.value.of(row.bytes));
        }
    }
    let exists = current.has_cells() || (alive && kind == ColumnKind::Regular);
    exists.then_some(current)
}
