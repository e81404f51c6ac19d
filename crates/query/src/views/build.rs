//! Builds views from what their bases have (`ViewBuilder`), in the background.
//!
//! 1. CREATE keeps writes from running while the view becomes known, so that each write keeps it up to date or has ended before.
//! 2. Each shard reads its partitions of the base and writes what the view has of them. Writes continue meanwhile: their changes of the
//!    view carry the timestamps of the base, and win or lose by them.
//! 3. When all shards have done so, `system.built_views` says it. A build that is cut short begins again at the next start, one that
//!    fails after some minutes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{LocalBoxFuture, join_all};
use halcyon_engine::{Event, RangeBound, Read, ReadTarget, Shard, TokenRange};
use halcyon_io::clock::{self, unix_seconds};
use halcyon_io::{JobLost, contained, panic_point, spawn};
use halcyon_model::DeletionTime;
use halcyon_scan::pace::Pace;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_schema::rows::{WriteTime, built_view};
use halcyon_stream::{Fragment, FragmentStream, Mutation, Slices, TableId};

use super::derive::Building;
use super::plan::ViewPlan;
use crate::shards::{apply_by_shard, by_shard, on_shard, sync_logs};
use crate::{Error, Result};

/// Bytes of changes that are written together.
const AT_ONCE: u64 = 256 << 10;

/// How long a build that has failed waits before it begins again.
const PAUSE: Duration = Duration::from_secs(300);

/// Builds a view in the background, unless it is built.
pub(crate) fn build(shard: &Rc<Shard>, view: TableId) {
    let shard = Rc::downgrade(shard);
    spawn(async move {
        while let Some(shard) = shard.upgrade() {
            let built = contained(build_all(&shard, view)).await;
            let gone = || Err(Error::Server(JobLost.to_string()));
            let Err(error) = built.unwrap_or_else(gone) else { return };
            shard.reporter().report(Event::ViewNotBuilt { why: error.to_string() });
            drop(shard);
            clock::sleep(PAUSE).await;
        }
    })
    .detach();
}

/// Builds the views that a stop, a kill or another program left unfinished.
pub fn resume_view_builds(shard: &Rc<Shard>) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        let tables = shard.tables();
        let catalog = tables.catalog();
        if !catalog.tables().any(|table| table.view.is_some()) {
            return Ok(());
        }
        let built = tables.built_views().await?;
        let is_built = |table: &Arc<Table>| {
            built.contains(&(table.schema.keyspace.clone(), table.schema.name.clone()))
        };
        let views = catalog.tables().filter(|table| table.view.is_some());
        for view in views.filter(|table| !is_built(table)) {
            build(shard, view.id);
        }
        Ok(())
    })
}

/// The rows that say that views which come or go are not built.
pub(crate) fn not_built(
    before: &Catalog,
    after: &Catalog,
    host: Option<[u8; 16]>,
    at: WriteTime,
) -> Vec<Mutation> {
    let only = |one: &Catalog, other: &Catalog| -> Vec<Mutation> {
        let views = one.tables().filter(|table| table.view.is_some());
        let is_known = |table: &Arc<Table>| {
            let known = other.table(&table.schema.keyspace, &table.schema.name);
            known.is_some_and(|known| known.id == table.id)
        };
        let views = views.filter(|table| !is_known(table));
        views.flat_map(|view| built_view(&view.schema, host, false, at)).collect()
    };
    let mut rows = only(before, after);
    rows.extend(only(after, before));
    rows
}

async fn build_all(shard: &Rc<Shard>, view: TableId) -> Result<()> {
    panic_point("the build of a view");
    let tables = shard.tables();
    let Some(plan) = plan(&tables.catalog(), view)? else { return Ok(()) };
    let of_shard = |index| {
        let plan = plan.clone();
        let job = move |shard: Rc<Shard>| async move { build_part(&shard, &plan).await };
        on_shard(shard, index, job)
    };
    let parts = join_all((0..tables.shard_count()).map(of_shard)).await;
    let ended = parts.into_iter().collect::<Result<Vec<bool>>>()?;
    let catalog = tables.catalog();
    let known = catalog.table(&plan.view.schema.keyspace, &plan.view.schema.name);
    let is_there = known.is_some_and(|known| known.id == view);
    if is_there && ended.into_iter().all(|ended| ended) {
        // Under `periodic` a power failure could otherwise take what was built, and leave the row that says so.
        sync_logs(shard, 0..tables.shard_count()).await?;
        tables.note_built_view(&plan.view, true).await?;
    }
    Ok(())
}

/// `None`: the view was dropped.
fn plan(catalog: &Catalog, view: TableId) -> Result<Option<Arc<ViewPlan>>> {
    let by_id = |id: TableId| catalog.tables().find(|table| table.id == id);
    let found = by_id(view).and_then(|view| Some((view, by_id(view.view.as_ref()?.base_id)?)));
    found.map(|(view, base)| ViewPlan::new(catalog, base, view).map(Arc::new)).transpose()
}

/// What follows a part of a build.
enum Next {
    More,
    /// The base was truncated: the rows that were read are deleted.
    Anew,
    /// The view was dropped, or the node stops.
    Nothing,
}

/// Whether it came to its end.
async fn build_part(shard: &Rc<Shard>, plan: &Arc<ViewPlan>) -> Result<bool> {
    loop {
        match build_once(shard, plan).await? {
            Next::More => return Ok(true),
            Next::Anew => {}
            Next::Nothing => return Ok(false),
        }
    }
}

async fn build_once(shard: &Rc<Shard>, plan: &Arc<ViewPlan>) -> Result<Next> {
    let truncations = shard.tables().truncations(&plan.base.id);
    let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
    let target = ReadTarget::Range(range);
    let read = Read {
        table: plan.base.clone(),
        target,
        slices: Slices { statics: false, ..Slices::all() },
    };
    let mut stream = shard.read(read).await?;
    let now = u32::try_from(unix_seconds()).unwrap_or(0);
    let mut building: Option<Building> = None;
    let (mut partition, mut range) = (DeletionTime::LIVE, DeletionTime::LIVE);
    let (mut made, mut pace) = (Vec::new(), Pace::default());
    while stream.advance().await? {
        match stream.fragment() {
            Fragment::Start(start) => {
                (partition, range) = (start.deletion, DeletionTime::LIVE);
                let has = plan.rows.has_partition(start.key);
                building = has.then(|| Building::new(plan, start.key, now));
            }
            Fragment::Marker(marker) => range = marker.open.unwrap_or(DeletionTime::LIVE),
            Fragment::Row(row) => {
                if let Some(building) = &mut building {
                    building.add(row, partition.max(range))?;
                }
            }
            Fragment::Static(_) => {}
            Fragment::End => made.extend(building.take()),
        }
        let bytes = made.iter().chain(&building).map(|of: &Building| of.updates.bytes());
        if bytes.sum::<u64>() > AT_ONCE {
            match write_part(shard, plan, truncations, (&mut made, &mut building)).await? {
                Next::More => {}
                end => return Ok(end),
            }
        }
        if pace.step() {
            pace.pause().await;
        }
    }
    write_part(shard, plan, truncations, (&mut made, &mut building)).await
}

/// `truncations`: of the base, when the build began.
async fn write_part(
    shard: &Rc<Shard>,
    plan: &ViewPlan,
    truncations: u64,
    (made, open): (&mut Vec<Building>, &mut Option<Building>),
) -> Result<Next> {
    // A truncation waits for it, or has ended before.
    let _running = shard.writes().begin().await;
    let tables = shard.tables();
    let view = &plan.view.schema;
    let known = tables.catalog().table(&view.keyspace, &view.name).cloned();
    if shard.is_stopping() || known.is_none_or(|known| known.id != plan.view.id) {
        return Ok(Next::Nothing);
    }
    if tables.truncations(&plan.base.id) != truncations {
        return Ok(Next::Anew);
    }
    let open = open.as_mut().map(Building::take);
    let updates = made.drain(..).map(|of| of.updates).chain(open);
    let mutations: Vec<Mutation> = updates.flat_map(super::update::Updates::finish).collect();
    if !mutations.is_empty() {
        // A power failure could otherwise take a row of the base, and leave what another shard's log has of it in the view. The row may
        // be from a batch, which is in the log of any shard.
        sync_logs(shard, 0..tables.shard_count()).await?;
    }
    apply_by_shard(shard, by_shard(shard, mutations).await).await?;
    Ok(Next::More)
}
