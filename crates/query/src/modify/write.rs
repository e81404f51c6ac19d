//! Writes without conditions: mutations to the shards that own their partitions.

use std::rc::Rc;

use futures_util::future::join_all;
use halcyon_cql::plan::modify::BoundModification;
use halcyon_engine::Shard;
use halcyon_scan::pace::Pace;
use halcyon_stream::{Mutation, PartitionKey};

use super::changes::{Changes, apply};
use super::make::{mutations, read_one};
use super::stopwatch::Stopwatch;
use crate::coordinator::Coordinator;
use crate::shards::on_owner;
use crate::views;
use crate::{Error, Result};

/// Partitions of one statement that are read and written at once.
const AT_ONCE: usize = 16;

/// One modification. Without views, each shard applies its part on its own.
pub(super) async fn execute(
    coordinator: &Coordinator,
    modification: BoundModification,
    watch: &Stopwatch,
) -> Result<()> {
    let is_of_one = modification.keys.len() == 1;
    if modification.table.is_counter() || modification.requires_read() && is_of_one {
        return Box::pin(read_and_write(coordinator, modification, watch)).await;
    }
    if modification.requires_read() {
        let changes = Box::pin(Changes::make(coordinator, Vec::new(), vec![modification], watch));
        return changes.await?.apply(coordinator, false).await;
    }
    let has_views = !modification.table.views.is_empty();
    let mut ready = Vec::with_capacity(modification.keys.len());
    mutations(modification, &mut ready, &mut Pace::default(), watch).await?;
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
    let changes = Changes::make(coordinator, mutations, Vec::new(), watch).await?;
    changes.apply(coordinator, true).await
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

/// Counters, and a list by index in one partition: partition by partition, each read and written under its lock.
pub(super) async fn read_and_write(
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

/// Counters are counted under the node's host id (`CounterId.getLocalId`).
fn counter_id(coordinator: &Coordinator) -> Result<[u8; 16]> {
    let id = coordinator.shard().tables().host_id();
    id.ok_or_else(|| Error::Server("the node has not joined its ring yet".to_owned()))
}
