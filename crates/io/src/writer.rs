//! Writes a file from front to back, behind its producer.
//!
//! 1. The producer's bytes are copied into a buffer. A full buffer is given its file offset, is
//!    handed to the kernel as soon as streams may have it in flight (`background.rs`), and the producer continues in the next one.
//! 2. Up to `depth` writes are in flight. Only the first buffer is waited for: if the budget has no
//!    more, the writer waits for its own writes instead.
//! 3. A write that fails in the background is reported by the next `write` or `finish`; from then on
//!    the writer refuses.
//! 4. `finish` writes the tail, in direct mode padded with zeros to the alignment, waits for
//!    everything, cuts the file to its length (which also gives back what was preallocated too
//!    much), and syncs data and length.
//!
//! Now and then a write flushes the device too (`trickle.rs`), unless it went to the page cache only.
//!
//! With [`WriteOptions::read_back`] each buffer is as large again: what was written is read into its second half and compared, while
//! the next ones are written. So a file is verified by the time that it is complete, without a pass of its own over all of it.
//!
//! Offsets are reserved before anything is awaited, so no two writes can claim the same bytes.
//! A writer that is dropped leaves an unfinished file behind; `abandon` deletes it.
//!
//! Not `Send`: what is in flight belongs to its thread's ring.

use std::{collections::VecDeque, io, path::Path};

use crate::{
    background::OPERATION,
    buffer::{AlignedBuf, Tenure},
    error::{Error, Operation, Result},
    file::File,
    mode::{AccessMode, ModeChoice},
    region::{Direction, Finished, InFlight, Region},
    runtime::backend,
};

/// How a sequential writer buffers and what it may prepare for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Bytes of one buffer; rounded up to 4 KiB. Larger ones are written in operations of at most 256 KiB.
    pub buffer_size: usize,
    /// Buffers in flight.
    pub depth: usize,
    /// Preallocated; zero if unknown.
    pub expected_len: u64,
    /// Compare what the device gives back with what was written.
    pub read_back: bool,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { buffer_size: 1 << 20, depth: 2, expected_len: 0, read_back: false }
    }
}

const PAGE: usize = crate::buffer::BUFFER_ALIGNMENT;
/// Where standard mode is the last resort, this much is written back and dropped at a time.
const DROP_STEP: u64 = 8 << 20;
/// Buffers that are being read back.
const READ_BACK_DEPTH: usize = 2;

pub struct SequentialWriter {
    file: File,
    size: usize,
    depth: usize,
    current: Option<AlignedBuf>,
    filled: usize,
    /// File offset at which the current buffer will be written.
    reserved: u64,
    pending: VecDeque<Pending>,
    read_back: bool,
    reading: VecDeque<Pending>,
    spare: Vec<AlignedBuf>,
    dropped_to: u64,
    failed: Option<String>,
}

struct Pending {
    operation: InFlight,
    direction: Direction,
    region: Region,
}

impl SequentialWriter {
    pub(crate) fn created(file: File, options: WriteOptions) -> SequentialWriter {
        let buffer = options.buffer_size.clamp(1, 1 << 30).next_multiple_of(PAGE);
        let size = buffer.min(OPERATION);
        SequentialWriter {
            file,
            size,
            depth: options.depth.max(1) * (buffer / size),
            current: None,
            filled: 0,
            reserved: 0,
            pending: VecDeque::new(),
            read_back: options.read_back,
            reading: VecDeque::new(),
            spare: Vec::new(),
            dropped_to: 0,
            failed: None,
        }
    }

    /// How many bytes have been written to it: the file offset of the next byte.
    pub fn position(&self) -> u64 {
        self.reserved + self.filled as u64
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The mode that the file is written in, and why.
    pub fn mode(&self) -> &ModeChoice {
        self.file.choice()
    }

    /// Takes all the bytes. Dropped early, it has taken those up to [`SequentialWriter::position`].
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.refuse_after_failure()?;
        while !bytes.is_empty() {
            if self.filled == self.size {
                // The future that filled it was dropped before it was queued.
                self.queue_current(self.size).await;
            }
            if self.current.is_none() {
                self.current = Some(self.next_buffer().await?);
            }
            let Some(current) = &mut self.current else { unreachable!("it was just set") };
            let (now, later) = bytes.split_at(bytes.len().min(self.size - self.filled));
            current[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == self.size {
                self.queue_current(self.size).await;
            }
        }
        Ok(())
    }

    /// Everything on the device; returns the file's length. Its directory entry is the caller's to
    /// sync, and after an error the file is the caller's to remove.
    pub async fn finish(mut self) -> Result<u64> {
        self.refuse_after_failure()?;
        let len = self.position();
        if let Some(current) = &mut self.current {
            let padded = self.filled.next_multiple_of(self.file.alignment() as usize);
            current[self.filled..padded].fill(0);
            if padded > 0 {
                self.queue_current(padded).await;
            }
        }
        while !self.pending.is_empty() {
            self.settle_oldest().await?;
        }
        while !self.reading.is_empty() {
            self.compare_oldest().await?;
        }
        self.file.truncate(len).await?;
        self.file.sync_data().await?;
        if self.file.choice().drop_behind {
            self.file.drop_pages(0, 0);
        }
        Ok(len)
    }

    /// Closes and deletes the file.
    pub async fn abandon(mut self) {
        for Pending { mut operation, .. } in self.pending.drain(..).chain(self.reading.drain(..)) {
            let _ = operation.finish_overlapped().await;
        }
        // An abandoned file that cannot be removed is left to the start-up, which
        // removes it.
        let _ = self.file.remove().await;
    }

    /// Gives the current buffer its offset and hands it to the kernel.
    async fn queue_current(&mut self, len: usize) {
        let admitted = Some(self.file.volume().admit(len).await);
        let Some(buffer) = self.current.take() else { return };
        let is_cached = self.file.choice().mode == AccessMode::Standard;
        let direction = match !is_cached && self.file.volume().is_flush_due(len) {
            true => Direction::DurableWrite,
            false => Direction::Write,
        };
        let region = Region { offset: self.reserved, start: 0, len };
        self.reserved += len as u64;
        self.filled = 0;
        let operation = self.file.queue_admitted(direction, region, buffer, admitted);
        self.pending.push_back(Pending { operation, direction, region });
        backend::enter_ring();
    }

    async fn next_buffer(&mut self) -> Result<AlignedBuf> {
        while self.pending.len() >= self.depth {
            self.settle_oldest().await?;
        }
        let size = if self.read_back { 2 * self.size } else { self.size };
        loop {
            if let Some(buffer) = self.spare.pop() {
                return Ok(buffer);
            }
            let pool = self.file.volume().buffers();
            if self.pending.is_empty() && self.reading.is_empty() {
                return pool.take_or_wait(size, Tenure::Stream).await;
            }
            if let Some(buffer) = pool.take_further(size) {
                return Ok(buffer);
            }
            if self.reading.is_empty() {
                self.settle_oldest().await?;
            } else {
                self.compare_oldest().await?;
            }
        }
    }

    /// Waits for the oldest write in flight, and has it read back or keeps its buffer.
    async fn settle_oldest(&mut self) -> Result<()> {
        while self.reading.len() >= READ_BACK_DEPTH {
            self.compare_oldest().await?;
        }
        let Some(Pending { operation, direction, region }) = self.pending.front_mut() else {
            return Ok(());
        };
        let (direction, region) = (*direction, *region);
        // Popped only when it is done: a dropped future must not lose the outcome.
        let finished = operation.finish_overlapped().await;
        if direction == Direction::DurableWrite {
            self.file.volume().stream_flushed(operation.took());
        }
        self.pending.pop_front();
        let buffer = self.whole(direction, region, finished).await?;
        if !self.read_back {
            self.spare.push(buffer);
            return self.drop_behind(region.offset + region.len as u64).await;
        }
        self.failed = Some("what was written was not read back".to_owned());
        let admitted = Some(self.file.volume().admit(region.len).await);
        let region = Region { start: self.size, ..region };
        let direction = Direction::Read;
        let operation = self.file.queue_admitted(direction, region, buffer, admitted);
        self.reading.push_back(Pending { operation, direction, region });
        self.failed = None;
        backend::enter_ring();
        Ok(())
    }

    /// Waits for the oldest region that is read back; it must be what was written.
    async fn compare_oldest(&mut self) -> Result<()> {
        let Some(Pending { operation, region, .. }) = self.reading.front_mut() else {
            return Ok(());
        };
        let region = *region;
        let finished = operation.finish_overlapped().await;
        self.reading.pop_front();
        let buffer = self.whole(Direction::Read, region, finished).await?;
        let (written, read) = buffer.split_at(region.start);
        let (written, read) = (&written[..region.len], &read[..region.len]);
        if written != read {
            let first =
                written.iter().zip(read).take_while(|(written, read)| written == read).count();
            let what = "the device gives back other bytes than were written";
            let at = Region { offset: region.offset + first as u64, ..region };
            return Err(self.fail(io::Error::other(what), Operation::Read, at));
        }
        self.spare.push(buffer);
        self.drop_behind(region.offset + region.len as u64).await
    }

    /// The buffer of an operation that was queued, when all of the region is done.
    async fn whole(
        &mut self,
        mut direction: Direction,
        region: Region,
        (mut outcome, mut buffer): Finished,
    ) -> Result<AlignedBuf> {
        let (operation, ended) = match direction {
            Direction::Read => (Operation::Read, io::ErrorKind::UnexpectedEof),
            Direction::Write | Direction::DurableWrite => {
                (Operation::Write, io::ErrorKind::WriteZero)
            }
        };
        let mut done = 0;
        loop {
            match outcome {
                Ok(0) => return Err(self.fail(ended.into(), operation, region)),
                Ok(count) => done += count,
                Err(source)
                    if direction == Direction::DurableWrite
                        && source.raw_os_error() == Some(libc::EOPNOTSUPP) =>
                {
                    self.file.volume().stop_flushing();
                    direction = Direction::Write;
                }
                Err(source) => return Err(self.fail(source, operation, region)),
            }
            if done >= region.len {
                break;
            }
            // Short ones are rare (a signal, a nearly full device); resume at a boundary.
            let resume = done - done % self.file.alignment() as usize;
            let rest = Region {
                offset: region.offset + resume as u64,
                start: region.start + resume,
                len: region.len - resume,
            };
            done = resume;
            self.failed = Some(format!("the rest of a short {operation} was not waited for"));
            (outcome, buffer) = self.file.queue(direction, rest, buffer).finish().await;
        }
        self.failed = None;
        Ok(buffer)
    }

    fn fail(&mut self, source: io::Error, operation: Operation, region: Region) -> Error {
        let error = self.file.error(source, operation, region);
        self.failed = Some(error.to_string());
        error
    }

    fn refuse_after_failure(&self) -> Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(earlier) => {
                let source = io::Error::other(format!("an earlier write failed: {earlier}"));
                let region = Region { offset: self.position(), start: 0, len: 0 };
                Err(self.file.error(source, Operation::Write, region))
            }
        }
    }

    async fn drop_behind(&mut self, written_to: u64) -> Result<()> {
        if self.file.choice().drop_behind && written_to >= self.dropped_to + DROP_STEP {
            let (from, len) = (self.dropped_to, written_to - self.dropped_to);
            self.dropped_to = written_to;
            self.file.write_back_and_drop(from, len).await?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for SequentialWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SequentialWriter({:?} at {})", self.file, self.position())
    }
}
