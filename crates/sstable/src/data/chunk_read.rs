//! Data.db as one stream of uncompressed bytes, read from front to back.
//!
//! ```text
//!   window: [ consumed │ available ........ │ free ]
//!                      ↑ position            ↑ decompressed to here, a whole number of chunks
//! ```
//! Chunks are checked (CRC32 of the stored payload) and decompressed straight into the window.  What is left of a row at the
//! end of the window is moved to its front before more is read, so a row is always contiguous.  An uncompressed
//! Data.db goes through the same window, checked against CRC.db where there is one.
//!
//! Memory: the window (`WINDOW`, or the largest row and a chunk if that is more) and the read-ahead buffers.

use std::path::PathBuf;
use std::sync::Arc;

use halcyon_io::{SequentialReader, give_way};
use halcyon_model::DecodeError;

use super::compress::Decompressor;
use crate::format::compression_info::{CHUNK_CRC_LENGTH, CompressionInfo};
use crate::format::crc::ChunkCrcs;
use crate::{CHECKS, Component, Error, Result};

/// Bytes that a scan decompresses at a time: so few that they stay in a core's first caches until they are read. A merge has
/// `read_ahead.rs`.
const WINDOW: usize = 16 * 1024;
/// A row larger than this is taken for corruption: twice Cassandra's largest value, `max_value_size`, and more.
pub(crate) const MAX_ROW: u64 = 1 << 30;

/// How the stored bytes become data.
pub(crate) enum Encoding {
    Chunked {
        info: Arc<CompressionInfo>,
        decompressor: Decompressor,
    },
    /// As it is, checked against CRC.db if there is one.
    Plain {
        checksums: Option<Arc<ChunkCrcs>>,
    },
}

/// The chunks of a Data.db, one after the other.
pub(crate) struct ChunkSource {
    path: PathBuf,
    reader: SequentialReader,
    encoding: Encoding,
    verify_checksums: bool,
    /// Position in the data of the next chunk.
    next: u64,
    data_length: u64,
}

impl ChunkSource {
    pub(crate) fn new(
        path: PathBuf,
        reader: SequentialReader,
        encoding: Encoding,
        verify_checksums: bool,
    ) -> ChunkSource {
        let data_length = match &encoding {
            Encoding::Chunked { info, .. } => info.data_length,
            Encoding::Plain { .. } => reader.len(),
        };
        ChunkSource { path, reader, encoding, verify_checksums, next: 0, data_length }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.next >= self.data_length
    }

    /// Bytes of each chunk's data but the last one's.
    pub(crate) fn chunk_length(&self) -> usize {
        match &self.encoding {
            Encoding::Chunked { info, .. } => info.chunk_length as usize,
            Encoding::Plain { checksums: Some(crcs) } => crcs.chunk_size as usize,
            Encoding::Plain { checksums: None } => 64 * 1024,
        }
    }

    /// Goes to the chunk that has a position of the data.
    async fn seek(&mut self, position: u64) -> Result<()> {
        match &self.encoding {
            Encoding::Chunked { info, .. } => {
                let index = info.chunk_index(position);
                let range = info
                    .chunk_range(index)
                    .ok_or_else(|| self.corrupt(position, "position beyond the end of the data"))?;
                self.reader.seek(range.start).await?;
                self.next = index as u64 * u64::from(info.chunk_length);
            }
            Encoding::Plain { checksums } => {
                let chunk = checksums.as_ref().map_or(1, |crcs| u64::from(crcs.chunk_size));
                let start = position / chunk * chunk;
                self.reader.seek(start).await?;
                self.next = start;
            }
        }
        Ok(())
    }

    /// Puts the data of the next chunk into `window`, which grows if need be, from `from` on; returns its end.
    pub(crate) async fn read_chunk(&mut self, window: &mut Vec<u8>, from: usize) -> Result<usize> {
        let chunk_length = self.chunk_length() as u64;
        let ChunkSource { path, reader, encoding, verify_checksums, next, data_length } = self;
        let at = *next;
        let corrupt = |offset: u64, what: String| {
            Error::corrupt(path.as_path(), Component::Data, DecodeError { offset, what })
        };
        let length = match encoding {
            Encoding::Chunked { info, decompressor } => {
                let index = info.chunk_index(at);
                let chunk = info
                    .chunk(index)
                    .ok_or_else(|| corrupt(at, "data ends before its last row".into()))?;
                let length = chunk.data_length as usize;
                let stored = chunk.payload_length as usize + CHUNK_CRC_LENGTH as usize;
                let bytes = reader.fill(stored).await?;
                let output = free(window, from, length);
                chunk
                    .open(bytes, *verify_checksums, output, |payload, output| {
                        decompressor.decompress(payload, output)
                    })
                    .map_err(|what| corrupt(chunk.offset, format!("chunk {index}: {what}")))?;
                reader.consume(stored);
                length
            }
            Encoding::Plain { checksums } => {
                let length = chunk_length.min(*data_length - at) as usize;
                let bytes = reader.fill(length).await?;
                let Some(bytes) = bytes.get(..length) else {
                    return Err(corrupt(at, "file is shorter than when it was opened".into()));
                };
                if let Some(crcs) = checksums
                    && *verify_checksums
                {
                    let index = (at / u64::from(crcs.chunk_size)) as usize;
                    crcs.verify(index, bytes).map_err(|what| corrupt(at, what))?;
                }
                free(window, from, length).copy_from_slice(bytes);
                reader.consume(length);
                length
            }
        };
        *next += length as u64;
        give_way(length);
        Ok(from + length)
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        let error = DecodeError { offset, what: what.into() };
        Error::corrupt(&self.path, Component::Data, error)
    }
}

pub struct DataReader {
    source: ChunkSource,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the data of `window[start]`.
    position: u64,
}

impl DataReader {
    pub(crate) fn new(source: ChunkSource) -> DataReader {
        DataReader { source, window: Vec::new(), start: 0, end: 0, position: 0 }
    }

    pub(crate) fn data_length(&self) -> u64 {
        self.source.data_length
    }

    /// Position in the data of the first available byte.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        self.window.get(self.start..self.end).unwrap_or_default()
    }

    /// Bytes of data from here to the end, available or not.
    #[inline]
    pub(crate) fn remaining(&self) -> u64 {
        self.data_length().saturating_sub(self.position)
    }

    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        if CHECKS {
            assert!(n <= self.end - self.start, "{n} bytes consumed, fewer available");
        }
        self.start += n;
        self.position += n as u64;
    }

    pub(crate) fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        self.source.corrupt(offset, what)
    }

    /// Continues at another position of the data.
    pub(crate) async fn seek(&mut self, position: u64) -> Result<()> {
        self.source.seek(position).await?;
        self.start = 0;
        self.end = 0;
        self.position = self.source.next;
        let skip = (position - self.position) as usize;
        self.fill(skip).await?;
        self.consume(skip.min(self.end));
        Ok(())
    }

    /// Makes at least `at_least` bytes available, or all that remain.
    pub(crate) async fn fill(&mut self, at_least: usize) -> Result<()> {
        let wanted = (at_least as u64).min(self.remaining()) as usize;
        if self.end - self.start >= wanted {
            return Ok(());
        }
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let wanted = wanted.max(WINDOW.min(self.remaining() as usize));
        while self.end < wanted {
            self.end = self.source.read_chunk(&mut self.window, self.end).await?;
        }
        if CHECKS {
            let filled = (self.end - self.start) as u64;
            assert!(filled >= (at_least as u64).min(self.remaining()), "filled less than promised");
        }
        Ok(())
    }
}

/// The `length` bytes of the window from `end`, made room for.
fn free(window: &mut Vec<u8>, end: usize, length: usize) -> &mut [u8] {
    if window.len() < end + length {
        window.resize((end + length).max(WINDOW), 0);
    }
    window.get_mut(end..end + length).unwrap_or_default()
}
