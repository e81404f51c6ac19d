//! Logged batches over several shards: all of it or nothing after a crash.
//!
//! 1. A shard applies its part as one record of its log, so a batch on one shard needs nothing else.
//! 2. A batch on several is first stored whole as a row of `system.batches`; then every shard applies its part; then the
//!    row is deleted.
//! 3. At start, `replay` applies whatever is still in `system.batches`: writes carry their timestamps, so twice is once.
//! 4. At the end the table is emptied, not flushed: Cassandra keeps it in an order of its own (`LocalPartitioner`), and does not start on a
//!    directory where it has another one.

use std::rc::Rc;
use std::sync::Arc;

use halcyon_engine::{
    RangeBound, Read, ReadTarget, Shard, TokenRange, decode_mutations, encode_mutations,
};
use halcyon_io::clock::unix_micros;
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_stream::{Cell, Fragment, FragmentStream, Mutation, PartitionKey, RowBuf, Slices};

use super::write;
use crate::coordinator::Coordinator;
use crate::{Error, Result};

/// Not one of Cassandra's messaging versions: it cannot read our mutations, and finds none after a drain.
const VERSION: i32 = -1;

/// Applies mutations that must all be there, or none.
pub(super) async fn apply(coordinator: &Coordinator, mutations: Vec<Mutation>) -> Result<()> {
    let shards = write::by_shard(coordinator, mutations);
    let catalog = coordinator.shard().engine().catalog();
    let log = catalog.table("system", "batches").cloned();
    let Some(log) = log.filter(|_| shards.len() > 1) else {
        return write::apply_by_shard(coordinator, shards).await;
    };
    let whole: Vec<Mutation> = shards.iter().flat_map(|(_, part)| part).cloned().collect();
    let uuids = coordinator.uuids();
    let now = unix_micros();
    let id = uuids.time_based(now);
    let row = stored(&log, id, uuids.time_based(now), &encode_mutations(&whole), now)?;
    write::apply(coordinator, vec![row]).await?;
    write::apply_by_shard(coordinator, shards).await?;
    write::apply(coordinator, vec![deleted(&log, id, now)]).await
}

fn column(log: &Table, name: &str) -> Result<ColumnRef> {
    log.find_column(name)
        .ok_or_else(|| Error::Server(format!("system.batches has no column {name}")))
}

/// The row that keeps a batch.
fn stored(
    log: &Arc<Table>,
    id: [u8; 16],
    path: [u8; 16],
    batch: &[u8],
    now: i64,
) -> Result<Mutation> {
    let mut row = RowBuf::new();
    row.parts.liveness =
        Liveness { timestamp: now, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    let values: [(&str, &[u8], &[u8]); 2] =
        [("mutations", &path, batch), ("version", &[], &VERSION.to_be_bytes())];
    for (name, path, value) in values {
        let cell = Cell {
            column: column(log, name)?.index,
            ttl: NO_TTL,
            timestamp: now,
            local_deletion_time: NO_DELETION_TIME,
            path: row.store(path),
            value: row.store(value),
        };
        row.parts.cells.push(cell);
    }
    row.parts.cells.sort_by_key(|cell| cell.column);
    let mut mutation = Mutation::new(log.id, log.layout.clone(), PartitionKey::of(&id));
    mutation.rows.push(row);
    Ok(mutation)
}

fn deleted(log: &Arc<Table>, id: [u8; 16], now: i64) -> Mutation {
    let mut mutation = Mutation::new(log.id, log.layout.clone(), PartitionKey::of(&id));
    let seconds = u32::try_from(now.div_euclid(1_000_000)).unwrap_or(0);
    mutation.deletion = DeletionTime { marked_for_delete_at: now, local_deletion_time: seconds };
    mutation
}

/// Finishes the batches that a crash has cut short; returns how many. To be called once, before clients are served.
pub(crate) async fn replay(coordinator: &Coordinator) -> Result<usize> {
    let engine = coordinator.shard().engine().clone();
    let catalog = engine.catalog();
    let Some(log) = catalog.table("system", "batches").cloned() else { return Ok(0) };
    let column = column(&log, "mutations")?.index;
    let mut replayed = 0;
    for shard in 0..engine.shard_count() {
        let table = log.clone();
        let job = move |shard: Rc<Shard>| async move { unfinished(&shard, table, column).await };
        for (id, batch) in coordinator.on_shard(shard, job).await? {
            let mutations = decode_mutations(&batch, &catalog)
                .map_err(|e| Error::Server(format!("a batch of system.batches is damaged {e}")))?;
            write::apply(coordinator, mutations).await?;
            write::apply(coordinator, vec![deleted(&log, id, unix_micros())]).await?;
            replayed += 1;
        }
    }
    Ok(replayed)
}

/// Finishes what is unfinished; then nothing is left of the log, in memory or on disk.
pub(crate) async fn close(coordinator: &Coordinator) -> Result<()> {
    replay(coordinator).await?;
    let engine = coordinator.shard().engine();
    match engine.catalog().table("system", "batches") {
        Some(log) => Ok(engine.clear(log.id).await?),
        None => Ok(()),
    }
}

/// What one shard has in `system.batches`.
async fn unfinished(
    shard: &Shard,
    table: Arc<Table>,
    column: u16,
) -> Result<Vec<([u8; 16], Vec<u8>)>> {
    let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
    let read = Read { table, target: ReadTarget::Range(range), slices: Slices::all() };
    let mut stream = shard.read(read).await.map_err(Error::from)?;
    let mut found = Vec::new();
    let mut id = None;
    let mut deletion = DeletionTime::LIVE;
    while stream.advance().await.map_err(Error::from)? {
        match stream.fragment() {
            Fragment::Start(start) => {
                id = <[u8; 16]>::try_from(start.key.bytes.as_slice()).ok();
                deletion = start.deletion;
            }
            Fragment::Row(row) => {
                let live = |cell: &&Cell| {
                    cell.column == column
                        && !cell.is_tombstone()
                        && !deletion.deletes(cell.timestamp)
                };
                let cells = row.cells.iter().filter(live);
                found.extend(
                    cells.filter_map(|cell| Some((id?, cell.value.of(row.bytes).to_vec()))),
                );
            }
            Fragment::Static(_) | Fragment::Marker(_) | Fragment::End => {}
        }
    }
    Ok(found)
}
