//! Reads of partitions that the statement names.
//!
//! Keys come in the order of the result. Consecutive keys of one shard are handed over together and opened at once, so that the device is
//! waited for once and not once a key; their rows are then taken in order. Cassandra's coordinator reads all keys of an IN at once;
//! here their number is bounded, and with it the rows that are read but do not fit the page.

use std::iter::Peekable;
use std::rc::Rc;
use std::vec::IntoIter;

use futures_util::future::join_all;
use halcyon_engine::{Measure, Read, ReadTarget, Shard};
use halcyon_scan::{PagingState, Scan};
use halcyon_schema::catalog::TableKind;
use halcyon_stream::{PartitionKey, Primed};

use super::partition::{go_on, read_partition};
use super::parts::{AT_ONCE, Measured, invalid_state};
use crate::Result;
use crate::coordinator::Coordinator;
use crate::shards::on_owner;

pub(super) async fn read_keys(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    keys: Vec<PartitionKey>,
    state: Option<PagingState>,
) -> Result<Box<Scan>> {
    let mut keys = keys.into_iter();
    if let Some(state) = state {
        let is_only = keys.len() == 1 && state.key.is_empty();
        let key = keys.find(|key| is_only || key.bytes == state.key).ok_or_else(invalid_state)?;
        scan = Box::pin(go_on(coordinator, scan, key, &state)).await?;
    }
    let runs = keys.len() > 1 && scan.select.plan.table.kind != TableKind::Virtual;
    let mut keys = keys.peekable();
    while !scan.page.full
        && let Some(key) = keys.next()
    {
        scan.breathe().await?;
        let run = if runs { run(coordinator, &scan, &key, &mut keys) } else { Vec::new() };
        scan = if run.is_empty() {
            let slices = scan.select.slices.clone();
            read_partition(coordinator, scan, key, slices).await?
        } else {
            Box::pin(read_run(coordinator, scan, key, run)).await?
        };
    }
    Ok(scan)
}

/// The keys after `key` that its owner owns too: no more than the page has room for rows, since each may give one.
fn run(
    coordinator: &Coordinator,
    scan: &Scan,
    key: &PartitionKey,
    keys: &mut Peekable<IntoIter<PartitionKey>>,
) -> Vec<PartitionKey> {
    let tables = coordinator.shard().tables();
    let owner = tables.owner(key.token);
    let room = usize::try_from(scan.page.remaining).unwrap_or(usize::MAX);
    let most = AT_ONCE.min(room).saturating_sub(1);
    let mut run = Vec::new();
    while run.len() < most
        && let Some(next) = keys.next_if(|next| tables.owner(next.token) == owner)
    {
        run.push(next);
    }
    run
}

async fn read_run(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    first: PartitionKey,
    others: Vec<PartitionKey>,
) -> Result<Box<Scan>> {
    let token = first.token;
    let job = move |shard: Rc<Shard>| async move {
        let table = scan.select.plan.table.clone();
        let id = table.id;
        let open = |key| {
            let slices = scan.select.slices.clone();
            let target = ReadTarget::Partition(key);
            let read = Read { table: table.clone(), target, slices };
            let shard = &shard;
            async move { Primed::fetch(shard.read(read).await?).await }
        };
        let keys = std::iter::once(first).chain(others);
        let sampled: Vec<PartitionKey> = match shard.is_profiled() {
            true => keys.clone().collect(),
            false => Vec::new(),
        };
        let opened = join_all(keys.map(open)).await;
        for (at, opened) in opened.into_iter().enumerate() {
            if scan.page.full {
                break;
            }
            let measured = Measured::new(&shard, &mut scan, sampled.get(at));
            // An error counts when the page comes to its key.
            scan.take(&mut opened?).await?;
            measured.end(&shard, &mut scan, id, Measure::LocalRead);
        }
        Ok(scan)
    };
    on_owner(coordinator.shard(), token, job).await
}
