//! Executes SELECT: selects the partitions and ranges to read, their order, their shards, and the start of a page.
//!
//! 1. The statement is bound; a paging state has the row after which to continue.
//! 2. Keys are read in order, each on its owner: a run of keys of one shard is opened at once (`keys.rs`). A range is read shard by shard,
//!    since shard 0 has the lowest tokens.
//! 3. The code of rare statements is boxed separately, because every request copies its future once.
//! 4. The `Scan` moves in its box from shard to shard, with the page so far.

mod indexed;
mod keys;
mod nearest;
mod partition;
mod parts;
mod range;

use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::restrictions::BoundKeys;
use halcyon_cql::plan::select::{BoundSelect, SelectPlan};
use halcyon_cql::plan::{Execution, Work};
use halcyon_engine::{Measure, Shard};
use halcyon_guardrails::Guard;
use halcyon_io::clock::{Instant, now};
use halcyon_model::schema::ColumnKind;
use halcyon_scan::{Held, PagingState, ReadLimits, ReadSizes, Scan, pace};
use halcyon_schema::catalog::Catalog;

use self::parts::{AT_ONCE, invalid_state};
use crate::consistency;
use crate::coordinator::Coordinator;
use crate::error::too_late;
use crate::guard::{self, check_page_size, check_select};
use crate::request::Request;
use crate::shards::on_shard;
use crate::{Error, Outcome, QueryOptions, Result, Rows};

pub(crate) async fn execute_select(
    coordinator: &Coordinator,
    plan: &Arc<SelectPlan>,
    request: &Request<'_>,
    options: &QueryOptions<'_>,
) -> Result<Outcome> {
    let began = now();
    consistency::check_read_level(options.consistency)?;
    check_select(coordinator, plan, options)?;
    let layout = &plan.table.layout;
    let state = match options.paging_state {
        Some(bytes) => Some(PagingState::decode(bytes, layout).ok_or_else(invalid_state)?),
        None => None,
    };
    let limits = coordinator.limits();
    let within = began + plan.timeout.unwrap_or(limits.read_request_timeout.get());
    let select = bound(coordinator, plan, (request, within), options).await?;
    check_page_size(plan, select.limits.rows, options)?;
    let (consistency, warnings) = match &select.nearest {
        Some(_) => nearest::check(&select, options.consistency, options.page_size)?,
        None => (options.consistency, Vec::new()),
    };
    let state = state.filter(|_| select.nearest.is_none() && !reads_at_once(plan, options));
    let _keys = hold_keys(coordinator, &select)?;
    let whole = plan.selection.is_aggregate() && plan.grouping.is_none();
    let page_rows = match options.page_size.and_then(|size| u32::try_from(size).ok()) {
        Some(size) if size > 0 && !whole && select.nearest.is_none() => size,
        _ => u32::MAX,
    };
    let partitions = partitions(&select);
    check_pages(&select, options)?;
    if partitions != Some(0) {
        let together = partitions.map(|count| at_once(count, &select, options));
        let check = |catalog: &Catalog| {
            consistency::check_read(consistency, catalog, &plan.table, together)
        };
        coordinator.shard().tables().with_catalog(check)?;
    }
    let allowed = plan.timeout.unwrap_or(match partitions {
        Some(_) => limits.read_request_timeout.get(),
        None => limits.range_request_timeout.get(),
    });
    let read_limits = read_limits(coordinator, request, began + allowed);
    if let Some(denylist) = coordinator.denylist() {
        Box::pin(denylist.permit_select(&select, state.as_ref())).await?;
    }
    let context = request.scan_context(consistency, read_limits);
    let (here, held) = ((coordinator.shard().index(), began), Held::nothing(coordinator.memory()));
    let mut scan = Box::new(Scan::new(select, context, page_rows, here, held));
    if let Some(state) = &state {
        scan.resume(state.remaining, state.remaining_in_partition);
    }
    let is_short = partitions.is_some_and(|partitions| partitions <= AT_ONCE);
    let turns = if is_short { coordinator.reads() } else { coordinator.scans() };
    let turn = turns.turn().await;
    let read = read(coordinator, scan, state).await;
    drop(turn);
    let mut scan = read.map_err(|error| error.of_read(consistency, &plan.table))?;
    observe(coordinator, &scan, began);
    scan.finish().await?;
    let partial = coordinator.shard().read_warning(plan.table.id);
    let mut rows = rows(scan, plan, page_rows, whole);
    rows.warnings.extend(partial.into_iter().chain(warnings));
    Ok(Outcome::Rows(rows))
}

fn read_limits(coordinator: &Coordinator, request: &Request<'_>, deadline: Instant) -> ReadLimits {
    let limits = coordinator.limits();
    ReadLimits {
        deadline,
        tombstone_warn_threshold: limits.tombstone_warn_threshold,
        tombstone_failure_threshold: limits.tombstone_failure_threshold,
        // Reads of the node itself have no such limits.
        sizes: if request.is_of_client() { limits.read_sizes } else { ReadSizes::OFF },
    }
}

/// The statement with its values, as far as guardrails allow them.
async fn bound(
    coordinator: &Coordinator,
    plan: &Arc<SelectPlan>,
    (request, deadline): (&Request<'_>, Instant),
    options: &QueryOptions<'_>,
) -> Result<BoundSelect> {
    let guard = options.guard.map(Guard::fresh);
    let bind = move |plan: &Arc<SelectPlan>, execution: &Execution<'_>| {
        guard::bound(guard.as_ref(), execution, |execution| plan.bind(execution))
    };
    let within = (deadline, &**coordinator.memory(), request.slow_calls());
    let select = pace::bind(plan, &request.execution(&Work::small()), within, bind).await?;
    guard::heard(options.guard, select.ok_or_else(|| too_late(options.consistency))?)
}

/// As in Cassandra, such a statement begins with the first row, whatever state comes with it.
fn reads_at_once(plan: &SelectPlan, options: &QueryOptions<'_>) -> bool {
    options.page_size.is_none_or(|size| size <= 0) && !aggregates(plan)
}

fn aggregates(plan: &SelectPlan) -> bool {
    plan.selection.is_aggregate() || plan.grouping.is_some()
}

/// How many of the partitions Cassandra reads together: in pages, one after the other, unless the limit allows no second page.
fn at_once(partitions: usize, select: &BoundSelect, options: &QueryOptions<'_>) -> usize {
    let size = options.page_size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    let fits_a_page = !aggregates(&select.plan) && select.limits.rows <= size;
    let is_together = fits_a_page || reads_at_once(&select.plan, options);
    if is_together { partitions } else { partitions.min(1) }
}

/// How many are read; `None`: a range of them.
fn partitions(select: &BoundSelect) -> Option<usize> {
    match &select.keys {
        Some(BoundKeys::Partitions(keys)) => Some(keys.len()),
        Some(BoundKeys::Range(_)) => None,
        None => Some(0),
    }
}

/// Refuses pages of sorted rows of several partitions, unless the statement reads nothing.
fn check_pages(select: &BoundSelect, options: &QueryOptions<'_>) -> Result<()> {
    let plan = &select.plan;
    let is_paged = options.page_size.is_some_and(|size| size > 0);
    if !plan.sort.is_empty() && is_paged && (aggregates(plan) || !is_empty(select)) {
        return Err(Error::Invalid(SORTED_PAGES.into()));
    }
    Ok(())
}

/// Whether the statement reads nothing, not even static rows: without clusterings Cassandra still reads those.
fn is_empty(select: &BoundSelect) -> bool {
    let table = &select.plan.table;
    let kinds = || select.plan.selection.fetch.iter().map(|fetch| fetch.column.kind);
    // Without a column that is selected, all are fetched.
    let fetches_statics = || {
        kinds().any(|kind| kind == ColumnKind::Static)
            || (kinds().all(ColumnKind::is_key) && !table.schema.statics.is_empty())
    };
    match &select.keys {
        Some(BoundKeys::Partitions(keys)) => keys.is_empty(),
        Some(BoundKeys::Range(_)) => false,
        None => !(select.plan.restrictions.names_rows(table) && fetches_statics()),
    }
}

const SORTED_PAGES: &str = "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove \
     the ORDER BY or the IN and sort client side, or disable paging for this query";

/// Bytes that a named key, or row, takes while it is read.
const KEY: u64 = 256;

fn hold_keys(coordinator: &Coordinator, select: &BoundSelect) -> Result<Held> {
    let keys = match &select.keys {
        Some(BoundKeys::Partitions(keys)) => keys.len(),
        _ => 0,
    };
    Ok(Held::of_keys(coordinator.memory(), keys + select.slices.slices.len(), KEY)?)
}

/// How long the statement's rows took, for the metrics of its table.
fn observe(coordinator: &Coordinator, scan: &Scan, began: Instant) {
    let measure = match &scan.select.keys {
        Some(BoundKeys::Partitions(_)) => Measure::CoordinatorRead,
        Some(BoundKeys::Range(_)) => Measure::CoordinatorScan,
        None => return,
    };
    let shard = coordinator.shard();
    let ended = if scan.clock_read.0 == shard.index() { scan.clock_read.1 } else { now() };
    shard.observe(scan.select.plan.table.id, measure, began, ended);
}

fn rows(mut scan: Box<Scan>, plan: &SelectPlan, page_rows: u32, whole: bool) -> Rows {
    let mut warnings: Vec<String> = plan.warning().map(str::to_owned).into_iter().collect();
    warnings.extend(scan.take_warnings());
    let keys = match &scan.select.keys {
        Some(BoundKeys::Partitions(keys)) => keys.as_slice(),
        _ => &[],
    };
    let page = scan.page;
    // The page ended with its partition: after the last partition there is no further page.
    let partition_done = page.remaining_in_partition == 0
        || plan.table.schema.clustering.is_empty()
        || page.last.as_ref().is_some_and(|last| last.clustering.is_none());
    let in_last_key = match (keys.last(), &page.last) {
        (Some(key), Some(last)) => key.bytes == last.key,
        _ => false,
    };
    let more = page.full
        && page.remaining > 0
        && page_rows != u32::MAX
        && !whole
        && !(in_last_key && partition_done);
    let paging_state = page.last.filter(|_| more).map(|last| {
        // Of a single partition the statement names the key.
        let key = if keys.len() == 1 { Vec::new() } else { last.key };
        let state = PagingState {
            key,
            clustering: last.clustering,
            remaining: page.remaining,
            remaining_in_partition: page.remaining_in_partition,
        };
        state.encode(&plan.table.layout)
    });
    Rows {
        columns: plan.columns.clone(),
        count: page.count,
        content: page.content,
        paging_state,
        held: Some(page.held).filter(|held| held.bytes() > 0),
        warnings,
    }
}

async fn read(
    coordinator: &Coordinator,
    scan: Box<Scan>,
    state: Option<PagingState>,
) -> Result<Box<Scan>> {
    let named = matches!(scan.select.keys, None | Some(BoundKeys::Partitions(_)));
    if let Some(search) = scan.select.nearest.clone().filter(|_| !named) {
        return Box::pin(nearest::read(coordinator.shard(), scan, search)).await;
    }
    if !scan.select.index.is_empty() {
        return Box::pin(read_indexed(coordinator, scan, state)).await;
    }
    match scan.select.keys.clone() {
        None => Ok(scan),
        Some(BoundKeys::Partitions(keys)) => keys::read_keys(coordinator, scan, keys, state).await,
        Some(BoundKeys::Range(bounds)) => {
            Box::pin(range::read_range(coordinator, scan, bounds, state)).await
        }
    }
}

async fn read_indexed(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    state: Option<PagingState>,
) -> Result<Box<Scan>> {
    let tables = coordinator.shard().tables().clone();
    for range in indexed::page_ranges(&mut scan, state.as_ref())? {
        indexed::check_sstables(coordinator, &mut scan, &range)?;
        let last = range.end.as_ref().map_or(i64::MAX, |end| end.token);
        for index in tables.owner(range.start.token)..=tables.owner(last) {
            if scan.page.full {
                return Ok(scan);
            }
            let range = range.clone();
            let job = move |shard: Rc<Shard>| async move {
                indexed::read_shard(&shard, &mut scan, range).await?;
                Ok(scan)
            };
            scan = on_shard(coordinator.shard(), index, job).await?;
        }
    }
    Ok(scan)
}
