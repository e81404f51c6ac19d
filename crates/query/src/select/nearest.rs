//! `ORDER BY … ANN OF`: the rows whose vectors are nearest to one.
//!
//! ```text
//!  memtables of all shards, SSTables ─► candidates, nearest first ─► their rows are read, and scored again ─► the best of them
//! ```
//! 1. A candidate can be of an old value, or of a row that is deleted or that the WHERE clause refuses. So rows are read until there are
//!    enough that are nearer than all candidates that are left, and more candidates are asked for where these do not suffice.
//! 2. Where the WHERE clause names a partition, or indexes find few rows for it, these rows are read, without a graph. That is exact.
//! 3. There are no pages: the result is one, of at most 1,000 rows.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::select::{BoundSelect, NO_LIMIT};
use halcyon_engine::{Error as EngineError, Neighbours, Shard};
use halcyon_model::request::Consistency;
use halcyon_scan::Scan;
use halcyon_schema::index::NearestSearch;
use halcyon_stream::{PrimaryKey, PrimaryKeyRange};

use super::indexed;
use super::parts::index_not_available;
use crate::shards::on_shard;
use crate::{Error, Result};

/// The most rows of a result.
const MOST: u32 = 1000;

/// Rows that indexes find for the WHERE clause and that are all read: to look for them among the nearest is not faster.
const FEW: usize = 1024;

/// Rows that are read at once, at least: of the first candidates as many as are wanted are read, and nearly always they suffice.
const AT_ONCE: usize = 4;

/// By how much scores of candidates and of rows differ, because an index rounds vectors.
const ROUNDING: f32 = 1e-5;

/// The level and the page size with which the statement is executed, and the warnings for the client.
pub(super) fn check(
    select: &BoundSelect,
    level: Consistency,
    page_size: Option<i32>,
) -> Result<(Consistency, Vec<String>)> {
    let refused = |what: String| Err(Error::Invalid(what));
    let limit = select.limits.rows;
    let mut warnings = Vec::new();
    if select.plan.is_aggregate() {
        return refused("Top-K queries can not be run with aggregation".to_owned());
    }
    if level.is_serial() {
        return refused(format!(
            "Top-K queries can only be run with consistency level ONE/LOCAL_ONE. Consistency level {level} was used."
        ));
    }
    let level = match level {
        Consistency::One | Consistency::LocalOne => level,
        higher => {
            let lower = match higher {
                Consistency::LocalQuorum => Consistency::LocalOne,
                _ => Consistency::One,
            };
            warnings.push(format!(
                "Top-K queries can only be run with consistency level ONE / LOCAL_ONE / NODE_LOCAL. Consistency level {higher} was \
                 requested. Downgrading the consistency level to {lower}."
            ));
            lower
        }
    };
    let is_partition_limited = select.limits.per_partition != NO_LIMIT;
    if limit == NO_LIMIT && !is_partition_limited {
        return refused(
            "Top-K queries must have a limit specified and the limit must be less than the query page size".to_owned(),
        );
    }
    if is_partition_limited {
        return refused("Top-K queries do not support per-partition limits".to_owned());
    }
    let page_size = page_size.and_then(|size| u32::try_from(size).ok()).filter(|size| *size > 0);
    if let Some(size) = page_size.filter(|size| *size < limit) {
        warnings.push(format!(
            "Top-K queries do not support paging and the page size is set to {size}, which is less than LIMIT {limit}. The page size \
             has been set to {limit} to match the LIMIT."
        ));
    }
    if limit > MOST {
        return refused(format!(
            "Use of ANN OF in an ORDER BY clause requires a LIMIT that is not greater than {MOST}. LIMIT was {limit}"
        ));
    }
    Ok((level, warnings))
}

/// Reads rows of the whole table, or of a range of tokens.
pub(super) async fn read(
    shard: &Rc<Shard>,
    mut scan: Box<Scan>,
    search: NearestSearch,
) -> Result<Box<Scan>> {
    let ranges = indexed::page_ranges(&mut scan, None)?;
    if !scan.select.index.is_empty()
        && let Some(places) = few(shard, &scan, &ranges).await?
    {
        return read_places(shard, scan, places).await;
    }
    let wanted = scan.select.limits.rows as usize;
    let mut count = wanted;
    let mut known: BTreeSet<PrimaryKey> = BTreeSet::new();
    loop {
        let mut found = candidates(shard, &scan, &search, count).await?;
        found.near.retain(|near| ranges.iter().any(|range| range.contains(&near.place)));
        found.near.sort_unstable_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| a.place.cmp(&b.place))
        });
        // Of several candidates of a row the best comes first, and the row has one place in the result.
        let mut ahead = found.near.into_iter().peekable();
        while let Some(next) = ahead.peek()
            && lead(&scan, next.score).is_none_or(|lead| lead <= 1.0)
        {
            scan.breathe().await?;
            let room = wanted.saturating_sub(scan.page.nearest().0).max(AT_ONCE);
            let places = ahead.by_ref().map(|near| near.place);
            let run: Vec<PrimaryKey> =
                places.filter(|place| known.insert(place.clone())).take(room).collect();
            scan = read_places(shard, scan, run).await?;
        }
        match found.others {
            Some(others) if lead(&scan, others).is_none_or(|lead| lead < -1.0) => {
                count = count.saturating_mul(4);
            }
            _ => return Ok(scan),
        }
    }
}

/// How much better than a score the worst of the rows that were found is, beyond what rounding does; `None`: more rows are wanted.
fn lead(scan: &Scan, score: f32) -> Option<f32> {
    let rounding = ROUNDING * score.abs().max(1.0);
    scan.page.nearest().1.map(|floor| (floor - score) / rounding)
}

/// The nearest of all memtables and SSTables.
async fn candidates(
    shard: &Rc<Shard>,
    scan: &Scan,
    search: &NearestSearch,
    count: usize,
) -> Result<Neighbours> {
    let table = &scan.select.plan.table;
    let mut found = Neighbours::default();
    let asked = Arc::new((table.clone(), search.clone()));
    let of_shard = move |shard: Rc<Shard>| {
        let asked = asked.clone();
        async move { shard.nearest_in_memtables(&asked.0, &asked.1, count).await }
    };
    for near in shard.tables().mesh().on_each(of_shard).await {
        let near = near.map_err(|gone| Error::Server(gone.to_string()))?;
        found.add(near.map_err(|error| available(scan, error))?);
    }
    let near = shard.nearest_in_sstables(table, search, count).await;
    found.add(near.map_err(|error| available(scan, error))?);
    Ok(found)
}

fn available(scan: &Scan, error: EngineError) -> Error {
    match error {
        EngineError::IndexNotAvailable(_) => index_not_available(scan),
        other => other.into(),
    }
}

/// All rows that can satisfy the WHERE clause, if indexes find few.
async fn few(
    shard: &Rc<Shard>,
    scan: &Scan,
    ranges: &[PrimaryKeyRange],
) -> Result<Option<Vec<PrimaryKey>>> {
    let tables = shard.tables();
    let mut places = Vec::new();
    for range in ranges {
        let last = range.end.as_ref().map_or(i64::MAX, |end| end.token);
        for index in tables.owner(range.start.token)..=tables.owner(last) {
            let (table, range) = (scan.select.plan.table.clone(), range.clone());
            let searches = scan.select.index.clone();
            let job = async move |shard: Rc<Shard>| {
                Ok(shard.candidates(&table, &searches, range, FEW).await)
            };
            let found: Result<_, EngineError> = on_shard(shard, index, job).await?;
            let found = found.map_err(|error| available(scan, error))?;
            places.extend(found.places);
            if found.next.is_some() || places.len() > FEW {
                return Ok(None);
            }
        }
    }
    Ok(Some(places))
}

/// Each on its shard.
async fn read_places(
    shard: &Rc<Shard>,
    mut scan: Box<Scan>,
    places: Vec<PrimaryKey>,
) -> Result<Box<Scan>> {
    let tables = shard.tables();
    let mut by_shard: BTreeMap<usize, Vec<PrimaryKey>> = BTreeMap::new();
    for place in places {
        by_shard.entry(tables.owner(place.token)).or_default().push(place);
    }
    for (index, mut places) in by_shard {
        places.sort_unstable();
        let job = async move |shard: Rc<Shard>| {
            indexed::read_places(&shard, &mut scan, None, places).await?;
            Ok(scan)
        };
        scan = on_shard(shard, index, job).await?;
    }
    Ok(scan)
}
