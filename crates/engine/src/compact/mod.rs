//! Compactions: on threads of their own, at idle priority.
//!
//! ```text
//!  flush, compaction, the minute ─► schedule ─► compaction threads ─► claims: pick, then run ─► version
//!                                      ▲               │
//!                     control thread ──┴─ pace, backlog ┘
//! ```
//! 1. A table whose SSTables have changed is queued (`schedule`). A compaction thread lets its strategy pick a task, and claims
//!    the inputs in the same step (`claims`): several compactions of one table run at a time, on disjoint inputs.
//! 2. The merge writes new SSTables in a transaction. They are opened, the transaction commits, and an edit installs them in the version;
//!    the inputs' files are deleted when the last reader drops them.
//! 3. The settings, the read latency and the backlog set their rate (`pace`, `backlog`), which one thread controls (`control`).
//! 4. What became of them is written down (`history`, `failure`).

mod backlog;
mod claims;
mod control;
mod failure;
mod history;
mod major;
mod pace;
mod pick;
mod schedule;
mod selected;
mod selection;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::mpsc::UnboundedReceiver;
use halcyon_compaction::strategy::{Output, shard_boundaries};
use halcyon_compaction::{Group, Outcome, Progress, Settings, Snapshot, write};
use halcyon_io::clock::Instant;
use halcyon_io::{Disk, StreamOptions, Thread};
use halcyon_sstable::{Carry, ExpirationOverflow, SSTableId, Version};
use halcyon_stream::TableId;

use crate::engine::Engine;
use crate::store::Store;
use crate::version::{Edit, LiveSSTable, LiveSetBound, replaced};
use crate::{Options, Result};
use pace::Pace;
use schedule::{Job, Schedule};

pub(crate) use backlog::DebtCache;
pub use backlog::TableBacklog;
pub(crate) use claims::{Claim, Claims, Closed};
pub(crate) use failure::Backoff;
pub use major::{MajorCompaction, MajorState};
pub use pace::CompactionPace;
#[cfg(test)]
pub(crate) use pick::{candidates, groups};
pub(crate) use pick::{strategy_of, write_level};
pub use selection::Selection;

/// Read-ahead of one compaction, all its inputs together.
const READ_AHEAD: usize = 8 << 20;

/// Why there is a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompactionKind {
    /// Picked by the strategy.
    #[default]
    Background,
    /// Requested by an operator.
    Major,
    /// Of one SSTable, for its tombstones.
    Tombstone,
}

impl CompactionKind {
    /// As Cassandra's `OperationType`.
    pub fn name(self) -> &'static str {
        match self {
            CompactionKind::Background => "Compaction",
            CompactionKind::Major => "Major compaction",
            CompactionKind::Tombstone => "Tombstone Compaction",
        }
    }
}

/// What outputs look like.
#[derive(Debug, Clone, Default)]
struct Shape {
    kind: CompactionKind,
    level: Option<i32>,
    split_size: Option<u64>,
    split_tokens: Vec<i64>,
    level_fanout: Option<u32>,
    smallest_half: Option<u64>,
}

impl Shape {
    fn of(kind: CompactionKind, output: Output) -> Shape {
        let level = |level| i32::try_from(level).ok();
        let shape = Shape { kind, ..Shape::default() };
        match output {
            Output::Single { level: of } | Output::Relevel { level: of } => {
                Shape { level: level(of), ..shape }
            }
            Output::Sized { level: of, max_size } => {
                Shape { level: level(of), split_size: Some(max_size), ..shape }
            }
            Output::Levels { max_size, fanout } => Shape {
                level: Some(1),
                split_size: Some(max_size),
                level_fanout: Some(fanout),
                ..shape
            },
            Output::Halves { smallest } => {
                Shape { level: Some(0), smallest_half: Some(smallest), ..shape }
            }
            Output::Sharded { shards } => Shape { split_tokens: shard_boundaries(shards), ..shape },
        }
    }
}

pub(crate) struct Compactions {
    schedule: Arc<Schedule>,
    /// Until the control thread takes it.
    listener: Mutex<Option<UnboundedReceiver<()>>>,
    control: Mutex<Option<Thread<()>>>,
    pace: Pace,
    running: Mutex<Vec<Running>>,
    next: AtomicU64,
    /// The last major compaction of each table.
    majors: Mutex<Vec<(TableId, MajorCompaction)>>,
}

/// A compaction that runs.
#[derive(Clone)]
struct Running {
    number: u64,
    /// A timeuuid.
    id: [u8; 16],
    store: Arc<Store>,
    keyspace: String,
    table: String,
    kind: CompactionKind,
    level: i32,
    sstables: usize,
    /// Of the inputs, as stored.
    bytes: u64,
    directory: String,
    began: Instant,
    progress: Progress,
}

/// A compaction that runs, as `system_views.sstable_tasks` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionTask {
    /// A timeuuid.
    pub id: [u8; 16],
    pub keyspace: String,
    pub table: String,
    pub kind: CompactionKind,
    pub sstables: usize,
    /// Of the inputs, as stored.
    pub bytes: u64,
    pub directory: String,
    pub progress: Snapshot,
}

impl Running {
    fn id_text(&self) -> String {
        halcyon_model::uuid::text(&self.id)
    }
}

impl Compactions {
    pub(crate) fn new(disk: &Disk, options: &Options) -> Compactions {
        let (schedule, listener) = Schedule::new(options.concurrent_compactors.max(1));
        let (ceiling, target) = (options.compaction_throughput, options.compaction_latency_target);
        Compactions {
            schedule,
            listener: Mutex::new(Some(listener)),
            control: Mutex::default(),
            pace: Pace::new(disk.clock().clone(), ceiling, target),
            running: Mutex::default(),
            next: AtomicU64::new(1),
            majors: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_listener(&self) -> Option<UnboundedReceiver<()>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set_control(&self, thread: Thread<()>) {
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    fn cancel(&self, which: impl Fn(&Store) -> bool) {
        self.running().iter().filter(|r| which(&r.store)).for_each(|r| r.progress.cancel());
    }

    /// Runs a job on a compaction thread.
    pub(crate) fn add_job(&self, job: Job) {
        self.schedule.add(job);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.schedule.is_stopped()
    }

    /// No new ones; those that run stop at the next partition. Returns when none is left.
    pub(crate) async fn stop(&self) {
        self.schedule.stop();
        self.cancel(|_| true);
        self.schedule.until_idle().await;
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(control) = control {
            // It was woken by the stop, and does nothing that takes time; a panic was told when it happened.
            let _ = control.join().await;
        }
    }
}

/// Takes a compaction off the list of those that run.
struct Listed<'a>(&'a Compactions, u64);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.running().retain(|running| running.number != self.1);
    }
}

impl Engine {
    #[cfg(test)]
    pub(crate) fn compactions_are_idle(&self) -> bool {
        !self.compactions.schedule.is_working() && self.compactions.schedule.waiting() == 0
    }

    /// What runs now.
    pub fn compactions(&self) -> Vec<CompactionTask> {
        let shown = |running: &Running| CompactionTask {
            id: running.id,
            keyspace: running.keyspace.clone(),
            table: running.table.clone(),
            kind: running.kind,
            sstables: running.sstables,
            bytes: running.bytes,
            directory: running.directory.clone(),
            progress: running.progress.snapshot(),
        };
        self.compactions.running().iter().map(shown).collect()
    }

    /// Cancels what compacts the table, waits for its end, and lets nothing begin while the answer is held.
    pub(crate) async fn stop_compactions(&self, store: &Arc<Store>) -> Closed {
        store.claims.close(|| self.compactions.cancel(|running| running.id == store.id)).await
    }

    pub(crate) fn fresh_timeuuid(&self) -> [u8; 16] {
        let nanos =
            u64::try_from(self.disk.clock().unix_micros()).unwrap_or(0).saturating_mul(1000);
        let id = SSTableId::fresh(nanos, self.disk.runtime().random().next_u64());
        id.to_uuid().unwrap_or_default()
    }

    fn begin(&self, store: &Arc<Store>, group: &Group, shape: &Shape) -> Running {
        let table = store.table();
        let level = group.inputs.iter().map(|i| i.statistics().stats.level).min().unwrap_or(0);
        let directory =
            group.inputs.first().map(|i| i.descriptor().directory.display().to_string());
        let running = Running {
            number: self.compactions.next.fetch_add(1, Relaxed),
            id: self.fresh_timeuuid(),
            store: store.clone(),
            keyspace: table.schema.keyspace.clone(),
            table: table.schema.name.clone(),
            kind: shape.kind,
            level: shape.level.unwrap_or(level),
            sstables: group.inputs.len(),
            bytes: group.inputs.iter().map(|i| i.file_length()).sum(),
            directory: directory.unwrap_or_default(),
            began: self.disk.clock().now(),
            progress: Progress::default(),
        };
        self.compactions.running().push(running.clone());
        if self.compactions.schedule.is_stopped() {
            running.progress.cancel();
        }
        running
    }

    /// Runs one compaction on the caller's thread; the caller has claimed the inputs.
    ///
    /// The outputs are opened before the transaction commits: one that cannot be opened is deleted, and the inputs stay. Once it has
    /// committed nothing fails any more that could leave the live set without what the disk has.
    async fn compact_inputs(
        &self,
        store: &Arc<Store>,
        inputs: &[Arc<LiveSSTable>],
        shape: Shape,
    ) -> Result<Outcome> {
        let sstables = inputs.iter().map(|live| live.sstable().clone()).collect();
        let group = Group { inputs: sstables, elsewhere: Vec::new() };
        let running = self.begin(store, &group, &shape);
        let listed = Listed(&self.compactions, running.number);
        let carrier = self.carrier(store, true);
        let mut settings = self.compaction_settings(store, inputs, shape)?;
        settings.carry = carrier.clone().map(|carrier| carrier as Arc<dyn Carry>);
        let sealed = write(&self.disk, &group, &settings, &running.progress).await?;
        let added = match self.open_outputs(store, &sealed.outcome, &running.progress).await {
            Ok(added) => {
                for live in &added {
                    self.hand_over(store, live, carrier.as_ref()).await;
                }
                added
            }
            Err(e) => {
                // Where even the cleaning fails, the log stays and the next start finishes it.
                let _ = sealed.abort().await;
                return Err(e);
            }
        };
        let (outcome, leftovers) = match sealed.commit().await {
            Ok(committed) => committed,
            Err(e) => {
                if matches!(e, halcyon_compaction::Error::InDoubt(_)) {
                    // Until the next start the inputs stay as they are, or what they hold could be purged and come back with the outputs.
                    inputs.iter().for_each(|live| live.suspect());
                    store.doubt();
                }
                self.forget(&added, carrier)().await;
                return Err(e.into());
            }
        };
        if let Some(leftovers) = leftovers {
            replaced(inputs, leftovers, self.forget(inputs, carrier), self.flushers.clone());
        }
        self.admit(store, added, |added| Edit::replace(inputs, added)).await;
        drop(listed);
        self.write_down(store, &running, &outcome).await;
        Ok(outcome)
    }

    async fn open_outputs(
        &self,
        store: &Arc<Store>,
        outcome: &Outcome,
        progress: &Progress,
    ) -> Result<Vec<Arc<LiveSSTable>>> {
        let definition = store.definition.load_full();
        let mut opened = Vec::with_capacity(outcome.outputs.len());
        for output in &outcome.outputs {
            let mode = self.options.read_mode;
            let live = LiveSSTable::open(&self.disk, output, &definition.schema, mode).await?;
            let go_on = |_| !progress.is_cancelled();
            self.build_indexes(&live, &definition.indexes, go_on).await?;
            opened.push(live);
        }
        Ok(opened)
    }

    /// The version of a compaction's outputs. What was written in a version with late expirations stays in one.
    fn output_version(&self, inputs: &[Arc<LiveSSTable>]) -> Version {
        let inputs: Vec<_> = inputs.iter().map(|live| live.sstable().clone()).collect();
        let late = inputs.iter().any(|input| input.descriptor().version.has_uint_deletion_time());
        halcyon_compaction::version_holding(self.version, &inputs, late)
    }

    fn compaction_settings(
        &self,
        store: &Arc<Store>,
        inputs: &[Arc<LiveSSTable>],
        shape: Shape,
    ) -> Result<Settings> {
        let definition = store.definition.load_full();
        let options = &definition.schema.options;
        let now = u32::try_from(self.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        let ids = {
            let (store, disk, options) = (store.clone(), self.disk.clone(), self.options.clone());
            move || store.fresh_id(&disk, &options)
        };
        let serials = inputs.iter().map(|live| live.serial()).collect();
        let bound = LiveSetBound::new(store.clone(), serials);
        Ok(Settings {
            output: None,
            ids: Some(Arc::new(ids)),
            keep_inputs: false,
            usable_space: self.options.compaction_space,
            version: self.output_version(inputs),
            expiration_overflow: ExpirationOverflow::Cap,
            compression: options.compression(),
            bloom_filter_fp_chance: options.bloom_filter_fp_chance(),
            min_index_interval: options.min_index_interval(),
            column_index_size: self.options.column_index_size,
            gc_before: now.saturating_sub(options.gc_grace_seconds()),
            now,
            strict_liveness: definition.schema.strict_liveness,
            split_size: shape.split_size,
            smallest_half: shape.smallest_half,
            split_tokens: shape.split_tokens,
            level: shape.level,
            level_fanout: shape.level_fanout,
            provenance: None,
            purge_bound: Some(Arc::new(bound)),
            read_mode: self.options.background_read_mode,
            write_mode: self.options.background_write_mode,
            read_ahead: StreamOptions::default(),
            read_ahead_budget: READ_AHEAD,
            write_buffer: self.options.direct_write_buffer_size,
            carry: None,
            limiter: self.compactions.pace.limiter.clone(),
            own_thread: true,
            read_back: false,
        })
    }
}
