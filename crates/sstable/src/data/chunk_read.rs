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

/// Bytes that are decompressed at a time: so small that the windows of dozens of inputs stay in a core's second-level cache
/// until their rows are written again.
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

pub struct DataReader {
    path: PathBuf,
    reader: SequentialReader,
    encoding: Encoding,
    verify_checksums: bool,
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the data of `window[start]`.
    position: u64,
    data_length: u64,
}

impl DataReader {
    pub(crate) fn new(
        path: PathBuf,
        reader: SequentialReader,
        encoding: Encoding,
        verify_checksums: bool,
    ) -> DataReader {
        let data_length = match &encoding {
            Encoding::Chunked { info, .. } => info.data_length,
            Encoding::Plain { .. } => reader.len(),
        };
        DataReader {
            path,
            reader,
            encoding,
            verify_checksums,
            window: Vec::new(),
            start: 0,
            end: 0,
            position: 0,
            data_length,
        }
    }

    pub(crate) fn data_length(&self) -> u64 {
        self.data_length
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
        self.data_length.saturating_sub(self.position)
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
        let error = DecodeError { offset, what: what.into() };
        Error::corrupt(&self.path, Component::Data, error)
    }

    /// Continues at another position of the data.
    pub(crate) async fn seek(&mut self, position: u64) -> Result<()> {
        let chunk_start = match &self.encoding {
            Encoding::Chunked { info, .. } => {
                let index = info.chunk_index(position);
                let range = info
                    .chunk_range(index)
                    .ok_or_else(|| self.corrupt(position, "position beyond the end of the data"))?;
                self.reader.seek(range.start).await?;
                index as u64 * u64::from(info.chunk_length)
            }
            Encoding::Plain { checksums } => {
                let chunk = checksums.as_ref().map_or(1, |crcs| u64::from(crcs.chunk_size));
                let start = position / chunk * chunk;
                self.reader.seek(start).await?;
                start
            }
        };
        self.start = 0;
        self.end = 0;
        self.position = chunk_start;
        let skip = (position - chunk_start) as usize;
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
            self.read_chunk().await?;
        }
        if CHECKS {
            let filled = (self.end - self.start) as u64;
            assert!(filled >= (at_least as u64).min(self.remaining()), "filled less than promised");
        }
        Ok(())
    }

    /// Appends one chunk to the window.
    async fn read_chunk(&mut self) -> Result<()> {
        let (at, before) = (self.position + self.end as u64, self.end);
        let DataReader { reader, encoding, window, end, path, verify_checksums, .. } = self;
        let corrupt = |offset: u64, what: String| {
            Error::corrupt(path.as_path(), Component::Data, DecodeError { offset, what })
        };
        match encoding {
            Encoding::Chunked { info, decompressor } => {
                let index = info.chunk_index(at);
                let chunk = info
                    .chunk(index)
                    .ok_or_else(|| corrupt(at, "data ends before its last row".into()))?;
                let length = chunk.data_length as usize;
                let stored = chunk.payload_length as usize + CHUNK_CRC_LENGTH as usize;
                let bytes = reader.fill(stored).await?;
                let output = free(window, *end, length);
                chunk
                    .open(bytes, *verify_checksums, output, |payload, output| {
                        decompressor.decompress(payload, output)
                    })
                    .map_err(|what| corrupt(chunk.offset, format!("chunk {index}: {what}")))?;
                reader.consume(stored);
                *end += length;
            }
            Encoding::Plain { checksums } => {
                let chunk_length = checksums.as_ref().map_or(64 * 1024, |crcs| crcs.chunk_size);
                let index = (at / u64::from(chunk_length)) as usize;
                let length = u64::from(chunk_length).min(self.data_length - at) as usize;
                let bytes = reader.fill(length).await?;
                let Some(bytes) = bytes.get(..length) else {
                    return Err(corrupt(at, "file is shorter than when it was opened".into()));
                };
                if let Some(crcs) = checksums
                    && *verify_checksums
                {
                    crcs.verify(index, bytes).map_err(|what| corrupt(at, what))?;
                }
                free(window, *end, length).copy_from_slice(bytes);
                reader.consume(length);
                *end += length;
            }
        }
        give_way(*end - before);
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
