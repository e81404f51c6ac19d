//! Reads a file from front to back, ahead of its consumer.
//!
//! ```text
//!            consumed │ buffered          in flight      in flight
//!   file  ────────────┼───────────┬──────────────────┬──────────────────┬─────────
//!                     position    │  next            │                  next_offset
//!                                 │
//!   one buffer:  [ headroom │ window of the file ]
//! ```
//!
//! 1. `depth` reads of `buffer_size` are in flight while the consumer works on one more buffer. The
//!    reads are handed to the kernel before `fill` returns, so they run while the consumer computes.
//! 2. What straddles two buffers is copied: the few bytes left of the old one go into the headroom
//!    in front of the new one, and are contiguous with it.
//! 3. A request that does not fit so is gathered in a larger buffer, which serves until it is used up.
//! 4. Only the first buffer is waited for. If the budget has no more, the reader reads less far ahead.
//!
//! Invariants: in-flight windows are adjacent and in file order; a window starts on the alignment of
//! direct I/O and never reaches past the (rounded-up) end of the file.
//!
//! Not `Send`: what is in flight belongs to its thread's ring.

use std::{collections::VecDeque, path::Path};

use crate::{
    buffer::{AlignedBuf, Tenure},
    error::Result,
    file::File,
    mode::ModeChoice,
    region::{Direction, InFlight, Region},
    runtime::backend,
};

/// How far a sequential reader reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// Bytes of one read; rounded up to 4 KiB.
    pub buffer_size: usize,
    /// Reads in flight.
    pub depth: usize,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions { buffer_size: 256 * 1024, depth: 2 }
    }
}

impl StreamOptions {
    /// With buffers so few and small that this many readers hold at most `budget` bytes together,
    /// as far as reads of 16 KiB allow it. First of all fewer: many readers have enough in flight
    /// together, and a large read costs little more than a small one.
    pub fn within(self, budget: usize, readers: usize) -> StreamOptions {
        let each = budget / readers.max(1);
        let largest = |depth: usize| {
            let buffer = each / (depth + 1);
            buffer.saturating_sub(HEADROOM_MAX).max(buffer / 2)
        };
        let depth = self.depth.max(1);
        let depth = if largest(depth) < self.buffer_size { 1 } else { depth };
        StreamOptions { buffer_size: self.buffer_size.min(largest(depth).max(16 * 1024)), depth }
    }
}

const PAGE: usize = crate::buffer::BUFFER_ALIGNMENT;
/// A chunk of 64 KiB, Cassandra's largest by default, with its checksum, fits in the headroom.
const HEADROOM_MAX: usize = 64 * 1024 + PAGE;
/// Pages are dropped behind the reader in steps of this much.
const DROP_STEP: u64 = 4 << 20;

pub struct SequentialReader {
    file: File,
    len: u64,
    window: usize,
    headroom: usize,
    depth: usize,
    current: Option<Current>,
    pending: VecDeque<Pending>,
    spare: Vec<AlignedBuf>,
    /// File offset of the first unconsumed byte.
    position: u64,
    /// Where the next read will start.
    next_offset: u64,
    dropped_to: u64,
}

/// The buffer that the consumer sees; its bytes `from..to` are the file's at `position`.
struct Current {
    buffer: AlignedBuf,
    from: usize,
    to: usize,
}

struct Pending {
    read: InFlight,
    region: Region,
    /// Bytes right before the window in its buffer that are already the file's.
    carried: usize,
}

/// A window that has arrived.
struct Window {
    buffer: AlignedBuf,
    region: Region,
    carried: usize,
    got: usize,
}

impl SequentialReader {
    pub(crate) fn opened(file: File, len: u64, options: StreamOptions) -> SequentialReader {
        let window = options.buffer_size.clamp(1, 1 << 30).next_multiple_of(PAGE);
        SequentialReader {
            file,
            len,
            window,
            headroom: HEADROOM_MAX.min(window),
            depth: options.depth.max(1),
            current: None,
            pending: VecDeque::new(),
            spare: Vec::new(),
            position: 0,
            next_offset: 0,
            dropped_to: 0,
        }
    }

    /// File offset of the next byte that the consumer has not consumed.
    pub fn position(&self) -> u64 {
        self.position
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

    /// The mode that the file was opened in, and why.
    pub fn mode(&self) -> &ModeChoice {
        self.file.choice()
    }

    /// The contiguous bytes at the position that are in memory.
    pub fn buffered(&self) -> &[u8] {
        match &self.current {
            Some(current) => &current.buffer[current.from..current.to],
            None => &[],
        }
    }

    /// Contiguous bytes at the position: at least `at_least`, unless the file ends first.
    ///
    /// Dropped early, it can be called again: nothing is lost.
    pub async fn fill(&mut self, at_least: usize) -> Result<&[u8]> {
        let remaining = self.len - self.position;
        let at_least = at_least.min(usize::try_from(remaining).unwrap_or(usize::MAX));
        loop {
            let have = self.buffered().len();
            if have >= at_least {
                return Ok(self.buffered());
            }
            self.drop_behind();
            if have == 0 {
                self.recycle_current();
            }
            self.read_ahead(true).await?;
            let window = self.next_window().await?;
            self.append(window, at_least).await?;
            // Replaces the buffer that was just used up, so that `depth` reads run while the
            // consumer works.
            self.read_ahead(false).await?;
        }
    }

    /// # Panics
    /// If more is consumed than is buffered.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.buffered().len(), "consumed more than was buffered");
        if let Some(current) = &mut self.current {
            current.from += count;
            self.position += count as u64;
        }
    }

    /// Moves to a file offset, keeping what is in memory or on its way if it can be used.
    pub async fn seek(&mut self, to: u64) -> Result<()> {
        let to = to.min(self.len);
        let buffered = self.buffered().len() as u64;
        if to >= self.position && to <= self.position + buffered {
            self.consume((to - self.position) as usize);
            return Ok(());
        }
        self.recycle_current();
        while let Some(first) = self.pending.front() {
            let (from, past) = (first.region.offset, first.region.offset + first.region.len as u64);
            if from <= to && to < past {
                self.position = to;
                let window = self.next_window().await?;
                return self.append(window, 0).await;
            }
            // Not cancelled: it ends by itself, and its buffer goes back to the pool.
            self.pending.pop_front();
        }
        self.position = to;
        self.dropped_to = self.dropped_to.min(to);
        self.start_over();
        Ok(())
    }

    /// Queues reads until `depth` are in flight; waits for a buffer only if `required` and there
    /// is nothing in flight at all.
    async fn read_ahead(&mut self, required: bool) -> Result<()> {
        let end = self.len.next_multiple_of(self.file.alignment());
        let mut queued = false;
        while self.pending.len() < self.depth && self.next_offset < self.len {
            let pool = self.file.volume().buffers().clone();
            let capacity = self.capacity();
            let (buffer, carried) = match self.spare.pop() {
                Some(buffer) => (buffer, 0),
                None => match pool.take_further(capacity) {
                    Some(buffer) => (buffer, 0),
                    None if !required || !self.pending.is_empty() => break,
                    None => match self.carry_over() {
                        Some(carried) => carried,
                        None => (pool.take_or_wait(capacity, Tenure::Stream).await?, 0),
                    },
                },
            };
            let len = (end - self.next_offset).min(self.window as u64) as usize;
            let region = Region { offset: self.next_offset, start: self.headroom, len };
            let admitted = Some(self.file.volume().admit(len).await);
            let read = self.file.queue_admitted(Direction::Read, region, buffer, admitted);
            self.pending.push_back(Pending { read, region, carried });
            self.next_offset += len as u64;
            queued = true;
        }
        if queued {
            backend::enter_ring();
        }
        Ok(())
    }

    /// Where the budget has no second buffer: makes the current one the next, its last bytes moved
    /// into its own headroom.
    fn carry_over(&mut self) -> Option<(AlignedBuf, usize)> {
        let left = self.buffered().len();
        if left > self.headroom || self.current.as_ref()?.buffer.len() != self.capacity() {
            return None;
        }
        let Current { mut buffer, from, to } = self.current.take()?;
        buffer.copy_within(from..to, self.headroom - left);
        Some((buffer, left))
    }

    /// The window that follows what is buffered. After an error the reader can be filled again.
    async fn next_window(&mut self) -> Result<Window> {
        let Some(Pending { read, region, carried }) = self.pending.front_mut() else {
            unreachable!("bytes remain, so a read is in flight");
        };
        let (region, carried) = (*region, *carried);
        let finished = read.finish_overlapped().await;
        self.pending.pop_front();
        match self.file.complete_read(finished, region, self.len).await {
            Ok((got, buffer)) => Ok(Window { buffer, region, carried, got }),
            Err(e) => {
                self.start_over();
                Err(e)
            }
        }
    }

    /// Forgets what is in flight; the next read starts behind what is buffered.
    fn start_over(&mut self) {
        self.pending.clear();
        let next = self.position + self.buffered().len() as u64;
        // Behind a buffer the next window must follow exactly; its end is always aligned, or the
        // file's.
        self.next_offset = if self.current.is_some() { next } else { next - next % PAGE as u64 };
    }

    /// Joins a window to what is left of the buffer before it.
    async fn append(&mut self, window: Window, at_least: usize) -> Result<()> {
        let Window { mut buffer, region, carried, got } = window;
        let left = self.buffered().len();
        let past = region.offset + got as u64;
        let follows = match &self.current {
            Some(_) => region.offset == self.position + left as u64,
            None => region.offset - carried as u64 <= self.position && self.position <= past,
        };
        if !follows {
            // A dropped future lost a window on its way: read it again.
            self.start_over();
            return Ok(());
        }
        let Some(mut current) = self.current.take() else {
            // After a seek the window may start before the position.
            let skip = (self.position - (region.offset - carried as u64)) as usize;
            let from = region.start - carried + skip;
            self.current = Some(Current { buffer, from, to: region.start + got });
            return Ok(());
        };
        if left <= self.headroom {
            let from = region.start - left;
            buffer[from..region.start].copy_from_slice(&current.buffer[current.from..current.to]);
            self.current = Some(Current { buffer, from, to: region.start + got });
            self.recycle(current.buffer);
            return Ok(());
        }
        if current.buffer.len() - current.to < got {
            // Room for what was asked, and for the window that brings the last of it.
            let capacity = at_least.max(left + got).saturating_add(self.window);
            self.current = Some(current);
            let gathered =
                self.file.volume().buffers().take_or_wait(capacity, Tenure::Stream).await;
            let mut gathered = match gathered {
                Ok(gathered) => gathered,
                Err(e) => {
                    self.start_over();
                    return Err(e);
                }
            };
            let Some(full) = self.current.take() else { unreachable!("it was just set") };
            gathered[..left].copy_from_slice(&full.buffer[full.from..full.to]);
            self.recycle(full.buffer);
            current = Current { buffer: gathered, from: 0, to: left };
        }
        let window = &buffer[region.start..region.start + got];
        current.buffer[current.to..current.to + got].copy_from_slice(window);
        current.to += got;
        self.current = Some(current);
        self.recycle(buffer);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.headroom + self.window
    }

    fn recycle_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.recycle(current.buffer);
        }
    }

    /// Keeps a buffer of the usual size for the next read, unless another stream waits for its
    /// first; gathered ones go back to the pool.
    fn recycle(&mut self, buffer: AlignedBuf) {
        let needed = self.pending.is_empty() || !self.file.volume().buffers().streams_wait();
        if buffer.len() == self.capacity() && needed {
            self.spare.push(buffer);
        }
    }

    /// Where standard mode is the last resort, pages are dropped as the reader leaves them behind.
    fn drop_behind(&mut self) {
        if self.file.choice().drop_behind && self.position >= self.dropped_to + DROP_STEP {
            self.file.drop_pages(self.dropped_to, self.position - self.dropped_to);
            self.dropped_to = self.position;
        }
    }
}

impl Drop for SequentialReader {
    fn drop(&mut self) {
        if self.file.choice().drop_behind {
            self.file.drop_pages(self.dropped_to, self.position - self.dropped_to);
        }
    }
}

impl std::fmt::Debug for SequentialReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SequentialReader({:?} at {} of {})", self.file, self.position, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that readers which share a budget give up reads in flight before they make them
    /// smaller, and make them no smaller than 16 KiB.
    #[test]
    fn readers_share_a_budget() {
        let of = |readers| {
            let shared = StreamOptions::default().within(16 << 20, readers);
            (shared.buffer_size >> 10, shared.depth)
        };
        let shared = [(256, 2), (256, 2), (188, 1), (44, 1), (16, 1)];
        assert_eq!([1, 16, 32, 93, 10_000].map(of), shared);
    }
}
