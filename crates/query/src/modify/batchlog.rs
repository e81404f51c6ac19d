//! The batchlog: logged batches over several shards, all of it or nothing.
//!
//! 1. A shard applies its part as one record of its commit log, so a batch on one shard needs nothing else.
//! 2. A batch on several is first stored whole as a row of `system.batches`; then every shard applies its part; then the client is
//!    answered and the row is deleted.
//! 3. A batch whose parts did not all succeed stays. A coordinator knows the ids of its own, and replays those that have failed, or are
//!    older than twice the time that a write may take. Cassandra scans its table for them, because other nodes keep their batches there;
//!    here that scan would read the tombstones of all batches that succeeded.
//! 4. At start, all rows of the table are replayed. Writes carry their timestamps, so applying them twice does no harm. What was written
//!    to a table before it was truncated is left out.
//! 5. Under `periodic`, where a power failure loses unsynced records, the row is synced before the parts are applied, and the parts before
//!    the row is deleted. The client waits for the first sync only; batches share both.
//! 6. At the end the table is emptied, not flushed: Cassandra keeps it in an order of its own (`LocalPartitioner`), and does not start on
//!    a directory where it has another one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use halcyon_engine::{
    RangeBound, Read, ReadTarget, Shard, TokenRange, decode_mutations, encode_mutations,
};
use halcyon_io::clock::{self, unix_micros};
use halcyon_io::{Notify, spawn};
use halcyon_model::token::murmur3_token;
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, uuid};
use halcyon_schema::catalog::{ColumnRef, Table};
use halcyon_stream::{
    Cell as StoredCell, Fragment, FragmentStream, Mutation, PartitionKey, RowBuf, Slices, TableId,
};

use super::write;
use crate::coordinator::Coordinator;
use crate::shards::{apply_by_shard, by_shard, sync_logs};
use crate::views::Lease;
use crate::{Error, Result};

/// Not one of Cassandra's messaging versions: it cannot read our mutations, and finds none after a drain.
const VERSION: i32 = -1;

/// A time UUID.
type BatchId = [u8; 16];

/// One coordinator's batches.
#[derive(Debug, Default)]
pub(crate) struct Batchlog {
    unfinished: RefCell<BTreeMap<BatchId, Unfinished>>,
    /// Applied: to be deleted.
    applied: RefCell<Vec<BatchId>>,
    deleting: Cell<bool>,
    replaying: Cell<bool>,
    /// Deleting or replaying has ended.
    settled: Notify,
}

/// Stored, and not deleted yet.
#[derive(Debug)]
struct Unfinished {
    /// Its tables and their oldest writes.
    writes: Vec<(TableId, i64)>,
    /// The locks of partitions from whose rows its changes of views were derived.
    leases: Vec<Lease>,
    /// Not under way any more.
    has_failed: bool,
}

/// What a replay did.
#[derive(Debug, Default)]
pub struct Replayed {
    pub batches: usize,
    /// For the log: batches that could not be replayed.
    pub warnings: Vec<String>,
}

/// Applies mutations that must all be there, or none. Then the leases end.
pub(super) async fn apply(
    coordinator: &Coordinator,
    mutations: Vec<Mutation>,
    leases: Vec<Lease>,
) -> Result<()> {
    let shard = coordinator.shard();
    let owners = mutations.iter().filter(|mutation| !mutation.is_empty());
    let mut owners = owners.map(|mutation| shard.engine().owner(mutation.key.token));
    let first = owners.next();
    let log = table(coordinator).filter(|_| !owners.all(|owner| Some(owner) == first));
    let Some(log) = log else {
        return apply_by_shard(shard, by_shard(shard, mutations).await).await;
    };
    let id = own_id(coordinator);
    let path = coordinator.uuids().time_based(unix_micros());
    let row = stored(&log, id, path, &encode_mutations(&mutations))?;
    let batchlog = coordinator.batchlog();
    batchlog.begin(shard, id, &mutations, leases);
    let parts = by_shard(shard, mutations).await;
    let owner = shard.engine().owner(row.key.token);
    let applied = async {
        write::apply(coordinator, vec![row]).await?;
        sync_logs(shard, std::iter::once(owner)).await?;
        apply_by_shard(shard, parts).await
    };
    match applied.await {
        Ok(()) => {
            batchlog.delete(shard, log, id);
            Ok(())
        }
        Err(error) => {
            batchlog.fail(&id);
            Err(error)
        }
    }
}

impl Batchlog {
    /// From now on the batch may be applied again.
    fn begin(&self, shard: &Shard, id: BatchId, batch: &[Mutation], leases: Vec<Lease>) {
        let writes = Shard::oldest_writes(batch);
        let tables = writes.iter().map(|(table, _)| *table).collect();
        let unfinished = Unfinished { writes, leases, has_failed: false };
        self.unfinished.borrow_mut().insert(id, unfinished);
        self.note(shard, tables);
    }

    /// Its parts may be there or not. Its leases do not end before it is replayed: what later writes change in views must be derived from
    /// all of it.
    fn fail(&self, id: &BatchId) {
        if let Some(unfinished) = self.unfinished.borrow_mut().get_mut(id) {
            unfinished.has_failed = true;
        }
    }

    /// The batch is not applied again.
    fn end(&self, shard: &Shard, id: &BatchId) {
        let Some(unfinished) = self.unfinished.borrow_mut().remove(id) else { return };
        self.note(shard, unfinished.writes.into_iter().map(|(table, _)| table).collect());
    }

    /// Has compactions keep what could delete writes of unfinished batches.
    fn note(&self, shard: &Shard, tables: BTreeSet<TableId>) {
        for table in tables {
            let unfinished = self.unfinished.borrow();
            let writes = unfinished.values().flat_map(|batch| &batch.writes);
            let writes = writes.filter(|(of, _)| *of == table);
            shard.note_batched(table, writes.map(|(_, oldest)| *oldest).min().unwrap_or(i64::MAX));
        }
    }

    /// Deletes the entry of a batch that is applied. Nothing waits for it: the batch would only be replayed once more.
    fn delete(self: &Rc<Self>, shard: &Rc<Shard>, log: Arc<Table>, id: BatchId) {
        if let Some(unfinished) = self.unfinished.borrow_mut().get_mut(&id) {
            unfinished.leases.clear();
        }
        self.applied.borrow_mut().push(id);
        if !self.deleting.replace(true) {
            let (batchlog, shard) = (self.clone(), shard.clone());
            spawn(async move { batchlog.delete_applied(&shard, &log).await }).detach();
        }
    }

    /// Batches that are applied while others' entries are deleted share the next write of the commit logs.
    async fn delete_applied(&self, shard: &Rc<Shard>, log: &Arc<Table>) {
        loop {
            let ids = self.applied.take();
            if ids.is_empty() {
                break;
            }
            let deletions = ids.iter().map(|id| deleted(log, *id)).collect();
            let mut outcome = sync_logs(shard, 0..shard.engine().shard_count()).await;
            if outcome.is_ok() {
                outcome = apply_by_shard(shard, by_shard(shard, deletions).await).await;
            }
            if outcome.is_ok() {
                ids.iter().for_each(|id| self.end(shard, id));
            }
        }
        self.deleting.set(false);
        self.settled.notify_all();
    }

    /// Waits until no replay runs, and the entries of all batches that are applied are deleted.
    pub(crate) async fn settle(&self) {
        while self.deleting.get() || self.replaying.get() {
            self.settled.notified().await;
        }
    }

    /// Replays this coordinator's batches that should have been finished long ago, at the rate of `batchlog_replay_throttle`.
    pub(crate) async fn replay_late(&self, coordinator: &Coordinator) -> Result<Replayed> {
        self.replaying.set(true);
        let replayed = self.replay_own(coordinator).await;
        self.replaying.set(false);
        self.settled.notify_all();
        replayed
    }

    async fn replay_own(&self, coordinator: &Coordinator) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let allowed = coordinator.limits().write_request_timeout * 2;
        let allowed = i64::try_from(allowed.as_micros()).unwrap_or(i64::MAX);
        let latest = unix_micros().saturating_sub(allowed);
        let is_due = |(id, batch): (&BatchId, &Unfinished)| {
            let due = batch.has_failed || uuid::unix_micros(id) <= latest;
            due.then_some((*id, batch.has_failed))
        };
        let late: Vec<(BatchId, bool)> =
            self.unfinished.borrow().iter().filter_map(is_due).collect();
        let Some(log) = table(coordinator) else { return Ok(replayed) };
        let shards = coordinator.shard().engine().shard_count() as u64;
        let rate = coordinator.limits().batchlog_replay_throttle / shards.max(1);
        for (id, has_failed) in late {
            let key = PartitionKey::of(&id);
            let token = key.token;
            let (table, target) = (log.clone(), ReadTarget::Partition(key));
            let job = move |shard: Rc<Shard>| async move { entries(&shard, table, target).await };
            let found = coordinator.on_owner(token, job).await?;
            if found.is_empty() {
                if has_failed {
                    // What could not be stored may be in the commit log nevertheless.
                    write::apply(coordinator, vec![deleted(&log, id)]).await?;
                    sync_logs(coordinator.shard(), 0..shards as usize).await?;
                }
                // Or its entry is deleted already.
                self.end(coordinator.shard(), &id);
            }
            for (id, batch) in found {
                self.replay(coordinator, &log, id, &batch, &mut replayed).await?;
                if rate > 0 {
                    let pause = batch.len() as f64 / rate as f64;
                    clock::sleep(Duration::from_secs_f64(pause)).await;
                }
            }
        }
        Ok(replayed)
    }

    /// Replays what is in the table on all shards.
    pub(crate) async fn replay_all(&self, coordinator: &Coordinator) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        let Some(log) = table(coordinator) else { return Ok(replayed) };
        for shard in 0..coordinator.shard().engine().shard_count() {
            let table = log.clone();
            let range = TokenRange { start: RangeBound::Open, end: RangeBound::Open };
            let target = ReadTarget::Range(range);
            let job = move |shard: Rc<Shard>| async move { entries(&shard, table, target).await };
            for (id, batch) in coordinator.on_shard(shard, job).await? {
                self.replay(coordinator, &log, id, &batch, &mut replayed).await?;
            }
        }
        coordinator.shard().engine().batches_replayed();
        Ok(replayed)
    }

    /// Replays one batch and deletes its entry. One that cannot be decoded is skipped, as Cassandra does (`BatchlogManager`): it
    /// would fail the same way each time, and at start keep the node down.
    async fn replay(
        &self,
        coordinator: &Coordinator,
        log: &Arc<Table>,
        id: BatchId,
        batch: &[u8],
        replayed: &mut Replayed,
    ) -> Result<()> {
        let (shard, engine) = (coordinator.shard(), coordinator.shard().engine());
        match decode_mutations(batch, &engine.catalog()) {
            Ok(mut mutations) => {
                let truncated = engine.truncation_times().await?;
                let written_at = uuid::unix_micros(&id).div_euclid(1000);
                mutations.retain(|mutation| {
                    truncated.get(&mutation.table).is_none_or(|time| *time < written_at)
                });
                write::apply(coordinator, mutations).await?;
                sync_logs(shard, 0..engine.shard_count()).await?;
                replayed.batches += 1;
            }
            Err(why) => {
                let id = uuid::text(&id);
                replayed.warnings.push(format!("skipped batch replay of {id} due to {why}"));
            }
        }
        write::apply(coordinator, vec![deleted(log, id)]).await?;
        self.end(shard, &id);
        Ok(())
    }

    /// Replays all batches; then nothing is left of the table, in memory or on disk.
    pub(crate) async fn close(&self, coordinator: &Coordinator) -> Result<()> {
        self.replay_all(coordinator).await?;
        match table(coordinator) {
            Some(log) => Ok(coordinator.shard().engine().clear(log.id).await?),
            None => Ok(()),
        }
    }
}

/// An id whose row this shard has itself, so that no other needs to be woken to store and to delete it. By its time a replay knows what
/// was truncated later.
fn own_id(coordinator: &Coordinator) -> BatchId {
    let (shard, uuids) = (coordinator.shard(), coordinator.uuids());
    let ticks = uuid::ticks_at(shard.engine().write_time().micros);
    let mut id = uuids.with_ticks(ticks);
    for _ in 0..8 * shard.engine().shard_count() {
        if shard.engine().owner(murmur3_token(&id).0) == shard.index() {
            break;
        }
        id = uuids.with_ticks(ticks);
    }
    id
}

fn table(coordinator: &Coordinator) -> Option<Arc<Table>> {
    coordinator.shard().engine().catalog().table("system", "batches").cloned()
}

fn column(log: &Table, name: &str) -> Result<ColumnRef> {
    log.find_column(name)
        .ok_or_else(|| Error::Server(format!("system.batches has no column {name}")))
}

/// The row that keeps a batch.
fn stored(log: &Arc<Table>, id: BatchId, path: [u8; 16], batch: &[u8]) -> Result<Mutation> {
    let now = uuid::unix_micros(&id);
    let mut row = RowBuf::new();
    row.parts.liveness =
        Liveness { timestamp: now, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    let values: [(&str, &[u8], &[u8]); 2] =
        [("mutations", &path, batch), ("version", &[], &VERSION.to_be_bytes())];
    for (name, path, value) in values {
        let cell = StoredCell {
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

/// The deletion has the timestamp of the row, which is enough: of equal ones the deletion wins, whatever the clock did meanwhile.
fn deleted(log: &Arc<Table>, id: BatchId) -> Mutation {
    let now = uuid::unix_micros(&id);
    let mut mutation = Mutation::new(log.id, log.layout.clone(), PartitionKey::of(&id));
    let seconds = u32::try_from(now.div_euclid(1_000_000)).unwrap_or(0);
    mutation.deletion = DeletionTime { marked_for_delete_at: now, local_deletion_time: seconds };
    mutation
}

/// Batches that one shard has in the table.
async fn entries(
    shard: &Shard,
    table: Arc<Table>,
    target: ReadTarget,
) -> Result<Vec<(BatchId, Vec<u8>)>> {
    let column = column(&table, "mutations")?.index;
    let read = Read { table, target, slices: Slices::all() };
    let mut stream = shard.read(read).await.map_err(Error::from)?;
    let mut found = Vec::new();
    let mut id = None;
    let mut deletion = DeletionTime::LIVE;
    while stream.advance().await.map_err(Error::from)? {
        match stream.fragment() {
            Fragment::Start(start) => {
                id = BatchId::try_from(start.key.bytes.as_slice()).ok();
                deletion = start.deletion;
            }
            Fragment::Row(row) => {
                let live = |cell: &&StoredCell| {
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
