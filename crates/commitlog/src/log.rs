//! The façade of one shard's log: append, wait for durability, discard.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use halcyon_io::clock::{Instant, nanos};
use halcyon_io::{AccessMode, Disk, Notify, Task, caught, contained, panic_point, spawn};

use crate::chain::kept;
use crate::format::BLOCK_MIN;
use crate::manifest::{Manifest, manifest_path};
use crate::metrics::LogMetrics;
use crate::pace::{GroupGap, Pace};
use crate::ready::keep_ready;
use crate::shared::{Shared, remove_if_there};
use crate::state::{GROUP_MAX, SegmentParameters, State};
use crate::sync::sync_cached_writes;
use crate::ticket::{Ticket, answer};
use crate::writer::write_groups;
use crate::{Dirty, Error, Hold, Oldest, Options, ReplayPosition, Result, SyncMode, TableId};

/// Under `periodic`, writers wait while more bytes than this are not synced. This bounds the dirty pages when the device is slow.
const UNSYNCED_MAX: usize = 16 * GROUP_MAX;
/// In smaller segments, headers and padding would take most of the space.
const SEGMENT_MIN: u32 = 64 << 10;
const PAGE: u32 = 4096;

/// One shard's log; clones share it. When the last clone is dropped without `close`, the open group is still written, provided
/// that the thread's runtime keeps running.
#[derive(Clone)]
pub struct CommitLog(Rc<Handle>);

/// A record that was appended, and is not yet written.
#[must_use = "a record is durable when `durable` says so"]
pub struct Append {
    pub position: ReplayPosition,
    ticket: Rc<Ticket>,
    shared: Rc<Shared>,
}

struct Handle {
    shared: Rc<Shared>,
    tasks: RefCell<Vec<Task<()>>>,
}

impl CommitLog {
    /// Opens the log of `shard` on this thread, inside `block_on`. `first_segment` must be greater than every id that this
    /// shard has used: `ReplayReport::next_segment`.
    pub fn open(
        disk: Disk,
        options: Options,
        shard: u32,
        first_segment: u64,
    ) -> LocalBoxFuture<'static, Result<CommitLog>> {
        Box::pin(async move {
            disk.create_dir_all(&options.directory).await?;
            if let Some(parent) = options.directory.parent() {
                disk.sync_dir(parent).await?;
            }
            let cached = matches!(options.sync, SyncMode::Periodic { .. });
            // What is written to the page cache survives the process, so `periodic` never bypasses it.
            let mode = if cached { AccessMode::Standard } else { options.mode };
            let choice = disk.resolve_write_mode(&options.directory, mode)?;
            let block = match choice.mode {
                AccessMode::Direct => (choice.alignment.offset as usize).max(BLOCK_MIN),
                _ => PAGE as usize,
            };
            let parameters = SegmentParameters {
                shard,
                salt: salt(disk.clock().unix_micros(), first_segment),
                block,
                segment_size: (options.segment_size / PAGE * PAGE).max(SEGMENT_MIN),
                total_space: options.total_space,
                compression: options.compression,
                cached,
            };
            let kept = kept(&disk, &options.directory, shard).await?;
            let manifest = Manifest::create(&disk, &options.directory, shard, kept).await?;
            let pace = || RefCell::new(Pace::from(disk.clock().now()));
            let pace = (options.sync == SyncMode::Batch).then(pace);
            let metrics = Arc::<LogMetrics>::default();
            let state = State::first(parameters, first_segment, metrics.clone());
            let shared = Rc::new(Shared {
                metrics,
                disk,
                directory: options.directory,
                mode,
                sync: options.sync,
                parameters,
                manifest,
                state: RefCell::new(state),
                pace,
                not_ready: RefCell::default(),
                undeleted: RefCell::default(),
                work: Notify::default(),
                filling: Cell::default(),
                prepare: Notify::default(),
                ready: Notify::default(),
                sync_work: Notify::default(),
                synced: Notify::default(),
                short: Notify::default(),
            });
            shared.make_first().await?;
            let mut tasks = vec![
                spawn(or_broken(shared.clone(), write_groups(shared.clone()))),
                spawn(or_broken(shared.clone(), keep_ready(shared.clone()))),
            ];
            if cached {
                tasks.push(spawn(or_broken(shared.clone(), sync_cached_writes(shared.clone()))));
            }
            Ok(CommitLog(Rc::new(Handle { shared, tasks: RefCell::new(tasks) })))
        })
    }

    /// Reserves a position and copies the record into the open group. Positions increase in the order of the calls.
    pub fn append(&self, record: &[u8], tables: &[TableId]) -> Result<Append> {
        let shared = &self.0.shared;
        let mut state = shared.state.borrow_mut();
        let now = || shared.disk.clock().now();
        let appended = caught(|| {
            panic_point("an append");
            state.append(record, tables, now)
        });
        let Ok(appended) = appended else {
            drop(state);
            shared.break_off();
            return Err(Error::Broken);
        };
        let (position, ticket) = appended?;
        if let Some(pace) = &shared.pace {
            pace.borrow_mut().note_waiting(state.waiting);
        }
        drop(state);
        shared.work.notify_one();
        Ok(Append { position, ticket, shared: shared.clone() })
    }

    /// As [`CommitLog::append`], of a record that has writes of other shards' partitions too: their tables, all of them, with their oldest
    /// writes. `tables` are those of this shard's partitions. The caller that applies a part keeps the [`Hold`] until it is flushed.
    pub fn append_spanning(
        &self,
        record: &[u8],
        tables: &[TableId],
        oldest_writes: &Oldest,
    ) -> Result<(Append, Hold)> {
        let append = self.append(record, tables)?;
        let hold = self.0.shared.state.borrow_mut().hold(oldest_writes);
        hold.map(|hold| (append, hold)).ok_or(Error::Closed)
    }

    /// The writes of spanning records, which a replay may apply without what followed them in other shards' logs: tombstones that are newer
    /// must be kept.
    pub fn spanning(&self) -> Oldest {
        self.0.shared.state.borrow().spanning()
    }

    /// The writes that are flushed, and that a replay may apply all the same; without spanning records of other logs that followed them.
    pub fn flushed(&self) -> Oldest {
        self.0.shared.state.borrow().flushed()
    }

    /// A table's writes below a position are flushed, of which this is the oldest.
    pub fn note_flushed(&self, table: TableId, position: ReplayPosition, oldest: i64) {
        self.0.shared.state.borrow_mut().note_flushed(table, position, oldest);
    }

    /// Frees segments without a [`Hold`].
    pub fn release_unheld(&self) {
        self.free(State::release_unneeded);
    }

    /// Has the files reused or deleted that a change of the state frees.
    fn free(&self, change: impl FnOnce(&mut State)) {
        let shared = &self.0.shared;
        let mut state = shared.state.borrow_mut();
        change(&mut state);
        if !state.free.is_empty() {
            shared.prepare.notify_one();
        }
    }

    /// A position above all records so far, and not above the next one.
    pub fn position(&self) -> ReplayPosition {
        self.0.shared.state.borrow().position()
    }

    /// Tells that the table is flushed up to the position: its records below are no longer needed.
    pub fn discard_below(&self, table: TableId, position: ReplayPosition) {
        self.free(|state| state.discard_below(table, position));
    }

    pub fn metrics(&self) -> Arc<LogMetrics> {
        self.0.shared.metrics.clone()
    }

    /// How far apart its groups start; `None` unless under `batch`.
    pub fn group_gap(&self) -> Option<GroupGap> {
        self.0.shared.pace.as_ref().map(|pace| pace.borrow().gap().clone())
    }

    /// The oldest segment and the tables that keep it, if there is one.
    pub fn oldest_dirty(&self) -> Option<Dirty> {
        self.0.shared.state.borrow().oldest_dirty()
    }

    /// Whether the segments take more than `total_space` allows.
    pub fn is_short_of_space(&self) -> bool {
        self.0.shared.state.borrow().is_short_of_space()
    }

    /// Waits until space is short. Flush the tables of `oldest_dirty` before the next call.
    pub async fn short_of_space(&self) {
        while !self.is_short_of_space() {
            self.0.shared.short.notified().await;
        }
    }

    /// Makes all records durable that were appended before the call.
    pub async fn sync(&self) -> Result<()> {
        let shared = &self.0.shared;
        let last = {
            let mut state = shared.state.borrow_mut();
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            if shared.parameters.cached {
                let (_, since) = state.unsynced();
                since.map(|_| state.sync_wanted.get_or_insert_default().clone())
            } else {
                state.seal();
                state.last_ticket()
            }
        };
        shared.work.notify_one();
        shared.sync_work.notify_one();
        match last {
            Some(ticket) => ticket.answered().await,
            None => Ok(()),
        }
    }

    /// Makes all records durable, refuses new ones, and deletes segments that no table needs.
    pub fn close(&self) -> LocalBoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let synced = self.sync().await;
            let shared = &self.0.shared;
            shared.stop();
            for task in self.0.tasks.take() {
                task.await;
            }
            synced?;
            let unneeded = {
                let mut state = shared.state.borrow_mut();
                state.release_current();
                let free = state.free.drain(..).collect::<Vec<_>>();
                let spares = state.spares.drain(..).map(|spare| spare.id);
                free.into_iter().chain(spares).chain(shared.undeleted.take()).collect::<Vec<_>>()
            };
            shared.manifest.remove(&unneeded).await?;
            for id in unneeded {
                remove_if_there(&shared.disk, &shared.path(id)).await?;
            }
            shared.disk.sync_dir(&shared.directory).await?;
            if shared.manifest.is_empty() {
                let manifest = manifest_path(&shared.directory, shared.parameters.shard);
                remove_if_there(&shared.disk, &manifest).await?;
                shared.disk.sync_dir(&shared.directory).await?;
            }
            Ok(())
        })
    }
}

/// Differs at every start, so that groups of an earlier start are never taken for this one's. The time alone would not do (a
/// clock can be set back), nor would the segment id (ids start over in an emptied directory).
fn salt(unix_micros: i64, first_segment: u64) -> u64 {
    (unix_micros as u64) ^ first_segment.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Runs a task of the log. If it panics, the log's positions are unknown.
async fn or_broken(shared: Rc<Shared>, task: impl Future<Output = ()>) {
    if contained(task).await.is_none() {
        shared.break_off();
    }
}

impl Shared {
    /// Fails the log after a panic, and all who wait for it.
    fn break_off(&self) {
        let (tickets, error) = self.fail(Error::Broken);
        answer(tickets, &error);
        // The waiters of the task that has panicked.
        for notify in [&self.ready, &self.short] {
            notify.notify_one();
        }
    }

    /// Lets the tasks end after their current work.
    fn stop(&self) {
        self.state.borrow_mut().closing = true;
        for notify in [&self.work, &self.prepare, &self.ready, &self.sync_work, &self.short] {
            notify.notify_one();
        }
    }

    /// Under `periodic`: whether a record can be acknowledged before it is durable.
    fn keeps_up(&self, period: Duration) -> bool {
        let (bytes, since) = self.state.borrow().unsynced();
        let late = |since| self.disk.clock().now() - since > period + period / 2;
        bytes <= UNSYNCED_MAX && !since.is_some_and(late)
    }

    fn note_commit_wait(&self, began: Instant) {
        let now = self.disk.clock().now();
        self.metrics.commit_waits.record(nanos(now.saturating_since(began)), now);
    }

    /// Under `periodic`: waits while the sync is late.
    async fn kept_up(&self, period: Duration) -> Result<()> {
        loop {
            let synced = self.synced.notified();
            if self.keeps_up(period) {
                return Ok(());
            }
            {
                let mut state = self.state.borrow_mut();
                if let Some(failed) = &state.failed {
                    return Err(failed.clone());
                }
                state.hurried = true;
            }
            self.sync_work.notify_one();
            synced.await;
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Append {
    /// Returns when the record is as durable as the sync mode promises: under `periodic`, when it survives the process. Dropping the
    /// future does not cancel the write.
    pub async fn durable(self) -> Result<()> {
        let clock = self.shared.disk.clock();
        if let SyncMode::Periodic { period } = self.shared.sync {
            self.ticket.answered().await?;
            if self.shared.keeps_up(period) {
                return Ok(());
            }
            let began = clock.now();
            self.shared.kept_up(period).await?;
            self.shared.note_commit_wait(began);
            return Ok(());
        }
        let began = clock.now();
        self.ticket.answered().await?;
        self.shared.note_commit_wait(began);
        Ok(())
    }
}
