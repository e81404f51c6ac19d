//! Makes the mutations of modifications, from stored rows where they depend on them.

use std::sync::Arc;

use halcyon_cql::plan::Work;
use halcyon_cql::plan::modify::{BoundModification, BoundRows, CounterShard, CurrentPartition};
use halcyon_engine::Shard;
use halcyon_io::clock::unix_micros;
use halcyon_io::compute;
use halcyon_model::schema::ColumnKind;
use halcyon_scan::pace::{self, Pace};
use halcyon_stream::{Mutation, PartitionKey};

use super::current::{self, Wanted};
use super::stopwatch::Stopwatch;
use crate::Result;

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
