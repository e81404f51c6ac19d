//! What a conditional write proposes: its statements as one update (`CQL3CasRequest.makeUpdates`).
//!
//! 1. Each statement has made its mutation at the timestamp of the conditional write, whatever its own. The rows that several of them
//!    change are merged: a deletion of a row, a collection or a cell wins over what another statement writes there, whatever
//!    their order. Deletions of ranges and partitions stay beside the rows.
//! 2. Then all deletions become one microsecond older than what is written (`PartitionUpdate.updateAllTimestamp`). So a range or a
//!    partition does not delete the rows of the same update, nor an overwritten collection its elements.

use halcyon_io::compute;
use halcyon_model::DeletionTime;
use halcyon_model::clustering::Clusterings;
use halcyon_stream::{Mutation, RowBuf, RowMerger, Statics};

use crate::Result;

/// From this number of mutations on, a thread for computations merges them.
const MANY: usize = 100;
/// Rows that are merged at once: a merge of n rows looks at all of them for each cell.
const WAYS: usize = 8;

/// One mutation; several if the table's layout changed between the statements' preparations. None is empty.
pub(super) async fn of(made: Vec<Mutation>, timestamp: i64) -> Result<Vec<Mutation>> {
    if made.len() < MANY {
        return Ok(propose(made, timestamp)?);
    }
    let proposed = compute(move || propose(made, timestamp)).await;
    Ok(proposed.map_err(halcyon_engine::Error::from)??)
}

type Merged<T> = std::result::Result<T, halcyon_engine::Error>;

fn propose(made: Vec<Mutation>, timestamp: i64) -> Merged<Vec<Mutation>> {
    let mut joined: Vec<(Mutation, Vec<RowBuf>)> = Vec::new();
    for mut mutation in made {
        let statics = mutation.static_row.take();
        let found = joined.iter_mut().find(|(other, _)| other.layout == mutation.layout);
        let Some((other, others)) = found else {
            joined.push((mutation, statics.into_iter().collect()));
            continue;
        };
        other.deletion = other.deletion.max(mutation.deletion);
        other.rows.extend(mutation.rows);
        other.range_tombstones.extend(mutation.range_tombstones);
        others.extend(statics);
    }
    let mut proposed = Vec::with_capacity(joined.len());
    for (mut mutation, statics) in joined {
        let mut merger = RowMerger::new(mutation.layout.clone());
        mutation.static_row = merge(statics, Statics::Static, &mut merger)?;
        merge_rows(&mut mutation, &mut merger)?;
        make_deletions_older(&mut mutation, timestamp.saturating_sub(1));
        if !mutation.is_empty() {
            proposed.push(mutation);
        }
    }
    Ok(proposed)
}

/// Each clustering once.
fn merge_rows(mutation: &mut Mutation, merger: &mut RowMerger) -> Merged<()> {
    let clusterings = &mutation.layout.clusterings;
    let mut rows = std::mem::take(&mut mutation.rows);
    rows.sort_by(|a, b| compare(clusterings, a, b));
    let mut rows = rows.into_iter().peekable();
    while let Some(first) = rows.next() {
        let mut same = vec![first];
        while let Some(row) = rows.next_if(|row| {
            same.first().is_some_and(|first| compare(clusterings, first, row).is_eq())
        }) {
            same.push(row);
        }
        mutation.rows.extend(merge(same, Statics::Regular, merger)?);
    }
    Ok(())
}

fn compare(clusterings: &Clusterings, a: &RowBuf, b: &RowBuf) -> std::cmp::Ordering {
    let columns = clusterings.len();
    clusterings.compare(a.row().position(columns), b.row().position(columns))
}

/// `None` if nothing remains.
fn merge(mut rows: Vec<RowBuf>, which: Statics, merger: &mut RowMerger) -> Merged<Option<RowBuf>> {
    while rows.len() > 1 {
        let mut fewer = Vec::with_capacity(rows.len().div_ceil(WAYS));
        for some in rows.chunks(WAYS) {
            let mut row = RowBuf::new();
            let versions = some.iter().map(RowBuf::row);
            if merger.merge(which, versions, DeletionTime::LIVE, &mut row)? {
                fewer.push(row);
            }
        }
        rows = fewer;
    }
    Ok(rows.pop())
}

fn make_deletions_older(mutation: &mut Mutation, timestamp: i64) {
    let date = |time: &mut DeletionTime| {
        if !time.is_live() {
            time.marked_for_delete_at = timestamp;
        }
    };
    date(&mut mutation.deletion);
    mutation.range_tombstones.iter_mut().for_each(|range| date(&mut range.time));
    for row in mutation.rows.iter_mut().chain(&mut mutation.static_row) {
        date(&mut row.parts.deletion.time);
        row.parts.complex_deletions.iter_mut().for_each(|deletion| date(&mut deletion.time));
        let tombstones = row.parts.cells.iter_mut().filter(|cell| cell.is_tombstone());
        tombstones.for_each(|cell| cell.timestamp = timestamp);
    }
}
