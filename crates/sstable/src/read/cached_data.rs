//! Data.db read chunk by chunk through a shard's chunk cache.
//!
//! ```text
//!   held:  one chunk of the cache, not copied              … or bytes gathered where something crosses a boundary
//!          [ consumed │ available ]
//! ```
//!
//! 1. Bytes within one chunk are shown in the chunk itself. Only what crosses a boundary is copied together.
//! 2. A miss reads the one chunk that is needed; misses in sequence read 2, 4, 8 … chunks, up to `MAX_AHEAD` bytes,
//!    in one I/O.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_model::{Cursor, DecodeError};

use super::caches::{Chunk, ReadCaches};
use super::data_file::DataFile;
use crate::data::compress::Decompressor;
use crate::data::window::{DataWindow, SeekWindow};
use crate::{CHECKS, Component, Error, Result};

/// Most stored bytes of one read ahead.
const MAX_AHEAD: u64 = 256 * 1024;

enum Held {
    Chunk(Chunk),
    Gathered(Vec<u8>),
}

pub struct CachedData {
    file: Arc<DataFile>,
    caches: ReadCaches,
    /// A scan: through `scan_file`, leaving nothing in the cache.
    scan: bool,
    held: Held,
    start: usize,
    /// Position in the data of `held[start]`.
    position: u64,
    /// Chunks read ahead, in order.
    ahead: VecDeque<(u64, Chunk)>,
    next_chunk: u64,
    /// Chunks that the next miss reads.
    stride: u64,
    /// It reads up to this one, whatever is asked for.
    needed: u64,
}

impl CachedData {
    pub(super) fn new(file: Arc<DataFile>, caches: ReadCaches, scan: bool) -> CachedData {
        CachedData {
            file,
            caches,
            scan,
            held: Held::Gathered(Vec::new()),
            start: 0,
            position: 0,
            ahead: VecDeque::new(),
            next_chunk: u64::MAX,
            stride: 1,
            needed: 0,
        }
    }

    /// A partition that crosses into the next chunk is read in one I/O. A longer one may not be needed as a whole.
    pub(super) fn will_need_two(&mut self, position: u64) {
        self.needed = position / self.file.chunk_length() + 1;
    }

    /// The key of the partition at a position of the data.
    pub(super) async fn key_at(&mut self, position: u64, key: &mut Vec<u8>) -> Result<()> {
        self.seek(position).await?;
        self.fill(2).await?;
        let length = self.available().first_chunk().map_or(0, |length| u16::from_be_bytes(*length));
        self.fill(2 + usize::from(length)).await?;
        key.clear();
        match Cursor::at_offset(self.available(), position).sbytes() {
            Ok(bytes) => key.extend_from_slice(bytes),
            Err(e) => return Err(self.corrupt(e.offset, e.what)),
        }
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        match &self.held {
            Held::Chunk(chunk) => chunk,
            Held::Gathered(bytes) => bytes,
        }
    }

    /// Chunk `number`; `last` is the last that is known to be needed now.
    async fn chunk(&mut self, number: u64, last: u64) -> Result<Chunk> {
        while let Some((ahead, chunk)) = self.ahead.pop_front() {
            if ahead == number {
                return Ok(chunk);
            }
        }
        if let Some(chunk) = self.caches.chunk(self.file.id(), number) {
            return Ok(chunk);
        }
        self.stride = if self.next_chunk == number { self.stride * 2 } else { 1 };
        let length = self.file.chunk_length();
        let most = (MAX_AHEAD / length).max(1);
        self.stride = self.stride.min(most);
        let wanted = self.stride.max(last.saturating_sub(number) + 1).min(most);
        let past = (number + wanted).min(self.data_length().div_ceil(length)).max(number + 1);
        self.fetch(number, past).await?;
        self.next_chunk = past;
        match self.ahead.pop_front() {
            Some((_, chunk)) => Ok(chunk),
            None => Err(self.corrupt(number * length, "data ends before its last row")),
        }
    }

    /// Reads the chunks `first..past` in one I/O and puts them into `ahead`.
    async fn fetch(&mut self, first: u64, past: u64) -> Result<()> {
        let length = self.file.chunk_length();
        let data = self.file.clone();
        let (start, end) = match data.compression() {
            Some(info) => {
                let range = |number: u64| info.chunk_range(usize::try_from(number).ok()?);
                match (range(first), range(past - 1)) {
                    (Some(first), Some(last)) if first.start <= last.end => (first.start, last.end),
                    _ => return Err(self.corrupt(first * length, "data ends before its last row")),
                }
            }
            None => (first * length, (past * length).min(self.data_length())),
        };
        let file = data.file(self.scan);
        let stored =
            file.read_at(start, usize::try_from(end - start).unwrap_or(usize::MAX)).await?;
        self.caches.count_read(stored.len());
        for number in first..past {
            let chunk = self.open(number, start, &stored)?;
            if !self.scan {
                self.caches.keep_chunk(data.id(), number, chunk.clone());
            }
            self.ahead.push_back((number, chunk));
        }
        Ok(())
    }

    /// Checks and decompresses one chunk out of stored bytes that begin at `start` of the file.
    fn open(&self, number: u64, start: u64, stored: &[u8]) -> Result<Chunk> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(info) = self.file.compression() else {
            let from = (number * self.file.chunk_length() - start) as usize;
            let rest = stored.get(from..).unwrap_or_default();
            let bytes = rest.get(..self.file.chunk_length() as usize).unwrap_or(rest);
            if let Some(crcs) = self.file.checksums() {
                crcs.verify(index, bytes)
                    .map_err(|what| self.corrupt(number * self.file.chunk_length(), what))?;
            }
            return Ok(Rc::new(bytes.into()));
        };
        let chunk = info.chunk(index).ok_or_else(|| {
            self.corrupt(number * self.file.chunk_length(), format!("there is no chunk {number}"))
        })?;
        let stored = stored.get((chunk.offset - start) as usize..).unwrap_or_default();
        let mut opened = self.caches.buffer(chunk.data_length as usize);
        let dictionary = info.dictionary.as_ref().map(|d| d.bytes.as_slice());
        chunk
            .open(stored, true, &mut opened, |payload, output| {
                self.caches.with_decompressor(
                    self.file.codec(),
                    || Decompressor::new(&info.compressor, dictionary),
                    |decompressor| decompressor.decompress(payload, output),
                )
            })
            .map_err(|what| self.corrupt(chunk.offset, format!("chunk {number}: {what}")))?;
        Ok(Rc::new(opened))
    }
}

impl DataWindow for CachedData {
    fn data_length(&self) -> u64 {
        self.file.data_length()
    }

    #[inline]
    fn position(&self) -> u64 {
        self.position
    }

    #[inline]
    fn available(&self) -> &[u8] {
        self.bytes().get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        if CHECKS {
            assert!(n <= self.available().len(), "{n} bytes consumed, fewer available");
        }
        self.start += n;
        self.position += n as u64;
    }

    async fn fill(&mut self, at_least: usize) -> Result<()> {
        let wanted = (at_least as u64).min(self.remaining());
        let mut available = self.available().len() as u64;
        if available >= wanted {
            return Ok(());
        }
        let length = self.file.chunk_length();
        let last = ((self.position + wanted - 1) / length).max(self.needed);
        if available == 0 {
            let number = self.position / length;
            let chunk = self.chunk(number, last).await?;
            self.start = (self.position - number * length) as usize;
            self.held = Held::Chunk(chunk);
            available = self.available().len() as u64;
        }
        if available >= wanted {
            return Ok(());
        }
        let mut gathered = self.available().to_vec();
        while (gathered.len() as u64) < wanted {
            let number = (self.position + gathered.len() as u64) / length;
            let chunk = self.chunk(number, last).await?;
            if chunk.is_empty() {
                return Err(self.corrupt(self.position, "data ends before its last row"));
            }
            gathered.extend_from_slice(&chunk);
        }
        self.held = Held::Gathered(gathered);
        self.start = 0;
        if CHECKS {
            assert!(self.available().len() as u64 >= wanted, "filled less than promised");
        }
        Ok(())
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        let error = DecodeError { offset, what: what.into() };
        Error::corrupt(self.file.path(), Component::Data, error)
    }
}

impl SeekWindow for CachedData {
    async fn seek(&mut self, position: u64) -> Result<()> {
        let ahead = position.wrapping_sub(self.position);
        if ahead <= self.available().len() as u64 {
            self.consume(ahead as usize);
            return Ok(());
        }
        self.held = Held::Gathered(Vec::new());
        self.start = 0;
        self.position = position;
        Ok(())
    }
}
