//! Reads one partition, or the rest of it, and the rows of one shard.

use std::rc::Rc;

use halcyon_engine::{Measure, RangeBound, Read, ReadTarget, Shard, TokenRange};
use halcyon_io::compute;
use halcyon_scan::{PagingState, Scan};
use halcyon_schema::catalog::TableKind;
use halcyon_stream::{Mutation, PartitionKey, Slices};

use super::parts::{Measured, behind_row};
use crate::Result;
use crate::coordinator::Coordinator;
use crate::mutations::MutationStream;
use crate::shards::on_owner;

/// Reads the rest of the partition in which the previous page ended.
pub(super) async fn go_on(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    key: PartitionKey,
    state: &PagingState,
) -> Result<Box<Scan>> {
    if let Some(clustering) = &state.clustering
        && state.remaining_in_partition > 0
    {
        let layout = scan.select.plan.table.layout.clone();
        let slices = scan.select.slices.clone();
        let slices = if slices.are_many() {
            let clustering = clustering.clone();
            let behind = compute(move || behind_row(&layout, &slices, &clustering)).await;
            behind.map_err(halcyon_engine::Error::from)?
        } else {
            behind_row(&layout, &slices, clustering)
        };
        if !slices.slices.is_empty() {
            scan = read_partition(coordinator, scan, key, slices).await?;
        }
    }
    scan.next_partitions();
    Ok(scan)
}

pub(super) async fn read_partition(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    key: PartitionKey,
    slices: Slices,
) -> Result<Box<Scan>> {
    let table = scan.select.plan.table.clone();
    if table.kind == TableKind::Virtual {
        let mut partitions = coordinator.virtual_tables().partitions(&table, Some(&key)).await?;
        partitions.retain(|partition| partition.key == key);
        return Box::pin(take_mutations(scan, partitions, &slices)).await;
    }
    let token = key.token;
    let read = Read { table, target: ReadTarget::Partition(key), slices };
    on_owner(coordinator.shard(), token, move |shard| async move {
        take_from(&shard, &mut scan, read).await?;
        Ok(scan)
    })
    .await
}

/// The rows of one shard; counted as one read of its table.
pub(super) async fn take_from(shard: &Rc<Shard>, scan: &mut Scan, read: Read) -> Result<()> {
    let table = read.table.id;
    let (measure, key) = match &read.target {
        ReadTarget::Partition(key) => (Measure::LocalRead, Some(key)),
        ReadTarget::Range(_) => (Measure::LocalScan, None),
    };
    let measured = Measured::new(shard, scan, key);
    take_rows(shard, scan, read).await?;
    measured.end(shard, scan, table, measure);
    Ok(())
}

async fn take_rows(shard: &Rc<Shard>, scan: &mut Scan, mut read: Read) -> Result<()> {
    loop {
        let range = match &read.target {
            ReadTarget::Partition(_) => None,
            ReadTarget::Range(range) => Some((range.clone(), read.slices.clone())),
        };
        let table = read.table.clone();
        let mut stream = shard.read(read).await?;
        let Some(behind) = scan.take(&mut stream).await? else { return Ok(()) };
        let Some((range, slices)) = range else { return Ok(()) };
        // The rest of the partition is unwanted, and a seek to the next one is faster than reading it.
        let range = TokenRange { start: RangeBound::AfterKey(behind), ..range };
        read = Read { table, target: ReadTarget::Range(range), slices };
    }
}

pub(super) async fn take_mutations(
    mut scan: Box<Scan>,
    partitions: Vec<Mutation>,
    slices: &Slices,
) -> Result<Box<Scan>> {
    let mut stream = MutationStream::new(partitions, slices);
    while scan.take(&mut stream).await?.is_some() {}
    Ok(scan)
}
