//! What a request changes in several partitions where that depends on stored rows: lists by index, and tables with views.
//!
//! All changes are made before the first is applied (`ModificationStatement.getMutations`): a request that is refused for one partition
//! changes none. The partitions that are read stay locked meanwhile. They are locked in one order, so that two requests never wait for
//! each other.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use halcyon_cql::plan::modify::BoundModification;
use halcyon_engine::{Measure, Shard};
use halcyon_io::clock::now;
use halcyon_scan::pace::Pace;
use halcyon_stream::{Mutation, PartitionKey, TableId};

use super::make::read_one;
use super::stopwatch::Stopwatch;
use crate::coordinator::Coordinator;
use crate::shards::{apply_by_shard, apply_whole, by_shard, on_owner, on_shard, sync_logs};
use crate::views::{self, Lease, Plans};
use crate::{Error, Result};

/// Changes that are ready to be applied.
pub(super) struct Changes {
    /// In the tables that the request names.
    pub(super) made: Vec<Mutation>,
    /// In the views on these tables.
    of_views: Vec<Mutation>,
    /// The shards of the partitions that views are on.
    owners: BTreeSet<usize>,
    _locks: Vec<Lease>,
}

/// A partition that is locked.
struct Partition {
    key: PartitionKey,
    plans: Plans,
    /// What needs no stored row, if there are views.
    ready: Vec<Mutation>,
    /// What needs stored rows, with the place among all changes of the request.
    reading: Vec<(usize, Arc<BoundModification>)>,
}

/// What becomes of one partition, or the place and the error of the change that is refused.
type OfPartition = std::result::Result<(Vec<Mutation>, Vec<Mutation>, Lease), (usize, Error)>;

impl Changes {
    /// Changes that depend on nothing stored.
    pub(super) fn ready(made: Vec<Mutation>) -> Changes {
        Changes { made, of_views: Vec::new(), owners: BTreeSet::new(), _locks: Vec::new() }
    }

    /// `reading`: no counters.
    pub(super) async fn make(
        coordinator: &Coordinator,
        ready: Vec<Mutation>,
        reading: Vec<BoundModification>,
        watch: &Stopwatch,
    ) -> Result<Changes> {
        let partitions = partitions(coordinator, &ready, reading)?;
        let mut changes = Changes::ready(ready);
        let mut refused: Option<(usize, Error)> = None;
        let most = coordinator.memory().for_row();
        for ((table, _), partition) in partitions {
            let (token, watch) = (partition.key.token, *watch);
            if !partition.plans.is_empty() {
                changes.owners.insert(coordinator.shard().tables().owner(token));
            }
            let job = move |shard: Rc<Shard>| async move {
                make_one(&shard, table, partition, (&watch, most)).await
            };
            match on_owner(coordinator.shard(), token, job).await? {
                Ok((made, of_views, lock)) => {
                    changes.made.extend(made);
                    changes.of_views.extend(of_views);
                    changes._locks.push(lock);
                }
                // The client learns of the first in the order of the request.
                Err(other) if refused.as_ref().is_none_or(|first| other.0 < first.0) => {
                    refused = Some(other);
                }
                Err(_) => {}
            }
        }
        match refused {
            Some((_, error)) => Err(error),
            None => Ok(changes),
        }
    }

    /// `whole`: all of it or nothing, as what views need always is.
    ///
    /// Under `periodic`, a power failure loses the end of each shard's log. The log of a base's shard has the writes of the base in
    /// their order, so no later write survives one that its view rows derive from. A record about bases of several shards is in one log
    /// only: the logs of these shards are synced before it, and its own before the locks are released.
    pub(super) async fn apply(self, coordinator: &Coordinator, whole: bool) -> Result<()> {
        let Changes { mut made, of_views, owners, _locks } = self;
        if !whole && of_views.is_empty() {
            return apply(coordinator, made).await;
        }
        made.extend(of_views);
        let here = coordinator.shard();
        match Vec::from_iter(owners).as_slice() {
            [] => Box::pin(apply_whole(here, made)).await,
            [owner] => {
                let job = move |shard: Rc<Shard>| async move { apply_whole(&shard, made).await };
                on_shard(here, *owner, job).await
            }
            owners => {
                sync_logs(here, owners.iter().copied()).await?;
                Box::pin(apply_whole(here, made)).await?;
                sync_logs(here, std::iter::once(here.index())).await
            }
        }
    }
}

/// The partitions to lock, in their order.
fn partitions(
    coordinator: &Coordinator,
    ready: &[Mutation],
    reading: Vec<BoundModification>,
) -> Result<BTreeMap<(TableId, Vec<u8>), Partition>> {
    let catalog = coordinator.shard().tables().catalog();
    let mut partitions = BTreeMap::new();
    let empty = |key: &PartitionKey, plans| {
        let (ready, reading) = (Vec::new(), Vec::new());
        Partition { key: key.clone(), plans, ready, reading }
    };
    for mutation in ready {
        let plans = coordinator.views().of(&catalog, mutation.table)?;
        if !plans.is_empty() {
            let at = (mutation.table, mutation.key.bytes.clone());
            let partition = partitions.entry(at).or_insert_with(|| empty(&mutation.key, plans));
            partition.ready.push(mutation.clone());
        }
    }
    let mut place = 0;
    for modification in reading {
        let plans = coordinator.views().on(&catalog, &modification.table)?;
        let modification = Arc::new(modification);
        for key in &modification.keys {
            let at = (modification.table.id, key.bytes.clone());
            let partition = partitions.entry(at).or_insert_with(|| empty(key, plans.clone()));
            partition.reading.push((place, modification.clone()));
            place += 1;
        }
    }
    Ok(partitions)
}

async fn make_one(
    shard: &Rc<Shard>,
    table: TableId,
    partition: Partition,
    (watch, most): (&Stopwatch, u64),
) -> Result<OfPartition> {
    let Partition { key, plans, mut ready, reading } = partition;
    let lock = watch.lock(shard, table, &key).await?;
    let mut made = Vec::with_capacity(reading.len());
    for (place, modification) in &reading {
        match read_one(shard, modification, &key, None).await {
            Ok(mutation) => made.push(mutation),
            Err(error) => return Ok(Err((*place, error))),
        }
    }
    let mut of_views = Vec::new();
    if !plans.is_empty() {
        ready.extend(made.iter().cloned());
        of_views = views::derived(shard, &plans, &key, &ready, most).await?;
    }
    Ok(Ok((made, of_views, views::lease(lock))))
}

/// Applies mutations, those of one shard together; what that took is counted for each of their tables, mutation by mutation.
pub(super) async fn apply(coordinator: &Coordinator, mutations: Vec<Mutation>) -> Result<()> {
    let began = now();
    let first = mutations.first().map(|mutation| mutation.table);
    let others: Vec<TableId> = mutations.iter().skip(1).map(|mutation| mutation.table).collect();
    let shard = coordinator.shard();
    apply_by_shard(shard, by_shard(shard, mutations).await).await?;
    let ended = now();
    let mut pace = Pace::default();
    for table in first.into_iter().chain(others) {
        if pace.step() {
            pace.pause().await;
        }
        coordinator.shard().observe(table, Measure::CoordinatorWrite, began, ended);
    }
    Ok(())
}
