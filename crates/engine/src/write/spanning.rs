//! Writes to partitions of several shards: after a crash all of it is there, or nothing.
//!
//! ```text
//!  the coordinator's shard   one record ─► its log ── durable ──┬─► its memtables
//!                                                               └─► the memtables of others, which log nothing
//! ```
//! 1. The segment of the record is held until every shard has flushed its part.
//! 2. A flush syncs the logs of its records first, of whichever kind. Under `periodic` a power failure could otherwise take a record, and
//!    leave a part of it in an SSTable.
//! 3. A replay applies the record out of the order of the other shards' logs, which may lack a later deletion by then; and their older
//!    writes without the deletions of the record, if that is discarded. So such a table keeps the tombstones that are newer
//!    than what a replay may apply: the writes of such records, and on the shards that have parts of them all that is in their logs.
//! 4. TRUNCATE keeps such writes from running while it empties memtables: in each log its own record then follows all those, of whichever
//!    shard, that it has removed, and none that it has not.
//!
//! Cassandra stores such a batch in `system.batches` first, because its parts go to other nodes; here that would be two more writes and
//! another wait.

use std::rc::Rc;
use std::sync::atomic::Ordering::Release;

use futures_util::future::LocalBoxFuture;
use futures_util::future::join_all;
use halcyon_commitlog::{Hold, Oldest, ReplayPosition};
use halcyon_io::compute;
use halcyon_stream::Mutation;

use super::large;
use super::record::encode;
use crate::memtable::{Memtable, oldest};
use crate::shard::{Shard, ShardTable};
use crate::{Error, Result};

/// The mutations of one write, by the shard that owns their partitions.
pub type Parts = Vec<(usize, Vec<Mutation>)>;

impl Shard {
    /// Applies mutations of several shards' partitions; as [`Shard::apply`] otherwise.
    pub fn apply_spanning(&self, parts: Parts) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reporter().check()?;
            self.wait_for_space().await?;
            for (_, part) in &parts {
                self.wait_for_compaction(part).await;
            }
            let _running = self.spanning.begin().await;
            let logged = self.oldest_logged(&parts);
            let (mut parts, record) = encode_parts(parts, logged.clone()).await?;
            let own = parts.iter().position(|(index, _)| *index == self.index());
            let own = own.map(|at| parts.swap_remove(at).1).unwrap_or_default();
            let pinned = self.pin(own)?;
            let mut hold = None;
            if !logged.is_empty() {
                self.keep_tombstones(&logged);
                let (append, held) = self.log_spanning((&record, &parts), &pinned, &logged)?;
                self.until_durable(append).await?;
                hold = Some(held);
            }
            let others = parts.into_iter().map(|(index, part)| {
                let hold = hold.clone();
                let job = move |shard: Rc<Shard>| async move { shard.apply_held(part, hold).await };
                // Hand-overs may wait for a lock that the caller holds.
                self.tables().mesh.on_urgent(index, job)
            });
            // This shard's part keeps the segment as any record does.
            let (own, others) =
                futures_util::join!(self.apply_pinned(pinned, None), join_all(others));
            others.into_iter().try_fold(own?, |(), other| other?)
        })
    }

    /// Applies a part of a record that another shard has logged. It is durable: what is short of space or damaged here does not undo it.
    async fn apply_held(&self, mut mutations: Vec<Mutation>, hold: Option<Hold>) -> Result<()> {
        let _ = self.wait_for_space().await;
        // A table may have been dropped meanwhile.
        mutations.retain(|mutation| self.table_by_id(mutation.table).is_some());
        let pinned = self.pin(mutations)?;
        pinned.iter().for_each(|pinned| self.expect_replay(&pinned.table));
        self.apply_pinned(pinned, hold.as_ref()).await
    }

    /// The tables of a write that are logged, each with its oldest write.
    fn oldest_logged(&self, parts: &Parts) -> Oldest {
        let mut all = Oldest::default();
        for mutation in parts.iter().flat_map(|(_, part)| part) {
            all.lower_one(mutation.table, oldest(mutation));
        }
        all.retain(|id| {
            let table = self.table_by_id(*id);
            table.is_some_and(|table| table.current().definition.durable)
        });
        all
    }

    /// Before the record can be replayed.
    fn keep_tombstones(&self, logged: &Oldest) {
        for id in logged.tables() {
            if let (Some(table), Some(oldest)) = (self.table_by_id(id), logged.of(&id)) {
                self.keep_since(&table, oldest);
            }
        }
    }

    fn keep_since(&self, table: &ShardTable, oldest: i64) {
        table.metrics().replayed_since.fetch_min(oldest, Release);
        self.replayable.borrow_mut().insert(table.store.id);
    }

    /// Before tombstones of another log's record are applied.
    fn expect_replay(&self, table: &ShardTable) {
        if !table.has_parts.replace(true) {
            let oldest = self.log.flushed().of(&table.store.id).unwrap_or(i64::MAX);
            self.keep_since(table, oldest);
        }
    }

    /// When a memtable's writes are flushed that are older than a position, before they count as flushed.
    pub(crate) fn note_flushed(&self, table: &ShardTable, position: ReplayPosition, oldest: i64) {
        self.log.note_flushed(table.store.id, position, oldest);
        if table.has_parts.get() {
            self.keep_since(table, oldest);
        }
    }

    /// Frees segments without a holder, and lets go of the tombstones that were kept for them.
    pub(crate) fn release_spanning(&self) {
        self.log.release_unheld();
        if self.replayable.borrow().is_empty() {
            return;
        }
        let (spanning, flushed) = (self.log.spanning(), self.log.flushed());
        self.replayable.borrow_mut().retain(|id| {
            let table = self.table_by_id(*id);
            let has_parts = table.as_ref().is_some_and(|table| table.has_parts.get());
            let flushed = flushed.of(id).filter(|_| has_parts);
            let oldest = spanning.of(id).into_iter().chain(flushed).min();
            if let Some(table) = table {
                table.metrics().replayed_since.store(oldest.unwrap_or(i64::MAX), Release);
            }
            oldest.is_some()
        });
    }

    /// Makes the records durable of which a memtable has parts; other parts are in other tables' memtables, or other shards'. Where a log
    /// fails, what it has is saved by flushes alone, which continue.
    pub(crate) async fn sync_records(&self, memtable: &Memtable) {
        if !self.syncs_later() {
            return;
        }
        let _ = self.sync_log().await;
        for shard in memtable.held_shards() {
            let job = |shard: Rc<Shard>| async move { shard.sync_log().await };
            let _ = self.tables().mesh.on_urgent(shard, job).await;
        }
    }
}

/// The record of those that are logged; apart, if it is large.
async fn encode_parts(mut parts: Parts, logged: Oldest) -> Result<(Parts, Vec<u8>)> {
    for (_, part) in &mut parts {
        part.retain(|mutation| !mutation.is_empty());
    }
    let are_large = parts.iter().any(|(_, part)| large::are_large(part));
    let encoded = move || {
        let all = parts.iter().flat_map(|(_, part)| part);
        let record = encode(all.filter(|mutation| logged.of(&mutation.table).is_some()));
        (parts, record)
    };
    match are_large {
        true => compute(encoded).await.map_err(Error::from),
        false => Ok(encoded()),
    }
}
