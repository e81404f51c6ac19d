//! Memtables become SSTables.
//!
//! 1. Freeze: a new memtable takes the writes; the old one keeps a place in the table's list of frozen ones and is read on
//!    (`freeze.rs`).
//! 2. When its last pin is dropped it is sealed. A flush thread writes it, as slowly as it may (`pace.rs`): transaction log, SSTable,
//!    commit, then the version (`sstable.rs`).
//! 3. It leaves the list, and the commit log is discarded below the position at which it was frozen.
//!
//! A table's memtables are written one after the other, oldest first, so that the log is never discarded above one that is not
//! written yet. What cannot be written stays in memory and in the log; the disk failure policy says what else happens.

mod freeze;
pub(crate) mod pace;
mod sstable;
mod watch;

#[cfg(test)]
pub(crate) use sstable::Extremes;
pub(crate) use sstable::Uncommitted;

use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use halcyon_io::ThreadPriority;
use halcyon_stream::TableId;

use crate::Result;
use crate::at_once;
use crate::background::Background;
use crate::reporter::Reporter;
use crate::shard::{Shard, ShardTable};
use crate::storage::Storage;
use crate::tables::Tables;
use pace::Waits;

/// Writes the shards' memtables as SSTables, on threads of its own.
pub struct Flusher {
    storage: Arc<Storage>,
    pub(crate) tables: Arc<Tables>,
    reporter: Arc<Reporter>,
    /// They also delete the files of replaced SSTables.
    pub(crate) background: Arc<Background>,
    pub(crate) waits: Arc<Waits>,
}

impl Flusher {
    pub(crate) fn new(tables: &Arc<Tables>) -> Arc<Flusher> {
        let storage = tables.storage.clone();
        let (runtime, count) = (storage.disk.runtime(), storage.options.flush_writers);
        let background = Background::start(runtime, "flush", count, ThreadPriority::Batch);
        Arc::new(Flusher {
            background: Arc::new(background),
            waits: Arc::default(),
            reporter: tables.reporter.clone(),
            tables: tables.clone(),
            storage,
        })
    }

    /// Flushes a table's memtables on all shards; all tables if none is named.
    pub fn flush(&self, table: Option<TableId>) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let flush = move |shard: Rc<Shard>| async move {
                let tables: Vec<Rc<ShardTable>> = match table {
                    Some(id) => shard.table_by_id(id).into_iter().collect(),
                    None => shard.all_tables(),
                };
                at_once::each(&tables, |table| shard.flush_table(table)).await
            };
            self.tables.mesh.on_each(flush).await.into_iter().try_for_each(|flushed| flushed?)
        })
    }
}
