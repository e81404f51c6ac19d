//! Reads through indexes.
//!
//! ```text
//!  shard: candidates (places) ─► partitions, with the slices of their rows ─► read, several at once ─► scan: all filters, limits, page
//! ```
//! 1. Candidates come in the order of the table, so pages end and resume as those of a scan do.
//! 2. The rows are read as any rows of named partitions are; the scan asks each of them the whole WHERE clause. So what an index answers
//!    is what ALLOW FILTERING answers.
//! 3. Each shard searches its own part; the parts of the ring are read one after the other.

use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use halcyon_cql::plan::restrictions::BoundKeys;
use halcyon_engine::Error as EngineError;
use halcyon_engine::{Measure, RangeBound, Read, ReadTarget, Shard};
use halcyon_guardrails::{Bounds, Threshold};
use halcyon_model::BoundKind;
use halcyon_model::clustering::PositionBuf;
use halcyon_scan::{PagingState, Scan, TooLarge, command, tokens};
use halcyon_stream::{Layout, PartitionKey, PrimaryKey, PrimaryKeyRange, Primed, Slice, Slices};

use super::parts::{
    AT_ONCE, Measured, behind_row, index_not_available, invalid_state, token_range,
};
use crate::coordinator::Coordinator;
use crate::error::{AbortReason, Failure};
use crate::{Error, Result};

/// Candidates of one search: not many more than a page needs, but enough to be worth it.
const FEWEST: usize = 64;
const MOST: usize = 4096;

/// The rows of one partition that are candidates.
struct Group {
    key: PartitionKey,
    /// `None`: all that the statement selects.
    clusterings: Option<Vec<Arc<[u8]>>>,
}

/// What is searched for a page, in the order of the result.
pub(super) fn page_ranges(
    scan: &mut Scan,
    state: Option<&PagingState>,
) -> Result<Vec<PrimaryKeyRange>> {
    let mut ranges = ranges(scan);
    if let Some(state) = state {
        let (key, begin) = after(scan, state)?;
        let is_behind = |range: &PrimaryKeyRange| match &scan.select.keys {
            Some(BoundKeys::Partitions(_)) => !range.start.is_in(&key),
            _ => false,
        };
        ranges = ranges.into_iter().skip_while(is_behind).collect();
        let first = ranges.first_mut().ok_or_else(invalid_state)?;
        first.start = begin.max(first.start.clone());
        scan.resume_in(key);
    }
    ranges.retain(|range| !range.is_empty());
    Ok(ranges)
}

/// Where the next page begins: the partition of the last row, and the place behind that row.
fn after(scan: &Scan, state: &PagingState) -> Result<(PartitionKey, PrimaryKey)> {
    let key = match &scan.select.keys {
        // Of a single partition the statement names the key.
        Some(BoundKeys::Partitions(keys)) if state.key.is_empty() => {
            keys.first().cloned().ok_or_else(invalid_state)?
        }
        _ => PartitionKey::of(&state.key),
    };
    let clusterings = &scan.select.plan.table.layout.clusterings;
    let place = match &state.clustering {
        Some(clustering) if state.remaining_in_partition > 0 && !clusterings.is_empty() => {
            let shared = key.bytes.as_slice().into();
            PrimaryKey::row(key.token, shared, clustering, clusterings).next()
        }
        _ => PrimaryKey::after_partition(&key),
    };
    Ok((key, place))
}

/// The parts of the table that are searched, in its order.
fn ranges(scan: &Scan) -> Vec<PrimaryKeyRange> {
    match &scan.select.keys {
        None => Vec::new(),
        Some(BoundKeys::Partitions(keys)) => keys.iter().map(PrimaryKeyRange::partition).collect(),
        Some(BoundKeys::Range(bounds)) => {
            let range = token_range(bounds);
            let start = match range.start {
                RangeBound::AfterToken(token) => PrimaryKey::after_token(token),
                RangeBound::BeforeToken(token) => Some(PrimaryKey::before_token(token)),
                _ => Some(PrimaryKey::before_token(i64::MIN)),
            };
            let end = match range.end {
                RangeBound::AfterToken(token) => PrimaryKey::after_token(token),
                RangeBound::BeforeToken(token) => Some(PrimaryKey::before_token(token)),
                _ => None,
            };
            start.map(|start| PrimaryKeyRange { start, end }).into_iter().collect()
        }
    }
}

/// Warns of a search in the indexes of many SSTables, or refuses it (`sai_sstable_indexes_per_query`), of every principal.
pub(super) fn check_sstables(
    coordinator: &Coordinator,
    scan: &mut Scan,
    range: &PrimaryKeyRange,
) -> Result<()> {
    let bounds = coordinator.guardrails().of_node(Threshold::SaiSstableIndexesPerQuery);
    if bounds == Bounds::default() {
        return Ok(());
    }
    let (select, shard) = (&scan.select, coordinator.shard());
    let count = shard.sstable_indexes(&select.plan.table, &select.index, range);
    let count = count.map_err(|error| unavailable(error, scan))?;
    let exceeds = |bound: Option<i64>| {
        bound.and_then(|bound| usize::try_from(bound).ok()).is_some_and(|bound| count > bound)
    };
    let key = match &select.keys {
        Some(BoundKeys::Partitions(_)) => &*range.start.key,
        _ => &[],
    };
    if exceeds(bounds.fail) {
        let (command, tokens) = (command(select, key), tokens(select, key));
        let text = format!(
            "1 nodes referenced {count} SSTable indexes for a query without restrictions on partition key and aborted the query {command} (see sai_sstable_indexes_per_query_fail_threshold)"
        );
        let warnings = vec![format!("{text} with {tokens}")];
        let consistency = scan.consistency();
        let what = Box::new(TooLarge { text, warnings, consistency });
        let failure = Failure::Aborted(AbortReason::ReadTooManyIndexes, what);
        return Err(Error::ReadFailure { failure, consistency });
    }
    if exceeds(bounds.warn) {
        let (command, tokens) = (command(select, key), tokens(select, key));
        scan.warn(format!(
            "1 nodes referenced more than allowed number of indexes without restrictions on partition key, maximum on a node being {count} indexes, and issued warnings for query {command} (see sai_sstable_indexes_per_query_warn_threshold) with {tokens}"
        ));
    }
    Ok(())
}

fn unavailable(error: EngineError, scan: &Scan) -> Error {
    match error {
        EngineError::IndexNotAvailable(_) => index_not_available(scan),
        other => other.into(),
    }
}

/// A shard's part of a range.
pub(super) async fn read_shard(
    shard: &Rc<Shard>,
    scan: &mut Scan,
    range: PrimaryKeyRange,
) -> Result<()> {
    let searches = scan.select.index.clone();
    let table = scan.select.plan.table.clone();
    let mut range = range;
    while !scan.page.full {
        scan.breathe().await?;
        let room = usize::try_from(scan.page.remaining).unwrap_or(usize::MAX);
        let limit = room.clamp(FEWEST, MOST);
        let found = shard.candidates(&table, &searches, range.clone(), limit).await;
        let found = found.map_err(|error| unavailable(error, scan))?;
        read_places(shard, scan, Some(&range.start), found.places).await?;
        match found.next {
            Some(next) => range.start = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Of a partition that was begun, what is behind `from` is left.
pub(super) async fn read_places(
    shard: &Rc<Shard>,
    scan: &mut Scan,
    from: Option<&PrimaryKey>,
    places: Vec<PrimaryKey>,
) -> Result<()> {
    let table = scan.select.plan.table.clone();
    let mut groups = groups(places).into_iter().peekable();
    while !scan.page.full && groups.peek().is_some() {
        scan.breathe().await?;
        let room = usize::try_from(scan.page.remaining).unwrap_or(usize::MAX);
        let run: Vec<Group> = groups.by_ref().take(AT_ONCE.min(room)).collect();
        let open = |group: &Group| {
            let slices = match &group.clusterings {
                None => match from.filter(|from| from.is_row() && from.is_in(&group.key)) {
                    Some(from) => behind_row(&table.layout, &scan.select.slices, &from.clustering),
                    None => scan.select.slices.clone(),
                },
                Some(rows) => slices_of(&table.layout, &scan.select.slices, rows),
            };
            let target = ReadTarget::Partition(group.key.clone());
            let read = Read { table: table.clone(), target, slices };
            async move { Primed::fetch(shard.read(read).await?).await }
        };
        let opened = join_all(run.iter().map(open)).await;
        for (group, opened) in run.iter().zip(opened) {
            if scan.page.full {
                return Ok(());
            }
            scan.begin_in(&group.key);
            let measured = Measured::new(shard, scan, Some(&group.key));
            scan.take(&mut opened?).await?;
            measured.end(shard, scan, table.id, Measure::LocalRead);
        }
    }
    Ok(())
}

fn groups(places: Vec<PrimaryKey>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for place in places {
        let is_row = place.is_row();
        match groups.last_mut() {
            Some(group) if place.is_in(&group.key) => match &mut group.clusterings {
                Some(rows) if is_row => rows.push(place.clustering),
                all => *all = None,
            },
            _ => groups.push(Group {
                key: PartitionKey::of(&place.key),
                clusterings: is_row.then(|| vec![place.clustering]),
            }),
        }
    }
    groups
}

/// The rows that the statement selects of these, which are in order.
fn slices_of(layout: &Layout, selected: &Slices, rows: &[Arc<[u8]>]) -> Slices {
    let bound = |kind: BoundKind, row: &[u8]| PositionBuf {
        kind,
        count: layout.clusterings.len(),
        serialized: row.to_vec(),
    };
    let slice = |row: &[u8]| Slice {
        start: Some(bound(BoundKind::InclStart, row)),
        end: Some(bound(BoundKind::InclEnd, row)),
    };
    let mut slices = Vec::with_capacity(rows.len());
    for row in rows.iter().map(|row| slice(row)) {
        slices
            .extend(selected.slices.iter().filter_map(|selected| selected.intersect(&row, layout)));
    }
    Slices { slices: slices.into(), ..*selected }
}
