//! The task that writes groups, one at a time.
//!
//! 1. `batch`: when a write completes, the open group is the next write. There is no window to wait for, and the size of a
//!    group adapts to the load.
//! 2. `group` and `periodic`: a group is sealed when its window ends, when it is full, or when `sync` asks.
//! 3. One write is in flight. More in flight would hide a torn write: with one, only the last group can be torn, so a damaged group
//!    before valid ones is corruption.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use halcyon_io::BlockFile;
use halcyon_io::clock::Instant;

use crate::group::SealedGroup;
use crate::log::Shared;
use crate::ticket::Ticket;
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
            Step::WaitUntil(due) => shared.work_or(due).await,
            Step::Write(sealed) => {
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
            SyncMode::Batch => None,
            SyncMode::Group { window } => Some(since + window),
            // Blocked writers append nothing, so the group would not fill up: do not wait for the window.
            SyncMode::Periodic { .. } if state.wanted => None,
            SyncMode::Periodic { period } => Some(since + period),
        };
        match due {
            Some(due) if !state.closing && due > self.disk.clock().now() => Step::WaitUntil(due),
            _ => {
                state.seal();
                state.next_sealed().map_or(Step::Wait, Step::Write)
            }
        }
    }

    /// Waits for work, at most until `due`.
    async fn work_or(&self, due: Instant) {
        let clock = self.disk.clock();
        let mut sleep = pin!(clock.sleep(due - clock.now()));
        let mut work = pin!(self.work.notified());
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => sleep.as_mut().poll(cx),
        })
        .await;
    }

    /// The file of a segment; `None` if there is none, and its waiters have the error.
    async fn file_for(&self, id: u64) -> Option<(u64, BlockFile)> {
        let error = loop {
            if let Some(spare) = self.take_spare(id) {
                self.prepare.notify_one();
                self.short.notify_one();
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
        let no_space = match &error {
            Error::Io(e) if e.is_no_space() => Some(Error::NoSpace(e.clone())),
            _ => None,
        };
        let (tickets, error) = match no_space {
            // Under `periodic`, the records were acknowledged already: the log must fail.
            Some(error) if !matches!(self.sync, SyncMode::Periodic { .. }) => {
                (self.state.borrow_mut().abandon_from(id), error)
            }
            _ => self.fail(error),
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
        let SealedGroup { segment, offset, buffer, len, raw, ticket, .. } = sealed;
        let (outcome, buffer) = file.write_durable(u64::from(offset), buffer, len).await;
        drop(buffer);
        match outcome {
            Ok(()) => {
                self.state.borrow_mut().written(segment, raw);
                ticket.answer(Ok(()));
                let state = self.state.borrow();
                if !state.free.is_empty() || state.closing {
                    self.prepare.notify_one();
                }
            }
            Err(e) => {
                let (tickets, error) = self.fail(Error::from(e));
                answer(tickets, &error);
            }
        }
    }

    fn fail(&self, error: Error) -> (Vec<Rc<Ticket>>, Error) {
        let error = match error {
            Error::Io(e) => Error::Failed(e),
            other => other,
        };
        let tickets = self.state.borrow_mut().fail(&error);
        self.prepare.notify_one();
        (tickets, error)
    }
}

fn answer(tickets: Vec<Rc<Ticket>>, error: &Error) {
    for ticket in tickets {
        ticket.answer(Err(error.clone()));
    }
}
