//! The façade of one shard's log: append, wait for durability, discard.

use std::cell::RefCell;
use std::future::poll_fn;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use halcyon_io::{AccessMode, Disk, Notify, Task, spawn};

use crate::format::BLOCK_MIN;
use crate::ready::keep_ready;
use crate::state::{GROUP_MAX, SegmentParameters, State};
use crate::ticket::Ticket;
use crate::writer::write_groups;
use crate::{Dirty, Error, Options, ReplayPosition, Result, SyncMode, TableId};

/// Under `periodic`, writers wait while more bytes than this are not synced. This bounds the memory when the device is slow.
const UNSYNCED_MAX: usize = 16 * GROUP_MAX;
/// In smaller segments, headers and padding would take most of the space.
const SEGMENT_MIN: u32 = 64 << 10;
const PAGE: u32 = 4096;

/// One shard's log; clones share it. When the last clone is dropped without `close`, the open group is still written, provided
/// that the thread's runtime keeps running.
#[derive(Clone)]
pub struct CommitLog(Rc<Handle>);

/// A record that was appended, and is not yet durable.
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

/// The state that the log's handles and its two tasks share.
pub(crate) struct Shared {
    pub(crate) disk: Disk,
    pub(crate) directory: PathBuf,
    pub(crate) mode: AccessMode,
    pub(crate) sync: SyncMode,
    pub(crate) parameters: SegmentParameters,
    pub(crate) state: RefCell<State>,
    /// Why the last segment file could not be prepared.
    pub(crate) not_ready: RefCell<Option<Error>>,
    /// Wakes the writer: a group is open or sealed.
    pub(crate) work: Notify,
    /// Wakes the task that prepares segment files.
    pub(crate) prepare: Notify,
    /// Wakes the writer: a segment file is ready, or cannot be created.
    pub(crate) ready: Notify,
    /// Wakes the task that flushes when space is short.
    pub(crate) short: Notify,
}

impl CommitLog {
    /// Opens the log of `shard` on this thread, inside `block_on`. `first_segment` must be greater than every id that this
    /// shard has used: `ReplayReport::next_segment`.
    pub async fn open(
        disk: Disk,
        options: Options,
        shard: u32,
        first_segment: u64,
    ) -> Result<CommitLog> {
        disk.create_dir_all(&options.directory).await?;
        if let Some(parent) = options.directory.parent() {
            disk.sync_dir(parent).await?;
        }
        let choice = disk.resolve_write_mode(&options.directory, options.mode)?;
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
        };
        let shared = Rc::new(Shared {
            disk,
            directory: options.directory,
            mode: options.mode,
            sync: options.sync,
            parameters,
            state: RefCell::new(State::first(parameters, first_segment)),
            not_ready: RefCell::default(),
            work: Notify::default(),
            prepare: Notify::default(),
            ready: Notify::default(),
            short: Notify::default(),
        });
        shared.make_first().await?;
        let tasks = vec![spawn(write_groups(shared.clone())), spawn(keep_ready(shared.clone()))];
        Ok(CommitLog(Rc::new(Handle { shared, tasks: RefCell::new(tasks) })))
    }

    /// Reserves a position and copies the record into the open group. Positions increase in the order of the calls.
    pub fn append(&self, record: &[u8], tables: &[TableId]) -> Result<Append> {
        let shared = &self.0.shared;
        let mut state = shared.state.borrow_mut();
        let now = || shared.disk.clock().now();
        let (position, ticket) = state.append(record, tables, now)?;
        drop(state);
        shared.work.notify_one();
        Ok(Append { position, ticket, shared: shared.clone() })
    }

    /// A position above all records so far, and not above the next one.
    pub fn position(&self) -> ReplayPosition {
        self.0.shared.state.borrow().position()
    }

    /// Tells that the table is flushed up to the position: its records below are no longer needed.
    pub fn discard_below(&self, table: TableId, position: ReplayPosition) {
        let shared = &self.0.shared;
        let mut state = shared.state.borrow_mut();
        state.discard_below(table, position);
        if !state.free.is_empty() {
            shared.prepare.notify_one();
        }
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
        let last = {
            let mut state = self.0.shared.state.borrow_mut();
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state.seal();
            state.last_ticket()
        };
        self.0.shared.work.notify_one();
        match last {
            Some(ticket) => ticket.answered().await,
            None => Ok(()),
        }
    }

    /// Makes all records durable, refuses new ones, and deletes segments that no table needs.
    pub async fn close(&self) -> Result<()> {
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
            let spares = state.spares.drain(..).map(|spare| spare.id).collect::<Vec<_>>();
            spares.into_iter().chain(state.free.drain(..)).collect::<Vec<_>>()
        };
        for id in unneeded {
            match shared.disk.remove(&shared.path(id)).await {
                Err(e) if !e.is_not_found() => return Err(e.into()),
                _ => {}
            }
        }
        shared.disk.sync_dir(&shared.directory).await?;
        Ok(())
    }
}

/// Differs at every start, so that groups of an earlier start are never taken for this one's. The time alone would not do (a
/// clock can be set back), nor would the segment id (ids start over in an emptied directory).
fn salt(unix_micros: i64, first_segment: u64) -> u64 {
    (unix_micros as u64) ^ first_segment.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Shared {
    /// Lets both tasks end after their current work.
    fn stop(&self) {
        self.state.borrow_mut().closing = true;
        for notify in [&self.work, &self.prepare, &self.ready, &self.short] {
            notify.notify_one();
        }
    }

    /// Under `periodic`: whether a record can be acknowledged before it is durable.
    fn keeps_up(&self, period: Duration) -> bool {
        let state = self.state.borrow();
        let late = |since| self.disk.clock().now() - since > period + period / 2;
        state.unsynced <= UNSYNCED_MAX && !state.unsynced_since().is_some_and(late)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Append {
    /// Returns when the record is as durable as the sync mode promises. Dropping the future does not cancel the write.
    pub async fn durable(self) -> Result<()> {
        let mut waiting = self.ticket.waiting();
        poll_fn(|cx| {
            if let SyncMode::Periodic { period } = self.shared.sync
                && self.ticket.outcome().is_none()
            {
                if self.shared.keeps_up(period) {
                    return Poll::Ready(Ok(()));
                }
                self.shared.state.borrow_mut().wanted = true;
                self.shared.work.notify_one();
            }
            self.ticket.poll(&mut waiting, cx)
        })
        .await
    }
}
