//! Writes without conditions: mutations to the shards that own their partitions.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use halcyon_cql::plan::Work;
use halcyon_cql::plan::modify::{BoundModification, BoundRows, CounterShard, CurrentPartition};
use halcyon_engine::{Measure, Shard};
use halcyon_io::clock::{now, unix_micros};
use halcyon_io::compute;
use halcyon_model::schema::ColumnKind;
use halcyon_scan::pace::{self, Pace};
use halcyon_stream::{Mutation, PartitionKey, TableId};

use super::current::{self, Wanted};
use super::stopwatch::Stopwatch;
use crate::coordinator::Coordinator;
use crate::shards::{apply_by_shard, apply_whole, by_shard, on_owner};
use crate::views::{self, Lease, Plans};
use crate::{Error, Result};

/// Partitions of one statement that are read and written at once.
const AT_ONCE: usize = 16;

/// Modifications that belong together only in time: each shard applies its part on its own.
pub(super) async fn execute(
    coordinator: &Coordinator,
    modifications: Vec<BoundModification>,
    watch: &Stopwatch,
) -> Result<()> {
    let has_views = views::are_on(modifications.iter().map(|modification| &modification.table));
    let (mut ready, mut pace) = (Vec::new(), Pace::default());
    for modification in modifications {
        if modification.requires_read() {
            Box::pin(read_and_write(coordinator, modification, watch)).await?;
        } else {
            mutations(modification, &mut ready, &mut pace, watch).await?;
        }
    }
    match has_views {
        true => Box::pin(apply_with_views(coordinator, ready, watch)).await,
        false => apply(coordinator, ready).await,
    }
}

/// Applies mutations, and what they change in the views on their tables, all of it or nothing.
pub(super) async fn apply_with_views(
    coordinator: &Coordinator,
    mut mutations: Vec<Mutation>,
    watch: &Stopwatch,
) -> Result<()> {
    mutations.retain(|mutation| !mutation.is_empty());
    let is_of_first = |mutation: &Mutation| {
        mutations
            .first()
            .is_some_and(|first| (first.table, &first.key) == (mutation.table, &mutation.key))
    };
    if mutations.iter().all(is_of_first) {
        return Box::pin(apply_to_partition(coordinator, mutations, watch)).await;
    }
    let leases = derive(coordinator, &mut mutations, watch).await?;
    let applied = Box::pin(apply_whole(coordinator.shard(), mutations)).await;
    drop(leases);
    applied
}

/// The shard of the partition derives what its views change, and applies it.
async fn apply_to_partition(
    coordinator: &Coordinator,
    mutations: Vec<Mutation>,
    watch: &Stopwatch,
) -> Result<()> {
    let Some(first) = mutations.first() else { return Ok(()) };
    let (table, key, token) = (first.table, first.key.clone(), first.key.token);
    let watch = *watch;
    let catalog = coordinator.shard().tables().catalog();
    let plans = coordinator.views().of(&catalog, table)?;
    let most = coordinator.memory().for_row();
    let job = move |shard: Rc<Shard>| async move {
        let _lock = watch.lock(&shard, table, &key).await?;
        views::apply_in_pieces(&shard, (&plans, most), &key, mutations).await
    };
    on_owner(coordinator.shard(), token, job).await
}

/// Adds to mutations what they change in views. The locks of their partitions are held as long as the leases.
async fn derive(
    coordinator: &Coordinator,
    mutations: &mut Vec<Mutation>,
    watch: &Stopwatch,
) -> Result<Vec<Lease>> {
    let mut partitions: BTreeMap<(TableId, Vec<u8>), (Plans, Vec<Mutation>)> = BTreeMap::new();
    let catalog = coordinator.shard().tables().catalog();
    for mutation in &*mutations {
        let plans = coordinator.views().of(&catalog, mutation.table)?;
        if !plans.is_empty() {
            let key = (mutation.table, mutation.key.bytes.clone());
            partitions.entry(key).or_insert_with(|| (plans, Vec::new())).1.push(mutation.clone());
        }
    }
    let most = coordinator.memory().for_row();
    let mut leases = Vec::with_capacity(partitions.len());
    for ((table, _), (plans, of_partition)) in partitions {
        let Some(key) = of_partition.first().map(|mutation| mutation.key.clone()) else { continue };
        let (token, watch) = (key.token, *watch);
        let job = move |shard: Rc<Shard>| async move {
            let lock = watch.lock(&shard, table, &key).await?;
            let changes = views::derived(&shard, &plans, &key, &of_partition, most).await?;
            Ok((changes, views::lease(lock)))
        };
        let (changes, lease) = on_owner(coordinator.shard(), token, job).await?;
        mutations.extend(changes);
        leases.push(lease);
    }
    Ok(leases)
}

/// A write to a virtual table is a command to the node; nothing is stored.
pub(super) async fn apply_to_virtual(
    coordinator: &Coordinator,
    modification: BoundModification,
    watch: &Stopwatch,
) -> Result<()> {
    let (table, mut made) = (modification.table.clone(), Vec::new());
    mutations(modification, &mut made, &mut Pace::default(), watch).await?;
    for mutation in made {
        coordinator.virtual_tables().apply(&table, mutation).await?;
    }
    Ok(())
}

/// Adds the mutations of a modification that needs no stored row.
pub(super) async fn mutations(
    modification: BoundModification,
    to: &mut Vec<Mutation>,
    pace: &mut Pace,
    watch: &Stopwatch,
) -> Result<()> {
    let of_key = |modification: &BoundModification, key: &PartitionKey| {
        modification.mutation(key, &CurrentPartition::default(), CounterShard::NONE)
    };
    if modification.is_large() {
        let job = move |work: &Work<'_>| {
            let mut made = Vec::with_capacity(modification.keys.len());
            for key in &modification.keys {
                work.spend(LARGE_MUTATION)?;
                made.push(of_key(&modification, key)?);
            }
            Ok(made)
        };
        let made = Box::pin(pace::until(watch.deadline(), job)).await?;
        to.extend(made.ok_or_else(|| watch.too_late())?);
        return Ok(());
    }
    for key in &modification.keys {
        if pace.step() {
            pace.pause().await;
            watch.check()?;
        }
        to.push(of_key(&modification, key)?);
    }
    Ok(())
}

/// What the mutation of a large modification costs at least, in units of work.
const LARGE_MUTATION: u64 = 500_000;

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

/// Lists by index and counters: partition by partition, each read and written under its lock.
async fn read_and_write(
    coordinator: &Coordinator,
    modification: BoundModification,
    watch: &Stopwatch,
) -> Result<()> {
    let counts = modification.table.is_counter();
    let counter_id = counts.then(|| counter_id(coordinator)).transpose()?;
    let catalog = coordinator.shard().tables().catalog();
    let plans = coordinator.views().on(&catalog, &modification.table)?;
    let most = coordinator.memory().for_row();
    let write = |key: &PartitionKey| {
        let (modification, key, token) = (modification.clone(), key.clone(), key.token);
        let (plans, watch) = (plans.clone(), *watch);
        let job = move |shard: Rc<Shard>| async move {
            let _lock = watch.lock(&shard, modification.table.id, &key).await?;
            let made = vec![read_one(&shard, &modification, &key, counter_id).await?];
            views::apply(&shard, (&plans, most), &key, made).await
        };
        on_owner(coordinator.shard(), token, job)
    };
    for keys in modification.keys.chunks(AT_ONCE) {
        join_all(keys.iter().map(write)).await.into_iter().collect::<Result<()>>()?;
    }
    Ok(())
}

/// The mutation of one partition; that of a row of very many cells is made on a thread for computations.
pub(super) async fn made_of(
    modification: &BoundModification,
    key: &PartitionKey,
    stored: &Arc<CurrentPartition>,
    shard: CounterShard,
) -> Result<Mutation> {
    if !stored.is_wide() {
        return Ok(modification.mutation(key, stored, shard)?);
    }
    let (modification, key, stored) = (modification.clone(), key.clone(), stored.clone());
    let made = compute(move || modification.mutation(&key, &stored, shard));
    Ok(made.await.map_err(halcyon_engine::Error::from)??)
}

/// Counters are counted under the node's host id (`CounterId.getLocalId`).
fn counter_id(coordinator: &Coordinator) -> Result<[u8; 16]> {
    let id = coordinator.shard().tables().host_id();
    id.ok_or_else(|| Error::Server("the node has not joined its ring yet".to_owned()))
}

/// The mutation of one partition, from its stored rows. The caller holds the partition's lock.
pub(super) async fn read_one(
    shard: &Shard,
    modification: &BoundModification,
    key: &PartitionKey,
    counter_id: Option<[u8; 16]>,
) -> Result<Mutation> {
    let rows = match &modification.rows {
        BoundRows::Rows(rows) => Some(rows.clone()),
        BoundRows::Partition if modification.table.schema.clustering.is_empty() => {
            Some(vec![Vec::new()])
        }
        _ => None,
    };
    let mut columns = modification.reads.clone();
    if modification.table.is_counter() {
        columns.extend(modification.table.refs(ColumnKind::Static));
        columns.extend(modification.table.refs(ColumnKind::Regular));
    }
    let wanted = Wanted { rows, columns };
    let table = &modification.table;
    let current = current::read(shard, table, key, &wanted, modification.now_seconds).await?;
    let shard = counter_id.map(|id| CounterShard { id, now_micros: unix_micros() });
    let shard = shard.unwrap_or(CounterShard::NONE);
    made_of(modification, key, &Arc::new(current.partition), shard).await
}
