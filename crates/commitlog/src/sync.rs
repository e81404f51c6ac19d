//! The task that syncs what was written to the page cache, under `periodic`.
//!
//! 1. A sync is due when the oldest record that it would make durable is one period old, when a few megabytes have gathered, or when
//!    a caller waits for one. The size bounds the dirty pages, and evens out the work of the device; no byte is written twice by it.
//! 2. It begins with a cut (`State::cut`), waits until the groups before it are written, and syncs their files. Writers do not wait
//!    for it, unless it is late (`CommitLog::keeps_up`).
//! 3. The pages are dropped then: nothing reads the log while it is open.

use std::rc::Rc;

use halcyon_io::clock::Instant;

use crate::format::FilePosition;
use crate::shared::{SYNC_BYTES, Shared};
use crate::ticket::answer;
use crate::{Error, Result, SyncMode};

enum Step {
    Sync,
    WaitUntil(Instant),
    Wait,
    Stop,
}

/// Runs until the log is closed or dropped and everything is durable, or the log fails.
pub(crate) async fn sync_cached_writes(shared: Rc<Shared>) {
    loop {
        match shared.next_sync() {
            Step::Stop => return,
            Step::Wait => shared.sync_work.notified().await,
            Step::WaitUntil(due) => shared.notified_or(&shared.sync_work, due).await,
            Step::Sync => {
                if let Err(error) = shared.sync_cached().await {
                    let (tickets, error) = shared.fail(error);
                    answer(tickets, &error);
                    shared.synced.notify_all();
                }
            }
        }
    }
}

impl Shared {
    fn next_sync(&self) -> Step {
        let state = self.state.borrow();
        let SyncMode::Periodic { period } = self.sync else { return Step::Stop };
        if state.failed.is_some() {
            return Step::Stop;
        }
        let (bytes, since) = state.uncut();
        let asked = state.hurried || state.sync_wanted.is_some();
        match since {
            _ if asked => Step::Sync,
            None if state.closing => Step::Stop,
            None => Step::Wait,
            Some(_) if state.closing || bytes >= SYNC_BYTES => Step::Sync,
            Some(since) if since + period <= self.disk.clock().now() => Step::Sync,
            Some(since) => Step::WaitUntil(since + period),
        }
    }

    async fn sync_cached(&self) -> Result<()> {
        let (cut, last, wanted) = {
            let mut state = self.state.borrow_mut();
            let wanted = state.sync_wanted.take();
            let (cut, last) = state.cut();
            (cut, last, wanted)
        };
        self.work.notify_one();
        if let Some(last) = last {
            // The writers have its error; without a file there is nothing to sync.
            let _ = last.answered().await;
        }
        let outcome = self.sync_below(cut).await;
        if outcome.is_ok() {
            let mut state = self.state.borrow_mut();
            state.synced(cut);
            if !state.free.is_empty() {
                self.prepare.notify_one();
            }
        }
        self.synced.notify_all();
        if let Some(wanted) = wanted {
            wanted.answer(outcome.clone().map_err(Error::failed));
        }
        outcome
    }

    /// Syncs the files with cached writes below the cut. A write that ends from now on is noted for the next sync.
    async fn sync_below(&self, cut: FilePosition) -> Result<()> {
        let files = std::mem::take(&mut self.state.borrow_mut().cached_writes);
        for writes in files {
            let end = match writes.segment {
                later if later > cut.segment => {
                    let mut state = self.state.borrow_mut();
                    state.note_cached(later, &writes.file, writes.from);
                    continue;
                }
                current if current == cut.segment => {
                    cut.offset.next_multiple_of(self.parameters.block as u32)
                }
                _ => self.parameters.segment_size,
            };
            let len = u64::from(end.saturating_sub(writes.from));
            writes.file.sync(u64::from(writes.from), len).await?;
        }
        if let Some(failed) = &self.state.borrow().failed {
            return Err(failed.clone());
        }
        Ok(())
    }
}
