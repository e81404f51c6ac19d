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
//!    the inputs' files are deleted when the last reader drops them (`job`).
//! 3. The settings, the read latency and the backlog set their rate (`pace`, `backlog`, `pressure`), which the control thread adjusts.
//! 4. What became of them is written down (`history`, `failure`).

mod backlog;
mod backoff;
mod claims;
mod debt;
mod failure;
mod history;
mod job;
mod major;
mod pace;
mod pick;
mod pressure;
mod remove;
pub(crate) mod schedule;
mod selected;
mod selection;
mod task;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard};

use halcyon_io::clock::Instant;
use halcyon_io::{Disk, Mutex};
use halcyon_metrics::Counter;
use halcyon_stream::TableId;

use crate::LatencyTarget;
use crate::background::Background;
use crate::metrics::shards::ShardMetrics;
use crate::reporter::Reporter;
use crate::storage::Storage;
use crate::tables::Tables;
use crate::tables::store::Store;

pub use backlog::TableBacklog;
pub(crate) use backoff::Backoff;
pub(crate) use claims::{Claim, Claims, Closed};
pub(crate) use debt::DebtCache;
pub use major::{MajorCompaction, MajorState};
pub use pace::CompactionPace;
use pace::Pace;
#[cfg(test)]
pub(crate) use pick::{candidates, groups};
pub(crate) use pick::{mutated_statistics, strategy_of, write_level};
pub(crate) use schedule::Schedule;
pub use selection::{Rewrite, Selection};
use task::Running;
pub use task::{CompactionKind, CompactionTask};

/// Merges a table's SSTables, and removes them: by its strategy, or as an operator requests.
pub struct Compactor {
    storage: Arc<Storage>,
    tables: Arc<Tables>,
    reporter: Arc<Reporter>,
    schedule: Arc<Schedule>,
    /// The latency of the reads beside which it runs.
    metrics: Arc<ShardMetrics>,
    /// Deletes the files of replaced SSTables.
    background: Arc<Background>,
    pace: Pace,
    running: Mutex<Vec<Running>>,
    /// Compactions that have ended since the start, and the uncompressed bytes of their inputs.
    ended: Counter,
    ended_bytes: Counter,
    next: AtomicU64,
    /// The last major compaction of each table.
    majors: Mutex<Vec<(TableId, MajorCompaction)>>,
}

impl Compactor {
    pub(crate) fn new(
        tables: &Arc<Tables>,
        metrics: &Arc<ShardMetrics>,
        background: &Arc<Background>,
    ) -> Arc<Compactor> {
        let options = &tables.storage.options;
        let (ceiling, target) = (options.compaction_throughput, options.compaction_latency_target);
        Arc::new(Compactor {
            storage: tables.storage.clone(),
            tables: tables.clone(),
            reporter: tables.reporter.clone(),
            schedule: tables.schedule.clone(),
            metrics: metrics.clone(),
            background: background.clone(),
            pace: Pace::new(tables.storage.disk.clock().clone(), ceiling, target),
            running: Mutex::default(),
            ended: Counter::default(),
            ended_bytes: Counter::default(),
            next: AtomicU64::new(1),
            majors: Mutex::default(),
        })
    }

    fn disk(&self) -> &Disk {
        &self.storage.disk
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock()
    }

    /// Sets `compaction_throughput`; `None`: unlimited.
    pub fn set_throughput(&self, rate: Option<u64>) {
        self.pace.set_throughput(rate);
    }

    /// Sets `compaction_latency_target`.
    pub fn set_latency_target(&self, target: LatencyTarget) {
        self.pace.set_latency_target(target);
        self.schedule.wake();
    }

    /// Sets `concurrent_compactors`. Running compactions continue.
    pub fn set_limit(&self, count: usize) {
        self.schedule.set_limit(count);
    }

    /// The rate, and what it follows.
    pub fn pace(&self) -> CompactionPace {
        self.pace.shown(&self.schedule)
    }

    /// Adjusts the rate; true if it follows the reads now.
    pub(crate) fn keep_pace(&self, now: Instant) -> bool {
        let reads = || self.metrics.read_latency();
        self.pace.keep((self.schedule.is_working(), now), self.disk(), reads)
    }

    /// How many compactions have ended since the start, well or not, and the uncompressed bytes of their inputs.
    pub fn ended(&self) -> (u64, u64) {
        (self.ended.get(), self.ended_bytes.get())
    }

    /// What runs now.
    pub fn tasks(&self) -> Vec<CompactionTask> {
        self.running().iter().map(Running::shown).collect()
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.schedule.is_working() && self.schedule.waiting() == 0
    }

    fn cancel(&self, which: impl Fn(&Store) -> bool) {
        self.running().iter().filter(|r| which(&r.store)).for_each(|r| r.progress.cancel());
    }

    /// Stops the compactions that are selected (`nodetool stop`): their inputs stay. Returns how many.
    pub fn stop_tasks(&self, which: impl Fn(&CompactionTask) -> bool) -> usize {
        let running = self.running();
        let selected = running.iter().filter(|running| which(&running.shown()));
        selected.inspect(|running| running.progress.cancel()).count()
    }

    /// Cancels what compacts the table, waits for its end, and lets nothing begin while the answer is held.
    pub(crate) async fn stop_table(&self, store: &Arc<Store>) -> Closed {
        store.claims.close(|| self.cancel(|running| running.id == store.id)).await
    }

    /// No new ones; those that run stop at the next partition. Returns when none is left.
    pub(crate) async fn stop(&self) {
        self.schedule.stop();
        self.cancel(|_| true);
        self.schedule.until_idle().await;
    }
}
