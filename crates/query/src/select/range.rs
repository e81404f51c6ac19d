//! Reads a range of tokens, shard by shard: shard 0 has the lowest tokens.

use halcyon_cql::plan::restrictions::TokenBounds;
use halcyon_engine::{RangeBound, Read, ReadTarget, TokenRange};
use halcyon_scan::{PagingState, Scan};
use halcyon_schema::catalog::TableKind;
use halcyon_stream::PartitionKey;

use super::partition::{go_on, take_from, take_mutations};
use super::parts::{invalid_state, token_range};
use crate::Result;
use crate::coordinator::Coordinator;
use crate::shards::on_shard;

pub(super) async fn read_range(
    coordinator: &Coordinator,
    mut scan: Box<Scan>,
    bounds: TokenBounds,
    state: Option<PagingState>,
) -> Result<Box<Scan>> {
    let mut range = token_range(&bounds);
    if let Some(state) = state {
        let key = PartitionKey::of(&state.key);
        if !bounds.contains(key.token) {
            return Err(invalid_state());
        }
        range.start = RangeBound::AfterKey(key.clone());
        scan = go_on(coordinator, scan, key, &state).await?;
    }
    let table = scan.select.plan.table.clone();
    if table.kind == TableKind::Virtual {
        return read_virtual(coordinator, scan, &range).await;
    }
    let tables = coordinator.shard().tables().clone();
    let first = match &range.start {
        RangeBound::AfterKey(key) | RangeBound::BeforeKey(key) => tables.owner(key.token),
        RangeBound::BeforeToken(token) | RangeBound::AfterToken(token) => tables.owner(*token),
        RangeBound::Open => 0,
    };
    let last = match &range.end {
        RangeBound::BeforeToken(token) | RangeBound::AfterToken(token) => tables.owner(*token),
        _ => tables.shard_count().saturating_sub(1),
    };
    for index in first..=last {
        if scan.page.full {
            break;
        }
        let read = Read {
            table: table.clone(),
            target: ReadTarget::Range(range.clone()),
            slices: scan.select.slices.clone(),
        };
        scan = on_shard(coordinator.shard(), index, move |shard| async move {
            take_from(&shard, &mut scan, read).await?;
            Ok(scan)
        })
        .await?;
    }
    Ok(scan)
}

async fn read_virtual(
    coordinator: &Coordinator,
    scan: Box<Scan>,
    range: &TokenRange,
) -> Result<Box<Scan>> {
    if scan.page.full {
        return Ok(scan);
    }
    let table = scan.select.plan.table.clone();
    let mut partitions = coordinator.virtual_tables().partitions(&table, None).await?;
    partitions.retain(|partition| {
        let key = &partition.key;
        let after = match &range.start {
            RangeBound::Open => true,
            RangeBound::BeforeToken(token) => key.token >= *token,
            RangeBound::AfterToken(token) => key.token > *token,
            RangeBound::BeforeKey(start) => table.layout.compare_keys(key, start).is_ge(),
            RangeBound::AfterKey(start) => table.layout.compare_keys(key, start).is_gt(),
        };
        after
            && match &range.end {
                RangeBound::BeforeToken(token) => key.token < *token,
                RangeBound::AfterToken(token) => key.token <= *token,
                _ => true,
            }
    });
    let slices = scan.select.slices.clone();
    take_mutations(scan, partitions, &slices).await
}
