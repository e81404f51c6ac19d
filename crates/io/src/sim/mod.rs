//! A disk in memory with the promises of a real one, and no more than those.
//!
//! 1. A file has live bytes, which reads see, and durable bytes, which a crash leaves. Writes change
//!    the first; a sync carries the written sectors over to the second.
//! 2. A name created, renamed or removed is durable once its directory is synced. Until then it is in
//!    a journal of name changes.
//! 3. A crash keeps each unsynced 512-byte sector or loses it, by the seed; keeps the new length or
//!    the old; and keeps a prefix of the journal. [`SimDisk::crash_to_synced`] keeps nothing that was
//!    not synced: the two bracket what a real machine may do.
//!    [`SimDisk::kill`] ends the process only, so everything that was written stays.
//! 4. [`SimDisk::crash_at`] stops the machine at the n-th operation, which itself may or may not have
//!    happened; then everything fails with `Crashed` until [`SimDisk::restart`] (or `kill`). A test that runs a
//!    scenario once, asks [`SimDisk::ops_count`], and then crashes at each index has seen every
//!    crash point.
//! 5. Faults are armed by count or by path and operation; bits are flipped by hand; a capacity makes
//!    the disk full. Time is the [`SimRuntime`]'s.
//! 6. Operations complete at once, in program order, until [`SimDisk::set_latency`] makes each of them take effect at a time within its
//!    duration. So those in flight together take effect in any order.
//!
//! The same seed and program give the same disk.

pub(crate) mod executor;
mod faults;
mod named;
mod names;
mod network;
pub(crate) mod sockets;
mod state;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard},
    time::Duration,
};

pub use executor::SimRuntime;
pub use faults::{Fault, FaultRule};
use state::State;

use crate::{
    buffer::AlignedBuf,
    disk::entry::{DirEntry, FileStat},
    error::Operation,
    mode::Alignment,
    probe::Abilities,
    region::{Direction, Finished, Region},
    runtime::clock::SimClock,
    sync::mutex::Mutex,
};

/// The hand that breaks a simulated disk; clones are the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    runtime: SimRuntime,
}

/// Everything on a simulated disk at one moment.
#[derive(Clone)]
pub struct SimSnapshot(State);

impl SimDisk {
    pub(crate) fn empty(seed: u64) -> SimDisk {
        let state = Mutex::new(State::empty(seed));
        let runtime = executor::entered().unwrap_or_else(|| SimRuntime::seeded(seed));
        SimDisk(Arc::new(Shared { state, runtime }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn now_ms(&self) -> i64 {
        self.clock().clock().unix_micros() / 1000
    }

    pub fn clock(&self) -> &SimClock {
        self.0.runtime.clock()
    }

    /// The runtime that its machine runs: the one in whose `block_on` the disk was made, else one of its own.
    pub fn runtime(&self) -> &SimRuntime {
        &self.0.runtime
    }

    // ---- crashing ----

    /// The machine loses power and starts again: unsynced sectors, lengths and names survive or do
    /// not, by the seed. Open files are dead.
    pub fn crash(&self) {
        self.lock().restart(true);
    }

    /// The process is killed, and the machine runs on: what was written stays, synced or not, and may still be lost at a later
    /// [`SimDisk::crash`]. Open files are dead. After `crash_at`, the process was killed in that operation.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// As [`SimDisk::crash`], but nothing unsynced survives.
    pub fn crash_to_synced(&self) {
        self.lock().restart(false);
    }

    /// The operation with this index (see [`SimDisk::ops_count`]) and all after it fail with
    /// `Crashed`, until [`SimDisk::restart`].
    pub fn crash_at(&self, operation: u64) {
        self.lock().crash_at = Some(operation);
    }

    /// Starts the machine again after `crash_at`, with what the crash left.
    pub fn restart(&self) {
        self.lock().restart(true);
    }

    /// Whether `crash_at` has struck.
    pub fn is_down(&self) -> bool {
        self.lock().down
    }

    /// How many operations there have been; the next one has this index.
    pub fn ops_count(&self) -> u64 {
        self.lock().operations
    }

    /// From now on every operation is recorded.
    pub fn record(&self) {
        self.lock().recorded = Some(Vec::new());
    }

    /// The operations since `record`, with the paths that faults match.
    pub fn recorded(&self) -> Vec<(Operation, PathBuf)> {
        self.lock().recorded.take().unwrap_or_default()
    }

    pub fn snapshot(&self) -> SimSnapshot {
        SimSnapshot(self.lock().clone())
    }

    /// Goes back to a snapshot. Open files are dead.
    pub fn restore(&self, snapshot: &SimSnapshot) {
        let mut state = self.lock();
        let boot = state.boot.max(snapshot.0.boot) + 1;
        *state = snapshot.0.clone();
        state.boot = boot;
    }

    // ---- breaking ----

    /// How long an operation takes at most; one in a hundred takes ten times that. `None`: no time at all. Holds where the disk's own
    /// runtime runs.
    pub fn set_latency(&self, most: Option<Duration>) {
        self.lock().latency = most;
    }

    /// `None`: endless.
    pub fn set_capacity(&self, bytes: impl Into<Option<u64>>) {
        self.lock().capacity = bytes.into();
    }

    /// After this many more operations, one fails.
    pub fn fail_after(&self, operations: u64, fault: Fault) {
        self.fail_on(FaultRule { skip: operations, ..FaultRule::any(fault) });
    }

    pub fn fail_on(&self, rule: FaultRule) {
        self.lock().faults.push(rule);
    }

    /// How many operations faults have failed.
    pub fn struck(&self) -> u64 {
        self.lock().struck
    }

    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Flips one bit of a file, live and durable. `false` if the file does not have that byte.
    pub fn flip(&self, path: &Path, offset: u64, bit: u8) -> bool {
        self.lock().flip(path, offset, bit)
    }

    // ---- looking, without an operation ----

    /// The live bytes of a file.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.lock().contents(path)
    }

    /// Bytes of all files that have a name or are open.
    pub fn used(&self) -> u64 {
        self.lock().used()
    }

    /// All live file names.
    pub fn files(&self) -> Vec<PathBuf> {
        self.lock().file_names()
    }

    // ---- the disk's side ----

    pub(crate) fn abilities(&self) -> Abilities {
        let alignment = Alignment { memory: 4096, offset: 4096 };
        Abilities {
            direct: Ok((alignment, "the simulated disk can".to_owned())),
            uncached: Ok("the simulated disk can".to_owned()),
            direct_writes_refused: None,
        }
    }

    fn run<T>(
        &self,
        path: &Path,
        operation: Operation,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.0.runtime.has_halted() {
            return Err(State::crashed());
        }
        let mut state = self.lock();
        let was_down = state.down;
        let outcome = state.run(path, operation, act);
        if state.down && !was_down {
            self.0.runtime.halt();
        }
        outcome
    }

    /// Whether operations take time here.
    pub(crate) fn has_latency(&self) -> bool {
        self.lock().latency.is_some()
    }

    /// Half of an operation's duration.
    pub(crate) async fn pause(&self) {
        let Some(pause) = self.lock().half_latency() else { return };
        if executor::entered().is_some_and(|entered| entered.clock().is(self.clock())) {
            self.clock().clock().sleep(pause).await;
        }
    }

    // A handle locks the disk when it is dropped, so handles are made outside of `run`.

    pub(crate) fn open(&self, path: &Path) -> io::Result<(Handle, u64)> {
        let (id, boot, len) = self.run(path, Operation::Open, |state| {
            let id = state.file_at(path)?;
            Ok((id, state.boot, state.hold(id)))
        })?;
        Ok((self.handle(path, id, boot), len))
    }

    pub(crate) fn create(&self, path: &Path) -> io::Result<Handle> {
        let now = self.now_ms();
        let (id, boot) = self.run(path, Operation::Create, |state| {
            let id = state.create_file(path, now)?;
            state.hold(id);
            Ok((id, state.boot))
        })?;
        Ok(self.handle(path, id, boot))
    }

    fn handle(&self, path: &Path, id: u64, boot: u64) -> Handle {
        Handle { disk: self.clone(), path: path.to_path_buf(), id, boot }
    }

    pub(crate) fn read_bounded(&self, path: &Path, max: u64) -> io::Result<Result<Vec<u8>, u64>> {
        self.run(path, Operation::Read, |state| {
            let id = state.file_at(path)?;
            let bytes = state.bytes(id)?;
            let len = bytes.len() as u64;
            Ok(if len > max { Err(len) } else { Ok(bytes.to_vec()) })
        })
    }

    pub(crate) fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.create(path)?;
        file.write(0, bytes)?;
        file.sync()
    }

    pub(crate) fn append_sync(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (file, len) = self.open(path)?;
        file.write(len, bytes)?;
        file.sync()
    }

    pub(crate) fn truncate_sync(&self, path: &Path, len: u64) -> io::Result<()> {
        let (file, _) = self.open(path)?;
        file.truncate(len)?;
        file.sync()
    }

    pub(crate) fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.run(dir, Operation::List, |state| state.list(dir))
    }

    pub(crate) fn stat(&self, path: &Path) -> io::Result<FileStat> {
        self.run(path, Operation::Stat, |state| state.stat(path))
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.run(path, Operation::Remove, |state| state.remove(path))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.run(from, Operation::Rename, |state| state.rename(from, to))
    }

    pub(crate) fn hard_link(&self, original: &Path, link: &Path) -> io::Result<()> {
        self.run(original, Operation::HardLink, |state| state.hard_link(original, link))
    }

    pub(crate) fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.run(dir, Operation::CreateDir, |state| state.create_dir_all(dir))
    }

    pub(crate) fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.run(dir, Operation::SyncDir, |state| state.sync_dir(dir))
    }

    pub(crate) fn free_space(&self, dir: &Path) -> io::Result<u64> {
        self.run(dir, Operation::FreeSpace, |state| {
            let free = state.capacity.map(|capacity| capacity.saturating_sub(state.used()));
            Ok(free.unwrap_or(u64::MAX / 2))
        })
    }
}

/// An open file of a simulated disk.
pub(crate) struct Handle {
    disk: SimDisk,
    path: PathBuf,
    id: u64,
    boot: u64,
}

impl Handle {
    pub(crate) fn disk(&self) -> &SimDisk {
        &self.disk
    }

    fn run<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.run(&self.path, operation, |state| {
            if state.boot == self.boot { act(state) } else { Err(State::crashed()) }
        })
    }

    /// One read or write, with the alignment rule of direct I/O.
    pub(crate) fn region(
        &self,
        direction: Direction,
        region: Region,
        mut buffer: AlignedBuf,
        alignment: u64,
    ) -> Finished {
        let Region { offset, start, len } = region;
        let aligned = [offset, start as u64, len as u64].iter().all(|x| x % alignment == 0);
        let outcome = if !aligned {
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        } else {
            let bytes = &mut buffer[start..start + len];
            match direction {
                Direction::Read => self.read(offset, bytes),
                Direction::Write => self.write(offset, bytes).map(|()| len),
                // Two operations: a crash between them leaves the write torn.
                Direction::DurableWrite => self
                    .write(offset, bytes)
                    .and_then(|()| self.sync_range(offset, len))
                    .map(|()| len),
            }
        };
        (outcome, buffer)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.run(Operation::Read, |state| {
            let bytes = state.bytes(self.id)?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            let count = into.len().min(bytes.len() - from);
            into[..count].copy_from_slice(&bytes[from..from + count]);
            Ok(count)
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let now = self.disk.now_ms();
        self.run(Operation::Write, |state| state.write(self.id, offset, bytes, now))
    }

    pub(crate) fn preallocate(&self, len: u64) -> io::Result<()> {
        self.run(Operation::Preallocate, |state| state.preallocate(self.id, len))
    }

    pub(crate) fn truncate(&self, len: u64) -> io::Result<()> {
        self.run(Operation::Truncate, |state| state.truncate(self.id, len))
    }

    fn sync_range(&self, offset: u64, len: usize) -> io::Result<()> {
        self.run(Operation::Sync, |state| state.sync_range(self.id, offset, len))
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.run(Operation::Sync, |state| state.sync(self.id))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.boot == self.boot {
            state.release(self.id);
        }
    }
}
