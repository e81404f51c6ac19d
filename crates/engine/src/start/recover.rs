//! Replays the commit logs into SSTables before the node serves requests.
//!
//! 1. Records of the schema's tables are replayed first, in memory only, because decoding the others needs the schema. This pass also
//!    finds the positions of truncations.
//! 2. All records are replayed into memtables, except those before a later truncation. Memtables that reach their share of the memory are
//!    flushed between two segments, the others at the end; only then are the segments deleted. If the start is interrupted, the next one
//!    repeats all of it: writes have timestamps, so a repetition changes nothing.
//! 3. Tables are not compacted meanwhile: a tombstone could be purged before the older write that it deletes is flushed.
//!
//! The records of a shard are in order, and a log is always a suffix of its history (`commitlog`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use halcyon_commitlog::{ReplayOptions, ReplayPosition, ReplayReport, Visited, replay};
use halcyon_io::clock::Instant;
use halcyon_io::{Disk, Mutex};
use halcyon_schema::catalog::Table;
use halcyon_stream::TableId;

use crate::at_once;
use crate::flush::{Flusher, Uncommitted};
use crate::memtable::Memtable;
use crate::tables::store::Store;
use crate::write::{Entry, read_record};
use crate::{Error, Options, Result};

pub(crate) type Replayed = BTreeMap<TableId, Memtable>;

/// The SSTables of a replay. They are committed when all of it has succeeded: the start that comes after a failed one replays the same
/// records again, and on a full disk it must find the room that this one found.
#[derive(Default)]
struct Outputs(Mutex<Vec<(Arc<Store>, Uncommitted)>>);

impl Outputs {
    fn take(&self) -> Vec<(Arc<Store>, Uncommitted)> {
        std::mem::take(&mut *self.0.lock())
    }

    fn add(&self, store: Arc<Store>, written: Uncommitted) {
        self.0.lock().push((store, written));
    }
}

/// The position of a table's last truncation in each shard's log; it concerns only that shard's writes.
pub(crate) type Truncations = BTreeMap<(u32, TableId), ReplayPosition>;

/// A long replay reports its progress this often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) replayed: u64,
    pub(crate) skipped: u64,
    /// Writes to tables that are set apart.
    pub(crate) set_apart: u64,
}

/// The state of a replay.
struct Gathered {
    tables: BTreeMap<TableId, Arc<Table>>,
    set_apart: BTreeSet<TableId>,
    truncations: Truncations,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_shard: BTreeMap<u32, Replayed>,
    counts: Counts,
    truncations: Truncations,
}

impl Gathered {
    fn new(
        tables: BTreeMap<TableId, Arc<Table>>,
        set_apart: BTreeSet<TableId>,
        truncations: Truncations,
    ) -> Arc<Gathered> {
        Arc::new(Gathered { tables, set_apart, truncations, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn visit(&self, shard: u32, at: ReplayPosition, bytes: &[u8]) -> Result<(), String> {
        let entries = read_record(bytes, |id| self.tables.get(id).cloned())
            .map_err(|e| format!("a commit log record cannot be understood {e}"))?;
        let mut state = self.state();
        let State { by_shard, counts, truncations } = &mut *state;
        let memtables = by_shard.entry(shard).or_default();
        for entry in entries {
            match entry {
                Entry::Mutation(mutation) => {
                    let Some(table) = self.tables.get(&mutation.table) else { continue };
                    if self.truncations.get(&(shard, table.id)).is_some_and(|later| at < *later) {
                        continue;
                    }
                    let memtable = memtables
                        .entry(mutation.table)
                        .or_insert_with(|| Memtable::new(table.clone()));
                    memtable.apply(mutation).map_err(|e| e.to_string())?;
                    counts.replayed += 1;
                }
                Entry::Truncated(id) => {
                    truncations.insert((shard, id), at);
                    memtables.remove(&id);
                }
                Entry::Skipped(table) if self.set_apart.contains(&table) => counts.set_apart += 1,
                Entry::Skipped(_) => counts.skipped += 1,
            }
        }
        Ok(())
    }

    /// A shard's memtables, if they have reached the limit.
    fn grown(&self, shard: u32, limit: usize) -> Replayed {
        let mut state = self.state();
        let Some(memtables) = state.by_shard.get_mut(&shard) else { return Replayed::new() };
        let bytes: usize = memtables.values().map(Memtable::bytes).sum();
        if bytes < limit { Replayed::new() } else { std::mem::take(memtables) }
    }
}

fn replay_options(options: &Options) -> ReplayOptions {
    ReplayOptions {
        directory: options.commitlog.directory.clone(),
        mode: options.commitlog.mode,
        threads: options.shards,
        on_corruption: options.on_corruption,
    }
}

fn refused(error: halcyon_commitlog::Error) -> Error {
    match error {
        halcyon_commitlog::Error::Io(_) => Error::CommitLog(error),
        other => Error::CannotStart(other.to_string()),
    }
}

/// Replays the records of the schema's tables. Returns their memtables by shard, and the positions of truncations.
pub(crate) async fn replay_schema(
    disk: &Disk,
    options: &Options,
    tables: BTreeMap<TableId, Arc<Table>>,
) -> Result<(Vec<Replayed>, Truncations, ReplayReport)> {
    let gathered = Gathered::new(tables, BTreeSet::new(), Truncations::new());
    let shared = gathered.clone();
    let visit = move |shard: u32, at, bytes: &[u8]| shared.visit(shard, at, bytes);
    let report = replay(disk, &replay_options(options), visit, async |_| Ok(())).await;
    let report = report.map_err(refused)?;
    let State { by_shard, truncations, .. } = std::mem::take(&mut *gathered.state());
    Ok((by_shard.into_values().collect(), truncations, report))
}

impl Flusher {
    /// Replays all records into SSTables.
    pub(crate) async fn replay_all(
        self: &Arc<Flusher>,
        truncations: Truncations,
        report: &StartProgress,
    ) -> Result<(Counts, ReplayReport)> {
        let (tables, storage) = (&self.tables, &self.tables.storage);
        let stores = tables.stores.load_full();
        let known = stores.iter().map(|(id, store)| (*id, store.table())).collect();
        let set_apart = tables.catalog().set_apart.values().filter_map(|apart| apart.id).collect();
        let gathered = Gathered::new(known, set_apart, truncations);
        let visit = {
            let gathered = gathered.clone();
            move |shard: u32, at, bytes: &[u8]| gathered.visit(shard, at, bytes)
        };
        let limit = storage.options.memtable_space / 2 / storage.options.shards as u64;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let progress = Mutex::new(storage.disk.clock().now());
        let outputs = Arc::new(Outputs::default());
        let pause = {
            let (gathered, flusher, report) = (gathered.clone(), self.clone(), report.clone());
            let outputs = outputs.clone();
            async move |visited: Visited| {
                flusher.report_progress(&progress, visited, &report);
                let grown = gathered.grown(visited.shard, limit);
                flusher.write_replayed(grown, &outputs).await.map_err(|e| e.to_string())
            }
        };
        let options = replay_options(&storage.options);
        let replayed = async {
            let report = replay(&storage.disk, &options, visit, pause).await.map_err(refused)?;
            let State { by_shard, counts, .. } = std::mem::take(&mut *gathered.state());
            for memtables in by_shard.into_values() {
                self.write_replayed(memtables, &outputs).await?;
            }
            Ok((counts, report))
        };
        let replayed: Result<_> = replayed.await;
        let committed = self.end_replay(outputs.take(), replayed.is_ok()).await;
        let replayed = replayed?;
        committed?;
        Ok(replayed)
    }

    /// Commits the SSTables of a replay, or deletes them, and after a failed commit those that are left.
    async fn end_replay(
        &self,
        outputs: Vec<(Arc<Store>, Uncommitted)>,
        succeeded: bool,
    ) -> Result<()> {
        let commits = Cell::new(succeeded);
        let commits = &commits;
        let end = |(store, written): (Arc<Store>, Uncommitted)| async move {
            if commits.get() {
                let committed = self.commit_written(&store, written).await;
                return committed.map(drop).inspect_err(|_| commits.set(false));
            }
            // If this fails too, the next start does it.
            let _ = written.abort().await;
            Ok(())
        };
        at_once::each(outputs, end).await
    }

    /// Writes replayed memtables as SSTables that are not committed.
    async fn write_replayed(&self, memtables: Replayed, outputs: &Outputs) -> Result<()> {
        let write = |(id, memtable): (TableId, Memtable)| async move {
            let store = self.tables.stores.load().get(&id).cloned();
            if let Some(store) = store
                && let Some(written) =
                    self.write_uncommitted(&store, Arc::new(memtable), None).await?
            {
                outputs.add(store, written);
            }
            Ok(())
        };
        at_once::each(memtables, write).await
    }

    fn report_progress(&self, last: &Mutex<Instant>, visited: Visited, report: &StartProgress) {
        let now = self.tables.storage.disk.clock().now();
        let mut last = last.lock();
        if now - *last >= PROGRESS_INTERVAL {
            *last = now;
            report(format!(
                "replaying: {} of {} commit log segments",
                visited.segments, visited.of
            ));
        }
    }

    /// Writes memtables as SSTables.
    pub(crate) async fn flush_replayed(&self, memtables: Replayed) -> Result<()> {
        for (id, memtable) in memtables {
            let store = self.tables.stores.load().get(&id).cloned();
            if let Some(store) = store {
                self.write_live(&store, Arc::new(memtable), None).await?;
            }
        }
        Ok(())
    }
}

/// Called with the progress of a long start.
pub type StartProgress = Arc<dyn Fn(String) + Send + Sync>;
