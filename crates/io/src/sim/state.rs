//! The bytes of a simulated disk: operations, sectors, crashes. Names are in `names`, what is done by name in `named`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    faults::{self, FaultRule},
    names::Names,
};
use crate::{
    error::{Operation, SIMULATED_CRASH},
    runtime::{clock::nanos, random::Random},
};

/// What a device writes wholly or not at all.
const SECTOR: usize = 512;

#[derive(Clone)]
pub(super) struct State {
    random: Random,
    pub(super) names: Names,
    files: BTreeMap<u64, SimFile>,
    next_id: u64,
    pub(super) faults: Vec<FaultRule>,
    /// Operations that faults have failed.
    pub(super) struck: u64,
    pub(super) capacity: Option<u64>,
    pub(super) latency: Option<Duration>,
    pub(super) operations: u64,
    /// The operations since `SimDisk::record`.
    pub(super) recorded: Option<Vec<(Operation, PathBuf)>>,
    pub(super) crash_at: Option<u64>,
    pub(super) down: bool,
    /// Counts restarts: a handle of an earlier boot is dead.
    pub(super) boot: u64,
}

#[derive(Clone, Default)]
pub(super) struct SimFile {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Sectors in which the two differ.
    dirty: BTreeSet<usize>,
    handles: u64,
    pub(super) modified_ms: i64,
}

impl State {
    pub(super) fn empty(seed: u64) -> State {
        State {
            random: Random::seeded(seed),
            names: Names::root(),
            files: BTreeMap::new(),
            next_id: 1,
            faults: Vec::new(),
            struck: 0,
            capacity: None,
            latency: None,
            operations: 0,
            recorded: None,
            crash_at: None,
            down: false,
            boot: 0,
        }
    }

    pub(super) fn crashed() -> io::Error {
        io::Error::from_raw_os_error(SIMULATED_CRASH)
    }

    /// Counts an operation, lets faults and the crash strike, and acts.
    pub(super) fn run<T>(
        &mut self,
        path: &Path,
        operation: Operation,
        act: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.down {
            return Err(State::crashed());
        }
        let index = self.operations;
        self.operations += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push((operation, path.to_path_buf()));
        }
        if self.crash_at.is_some_and(|at| index >= at) {
            // The machine stops in the middle. What the operation changed is not synced, so the
            // restart's dice decide how much of it happened; only a sync must not complete.
            if !matches!(operation, Operation::Sync | Operation::SyncDir) {
                let _ = act(self);
            }
            self.down = true;
            return Err(State::crashed());
        }
        faults::strike(&mut self.faults, path, operation).inspect_err(|_| self.struck += 1)?;
        act(self)
    }

    /// What a crash leaves becomes what is live. `lucky`: unsynced changes have a chance.
    pub(super) fn restart(&mut self, lucky: bool) {
        let unsynced = self.names.unsynced_count() as u64;
        let kept = if lucky { self.random.below(unsynced + 1) } else { 0 };
        self.names.crash(kept as usize);
        for file in self.files.values_mut() {
            file.crash(lucky.then_some(&mut self.random));
        }
        self.boot_again();
    }

    fn boot_again(&mut self) {
        let names = &self.names;
        self.files.retain(|id, _| names.mention(*id));
        self.boot += 1;
        self.down = false;
        self.crash_at = None;
    }

    /// The live bytes and names stay, and the journal of what is not durable yet.
    pub(super) fn kill(&mut self) {
        for file in self.files.values_mut() {
            file.handles = 0;
        }
        self.boot_again();
    }

    /// Half of what the next operation takes.
    pub(super) fn half_latency(&mut self) -> Option<Duration> {
        let most = nanos(self.latency?);
        let slow = if self.random.chance(1, 100) { 10 } else { 1 };
        Some(Duration::from_nanos(self.random.below(most.saturating_mul(slow)) / 2))
    }

    fn file(&self, id: u64) -> io::Result<&SimFile> {
        self.files.get(&id).ok_or_else(|| io::Error::from_raw_os_error(libc::ESTALE))
    }

    fn file_mut(&mut self, id: u64) -> io::Result<&mut SimFile> {
        self.files.get_mut(&id).ok_or_else(|| io::Error::from_raw_os_error(libc::ESTALE))
    }

    pub(super) fn stat_of(&self, id: u64) -> io::Result<(u64, i64)> {
        self.file(id).map(|file| (file.live.len() as u64, file.modified_ms))
    }

    pub(super) fn bytes(&self, id: u64) -> io::Result<&[u8]> {
        self.file(id).map(|file| file.live.as_slice())
    }

    pub(super) fn add_file(&mut self, modified_ms: i64) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.files.insert(id, SimFile { modified_ms, ..SimFile::default() });
        id
    }

    /// Opens; returns the length.
    pub(super) fn hold(&mut self, id: u64) -> u64 {
        self.files.get_mut(&id).map_or(0, |file| {
            file.handles += 1;
            file.live.len() as u64
        })
    }

    /// Closes.
    pub(super) fn release(&mut self, id: u64) {
        if let Some(file) = self.files.get_mut(&id) {
            file.handles = file.handles.saturating_sub(1);
        }
        self.forget_unnamed(id);
    }

    pub(super) fn forget_unnamed(&mut self, id: u64) {
        if self.files.get(&id).is_some_and(|file| file.handles == 0) && !self.names.mention(id) {
            self.files.remove(&id);
        }
    }

    /// Bytes of all files that have a name or are open.
    pub(super) fn used(&self) -> u64 {
        let counts = |(id, file): (&u64, &SimFile)| {
            (file.handles > 0 || self.names.live_mention(*id)).then_some(file.live.len() as u64)
        };
        self.files.iter().filter_map(counts).sum()
    }

    fn room_for(&self, id: u64, len: u64) -> io::Result<()> {
        let file = self.file(id)?;
        let grows = len.saturating_sub(file.live.len() as u64);
        match self.capacity {
            Some(capacity) if grows > 0 && self.used() + grows > capacity => {
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn write(
        &mut self,
        id: u64,
        offset: u64,
        bytes: &[u8],
        now_ms: i64,
    ) -> io::Result<()> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .filter(|end| *end <= 1 << 40)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EFBIG))?;
        self.room_for(id, end)?;
        let file = self.file_mut(id)?;
        let (from, to) = (offset as usize, end as usize);
        if file.live.len() < to {
            file.live.resize(to, 0);
        }
        file.live[from..to].copy_from_slice(bytes);
        file.dirty.extend(from / SECTOR..to.div_ceil(SECTOR));
        file.modified_ms = now_ms;
        Ok(())
    }

    pub(super) fn preallocate(&mut self, id: u64, len: u64) -> io::Result<()> {
        let length = self.file(id)?.live.len() as u64;
        self.truncate(id, len.max(length))
    }

    pub(super) fn truncate(&mut self, id: u64, len: u64) -> io::Result<()> {
        self.room_for(id, len)?;
        let file = self.file_mut(id)?;
        let len = len as usize;
        let from = len.min(file.live.len()) / SECTOR;
        let to = len.max(file.live.len()).div_ceil(SECTOR);
        file.live.resize(len, 0);
        file.dirty.extend(from..to);
        Ok(())
    }

    pub(super) fn sync(&mut self, id: u64) -> io::Result<()> {
        self.file_mut(id)?.sync();
        Ok(())
    }

    pub(super) fn sync_range(&mut self, id: u64, offset: u64, len: usize) -> io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        self.file_mut(id)?.sync_range(from, from.saturating_add(len));
        Ok(())
    }

    pub(super) fn flip(&mut self, path: &Path, offset: u64, bit: u8) -> bool {
        let Ok(id) = self.names.file_at(path) else { return false };
        let Some(file) = self.files.get_mut(&id) else { return false };
        let Ok(at) = usize::try_from(offset) else { return false };
        let Some(byte) = file.live.get_mut(at) else { return false };
        *byte ^= 1 << (bit % 8);
        if let Some(byte) = file.durable.get_mut(at) {
            *byte ^= 1 << (bit % 8);
        }
        true
    }

    pub(super) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let id = self.names.file_at(path).ok()?;
        self.files.get(&id).map(|file| file.live.clone())
    }
}

/// A sector's place in a file of that length.
fn sector(index: usize, len: usize) -> std::ops::Range<usize> {
    (index * SECTOR).min(len)..((index + 1) * SECTOR).min(len)
}

impl SimFile {
    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for index in std::mem::take(&mut self.dirty) {
            let place = sector(index, self.live.len());
            self.durable[place.clone()].copy_from_slice(&self.live[place]);
        }
    }

    /// As a durable write does: its own sectors and the length, nothing else.
    fn sync_range(&mut self, from: usize, to: usize) {
        self.durable.resize(self.live.len(), 0);
        for index in from / SECTOR..to.div_ceil(SECTOR) {
            if self.dirty.remove(&index) {
                let place = sector(index, self.live.len());
                self.durable[place.clone()].copy_from_slice(&self.live[place]);
            }
        }
    }

    /// Leaves the durable bytes and, if `dice` are given, some of what was not synced.
    fn crash(&mut self, dice: Option<&mut Random>) {
        if let Some(dice) = dice {
            if dice.chance(1, 2) {
                self.durable.resize(self.live.len(), 0);
            }
            for &index in &self.dirty {
                let place = sector(index, self.live.len().min(self.durable.len()));
                if dice.chance(1, 2) {
                    self.durable[place.clone()].copy_from_slice(&self.live[place]);
                }
            }
        }
        self.live.clone_from(&self.durable);
        self.dirty.clear();
        self.handles = 0;
    }
}
