//! Truncation of a table.
//!
//! 1. Flush the table; with `auto_snapshot`, take a snapshot.
//! 2. On each shard, suspend flushes of the table and drop its memtable. A record in the commit log marks this, because a replay must drop
//!    the same writes.
//! 3. Remove the SSTables in one transaction, resume flushes, and record the truncation in `system.local`.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::JobLost;
use halcyon_model::bytes::Put;
use halcyon_model::{NO_DELETION_TIME, NO_TTL};
use halcyon_schema::system_tables;
use halcyon_stream::{Cell, Mutation, PartitionKey, RowBuf, TableId};

use super::Schema;
use crate::shard::Shard;
use crate::{Error, Result};

impl Schema {
    /// Removes all data of a table on all shards, and records the time (`system.local.truncated_at`).
    pub fn truncate(&self, table: TableId) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reporter.check()?;
            let store = self.tables.store_of(table)?;
            if let Some(apart) = store.apart().first() {
                return Err(Error::Invalid(format!(
                    "{}.{} is not truncated: what an SSTable has that was set apart at the start would come back with it; see \
                 halcyon_views.set_apart",
                    apart.keyspace, apart.table
                )));
            }
            store.check_removable()?;
            // Without this, a crash on the way would forget the deletions in the memtables and keep the rows on disk. Now all
            // rows go in one transaction.
            self.flusher.flush(Some(table)).await?;
            if self.storage.options.auto_snapshot {
                self.snapshots.take_before(&store, "truncated").await?;
            }
            self.clear(table).await?;
            match self.truncation(table) {
                Some(row) => self.tables.persist(vec![row]).await,
                None => Ok(()),
            }
        })
    }

    /// Removes all data of a table, on all shards.
    pub fn clear(&self, table: TableId) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let store = self.tables.store_of(table)?;
            store.check_removable()?;
            let hold = |shard: Rc<Shard>| async move {
                let held = shard.spanning.hold().await;
                shard.spanning_held.borrow_mut().push(held);
            };
            self.tables.mesh.on_each(hold).await.into_iter().collect::<Result<(), _>>()?;
            let empty = move |shard: Rc<Shard>| async move { shard.empty_table(table).await };
            let mut outcome = all_of(self.tables.mesh.on_each(empty).await);
            let free = |shard: Rc<Shard>| async move {
                drop(shard.spanning_held.borrow_mut().pop());
                Ok(())
            };
            outcome = outcome.and(all_of(self.tables.mesh.on_each(free).await));
            if outcome.is_ok() {
                let _compacting = self.compactor.stop_table(&store).await;
                outcome = self.compactor.remove_all(&store).await;
            }
            let release = move |shard: Rc<Shard>| async move {
                shard.release_table(table);
                Ok(())
            };
            outcome = outcome.and(all_of(self.tables.mesh.on_each(release).await));
            // A read that began before this may hold rows that no longer exist.
            store.note_truncation();
            outcome
        })
    }

    /// The entry of `system.local.truncated_at`: a position in the log, which only Cassandra uses, and the time.
    fn truncation(&self, table: TableId) -> Option<Mutation> {
        let system = system_tables();
        let local = system.table("system", "local")?;
        let at = local.layout.regulars.iter().position(|c| c.name == b"truncated_at")?;
        let micros = self.tables.write_time().micros;
        // A batch of the same millisecond is one that came before.
        self.tables.times.note(micros.div_euclid(1000) * 1000 + 999);
        let mut value = Vec::new();
        value.put_i64(-1);
        value.put_i32(0);
        value.put_i64(micros / 1000);
        let mut row = RowBuf::new();
        let (path, value) = (row.store(&table), row.store(&value));
        row.parts.cells.push(Cell {
            column: u16::try_from(at).ok()?,
            ttl: NO_TTL,
            timestamp: micros,
            local_deletion_time: NO_DELETION_TIME,
            path,
            value,
        });
        let mut mutation =
            Mutation::new(local.id, local.layout.clone(), PartitionKey::of(b"local"));
        mutation.rows.push(row);
        Some(mutation)
    }
}

/// The first error of the shards' answers.
fn all_of(answers: Vec<Result<Result<()>, JobLost>>) -> Result<()> {
    answers.into_iter().try_for_each(|answer| answer?)
}

impl Shard {
    /// Drops the table's memtable, and suspends its flushes until `release_table`.
    pub(crate) async fn empty_table(&self, id: TableId) -> Result<()> {
        let Some(table) = self.table_by_id(id) else { return Ok(()) };
        let _changing = self.reporter().changing("a table that is emptied");
        table.held.set(true);
        let append = self.log.append(self.record.borrow_mut().truncated(id), &[id])?;
        let position = append.position;
        drop(table.replace_active(self.now()));
        self.rows.forget_table(id);
        append.durable().await?;
        // Under `periodic` the record is not durable yet, and the data is removed next.
        self.log.sync().await?;
        let _hurry = self.flusher.waits.hurry();
        while !table.frozen.borrow().is_empty() && table.flushing.get() {
            table.flushed.notified().await;
        }
        // What could not be flushed need not be any more.
        drop(table.frozen.take());
        self.recount(&table);
        table.note_memtables();
        self.log.discard_below(id, position);
        Ok(())
    }

    fn release_table(&self, id: TableId) {
        if let Some(table) = self.table_by_id(id) {
            table.held.set(false);
            // Entries that reads of the removed SSTables have made since.
            self.rows.forget_table(id);
        }
    }
}
