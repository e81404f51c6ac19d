//! Makes files ready ahead: recycles what nobody needs, else creates.
//!
//! 1. A free file is renamed to the next id, the directory is synced, and then the new header is written over the old one.
//!    After a crash in between, the name is newer than the header: such a file was never used under its new name.
//! 2. Where none is free, a file of zeros is created. Both leave blocks that were written before, so that a durable write
//!    changes nothing but data.
//! 3. One file is always ready, and every free one that the space allows; others are deleted.
//! 4. An error is told to the writer only if it has no file to go on with. It is tried again when the writer asks.

use std::path::PathBuf;
use std::rc::Rc;

use halcyon_io::Purpose;

use crate::Result;
use crate::format::file_name;
use crate::log::Shared;
use crate::state::Spare;

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
                shared.prepare.wait().await;
                continue;
            }
            Step::Delete(id) => {
                // It stays behind if this fails, and is replayed in vain: nobody has to hear of it.
                let _ = shared.disk.remove(&shared.path(id)).await;
                continue;
            }
            Step::Recycle { from, to } => shared.recycle(from, to).await,
            Step::Create(id) => shared.create(id).await,
        };
        shared.made_ready(outcome);
    }
}

impl Shared {
    pub(crate) fn path(&self, id: u64) -> PathBuf {
        self.directory.join(file_name(self.shape.shard, id))
    }

    fn next_step(&self) -> Step {
        let mut state = self.state.borrow_mut();
        // A log that was dropped with records in hand may still need a file for them.
        let done = state.closing && state.unsynced == 0;
        if done || state.failed.is_some() {
            return Step::Stop;
        }
        let to = state.next_ready;
        let refused = self.not_ready.borrow().is_some();
        match state.free.pop() {
            Some(from) if state.wants_free() => Step::Recycle { from, to },
            Some(from) => Step::Delete(from),
            None if state.spares.is_empty() && !refused => Step::Create(to),
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
                    // Its id was abandoned meanwhile.
                    state.free.push(spare.id);
                }
            }
            Err(error) => {
                self.not_ready.replace(Some(error));
            }
        }
        self.ready.raise();
    }

    /// Makes the first file, before anybody appends.
    pub(crate) async fn make_first(&self) -> Result<()> {
        let id = self.state.borrow().next_ready;
        let spare = self.create(id).await?;
        self.made_ready(Ok(spare));
        Ok(())
    }

    async fn create(&self, id: u64) -> Result<Spare> {
        let (path, len) = (self.path(id), u64::from(self.shape.segment_size));
        let file = self.disk.create_blocks(&path, self.mode, Purpose::CommitLog, len).await?;
        self.disk.sync_dir(&self.directory).await?;
        self.write_header(Spare { id, file }).await
    }

    async fn recycle(&self, from: u64, to: u64) -> Result<Spare> {
        let path = self.path(to);
        self.disk.rename(&self.path(from), &path).await?;
        self.disk.sync_dir(&self.directory).await?;
        let file = self.disk.open_blocks(&path, self.mode, Purpose::CommitLog).await?;
        self.write_header(Spare { id: to, file }).await
    }

    async fn write_header(&self, spare: Spare) -> Result<Spare> {
        let header = self.shape.header(spare.id).encode();
        let mut buffer = crate::group::take(&self.state.borrow().pool, self.shape.block);
        buffer[..header.len()].copy_from_slice(&header);
        buffer[header.len()..self.shape.block].fill(0);
        let (outcome, _) = spare.file.write_durable(0, buffer, self.shape.block).await;
        outcome?;
        Ok(spare)
    }
}
