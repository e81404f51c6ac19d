//! The door to storage: one handle, real or simulated, that any thread may hold.

pub(crate) mod entry;
mod metrics;

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    block::BlockFile,
    buffer::{BufferPool, Patience},
    descriptors,
    error::{Error, Operation, Result},
    file::{File, Handle, ReadFile},
    metrics::{PurposeStats, Seen},
    mode::{AccessMode, ModeChoice, Purpose},
    probe::{self, Abilities},
    processes::{self, OpenElsewhere},
    reader::{SequentialReader, StreamOptions},
    real::{self, Ownership},
    removal,
    runtime::backend::{self, BackendChoice, BackendReport},
    runtime::{
        clock::{Clock, nanos},
        handle::Runtime,
    },
    sim::SimDisk,
    sync::mutex::Mutex,
    volume::Volume,
    writer::{SequentialWriter, WriteOptions},
};

pub use entry::{DirEntry, FileStat};

/// How a real disk is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskOptions {
    /// Bytes of all I/O buffers together (`io_buffer_budget`).
    pub buffer_budget: usize,
    /// How long one may wait for a buffer while none is given back.
    pub buffer_patience: Duration,
    /// `None`: `HALCYON_IO_ENGINE`, else `auto`. Holds for the whole process.
    pub backend: Option<BackendChoice>,
}

impl Default for DiskOptions {
    fn default() -> DiskOptions {
        DiskOptions {
            buffer_budget: 64 << 20,
            buffer_patience: Duration::from_secs(2),
            backend: None,
        }
    }
}

/// Holds a directory against other processes.
#[derive(Debug)]
#[must_use = "the directory is free again when this is dropped"]
pub struct DirLock(Option<std::fs::File>);

impl Drop for DirLock {
    /// Closing alone is not enough: a child process that another thread is just starting shares the open file until it
    /// executes its program, and with it the lock. An error leaves it to the close.
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = file.unlock();
        }
    }
}

/// A handle to storage; clones are the same disk.
#[derive(Clone)]
pub struct Disk(Arc<Inner>);

struct Inner {
    storage: Storage,
    volume: Arc<Volume>,
    runtime: Runtime,
    backend: BackendReport,
}

enum Storage {
    Real {
        abilities: Mutex<HashMap<u64, Abilities>>,
        /// Of the files that are created from now on; `None`: the process's.
        creates_like: Mutex<Option<Ownership>>,
    },
    Simulated(SimDisk),
}

impl Disk {
    /// The machine's own disks. Look at [`Disk::backend`] once: it may have something to log, or
    /// refuse.
    pub fn real(options: DiskOptions) -> Disk {
        if let Some(choice) = options.backend {
            backend::configure(choice);
        }
        let (choice, misunderstood) = backend::choice_in_force();
        let mut report = BackendReport::of(choice);
        if let Some(misunderstood) = misunderstood {
            report.warning = Some(match report.warning {
                Some(warning) => format!("{misunderstood}; {warning}"),
                None => misunderstood,
            });
        }
        let patience = Patience::Time(options.buffer_patience);
        let buffers = BufferPool::with_budget(options.buffer_budget, patience);
        Disk(Arc::new(Inner {
            storage: Storage::Real { abilities: Mutex::default(), creates_like: Mutex::default() },
            volume: Volume::with_buffers(buffers, &Clock::system()),
            runtime: Runtime::system(),
            backend: report,
        }))
    }

    /// A disk in memory that can crash, tear, fail, fill up and flip bits; the same seed does so in
    /// the same way.
    pub fn simulated(seed: u64) -> (Disk, SimDisk) {
        let simulated = SimDisk::empty(seed);
        (Disk::on_simulated(&simulated, DiskOptions::default()), simulated)
    }

    /// Another handle, with buffers and counters of its own, to a simulated disk.
    pub fn on_simulated(simulated: &SimDisk, options: DiskOptions) -> Disk {
        let runtime = Runtime::simulated(simulated.runtime());
        let buffers = BufferPool::with_budget(options.buffer_budget, Patience::Turns(1000));
        Disk(Arc::new(Inner {
            storage: Storage::Simulated(simulated.clone()),
            volume: Volume::with_buffers(buffers, runtime.clock()),
            runtime,
            backend: BackendReport::of(BackendChoice::Pool),
        }))
    }

    /// From now on files get owner, group and mode of this one, not of the process: what a tool writes into a directory of Cassandra
    /// has to be Cassandra's. Creating one fails, with the cure, where that cannot be.
    pub async fn create_like(&self, file: &Path) -> Result<()> {
        let Storage::Real { creates_like, .. } = &self.0.storage else { return Ok(()) };
        let found = self.on_real(file, real::ownership).await;
        let found = found.map_err(|e| Error::on_name(e, file, Operation::Stat))?;
        *creates_like.lock() = Some(found);
        Ok(())
    }

    fn creates_like(&self) -> Option<Ownership> {
        match &self.0.storage {
            Storage::Real { creates_like, .. } => *creates_like.lock(),
            Storage::Simulated(_) => None,
        }
    }

    /// The runtime of the machine that the disk belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub fn clock(&self) -> &Clock {
        self.0.runtime.clock()
    }

    /// A number that this handle has not given out yet, for what is opened through it. A count of the whole process would make two
    /// simulations in one process differ.
    pub fn next_id(&self) -> u64 {
        self.0.volume.next_id()
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.0.storage, Storage::Simulated(_))
    }

    /// Which backend runs, and what is to be logged about it.
    pub fn backend(&self) -> &BackendReport {
        &self.0.backend
    }

    pub fn buffers(&self) -> &BufferPool {
        self.0.volume.buffers()
    }

    pub fn histograms(&self) -> Vec<PurposeStats> {
        self.0.volume.metrics().snapshot()
    }

    pub fn histogram(&self, purpose: Purpose) -> PurposeStats {
        self.0.volume.metrics().of(purpose)
    }

    /// What `mode` means for reading in a directory. Blocks for a few system calls the first time
    /// that a device is asked about.
    pub fn resolve_mode(&self, dir: &Path, mode: AccessMode) -> Result<ModeChoice> {
        self.choose(dir, mode, false)
    }

    /// As [`Disk::resolve_mode`], for writing: heeds the kernels whose direct writes corrupt ext4.
    pub fn resolve_write_mode(&self, dir: &Path, mode: AccessMode) -> Result<ModeChoice> {
        self.choose(dir, mode, true)
    }

    fn choose(&self, dir: &Path, mode: AccessMode, writing: bool) -> Result<ModeChoice> {
        let abilities = match &self.0.storage {
            Storage::Simulated(simulated) => simulated.abilities(),
            Storage::Real { .. } if mode == AccessMode::Standard => Abilities::unasked(),
            Storage::Real { abilities, .. } => {
                let on_error = |e| Error::on_name(e, dir, Operation::Probe);
                let device = real::device_of(dir).map_err(on_error)?;
                let known = abilities.lock();
                match known.get(&device).cloned() {
                    Some(known) => known,
                    None => {
                        drop(known);
                        let found = probe::probe(dir).map_err(on_error)?;
                        let mut known = abilities.lock();
                        known.entry(device).or_insert(found).clone()
                    }
                }
            }
        };
        abilities.choose(dir, mode, writing)
    }

    async fn open_file(
        &self,
        path: &Path,
        asked: AccessMode,
        purpose: Purpose,
    ) -> Result<(File, u64)> {
        let (handle, len, mut choice) = match &self.0.storage {
            Storage::Simulated(simulated) => {
                let choice = simulated.abilities().choose(path, asked, false)?;
                let opened = simulated.open(path);
                let (handle, len) = opened.map_err(|e| Error::on_name(e, path, Operation::Open))?;
                (Handle::Simulated(Arc::new(handle)), len, choice)
            }
            Storage::Real { .. } => {
                let (disk, owned) = (self.clone(), path.to_path_buf());
                let opened = self.real_patiently(move || {
                    disk.real_file(&owned, asked, Operation::Open, false, real::open_read)
                });
                let ((fd, len), choice) = opened.await?;
                (Handle::Real(Arc::new(fd)), len, choice)
            }
        };
        // Pages that a user read may be wanted again.
        choice.drop_behind &= purpose != Purpose::UserRead;
        Ok((File::opened(self.0.volume.clone(), path, purpose, choice, handle), len))
    }

    /// Opens or creates a file in the mode that its directory gives; if that is direct by `auto` and
    /// this one file refuses (encrypted and compressed ones may), in standard mode. Blocks.
    fn real_file<T>(
        &self,
        path: &Path,
        asked: AccessMode,
        operation: Operation,
        writing: bool,
        open: impl Fn(&Path, bool) -> io::Result<T>,
    ) -> Result<(T, ModeChoice)> {
        let choice = self.choose(&parent_of(path), asked, writing).map_err(|e| match e {
            // The name that was asked for says more than its directory's.
            Error::NotFound { .. } => Error::NotFound { path: path.to_path_buf(), operation },
            other => other,
        })?;
        let direct = choice.mode == AccessMode::Direct;
        let refused = match open(path, direct) {
            Ok(opened) => return Ok((opened, choice)),
            Err(e) if direct && e.raw_os_error() == Some(libc::EINVAL) => e,
            Err(e) => return Err(Error::on_name(e, path, operation)),
        };
        if operation == Operation::Create {
            // The file was created before O_DIRECT was refused for it.
            let _ = removal::remove(path);
        }
        let why = "this file refuses O_DIRECT, although its directory does not";
        if asked == AccessMode::Direct {
            return Err(Error::Unsupported {
                path: path.to_path_buf(),
                operation,
                why: format!("{why} ({refused})"),
                cure: "set the access mode to `auto`".to_owned(),
            });
        }
        let opened = open(path, false).map_err(|e| Error::on_name(e, path, operation))?;
        Ok((opened, ModeChoice::last_resort(why)))
    }

    /// Opens a file for random reads.
    pub async fn open(&self, path: &Path, mode: AccessMode, purpose: Purpose) -> Result<ReadFile> {
        let (file, len) = self.open_file(path, mode, purpose).await?;
        Ok(ReadFile::opened(file, len))
    }

    /// Opens a file to be read from front to back.
    pub async fn open_sequential(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
        options: StreamOptions,
    ) -> Result<SequentialReader> {
        let (file, len) = self.open_file(path, mode, purpose).await?;
        Ok(SequentialReader::opened(file, len, options))
    }

    /// Creates a file, which must not exist, to be written from front to back. `expected_len` is
    /// preallocated, and the file so long until it is finished; zero means unknown.
    pub async fn create(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
        expected_len: u64,
    ) -> Result<SequentialWriter> {
        let options = WriteOptions { expected_len, ..WriteOptions::default() };
        self.create_with(path, mode, purpose, options).await
    }

    pub async fn create_with(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
        options: WriteOptions,
    ) -> Result<SequentialWriter> {
        let file = self.create_file(path, mode, purpose).await?;
        if options.expected_len > 0
            && let Err(e) = file.preallocate(options.expected_len).await
        {
            // Nothing was written, so nothing may stay behind.
            let _ = self.remove(path).await;
            return Err(e);
        }
        Ok(SequentialWriter::created(file, options))
    }

    /// Creates a file, which must not exist, of `len` zeros (a multiple of 4096), to be written in durable blocks. Its
    /// bytes are durable when this returns; its name is the caller's to sync.
    pub async fn create_blocks(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
        len: u64,
    ) -> Result<BlockFile> {
        self.create_blocks_paced(path, mode, purpose, len, async |_| ()).await
    }

    /// As [`Disk::create_blocks`]; `pace` gets the number of written zeros before each piece, and may wait.
    pub async fn create_blocks_paced(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
        len: u64,
        pace: impl AsyncFn(u64),
    ) -> Result<BlockFile> {
        let blocks = BlockFile::opened(self.create_file(path, mode, purpose).await?);
        let filled = match blocks.check_len(len) {
            Ok(()) => blocks.fill(len, pace).await,
            refused => refused,
        };
        match filled {
            Ok(()) => Ok(blocks),
            Err(e) => {
                let _ = self.remove(path).await;
                Err(e)
            }
        }
    }

    /// Opens a file that `create_blocks` made.
    pub async fn open_blocks(
        &self,
        path: &Path,
        mode: AccessMode,
        purpose: Purpose,
    ) -> Result<BlockFile> {
        let (handle, choice) = match &self.0.storage {
            Storage::Simulated(simulated) => {
                let choice = simulated.abilities().choose(path, mode, true)?;
                let opened = simulated.open(path);
                let (handle, _) = opened.map_err(|e| Error::on_name(e, path, Operation::Open))?;
                (Handle::Simulated(Arc::new(handle)), choice)
            }
            Storage::Real { .. } => {
                let (disk, owned) = (self.clone(), path.to_path_buf());
                let opened = self.real_patiently(move || {
                    disk.real_file(&owned, mode, Operation::Open, true, real::open_write)
                });
                let (fd, choice) = opened.await?;
                (Handle::Real(Arc::new(fd)), choice)
            }
        };
        Ok(BlockFile::opened(File::opened(self.0.volume.clone(), path, purpose, choice, handle)))
    }

    async fn create_file(&self, path: &Path, mode: AccessMode, purpose: Purpose) -> Result<File> {
        let (handle, choice) = match &self.0.storage {
            Storage::Simulated(simulated) => {
                let choice = simulated.abilities().choose(path, mode, true)?;
                let created = simulated.create(path);
                let handle = created.map_err(|e| Error::on_name(e, path, Operation::Create))?;
                (Handle::Simulated(Arc::new(handle)), choice)
            }
            Storage::Real { .. } => {
                let (disk, owned) = (self.clone(), path.to_path_buf());
                let like = self.creates_like();
                let created = self.real_patiently(move || {
                    let create = |path: &Path, direct| real::create(path, direct, like);
                    disk.real_file(&owned, mode, Operation::Create, true, create)
                });
                let (fd, choice) = created.await?;
                (Handle::Real(Arc::new(fd)), choice)
            }
        };
        Ok(File::opened(self.0.volume.clone(), path, purpose, choice, handle))
    }

    /// A whole small file; larger than `max_len` is an error.
    pub async fn read(&self, path: &Path, max_len: u64) -> Result<Vec<u8>> {
        let real = move |path: &Path| real::read_bounded(path, max_len);
        let bounded =
            self.on_name(path, Operation::Read, real, |s| s.read_bounded(path, max_len)).await?;
        bounded.map_err(|len| Error::TooLarge { path: path.to_path_buf(), len, max: max_len })
    }

    /// Creates a small file, which must not exist, and syncs it. Its directory entry is the caller's
    /// to sync.
    pub async fn write_new(&self, path: &Path, bytes: &[u8], purpose: Purpose) -> Result<()> {
        let started = self.clock().now();
        let owned = bytes.to_vec();
        let like = self.creates_like();
        let real = move |path: &Path| real::write_new(path, &owned, like);
        let written = self.on_bytes(path, bytes.len(), real, |s| s.write_new(path, bytes)).await;
        self.count_whole(purpose, started, bytes.len(), written.is_ok());
        written
    }

    /// Appends to a small file, which must exist, and syncs its data.
    pub async fn append_sync(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let owned = bytes.to_vec();
        let real = move |path: &Path| real::append_sync(path, &owned);
        self.on_bytes(path, bytes.len(), real, |s| s.append_sync(path, bytes)).await
    }

    /// Makes a file shorter, durably.
    pub async fn truncate_sync(&self, path: &Path, len: u64) -> Result<()> {
        let real = move |path: &Path| real::truncate_sync(path, len);
        self.on_name(path, Operation::Truncate, real, |s| s.truncate_sync(path, len)).await
    }

    fn count_whole(
        &self,
        purpose: Purpose,
        started: crate::runtime::clock::Instant,
        len: usize,
        ok: bool,
    ) {
        let took = nanos(self.clock().now() - started);
        let outcome = if ok { Ok(len) } else { Err(()) };
        self.0.volume.metrics().here().observed(purpose, outcome, Seen::After(took));
    }

    /// The entries of a directory, sorted by name.
    pub async fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.on_name(dir, Operation::List, real::list, |s| s.list(dir)).await
    }

    pub async fn stat(&self, path: &Path) -> Result<FileStat> {
        self.on_name(path, Operation::Stat, real::stat, |s| s.stat(path)).await
    }

    pub async fn exists(&self, path: &Path) -> Result<bool> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Removes a file or an empty directory: the name at once, the space of a large file within a minute.
    pub async fn remove(&self, path: &Path) -> Result<()> {
        self.on_name(path, Operation::Remove, removal::remove, |s| s.remove(path)).await
    }

    /// Renames a file; replaces what is there.
    pub async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let target = to.to_path_buf();
        let real = move |from: &Path| real::rename(from, &target);
        self.on_name(from, Operation::Rename, real, |s| s.rename(from, to)).await
    }

    pub async fn hard_link(&self, original: &Path, link: &Path) -> Result<()> {
        let target = link.to_path_buf();
        let real = move |original: &Path| real::hard_link(original, &target);
        self.on_name(original, Operation::HardLink, real, |s| s.hard_link(original, link)).await
    }

    pub async fn create_dir_all(&self, dir: &Path) -> Result<()> {
        self.on_name(dir, Operation::CreateDir, real::create_dir_all, |s| s.create_dir_all(dir))
            .await
    }

    /// Makes what was created, renamed and removed in a directory durable.
    pub async fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.on_name(dir, Operation::SyncDir, real::sync_dir, |s| s.sync_dir(dir)).await
    }

    /// Takes a directory for this process alone (an advisory lock on it) until the lock is dropped; [`Error::Busy`] if another
    /// has it. The kernel drops the lock of a process that ends, however it ends. A simulated directory has one process only.
    pub async fn lock_dir(&self, dir: &Path) -> Result<DirLock> {
        self.lock(dir, false).await
    }

    /// As `lock_dir`, but others may share it too.
    pub async fn share_dir(&self, dir: &Path) -> Result<DirLock> {
        self.lock(dir, true).await
    }

    async fn lock(&self, dir: &Path, shared: bool) -> Result<DirLock> {
        let real = move |dir: &Path| real::lock_dir(dir, shared).map(|file| DirLock(Some(file)));
        self.on_name(dir, Operation::Lock, real, |_| Ok(DirLock(None))).await
    }

    /// The path without symbolic links.
    pub async fn real_path(&self, path: &Path) -> Result<PathBuf> {
        let real = |path: &Path| std::fs::canonicalize(path);
        self.on_name(path, Operation::Stat, real, |_| Ok(path.to_path_buf())).await
    }

    /// The other processes that have one of these files open; for what it cannot see, see [`OpenElsewhere`]. On a simulated
    /// disk the list is empty.
    pub async fn open_elsewhere(&self, files: Vec<PathBuf>) -> Result<OpenElsewhere> {
        if self.is_simulated() {
            return Ok(OpenElsewhere::default());
        }
        let real = move |_: &Path| processes::users_of(&files);
        self.on_real(Path::new("/proc"), real)
            .await
            .map_err(|e| Error::on_name(e, Path::new("/proc"), Operation::List))
    }

    /// Bytes that may still be written in a directory.
    pub async fn free_space(&self, dir: &Path) -> Result<u64> {
        self.on_name(dir, Operation::FreeSpace, real::free_space, |s| s.free_space(dir)).await
    }

    /// The same of several directories; each file system counts once.
    pub async fn free_space_of_all(&self, dirs: &[PathBuf]) -> Result<u64> {
        let mut seen = BTreeSet::new();
        let mut free = 0_u64;
        for dir in dirs {
            let device = match &self.0.storage {
                Storage::Simulated(_) => 0,
                Storage::Real { .. } => real::device_of(dir)
                    .map_err(|e| Error::on_name(e, dir, Operation::FreeSpace))?,
            };
            if seen.insert(device) {
                free = free.saturating_add(self.free_space(dir).await?);
            }
        }
        Ok(free)
    }

    async fn on_real<T: Send + 'static>(
        &self,
        path: &Path,
        call: impl Fn(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path: PathBuf = path.to_path_buf();
        descriptors::patiently(self.clock(), move || call(&path), descriptors::is_exhausted).await
    }

    async fn real_patiently<T: Send + 'static>(
        &self,
        call: impl Fn() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        descriptors::patiently(self.clock(), call, Error::is_no_descriptors).await
    }

    async fn on_name<T: Send + 'static>(
        &self,
        path: &Path,
        operation: Operation,
        real: impl Fn(&Path) -> io::Result<T> + Send + 'static,
        simulated: impl FnOnce(&SimDisk) -> io::Result<T>,
    ) -> Result<T> {
        match &self.0.storage {
            Storage::Real { .. } => self.on_real(path, real).await,
            Storage::Simulated(disk) => {
                disk.pause().await;
                let outcome = simulated(disk);
                disk.pause().await;
                outcome
            }
        }
        .map_err(|e| Error::on_name(e, path, operation))
    }

    async fn on_bytes(
        &self,
        path: &Path,
        len: usize,
        real: impl Fn(&Path) -> io::Result<()> + Send + 'static,
        simulated: impl FnOnce(&SimDisk) -> io::Result<()>,
    ) -> Result<()> {
        match &self.0.storage {
            Storage::Real { .. } => self.on_real(path, real).await,
            Storage::Simulated(disk) => {
                disk.pause().await;
                let outcome = simulated(disk);
                disk.pause().await;
                outcome
            }
        }
        .map_err(|e| Error::from_io(e, path, Operation::Write, 0, len as u64))
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0.storage {
            Storage::Real { .. } => "real",
            Storage::Simulated(_) => "simulated",
        };
        write!(f, "Disk({kind}, {:?})", self.buffers())
    }
}

/// The directory of a path; a bare name is in the current one.
pub(crate) fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_path_buf(),
        None => PathBuf::from("/"),
    }
}

#[cfg(test)]
mod tests;
