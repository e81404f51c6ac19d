//! Materialized views: what a write to a base table changes in the views on it is written with it, all of it or nothing.
//!
//! 1. The partition's lock is taken on the shard that owns it, the rows that the write may change are read, and the changes of the views
//!    are derived (`derive`, `update`).
//! 2. The base's mutations and the views' are one record of a commit log, whichever shards they belong to (`Shard::apply_spanning`). So no
//!    kill leaves a view behind, and a replay derives nothing: it has the outcome.
//! 3. Then the lock is released. Locks of several partitions are taken in one order.
//!
//! Cassandra logs the base's write alone and derives again when it replays its log, which works with one log; here a view's partition may
//! belong to another shard.

mod build;
mod derive;
mod plan;
mod update;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_channel::oneshot;
use halcyon_engine::Shard;
use halcyon_io::clock::unix_seconds;
use halcyon_io::spawn;
use halcyon_schema::catalog::{Catalog, Table};
use halcyon_stream::{Mutation, PartitionKey, TableId};

pub use build::resume_view_builds;
pub(crate) use build::{build, not_built};
use derive::Pieces;
use plan::ViewPlan;

use crate::shards::apply_whole;
use crate::{Error, Result};

/// The plans of the views on a table.
pub(crate) type Plans = Arc<Vec<Arc<ViewPlan>>>;

/// One coordinator's plans, of one version of the schema.
#[derive(Debug, Default)]
pub(crate) struct Views {
    plans: RefCell<([u8; 16], HashMap<TableId, Plans>)>,
}

impl Views {
    /// Of the views on a table.
    pub(crate) fn on(&self, catalog: &Catalog, base: &Table) -> Result<Plans> {
        if base.views.is_empty() { Ok(Plans::default()) } else { self.of(catalog, base.id) }
    }

    pub(crate) fn of(&self, catalog: &Catalog, base: TableId) -> Result<Plans> {
        let (version, plans) = &mut *self.plans.borrow_mut();
        if *version != catalog.version {
            *version = catalog.version;
            plans.clear();
        }
        if let Some(known) = plans.get(&base) {
            return Ok(known.clone());
        }
        let table = catalog.tables().find(|table| table.id == base);
        let made = table.map(|table| ViewPlan::of_base(catalog, table)).transpose()?;
        let made = Arc::new(made.unwrap_or_default());
        plans.insert(base, made.clone());
        Ok(made)
    }
}

/// Whether writes to one of these tables change views.
pub(crate) fn are_on<'t>(mut tables: impl Iterator<Item = &'t Arc<Table>>) -> bool {
    tables.any(|table| !table.views.is_empty())
}

/// What another shard holds for this one, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease(#[expect(dead_code, reason = "its drop tells")] oneshot::Sender<()>);

/// Keeps a guard, which cannot leave its shard, until the lease is dropped, wherever that is.
pub(crate) fn lease(guard: impl Sized + 'static) -> Lease {
    let (lease, ended) = oneshot::channel();
    spawn(async move {
        let _ = ended.await;
        drop(guard);
    })
    .detach();
    Lease(lease)
}

/// Applies mutations of one partition of this shard, and what they change in views. The caller holds the partition's lock.
pub(crate) async fn apply(
    shard: &Rc<Shard>,
    (plans, most): (&Plans, u64),
    key: &PartitionKey,
    mut mutations: Vec<Mutation>,
) -> Result<()> {
    if plans.is_empty() {
        return Ok(shard.apply(mutations).await?);
    }
    let changes = derived(shard, plans, key, &mutations, most).await?;
    mutations.extend(changes);
    Box::pin(apply_whole(shard, mutations)).await
}

/// As [`apply`]; but deletions that change more than a record holds are applied in several, each whole with its part of the views.
pub(crate) async fn apply_in_pieces(
    shard: &Rc<Shard>,
    (plans, most): (&Plans, u64),
    key: &PartitionKey,
    mut mutations: Vec<Mutation>,
) -> Result<()> {
    let Some(base) = plans.first().map(|plan| plan.base.clone()) else {
        return Ok(shard.apply(mutations).await?);
    };
    check_known(plans, &mutations)?;
    let only_deletes = |m: &Mutation| m.rows.is_empty() && m.static_row.is_none();
    let has_rows = !base.schema.clustering.is_empty();
    let pieces =
        (has_rows && mutations.iter().all(only_deletes)).then(|| Pieces::new(shard, base, most));
    let changes = derive::derive(shard, plans, key, &mutations, (seconds(), most, pieces)).await?;
    mutations.extend(changes);
    Box::pin(apply_whole(shard, mutations)).await
}

/// What mutations of one partition change in the views on its table. The caller holds the partition's lock.
pub(crate) async fn derived(
    shard: &Shard,
    plans: &Plans,
    key: &PartitionKey,
    mutations: &[Mutation],
    most: u64,
) -> Result<Vec<Mutation>> {
    check_known(plans, mutations)?;
    derive::derive(shard, plans, key, mutations, (seconds(), most, None)).await
}

fn check_known(plans: &Plans, mutations: &[Mutation]) -> Result<()> {
    let is_known =
        |mutation: &Mutation| plans.first().is_none_or(|plan| mutation.layout == plan.base.layout);
    if !mutations.iter().all(is_known) {
        return Err(Error::Server("the table was changed meanwhile: try again".to_owned()));
    }
    Ok(())
}

fn seconds() -> u32 {
    u32::try_from(unix_seconds()).unwrap_or(0)
}
