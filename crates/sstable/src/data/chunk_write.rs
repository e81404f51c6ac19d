//! Turns the stream of uncompressed data into Data.db: chunks, compression, checksums, digest.
//!
//! Rows are serialized into batches of whole chunks; a full batch goes to the encoder.  In a compaction the encoder has a
//! thread of its own, so that compressing and writing overlap with reading and merging:
//! ```text
//!   merge thread                          encoder thread
//!   rows → batch ──(bounded channel)──▶  chunk → compress → CRC32 → digest → SequentialWriter
//!        ◀──(empty batches come back)──
//! ```
//! Where a thread would be a waste (flush of a shard), the same encoder runs on the caller's thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_channel::mpsc::{Receiver, Sender, channel};
use futures_util::{FutureExt, SinkExt, StreamExt};
use halcyon_io::{
    AccessMode, Disk, Purpose, SequentialWriter, Thread, WriteOptions, give_way, thread_priority,
};
use halcyon_model::options::Compression;

use super::compress::Compressor;
use crate::format::compression_info::{ChunkOffsets, CompressionInfo};
use crate::format::crc::{ChunkCrcs, DEFAULT_CRC_CHUNK_SIZE};
use crate::{Error, Result};

/// Bytes of one batch; a multiple of every chunk length up to it.
const BATCH: usize = 256 * 1024;
/// Batches between the two threads: enough to bridge a slow write on one side, a slow read on the other.
const IN_FLIGHT: usize = 16;

/// Where and how the file is written.
#[derive(Clone)]
pub(crate) struct DataTarget {
    pub(crate) disk: Disk,
    pub(crate) path: PathBuf,
    pub(crate) mode: AccessMode,
    pub(crate) purpose: Purpose,
    pub(crate) options: WriteOptions,
    pub(crate) compression: Option<Compression>,
}

/// The properties of a complete, durable Data.db.
pub(crate) struct DataSummary {
    pub(crate) file_length: u64,
    pub(crate) data_length: u64,
    /// Bytes of all payloads, without their CRC words.
    pub(crate) payload_length: u64,
    pub(crate) digest: u32,
    /// For CompressionInfo.db.
    pub(crate) compression: Option<CompressionInfo>,
    /// For CRC.db.
    pub(crate) checksums: ChunkCrcs,
}

struct ChunkEncoder {
    target: DataTarget,
    writer: SequentialWriter,
    compressor: Option<Compressor>,
    output: Vec<u8>,
    offsets: ChunkOffsets,
    checksums: ChunkCrcs,
    digest: halcyon_codec::Crc32,
    data_length: u64,
    payload_length: u64,
}

impl ChunkEncoder {
    async fn create(target: DataTarget) -> Result<ChunkEncoder> {
        let compressor = match &target.compression {
            None => None,
            Some(c) => Some(Compressor::new(&c.kind).map_err(Error::Invalid)?),
        };
        let bound = match (&compressor, &target.compression) {
            (Some(compressor), Some(c)) => {
                compressor.bound(c.chunk_length as usize).max(c.chunk_length as usize)
            }
            _ => 0,
        };
        let writer = target
            .disk
            .create_with(&target.path, target.mode, target.purpose, target.options)
            .await?;
        Ok(ChunkEncoder {
            target,
            writer,
            compressor,
            output: vec![0; bound + 4],
            offsets: ChunkOffsets::default(),
            checksums: ChunkCrcs { chunk_size: DEFAULT_CRC_CHUNK_SIZE, crcs: Vec::new() },
            digest: halcyon_codec::Crc32::new(),
            data_length: 0,
            payload_length: 0,
        })
    }

    /// Encodes whole chunks; only the last batch of a file may end with a short one.
    async fn encode(&mut self, batch: &[u8]) -> Result<()> {
        self.data_length += batch.len() as u64;
        let Some(compression) = self.target.compression.clone() else {
            for chunk in batch.chunks(DEFAULT_CRC_CHUNK_SIZE as usize) {
                let crc = halcyon_codec::crc32(chunk);
                self.checksums.crcs.push(crc);
                self.digest
                    .combine(&halcyon_codec::Crc32::new_with_initial_len(crc, chunk.len() as u64));
                self.writer.write(chunk).await?;
                give_way(chunk.len());
            }
            self.payload_length = self.data_length;
            return Ok(());
        };
        for chunk in batch.chunks(compression.chunk_length as usize) {
            self.offsets.push(self.writer.position()).map_err(Error::Invalid)?;
            let length = self.payload(chunk, &compression)?;
            let crc = halcyon_codec::crc32(self.output.get(..length).unwrap_or_default());
            if let Some(slot) = self.output.get_mut(length..length + 4) {
                slot.copy_from_slice(&crc.to_be_bytes());
            }
            self.payload_length += length as u64;
            let stored = self.output.get(..length + 4).unwrap_or_default();
            // A second pass over bytes in the first-level cache is cheaper than combining two sums.
            self.digest.update(stored);
            self.writer.write(stored).await?;
            give_way(chunk.len());
        }
        Ok(())
    }

    /// Puts the payload of a chunk into `output`: compressed, or raw if that does not save enough.
    fn payload(&mut self, chunk: &[u8], compression: &Compression) -> Result<usize> {
        let compressor =
            self.compressor.as_mut().ok_or_else(|| Error::Invalid("no compressor".into()))?;
        let max = compression.max_compressed_length as usize;
        let length = compressor.compress(chunk, &mut self.output).map_err(Error::Invalid)?;
        if length < max {
            return Ok(length);
        }
        // Raw payloads are recognized by their length, so a short last chunk is padded up to it.
        let stored = chunk.len().max(max);
        if self.output.len() < stored + 4 {
            self.output.resize(stored + 4, 0);
        }
        if let Some((raw, padding)) = self.output.split_at_mut_checked(chunk.len()) {
            raw.copy_from_slice(chunk);
            if let Some(padding) = padding.get_mut(..stored - chunk.len()) {
                padding.fill(0);
            }
        }
        Ok(stored)
    }

    async fn finish(self) -> Result<DataSummary> {
        let file_length = self.writer.finish().await?;
        let compression = self.target.compression.map(|c| CompressionInfo {
            compressor: c.kind.class().to_string(),
            options: c.parameters,
            chunk_length: c.chunk_length,
            max_compressed_length: c.max_compressed_length,
            data_length: self.data_length,
            compressed_length: file_length,
            offsets: self.offsets,
            dictionary: None,
        });
        Ok(DataSummary {
            file_length,
            data_length: self.data_length,
            payload_length: self.payload_length,
            digest: self.digest.finalize(),
            compression,
            checksums: self.checksums,
        })
    }
}

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
    InPlace(Box<ChunkEncoder>),
    Thread {
        batches: Sender<Vec<u8>>,
        empties: Receiver<Vec<u8>>,
        /// Bytes of Data.db written so far.
        thread: Thread<Result<DataSummary>>,
        progress: Arc<AtomicU64>,
    },
    Gone,
}

impl DataWriter {
    pub(crate) async fn create(target: DataTarget, own_thread: bool) -> Result<DataWriter> {
        let chunk =
            target.compression.as_ref().map_or(DEFAULT_CRC_CHUNK_SIZE, |c| c.chunk_length) as usize;
        let batch_length = BATCH.next_multiple_of(chunk);
        let encoder = if own_thread {
            start_thread(target)
        } else {
            Stage::InPlace(Box::new(ChunkEncoder::create(target).await?))
        };
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
            Stage::Thread { empties, .. } => empties.next().now_or_never().flatten(),
            _ => None,
        };
        recycled.unwrap_or_else(|| Vec::with_capacity(self.batch_length + BATCH / 4))
    }

    async fn hand_on(&mut self, batch: Vec<u8>) -> Result<()> {
        match &mut self.encoder {
            Stage::InPlace(encoder) => encoder.encode(&batch).await,
            Stage::Thread { batches, .. } => {
                if batches.send(batch).await.is_ok() {
                    return Ok(());
                }
                // The thread ended early: its error is the reason.
                Err(match std::mem::replace(&mut self.encoder, Stage::Gone) {
                    Stage::Thread { thread, .. } => join(thread).await.err().unwrap_or_else(gone),
                    _ => gone(),
                })
            }
            Stage::Gone => Err(gone()),
        }
    }

    /// Bytes of Data.db on their way to the disk so far.
    pub(crate) fn file_position(&self) -> u64 {
        match &self.encoder {
            Stage::InPlace(encoder) => encoder.writer.position(),
            Stage::Thread { progress, .. } => progress.load(Ordering::Relaxed),
            Stage::Gone => 0,
        }
    }

    pub(crate) async fn finish(mut self, mut show: impl FnMut(&[u8])) -> Result<DataSummary> {
        self.drain(&mut show).await?;
        let last = std::mem::take(&mut self.batch);
        if !last.is_empty() {
            show(&last);
            self.hand_on(last).await?;
        }
        match std::mem::replace(&mut self.encoder, Stage::Gone) {
            Stage::InPlace(encoder) => encoder.finish().await,
            Stage::Thread { batches, thread, .. } => {
                drop(batches);
                join(thread).await
            }
            Stage::Gone => Err(gone()),
        }
    }
}

/// A writer that is dropped half-way must not leave a thread behind that still writes, or creates, its file.
impl Drop for DataWriter {
    fn drop(&mut self) {
        if let Stage::Thread { batches, thread, .. } =
            std::mem::replace(&mut self.encoder, Stage::Gone)
        {
            drop(batches);
            // The writer is dropped only after an error, which is what gets reported.
            thread.end();
        }
    }
}

fn gone() -> Error {
    Error::Invalid("the writer of Data.db has failed before".into())
}

async fn join(thread: Thread<Result<DataSummary>>) -> Result<DataSummary> {
    let outcome = thread.join().await;
    outcome.unwrap_or_else(|| Err(Error::Invalid("the encoder thread panicked".into())))
}

fn start_thread(target: DataTarget) -> Stage {
    let (batches, mut work) = channel::<Vec<u8>>(IN_FLIGHT);
    let (mut give_back, empties) = channel::<Vec<u8>>(IN_FLIGHT + 2);
    let progress = Arc::new(AtomicU64::new(0));
    let reported = progress.clone();
    let runtime = target.disk.runtime().clone();
    let encode_all = move || async move {
        let mut encoder = ChunkEncoder::create(target).await?;
        while let Some(mut batch) = work.next().await {
            encoder.encode(&batch).await?;
            reported.store(encoder.writer.position(), Ordering::Relaxed);
            batch.clear();
            // A full channel only means that the batch is not needed again.
            let _ = give_back.try_send(batch);
        }
        encoder.finish().await
    };
    let thread = runtime.spawn_thread("sstable-encoder", thread_priority(), encode_all);
    Stage::Thread { batches, empties, thread, progress }
}
