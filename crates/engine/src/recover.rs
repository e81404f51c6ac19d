//! What the commit logs hold goes into SSTables before anything is served.
//!
//! 1. The schema's own records are replayed first, in memory only: the others cannot be understood without the schema.
//! 2. All records are replayed into memtables, these are flushed, and only then the segments are deleted. A start that is cut
//!    short does it all again: writes carry their timestamps, so twice is once.
//!
//! A shard's records come in their order, and what is left of a log is always the end of its history (`commitlog`); so a
//! record that says "truncated" comes behind all writes that it removes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use halcyon_commitlog::{ReplayOptions, ReplayReport, replay};
use halcyon_cql::catalog::Table;
use halcyon_stream::TableId;

use crate::engine::Engine;
use crate::memtable::Memtable;
use crate::record::{Entry, read_record};
use crate::{Error, Options, Result};

pub(crate) type Replayed = HashMap<TableId, Memtable>;

/// By shard: another one's "truncated" is not about this one's writes.
type ByShard = HashMap<u32, Replayed>;

/// Replays the records of some tables. Returns their memtables, and how many mutations were taken and left out.
pub(crate) async fn replay_tables(
    disk: &halcyon_io::Disk,
    options: &Options,
    tables: HashMap<TableId, Arc<Table>>,
) -> Result<(Vec<Replayed>, Counts, ReplayReport)> {
    let threads = if disk.is_simulated() { 1 } else { options.shards };
    let replay_options = ReplayOptions {
        directory: options.commitlog.directory.clone(),
        mode: options.commitlog.mode,
        threads,
        on_corruption: options.on_corruption,
    };
    let state: Arc<Mutex<(ByShard, Counts)>> = Arc::default();
    let shared = state.clone();
    let visit = move |shard: u32, _, bytes: &[u8]| {
        let entries = read_record(bytes, |id| tables.get(id).cloned())
            .map_err(|e| format!("a commit log record cannot be understood {e}"))?;
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (by_shard, counts) = &mut *state;
        let memtables = by_shard.entry(shard).or_default();
        for entry in entries {
            match entry {
                Entry::Mutation(mutation) => {
                    let Some(table) = tables.get(&mutation.table) else { continue };
                    let memtable = memtables
                        .entry(mutation.table)
                        .or_insert_with(|| Memtable::new(table.clone()));
                    memtable.apply(mutation).map_err(|e| e.to_string())?;
                    counts.replayed += 1;
                }
                Entry::Truncated(id) => drop(memtables.remove(&id)),
                Entry::Skipped => counts.skipped += 1,
            }
        }
        Ok(())
    };
    let report = replay(disk, &replay_options, visit).await.map_err(|e| match e {
        halcyon_commitlog::Error::Io(_) => Error::CommitLog(e),
        other => Error::CannotStart(other.to_string()),
    })?;
    let (by_shard, counts) =
        std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((by_shard.into_values().collect(), counts, report))
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) replayed: u64,
    pub(crate) skipped: u64,
}

impl Engine {
    /// Makes SSTables of replayed memtables.
    pub(crate) async fn flush_replayed(self: &Arc<Engine>, memtables: Replayed) -> Result<()> {
        for (id, memtable) in memtables {
            let store = self.stores.load().get(&id).cloned();
            if let Some(store) = store {
                self.write_memtable(&store, Arc::new(memtable)).await?;
            }
        }
        Ok(())
    }
}
