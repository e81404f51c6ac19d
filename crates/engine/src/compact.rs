//! Compactions: on threads of their own, at idle priority.
//!
//! 1. One at a time on a table; it holds the table's gate. A truncation takes the gate too, after it has told the running one to stop.
//! 2. The merge writes new SSTables in a transaction. When that is committed the view is swapped; the inputs' files go when the last
//!    reader that holds them is gone.

mod background;
mod major;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::lock::OwnedMutexGuard;
use halcyon_compaction::{Group, Outcome, Progress, Settings, Snapshot, run_and_keep};
use halcyon_io::pacing::RateLimiter;
use halcyon_io::{Disk, StreamOptions};
use halcyon_sstable::Compression;
use halcyon_stream::TableId;

use crate::background::Background;
use crate::engine::Engine;
use crate::store::Store;
use crate::view::{Live, Obsolete, swap};
use crate::{Error, Options, Result};

pub use major::{MajorCompaction, MajorState};

/// Read-ahead of one compaction, all its inputs together.
const READ_AHEAD: usize = 8 << 20;
const DEFAULT_GC_GRACE: u32 = 864_000;

/// What outputs look like.
#[derive(Debug, Clone, Default)]
struct Shape {
    level: Option<i32>,
    split_size: Option<u64>,
    split_tokens: Vec<i64>,
}

pub(crate) struct Compactions {
    threads: Arc<Background>,
    limiter: RateLimiter,
    running: Mutex<Vec<Running>>,
    next: AtomicU64,
    stopping: AtomicBool,
    /// Why the last one that failed did.
    failure: Mutex<Option<String>>,
    /// The last major compaction of each table.
    majors: Mutex<Vec<(TableId, MajorCompaction)>>,
}

struct Running {
    number: u64,
    store: Arc<Store>,
    progress: Progress,
}

/// A compaction that runs, as `system_views.sstable_tasks` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionTask {
    pub number: u64,
    pub keyspace: String,
    pub table: String,
    pub progress: Snapshot,
}

impl Compactions {
    pub(crate) fn new(disk: &Disk, options: &Options, threads: Arc<Background>) -> Compactions {
        let clock = disk.clock().clone();
        Compactions {
            threads,
            limiter: RateLimiter::bytes_per_second(clock, options.compaction_throughput),
            running: Mutex::default(),
            next: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            failure: Mutex::default(),
            majors: Mutex::default(),
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    fn note_failure(&self, store: &Store, failed: Option<Error>) {
        use halcyon_compaction::Error::Cancelled;
        let failed = failed.filter(|e| !matches!(e, Error::Compaction(Cancelled)));
        if let Some(e) = failed {
            let text = format!("compaction of {} failed: {e}", store.table().full_name());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
    }

    /// Does what is due, where there are no threads for it.
    pub(crate) async fn catch_up(&self) {
        self.threads.catch_up().await;
    }

    fn begin(&self, store: &Arc<Store>) -> (u64, Progress) {
        let (number, progress) = (self.next.fetch_add(1, Relaxed), Progress::default());
        if self.stopping.load(Relaxed) {
            progress.cancel();
        }
        let running = Running { number, store: store.clone(), progress: progress.clone() };
        self.running().push(running);
        (number, progress)
    }

    fn end(&self, number: u64) {
        self.running().retain(|running| running.number != number);
    }

    fn cancel(&self, which: impl Fn(&Store) -> bool) {
        self.running().iter().filter(|r| which(&r.store)).for_each(|r| r.progress.cancel());
    }

    /// No new ones; those that run stop at the next partition. Returns when none is left.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.cancel(|_| true);
        let stores: Vec<Arc<Store>> = self.running().iter().map(|r| r.store.clone()).collect();
        for store in stores {
            drop(store.gate.lock().await);
        }
    }
}

impl Engine {
    /// What runs now.
    pub fn compactions(&self) -> Vec<CompactionTask> {
        let shown = |running: &Running| {
            let table = running.store.table();
            CompactionTask {
                number: running.number,
                keyspace: table.schema.keyspace.clone(),
                table: table.schema.name.clone(),
                progress: running.progress.snapshot(),
            }
        };
        self.compactions.running().iter().map(shown).collect()
    }

    /// Why the last background compaction that failed did, once.
    pub fn take_compaction_failure(&self) -> Option<String> {
        self.compactions.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// `compaction_throughput` from now on; `None`: no throttle.
    pub fn set_compaction_throughput(&self, rate: Option<u64>) {
        self.compactions.limiter.set_rate(rate);
    }

    pub fn compaction_throughput(&self) -> Option<u64> {
        self.compactions.limiter.rate()
    }

    /// Cancels what compacts the table, waits for its end, and lets nothing begin while the answer is held.
    pub(crate) async fn stop_compactions(&self, store: &Arc<Store>) -> OwnedMutexGuard<()> {
        self.compactions.cancel(|running| running.id == store.id);
        store.gate.clone().lock_owned().await
    }

    /// Runs one compaction, on the thread of the caller, which holds the table's gate.
    async fn compact_group(
        &self,
        store: &Arc<Store>,
        _gate: &OwnedMutexGuard<()>,
        group: Group,
        shape: Shape,
    ) -> Result<Outcome> {
        let settings = self.compaction_settings(store, shape)?;
        let (number, progress) = self.compactions.begin(store);
        let outcome = run_and_keep(&self.disk, &group, &settings, &progress).await;
        self.compactions.end(number);
        let (outcome, leftovers) = outcome?;
        let schema = store.definition.load().schema.clone();
        let mut added = Vec::with_capacity(outcome.outputs.len());
        for output in &outcome.outputs {
            added.push(Live::open(&self.disk, output, &schema, self.options.read_mode).await?);
        }
        let view = store.view.load_full();
        let is_input = |live: &&Arc<Live>| {
            group.inputs.iter().any(|input| input.descriptor() == live.descriptor())
        };
        let gone: Vec<Arc<Live>> = view.sstables.iter().filter(is_input).cloned().collect();
        if let Some(leftovers) = leftovers {
            let obsolete = Obsolete::new(leftovers, self.flushers.clone());
            gone.iter().for_each(|live| live.replaced_by(&obsolete));
        }
        swap(&store.view, &gone, &added);
        Ok(outcome)
    }

    fn compaction_settings(&self, store: &Arc<Store>, shape: Shape) -> Result<Settings> {
        let definition = store.definition.load_full();
        let options = &definition.schema.options;
        let compression = match &options.compression {
            Some(map) => Compression::of_table(map).map_err(Error::Invalid)?,
            None => Some(Compression::default_of_tables()),
        };
        let now = u32::try_from(self.disk.clock().unix_seconds()).unwrap_or(u32::MAX);
        let ids = {
            let (store, disk, options) = (store.clone(), self.disk.clone(), self.options.clone());
            move || store.fresh_id(&disk, &options)
        };
        Ok(Settings {
            output: None,
            ids: Some(Arc::new(ids)),
            keep_inputs: false,
            version: self.options.version,
            compression,
            bloom_filter_fp_chance: options.bloom_filter_fp_chance.unwrap_or(0.01),
            min_index_interval: options.min_index_interval.unwrap_or(128),
            column_index_size: self.options.column_index_size,
            gc_before: now.saturating_sub(options.gc_grace_seconds.unwrap_or(DEFAULT_GC_GRACE)),
            now,
            strict_liveness: definition.schema.is_view,
            split_size: shape.split_size,
            split_tokens: shape.split_tokens,
            level: shape.level,
            unflushed: Some(store.watch_unflushed()),
            read_mode: self.options.background_read_mode,
            write_mode: self.options.background_write_mode,
            read_ahead: StreamOptions::default(),
            read_ahead_budget: READ_AHEAD,
            write_buffer: self.options.direct_write_buffer_size,
            limiter: self.compactions.limiter.clone(),
            own_thread: !self.disk.is_simulated(),
        })
    }
}
