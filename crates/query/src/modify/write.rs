//! Writes without conditions: mutations to the shards that own their partitions.

use std::rc::Rc;

use futures_util::future::join_all;
use halcyon_cql::plan::Work;
use halcyon_cql::plan::modify::{BoundModification, BoundRows, CurrentPartition};
use halcyon_engine::{Measure, Shard};
use halcyon_io::clock::now;
use halcyon_model::schema::ColumnKind;
use halcyon_stream::{Mutation, PartitionKey, TableId};

use super::Stopwatch;
use super::current::{self, Wanted};
use crate::coordinator::Coordinator;
use crate::hand_over::on_shard;
use crate::pace::{self, Pace};
use crate::{Error, Result};

/// Partitions of one statement that are read and written at once.
const AT_ONCE: usize = 16;

/// The counter id of a modification without counters.
const NO_COUNTER: [u8; 16] = [0; 16];

/// Modifications that belong together only in time: each shard applies its part on its own.
pub(super) async fn execute(
    coordinator: &Coordinator,
    modifications: Vec<BoundModification>,
    watch: &Stopwatch,
) -> Result<()> {
    let (mut ready, mut pace) = (Vec::new(), Pace::new());
    for modification in modifications {
        if modification.requires_read() {
            Box::pin(read_and_write(coordinator, modification)).await?;
        } else {
            mutations(modification, &mut ready, &mut pace, watch).await?;
        }
    }
    apply(coordinator, ready).await
}

/// A write to a virtual table is a command to the node; nothing is stored.
pub(super) async fn apply_to_virtual(
    coordinator: &Coordinator,
    modification: BoundModification,
    watch: &Stopwatch,
) -> Result<()> {
    let (table, mut made) = (modification.table.clone(), Vec::new());
    mutations(modification, &mut made, &mut Pace::new(), watch).await?;
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
        modification.mutation(key, &CurrentPartition::default(), NO_COUNTER)
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
    apply_by_shard(shard, by_shard(shard, mutations)).await?;
    let ended = now();
    for table in first.into_iter().chain(others) {
        coordinator.shard().observe(table, Measure::CoordinatorWrite, began, ended);
    }
    Ok(())
}

/// All shards at once, so that their commit logs are written together. Each part runs to its end, whatever becomes of the others.
pub(super) async fn apply_by_shard(
    here: &Rc<Shard>,
    parts: Vec<(usize, Vec<Mutation>)>,
) -> Result<()> {
    let apply = |(index, mutations)| {
        let job = move |shard: Rc<Shard>| async move {
            shard.apply(mutations).await.map_err(Error::from)
        };
        on_shard(here, index, job)
    };
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Ok(()) };
    if parts.len() == 0 {
        return apply(first).await;
    }
    let all = join_all(std::iter::once(first).chain(parts).map(apply));
    Box::pin(all).await.into_iter().collect()
}

/// Makes durable what these shards have logged; only `periodic` acknowledges writes before they are.
pub(super) async fn sync_logs(here: &Rc<Shard>, shards: impl Iterator<Item = usize>) -> Result<()> {
    let sync = |index| {
        let job = |shard: Rc<Shard>| async move { shard.sync_log().await.map_err(Error::from) };
        on_shard(here, index, job)
    };
    if !here.syncs_later() {
        return Ok(());
    }
    join_all(shards.map(sync)).await.into_iter().collect()
}

/// Mutations that change something, by the shard that owns their partition.
pub(super) fn by_shard(here: &Shard, mutations: Vec<Mutation>) -> Vec<(usize, Vec<Mutation>)> {
    let engine = here.engine();
    let mut shards: Vec<(usize, Vec<Mutation>)> = Vec::new();
    for mutation in mutations.into_iter().filter(|mutation| !mutation.is_empty()) {
        let owner = engine.owner(mutation.key.token);
        match shards.iter_mut().find(|(shard, _)| *shard == owner) {
            Some((_, group)) => group.push(mutation),
            None => shards.push((owner, vec![mutation])),
        }
    }
    shards
}

/// Lists by index and counters: partition by partition, each read and written under its lock.
async fn read_and_write(coordinator: &Coordinator, modification: BoundModification) -> Result<()> {
    let counter_id = match modification.table.is_counter() {
        true => counter_id(coordinator)?,
        false => NO_COUNTER,
    };
    let write = |key: &PartitionKey| {
        let (modification, key, token) = (modification.clone(), key.clone(), key.token);
        let job = move |shard: Rc<Shard>| async move {
            let _lock = shard.lock(modification.table.id, &key).await;
            let mutation = read_one(&shard, &modification, &key, counter_id).await?;
            shard.apply(vec![mutation]).await.map_err(Error::from)
        };
        coordinator.on_owner(token, job)
    };
    for keys in modification.keys.chunks(AT_ONCE) {
        join_all(keys.iter().map(write)).await.into_iter().collect::<Result<()>>()?;
    }
    Ok(())
}

/// Counters are counted under the node's host id (`CounterId.getLocalId`).
fn counter_id(coordinator: &Coordinator) -> Result<[u8; 16]> {
    let id = coordinator.shard().engine().host_id();
    id.ok_or_else(|| Error::Server("the node has not joined its ring yet".to_owned()))
}

/// The mutation of one partition, from its stored rows. The caller holds the partition's lock.
pub(super) async fn read_one(
    shard: &Shard,
    modification: &BoundModification,
    key: &PartitionKey,
    counter_id: [u8; 16],
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
    Ok(modification.mutation(key, &current.partition, counter_id)?)
}
