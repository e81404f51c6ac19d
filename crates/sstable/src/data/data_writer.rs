//! Turns the stream of uncompressed data into Data.db.
//!
//! Rows are serialized into batches of whole chunks; a full batch is encoded and written. In a compaction threads do this
//! (`encoder_threads.rs`), so that compressing and writing overlap with reading and merging. Where a thread would be a waste (flush of a
//! shard), the caller's does it.

use super::chunk_write::{ChunkWriter, DataSummary, DataTarget};
use super::encoder_threads::EncoderThreads;
use crate::format::crc::DEFAULT_CRC_CHUNK_SIZE;
use crate::{Error, Result};

/// Bytes of one batch; a multiple of every chunk length up to it.
const BATCH: usize = 256 * 1024;

/// The end that the row writer holds.
pub(crate) struct DataWriter {
    batch: Vec<u8>,
    /// Bytes that a full batch has: a whole number of chunks.
    batch_length: usize,
    chunk_length: usize,
    /// Position in the data of the first byte of `batch`.
    flushed: u64,
    encoder: Stage,
}

enum Stage {
    InPlace(Box<ChunkWriter>),
    Threads(Box<EncoderThreads>),
    Failed,
}

impl DataWriter {
    pub(crate) async fn create(target: DataTarget, own_thread: bool) -> Result<DataWriter> {
        let chunk =
            target.compression.as_ref().map_or(DEFAULT_CRC_CHUNK_SIZE, |c| c.chunk_length) as usize;
        let encoder = if own_thread {
            Stage::Threads(Box::new(EncoderThreads::start(target)))
        } else {
            Stage::InPlace(Box::new(ChunkWriter::create(target).await?))
        };
        let batch_length = BATCH.next_multiple_of(chunk);
        Ok(DataWriter {
            batch: Vec::with_capacity(batch_length + BATCH / 4),
            batch_length,
            chunk_length: chunk,
            flushed: 0,
            encoder,
        })
    }

    pub(crate) fn chunk_length(&self) -> u64 {
        self.chunk_length as u64
    }

    /// Position in the data of the next byte.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.batch.len() as u64
    }

    /// Where rows are serialized to; call `drain` between rows.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.batch
    }

    #[inline]
    pub(crate) fn wants_drain(&self) -> bool {
        self.batch.len() >= self.batch_length
    }

    /// Hands full batches on; each is shown before.
    pub(crate) async fn drain(&mut self, mut show: impl FnMut(&[u8])) -> Result<()> {
        while self.batch.len() >= self.batch_length {
            let mut rest = self.empty_batch();
            rest.extend_from_slice(self.batch.get(self.batch_length..).unwrap_or_default());
            self.batch.truncate(self.batch_length);
            let full = std::mem::replace(&mut self.batch, rest);
            show(&full);
            self.flushed += full.len() as u64;
            self.hand_on(full).await?;
        }
        Ok(())
    }

    fn empty_batch(&mut self) -> Vec<u8> {
        let recycled = match &mut self.encoder {
            Stage::Threads(threads) => threads.empty_batch(),
            _ => None,
        };
        recycled.unwrap_or_else(|| Vec::with_capacity(self.batch_length + BATCH / 4))
    }

    async fn hand_on(&mut self, batch: Vec<u8>) -> Result<()> {
        match &mut self.encoder {
            Stage::InPlace(writer) => writer.encode(&batch).await,
            Stage::Threads(threads) => {
                if threads.hand_on(batch).await {
                    return Ok(());
                }
                // The thread ended early: its error is the reason.
                Err(match std::mem::replace(&mut self.encoder, Stage::Failed) {
                    Stage::Threads(threads) => {
                        threads.finish().await.err().unwrap_or_else(failed_before)
                    }
                    _ => failed_before(),
                })
            }
            Stage::Failed => Err(failed_before()),
        }
    }

    /// Bytes of Data.db on their way to the disk so far.
    pub(crate) fn file_position(&self) -> u64 {
        match &self.encoder {
            Stage::InPlace(writer) => writer.position(),
            Stage::Threads(threads) => threads.file_position(),
            Stage::Failed => 0,
        }
    }

    pub(crate) async fn finish(mut self, mut show: impl FnMut(&[u8])) -> Result<DataSummary> {
        self.drain(&mut show).await?;
        let last = std::mem::take(&mut self.batch);
        if !last.is_empty() {
            show(&last);
            self.hand_on(last).await?;
        }
        match std::mem::replace(&mut self.encoder, Stage::Failed) {
            Stage::InPlace(writer) => writer.finish().await,
            Stage::Threads(threads) => threads.finish().await,
            Stage::Failed => Err(failed_before()),
        }
    }
}

/// A writer that is dropped half-way must not leave a thread behind that still writes, or creates, its file.
impl Drop for DataWriter {
    fn drop(&mut self) {
        if let Stage::Threads(threads) = std::mem::replace(&mut self.encoder, Stage::Failed) {
            // The writer is dropped only after an error, which is what gets reported.
            threads.end();
        }
    }
}

fn failed_before() -> Error {
    Error::Invalid("the writer of Data.db has failed before".into())
}
