//! An open file on either disk, and random reads of it.

use std::{
    fmt, io,
    ops::Deref,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    background::Admitted,
    buffer::{AlignedBuf, Tenure},
    descriptors,
    error::{Error, Operation, Result},
    mode::{AccessMode, ModeChoice, Purpose},
    real,
    region::{Direction, Finished, InFlight, Meter, Region, Work},
    removal,
    runtime::backend,
    sim,
    volume::Volume,
};

/// An open file: what every kind of access to it shares.
#[derive(Clone)]
pub(crate) struct File(Arc<Open>);

struct Open {
    path: PathBuf,
    volume: Arc<Volume>,
    purpose: Purpose,
    choice: ModeChoice,
    handle: Handle,
}

#[derive(Clone)]
pub(crate) enum Handle {
    Real(Arc<OwnedFd>),
    Simulated(Arc<sim::Handle>),
}

impl File {
    pub(crate) fn opened(
        volume: Arc<Volume>,
        path: &Path,
        purpose: Purpose,
        choice: ModeChoice,
        handle: Handle,
    ) -> File {
        File(Arc::new(Open { path: path.to_path_buf(), volume, purpose, choice, handle }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn volume(&self) -> &Volume {
        &self.0.volume
    }

    pub(crate) fn choice(&self) -> &ModeChoice {
        &self.0.choice
    }

    /// Offsets and lengths of reads and writes are multiples of this.
    pub(crate) fn alignment(&self) -> u64 {
        match self.0.choice.mode {
            AccessMode::Direct => u64::from(self.0.choice.alignment.offset.max(512)),
            _ => 1,
        }
    }

    /// A foreground operation. It does not wait for the streams' share of the device.
    pub(crate) fn queue(
        &self,
        direction: Direction,
        region: Region,
        buffer: AlignedBuf,
    ) -> InFlight {
        self.queue_admitted(direction, region, buffer, None)
    }

    /// An operation of a stream; it is to be admitted ([`Volume::admit`]).
    pub(crate) fn queue_admitted(
        &self,
        direction: Direction,
        region: Region,
        buffer: AlignedBuf,
        admitted: Option<Admitted>,
    ) -> InFlight {
        let metrics = self.0.volume.metrics().here().clone();
        let meter = Meter { metrics, purpose: self.0.purpose };
        match &self.0.handle {
            Handle::Real(file) => {
                let mut flags = match self.0.choice.mode {
                    AccessMode::Uncached => libc::RWF_DONTCACHE,
                    _ => 0,
                };
                if direction == Direction::DurableWrite {
                    flags |= libc::RWF_DSYNC;
                }
                let work = Work { file: file.clone(), direction, flags, region };
                InFlight::queue(work, buffer, meter, admitted)
            }
            Handle::Simulated(file) => {
                let (file, alignment) = (file.clone(), self.alignment());
                if !file.disk().has_latency() {
                    return InFlight::done(
                        file.region(direction, region, buffer, alignment),
                        meter,
                    );
                }
                InFlight::simulated(meter, async move {
                    let _admitted = admitted;
                    file.disk().pause().await;
                    let finished = file.region(direction, region, buffer, alignment);
                    file.disk().pause().await;
                    finished
                })
            }
        }
    }

    /// Runs a blocking call on the file where blocking is allowed.
    async fn call<T: Send + 'static>(
        &self,
        operation: Operation,
        real: impl FnOnce(&OwnedFd) -> io::Result<T> + Send + 'static,
        simulated: impl FnOnce(&sim::Handle) -> io::Result<T>,
        needed: u64,
    ) -> Result<T> {
        let outcome = match &self.0.handle {
            Handle::Real(file) => {
                let file = file.clone();
                backend::on_pool(move || real(&file)).await
            }
            Handle::Simulated(file) => {
                file.disk().pause().await;
                let outcome = simulated(file);
                file.disk().pause().await;
                outcome
            }
        };
        outcome.map_err(|e| Error::from_io(e, &self.0.path, operation, 0, needed))
    }

    pub(crate) async fn preallocate(&self, len: u64) -> Result<()> {
        let real = move |file: &OwnedFd| real::preallocate(file, len);
        self.call(Operation::Preallocate, real, |file| file.preallocate(len), len).await
    }

    pub(crate) async fn truncate(&self, len: u64) -> Result<()> {
        let real = move |file: &OwnedFd| real::truncate(file, len);
        self.call(Operation::Truncate, real, |file| file.truncate(len), 0).await
    }

    pub(crate) async fn sync_data(&self) -> Result<()> {
        self.call(Operation::Sync, real::sync_data, |file| file.sync(), 0).await?;
        self.volume().others_flushed();
        Ok(())
    }

    pub(crate) async fn write_back_and_drop(&self, offset: u64, len: u64) -> Result<()> {
        let real = move |file: &OwnedFd| real::write_back_and_drop(file, offset, len);
        self.call(Operation::Write, real, |_| Ok(()), 0).await
    }

    /// Removes the file's name, as [`crate::Disk::remove`].
    pub(crate) async fn remove(&self) -> Result<()> {
        let path = self.0.path.clone();
        let outcome = match &self.0.handle {
            Handle::Real(_) => {
                let remove = move || removal::remove(&path);
                let clock = self.volume().clock();
                descriptors::patiently(clock, remove, descriptors::is_exhausted).await
            }
            Handle::Simulated(file) => {
                let disk = file.disk();
                disk.pause().await;
                let outcome = disk.remove(&path);
                disk.pause().await;
                outcome
            }
        };
        outcome.map_err(|e| Error::on_name(e, &self.0.path, Operation::Remove))
    }

    /// Drops clean pages; quick, so it does not leave the thread.
    pub(crate) fn drop_pages(&self, offset: u64, len: u64) {
        if let Handle::Real(file) = &self.0.handle {
            real::drop_pages(file, offset, len);
        }
    }

    pub(crate) fn error(&self, source: io::Error, operation: Operation, region: Region) -> Error {
        Error::from_io(source, &self.0.path, operation, region.offset, region.len as u64)
    }

    /// Continues a read that returned less than it could, until `region` is full or the file of
    /// `file_len` bytes ends; returns the bytes that are there from the region's start.
    pub(crate) async fn complete_read(
        &self,
        first: Finished,
        region: Region,
        file_len: u64,
    ) -> Result<(usize, AlignedBuf)> {
        let expected = file_len.saturating_sub(region.offset).min(region.len as u64) as usize;
        let (outcome, mut buffer) = first;
        let mut done = outcome.map_err(|e| self.error(e, Operation::Read, region))?;
        while done < expected {
            // A short direct read that is not at the end stops at a boundary; continue at the last one.
            let resume = done - done % self.alignment() as usize;
            let rest = Region {
                offset: region.offset + resume as u64,
                start: region.start + resume,
                len: region.len - resume,
            };
            let (outcome, returned) = self.queue(Direction::Read, rest, buffer).finish().await;
            let more = outcome.map_err(|e| self.error(e, Operation::Read, rest))?;
            buffer = returned;
            if resume + more <= done {
                return Err(Error::ShortRead {
                    path: self.0.path.clone(),
                    operation: Operation::Read,
                    offset: region.offset,
                    wanted: expected as u64,
                    got: done as u64,
                });
            }
            done = resume + more;
        }
        Ok((expected, buffer))
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({}, {}, {})", self.0.path.display(), self.0.choice.mode, self.0.purpose)
    }
}

/// A file for random reads. Immutable, so any thread may read it; clones share the descriptor.
#[derive(Debug, Clone)]
pub struct ReadFile {
    file: File,
    len: u64,
}

impl ReadFile {
    pub(crate) fn opened(file: File, len: u64) -> ReadFile {
        ReadFile { file, len }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The same descriptor, whose reads count for another purpose. None where reads go through the page cache: there the kernel keeps the
    /// state of its read-ahead by descriptor, and reads of two kinds would spoil it for each other.
    pub fn for_purpose(&self, purpose: Purpose) -> Option<ReadFile> {
        let Open { path, volume, choice, handle, .. } = &*self.file.0;
        if choice.mode != AccessMode::Direct {
            return None;
        }
        let file = File::opened(volume.clone(), path, purpose, choice.clone(), handle.clone());
        Some(ReadFile { file, len: self.len })
    }

    /// The mode that the file was opened in, and why.
    pub fn mode(&self) -> &ModeChoice {
        self.file.choice()
    }

    /// Exactly `len` bytes at `offset`, in one I/O of the smallest aligned region around them.
    pub async fn read_at(&self, offset: u64, len: usize) -> Result<AlignedRead> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len);
        let Some(end) = end else {
            return Err(Error::ShortRead {
                path: self.file.path().to_path_buf(),
                operation: Operation::Read,
                offset,
                wanted: len as u64,
                got: self.len.saturating_sub(offset),
            });
        };
        if len == 0 {
            return Ok(AlignedRead { buffer: None, start: 0, len: 0 });
        }
        let alignment = self.file.alignment();
        let first = offset - offset % alignment;
        let past = end.next_multiple_of(alignment);
        let region = Region { offset: first, start: 0, len: (past - first) as usize };
        let pool = self.file.volume().buffers();
        let buffer = pool.take_or_wait(region.len, Tenure::Short).await?;
        let finished = self.file.queue(Direction::Read, region, buffer).finish().await;
        let (_, buffer) = self.file.complete_read(finished, region, self.len).await?;
        if self.file.choice().drop_behind {
            self.file.drop_pages(first, past - first);
        }
        Ok(AlignedRead { buffer: Some(buffer), start: (offset - first) as usize, len })
    }
}

/// The bytes that were asked for; the aligned region around them is behind them.
#[derive(Debug)]
pub struct AlignedRead {
    buffer: Option<AlignedBuf>,
    start: usize,
    len: usize,
}

impl Deref for AlignedRead {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => &buffer[self.start..self.start + self.len],
            None => &[],
        }
    }
}

impl AsRef<[u8]> for AlignedRead {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
