//! The task that prepares segment files: it recycles free ones, or creates them.
//!
//! 1. To recycle, a file is renamed to the next id, the directory is synced, then the new header replaces the old one. After a crash
//!    in between, the id in the name is greater than the one in the header: the file was not used under its new name.
//! 2. A new file is filled with zeros. Either way its blocks have been written before: a write to an extent that is only reserved
//!    would make the file system commit its journal too. The zeros keep ahead of the records in the current segment, and no more: 32 MiB at
//!    once are a quarter of a second in which each record waits for a device that has them to flush.
//! 3. One file is kept ready, and as many free ones as the total space allows; the others are deleted.
//! 4. The manifest lists a file when it is ready, and no longer before it is recycled or deleted (`manifest`).
//! 5. The writer gets an error only when it needs a file and none is ready. Its next request tries again.

use std::path::PathBuf;
use std::rc::Rc;

use halcyon_io::{Purpose, panic_point};

use crate::format::{file_name, put};
use crate::shared::{Shared, remove_if_there};
use crate::state::Spare;
use crate::{Error, Result};

enum Step {
    Recycle { from: u64, to: u64 },
    Create(u64),
    Delete(u64),
    Wait,
    Stop,
}

/// Runs until the log is closed, fails or is dropped.
pub(crate) async fn keep_ready(shared: Rc<Shared>) {
    loop {
        let outcome = match shared.next_step() {
            Step::Stop => return,
            Step::Wait => {
                shared.prepare.notified().await;
                continue;
            }
            Step::Delete(id) => {
                // If this fails, the end of the log tries again; else the file is replayed at the next start: needless, but harmless.
                let unlisted = shared.manifest.remove(&[id]).await.is_ok();
                if !unlisted || shared.disk.remove(&shared.path(id)).await.is_err() {
                    shared.undeleted.borrow_mut().push(id);
                }
                continue;
            }
            Step::Recycle { from, to } => shared.recycle(from, to).await,
            Step::Create(id) => {
                panic_point("the task that makes segments ready");
                shared.create(id).await
            }
        };
        shared.made_ready(outcome);
    }
}

impl Shared {
    pub(crate) fn path(&self, id: u64) -> PathBuf {
        self.directory.join(file_name(self.parameters.shard, id))
    }

    fn next_step(&self) -> Step {
        let mut state = self.state.borrow_mut();
        // A log that was dropped with unwritten records may still need a file.
        let done = state.closing && state.unwritten == 0;
        if done || state.failed.is_some() {
            return Step::Stop;
        }
        let to = state.next_ready;
        if self.not_ready.borrow().is_some() {
            return Step::Wait;
        }
        match state.free.pop_front() {
            Some(from) if state.wants_free() => Step::Recycle { from, to },
            Some(from) => Step::Delete(from),
            None if state.spares.is_empty() => Step::Create(to),
            None => Step::Wait,
        }
    }

    fn made_ready(&self, outcome: Result<Spare>) {
        match outcome {
            Ok(spare) => {
                self.not_ready.take();
                let mut state = self.state.borrow_mut();
                if spare.id == state.next_ready {
                    state.next_ready += 1;
                    state.spares.push_back(spare);
                } else {
                    // Its id was abandoned in the meantime.
                    state.free.push_back(spare.id);
                }
            }
            Err(error) => {
                self.not_ready.replace(Some(error));
            }
        }
        self.ready.notify_one();
    }

    /// Prepares the first file, before any record is appended.
    pub(crate) async fn make_first(&self) -> Result<()> {
        let id = self.state.borrow().next_ready;
        let spare = self.create(id).await?;
        self.made_ready(Ok(spare));
        Ok(())
    }

    async fn create(&self, id: u64) -> Result<Spare> {
        let (path, len) = (self.path(id), u64::from(self.parameters.segment_size));
        // An attempt that failed may have left it: no earlier start had this id.
        remove_if_there(&self.disk, &path).await?;
        let pace = async |filled| self.keep_ahead(id, filled).await;
        let file =
            self.disk.create_blocks_paced(&path, self.mode, Purpose::CommitLog, len, pace).await?;
        self.disk.sync_dir(&self.directory).await?;
        self.write_header(Spare { id, file }).await
    }

    /// Waits until the segment in preparation, which has `filled` bytes of zeros, needs more.
    async fn keep_ahead(&self, id: u64, filled: u64) {
        self.filling.set(true);
        while !self.state.borrow().wants_more_of(id, filled) {
            self.prepare.notified().await;
        }
        self.filling.set(false);
    }

    async fn recycle(&self, from: u64, to: u64) -> Result<Spare> {
        let path = self.path(to);
        let keep = |_: &_| self.state.borrow_mut().free.push_front(from);
        self.manifest.remove(&[from]).await.inspect_err(keep)?;
        let renamed = self.disk.rename(&self.path(from), &path).await.map_err(Error::from);
        renamed.inspect_err(keep)?;
        self.disk.sync_dir(&self.directory).await?;
        let file = self.disk.open_blocks(&path, self.mode, Purpose::CommitLog).await?;
        self.write_header(Spare { id: to, file }).await
    }

    /// Writes the header, then lists the file in the manifest.
    async fn write_header(&self, spare: Spare) -> Result<Spare> {
        let header = self.parameters.header(spare.id).encode();
        let mut buffer = crate::group::take(&self.state.borrow().pool, self.parameters.block);
        buffer.fill(0);
        put(&mut buffer, 0, &header);
        let (outcome, _) = spare.file.write_durable(0, buffer, self.parameters.block).await;
        outcome?;
        self.manifest.add(spare.id).await?;
        Ok(spare)
    }
}
