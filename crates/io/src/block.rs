//! A file of fixed length whose blocks are written at chosen places: durable when the write returns, or in the page cache, where they
//! survive the process, and durable after a sync.
//!
//! 1. `create_blocks` reserves the file's blocks, writes zeros over all of them and syncs: a later write then changes no
//!    metadata, neither a length nor an extent that was never written, and needs no journal commit of the file system.
//! 2. A write is one operation with `RWF_DSYNC`. Where that flag is unknown, the file remembers so, and a write is followed
//!    by fdatasync.
//! 3. Offsets and lengths are multiples of [`BlockFile::block`]. Nothing is read or written around them, so bytes that were
//!    durable once are never touched again by a write beside them.

use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use crate::{
    background::{Admitted, OPERATION},
    buffer::{AlignedBuf, BUFFER_ALIGNMENT},
    error::{Error, Operation, Result},
    file::File,
    mode::{AccessMode, ModeChoice},
    region::{Direction, Region},
};

/// A new file is synced each time this many zeros are written.
const FILL_SYNC: u64 = 4 << 20;

/// A file for durable writes of aligned blocks; clones are the same open file.
#[derive(Clone)]
pub struct BlockFile {
    file: File,
    no_dsync: Arc<AtomicBool>,
}

impl BlockFile {
    pub(crate) fn opened(file: File) -> BlockFile {
        BlockFile { file, no_dsync: Arc::default() }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The mode that the file is written in, and why.
    pub fn mode(&self) -> &ModeChoice {
        self.file.choice()
    }

    /// What offsets and lengths are multiples of. Through the page cache it is a page: a smaller write would make the
    /// kernel write the bytes beside it again.
    pub fn block(&self) -> usize {
        match self.file.choice().mode {
            AccessMode::Direct => self.file.alignment() as usize,
            _ => BUFFER_ALIGNMENT,
        }
    }

    /// Writes the first `len` bytes of the buffer; they are durable when this returns. The buffer comes back.
    pub async fn write_durable(
        &self,
        offset: u64,
        buffer: AlignedBuf,
        len: usize,
    ) -> (Result<()>, AlignedBuf) {
        let region = Region { offset, start: 0, len };
        if !self.no_dsync.load(Relaxed) {
            let (outcome, buffer) = self.write(Direction::DurableWrite, region, buffer, None).await;
            match outcome {
                Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    self.no_dsync.store(true, Relaxed);
                    return self.write_then_sync(region, buffer).await;
                }
                outcome => {
                    if outcome.is_ok() {
                        self.file.volume().others_flushed();
                    }
                    return (self.named(outcome, region), buffer);
                }
            }
        }
        self.write_then_sync(region, buffer).await
    }

    /// Writes the first `len` bytes of the buffer to the page cache: they survive the process when this returns, and a power failure
    /// once `sync` has returned. Only for a file that is written in standard mode.
    pub async fn write_cached(
        &self,
        offset: u64,
        buffer: AlignedBuf,
        len: usize,
    ) -> (Result<()>, AlignedBuf) {
        let region = Region { offset, start: 0, len };
        let (outcome, buffer) = self.write(Direction::Write, region, buffer, None).await;
        (self.named(outcome, region), buffer)
    }

    /// Makes durable what was written to the page cache before the call. The pages of the range are not wanted again.
    pub async fn sync(&self, offset: u64, len: u64) -> Result<()> {
        self.file.sync_data().await?;
        if len > 0 {
            self.file.drop_pages(offset, len);
        }
        Ok(())
    }

    async fn write_then_sync(
        &self,
        region: Region,
        buffer: AlignedBuf,
    ) -> (Result<()>, AlignedBuf) {
        let (outcome, buffer) = self.write(Direction::Write, region, buffer, None).await;
        match self.named(outcome, region) {
            Ok(()) => (self.file.sync_data().await, buffer),
            Err(e) => (Err(e), buffer),
        }
    }

    fn named(&self, outcome: io::Result<()>, region: Region) -> Result<()> {
        outcome.map_err(|e| self.file.error(e, Operation::Write, region))
    }

    /// Short writes are rare (a signal, a nearly full device); they resume at a boundary.
    async fn write(
        &self,
        direction: Direction,
        region: Region,
        mut buffer: AlignedBuf,
        mut admitted: Option<Admitted>,
    ) -> (io::Result<()>, AlignedBuf) {
        let mut done = 0;
        while done < region.len {
            let rest = Region {
                offset: region.offset + done as u64,
                start: region.start + done,
                len: region.len - done,
            };
            let mut write = self.file.queue_admitted(direction, rest, buffer, admitted.take());
            let (outcome, returned) = write.finish().await;
            buffer = returned;
            match outcome {
                Ok(count) if count >= rest.len => break,
                Ok(count) if count >= self.block() => done += count - count % self.block(),
                Ok(_) => return (Err(io::Error::from(io::ErrorKind::WriteZero)), buffer),
                Err(e) => return (Err(e), buffer),
            }
        }
        (Ok(()), buffer)
    }

    /// Gives a new file its length: zeros, written and synced. `pace` gets the number of written bytes before each piece, and may wait.
    pub(crate) async fn fill(&self, len: u64, pace: impl AsyncFn(u64)) -> Result<()> {
        self.file.preallocate(len).await?;
        let pool = self.file.volume().buffers();
        let mut offset = 0;
        while offset < len {
            pace(offset).await;
            // Not kept meanwhile: the pace may be slow.
            let mut buffer = pool.take_or_wait(OPERATION, crate::buffer::Tenure::Short).await?;
            buffer.fill(0);
            let region =
                Region { offset, start: 0, len: (len - offset).min(OPERATION as u64) as usize };
            let admitted = Some(self.file.volume().admit(region.len).await);
            let (outcome, _) = self.write(Direction::Write, region, buffer, admitted).await;
            self.named(outcome, region)?;
            offset += region.len as u64;
            if offset == len || offset.is_multiple_of(FILL_SYNC) {
                // In steps: the page cache, or the device's, would else have all of it to write at once.
                self.file.sync_data().await?;
                self.file.drop_pages(0, 0);
            }
        }
        Ok(())
    }

    /// Says that a length does not fit the file's blocks.
    pub(crate) fn check_len(&self, len: u64) -> Result<()> {
        if len.is_multiple_of(BUFFER_ALIGNMENT as u64) {
            return Ok(());
        }
        Err(Error::Unsupported {
            path: self.path().to_path_buf(),
            operation: Operation::Create,
            why: format!("a file of blocks cannot be {len} bytes long"),
            cure: format!("use a multiple of {BUFFER_ALIGNMENT}"),
        })
    }
}

impl fmt::Debug for BlockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockFile({:?})", self.file)
    }
}
