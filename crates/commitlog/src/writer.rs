//! The task that writes groups, one at a time.
//!
//! 1. `batch` and `periodic`: when a write completes, the open group is the next write. There is no window to wait for, and the size
//!    of a group adapts to the load; under `batch` to the device too (`pace`). Under `periodic` the write goes to the page cache only, so
//!    that it survives the process.
//! 2. `group`: a group is sealed when its window ends, when it is full, or when `sync` asks.
//! 3. One write is in flight. More in flight would hide a torn write: with one, only the last group can be torn, so a damaged group
//!    before valid ones is corruption.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use halcyon_io::clock::{Instant, nanos};
use halcyon_io::{BlockFile, Notify, panic_point};

use crate::format::FilePosition;
use crate::group::SealedGroup;
use crate::shared::{SYNC_BYTES, Shared};
use crate::ticket::answer;
use crate::{Error, SyncMode};

enum Step {
    Write(SealedGroup),
    WaitUntil(Instant),
    Wait,
    Stop,
}

/// Runs until the log is closed or dropped and all groups are written.
pub(crate) async fn write_groups(shared: Rc<Shared>) {
    let mut open: Option<(u64, BlockFile)> = None;
    loop {
        match shared.next_write() {
            Step::Stop => return,
            Step::Wait => shared.work.notified().await,
            Step::WaitUntil(due) => shared.notified_or(&shared.work, due).await,
            Step::Write(sealed) => {
                panic_point("the writer of the commit log");
                if open.as_ref().is_none_or(|(id, _)| *id != sealed.segment) {
                    open = shared.file_for(sealed.segment).await;
                }
                if let Some((_, file)) = &open {
                    shared.write(file, sealed).await;
                }
            }
        }
    }
}

impl Shared {
    fn next_write(&self) -> Step {
        let mut state = self.state.borrow_mut();
        if let Some(sealed) = state.next_sealed() {
            return Step::Write(sealed);
        }
        let Some(since) = state.open_since() else {
            return if state.closing { Step::Stop } else { Step::Wait };
        };
        let due = match self.sync {
            SyncMode::Batch | SyncMode::Periodic { .. } => {
                self.pace.as_ref().and_then(|pace| pace.borrow().due(state.waiting))
            }
            SyncMode::Group { window } => Some(since + window),
        };
        match due {
            Some(due) if !state.closing && due > self.disk.clock().now() => Step::WaitUntil(due),
            _ => {
                state.seal();
                state.next_sealed().map_or(Step::Wait, Step::Write)
            }
        }
    }

    /// Waits for a notification, at most until `due`.
    pub(crate) async fn notified_or(&self, notify: &Notify, due: Instant) {
        let clock = self.disk.clock();
        let mut sleep = pin!(clock.sleep(due - clock.now()));
        let mut notified = pin!(notify.notified());
        poll_fn(|cx| match notified.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(cx),
        })
        .await;
    }

    /// The file of a segment; `None` if it cannot be had, and its waiters have the error.
    async fn file_for(&self, id: u64) -> Option<(u64, BlockFile)> {
        let began = self.disk.clock().now();
        let error = loop {
            if let Some(spare) = self.take_spare(id) {
                self.prepare.notify_one();
                self.short.notify_one();
                let now = self.disk.clock().now();
                let waited = nanos(now.saturating_since(began));
                self.metrics.segment_waits.record(waited, now);
                return Some((id, spare));
            }
            // An old error says nothing about the next attempt.
            self.not_ready.take();
            self.prepare.notify_one();
            self.ready.notified().await;
            if let Some(error) = self.not_ready.take() {
                break error;
            }
        };
        let (tickets, error) = match error {
            // Their writers get this error, and the next record tries again.
            Error::Io(e) if e.is_no_space() || e.is_no_descriptors() => {
                (self.state.borrow_mut().abandon_from(id), Error::NoSpace(e))
            }
            error => self.fail(error),
        };
        answer(tickets, &error);
        None
    }

    fn take_spare(&self, id: u64) -> Option<BlockFile> {
        let mut state = self.state.borrow_mut();
        let spare = state.spares.pop_front()?;
        debug_assert_eq!(
            spare.id, id,
            "segments are filled in the order in which they are made ready"
        );
        Some(spare.file)
    }

    async fn write(&self, file: &BlockFile, sealed: SealedGroup) {
        let SealedGroup { segment, offset, buffer, len, end, raw, records, ticket } = sealed;
        let at = u64::from(offset);
        if let Some(pace) = &self.pace {
            pace.borrow_mut().note_started(self.disk.clock().now());
        }
        let (outcome, buffer) = match self.parameters.cached {
            true => file.write_cached(at, buffer, len).await,
            false => file.write_durable(at, buffer, len).await,
        };
        drop(buffer);
        match outcome {
            Ok(()) => {
                if let Some(pace) = &self.pace {
                    pace.borrow_mut().note_written(len, self.disk.clock().now());
                }
                let mut state = self.state.borrow_mut();
                state.written(FilePosition { segment, offset: end }, raw, records);
                // The sync's task sets its alarm again when it is woken: not for each write.
                if self.parameters.cached
                    && (state.note_cached(segment, file, offset) || state.uncut().0 >= SYNC_BYTES)
                {
                    self.sync_work.notify_one();
                }
                ticket.answer(Ok(()));
                if !state.free.is_empty() || state.closing || self.filling.get() {
                    self.prepare.notify_one();
                }
            }
            Err(e) => {
                let (tickets, error) = self.fail(Error::from(e));
                answer(tickets, &error);
            }
        }
    }
}
