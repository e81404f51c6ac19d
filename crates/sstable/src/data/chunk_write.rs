//! Writes chunks to Data.db, as they are encoded, with what is to be known of the file: offsets, checksums, digest.

use std::path::PathBuf;

use halcyon_codec::{Crc32, Effort};
use halcyon_io::{AccessMode, Disk, Purpose, SequentialWriter, WriteOptions, give_way};
use halcyon_model::options::Compression;

use super::chunk_encode::{CRC, ChunkEncoder, Encoded};
use crate::format::compression_info::{ChunkOffsets, CompressionInfo};
use crate::format::crc::{ChunkCrcs, DEFAULT_CRC_CHUNK_SIZE};
use crate::{Error, Result};

/// Where and how the file is written.
#[derive(Clone)]
pub(crate) struct DataTarget {
    pub(crate) disk: Disk,
    pub(crate) path: PathBuf,
    pub(crate) mode: AccessMode,
    pub(crate) purpose: Purpose,
    pub(crate) options: WriteOptions,
    pub(crate) compression: Option<Compression>,
    pub(crate) effort: Effort,
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

/// Writes chunks, and sums up what is written.
pub(super) struct ChunkWriter {
    target: DataTarget,
    writer: SequentialWriter,
    /// `None`: chunks are stored as they are, and their CRCs beside them.
    encoder: Option<ChunkEncoder>,
    offsets: ChunkOffsets,
    checksums: ChunkCrcs,
    digest: Crc32,
    data_length: u64,
    payload_length: u64,
}

impl ChunkWriter {
    pub(super) async fn create(target: DataTarget) -> Result<ChunkWriter> {
        let encoder = target.compression.as_ref();
        let encoder = encoder.map(|of| ChunkEncoder::new(of, target.effort)).transpose()?;
        let writer = target
            .disk
            .create_with(&target.path, target.mode, target.purpose, target.options)
            .await?;
        Ok(ChunkWriter {
            target,
            writer,
            encoder,
            offsets: ChunkOffsets::default(),
            checksums: ChunkCrcs { chunk_size: DEFAULT_CRC_CHUNK_SIZE, crcs: Vec::new() },
            digest: Crc32::new(),
            data_length: 0,
            payload_length: 0,
        })
    }

    /// Encodes and writes whole chunks; only the last batch of a file may end with a short one.
    pub(super) async fn encode(&mut self, batch: &[u8]) -> Result<()> {
        self.data_length += batch.len() as u64;
        let Some(encoder) = &mut self.encoder else { return self.write_raw(batch).await };
        for chunk in encoder.chunks_of(batch) {
            self.offsets.push(self.writer.position()).map_err(Error::Invalid)?;
            let stored = encoder.encode(chunk)?;
            self.payload_length += (stored.len() - CRC) as u64;
            // A second pass over bytes in the first-level cache is cheaper than combining two sums.
            self.digest.update(stored);
            self.writer.write(stored).await?;
            give_way(chunk.len());
        }
        Ok(())
    }

    async fn write_raw(&mut self, batch: &[u8]) -> Result<()> {
        for chunk in batch.chunks(DEFAULT_CRC_CHUNK_SIZE as usize) {
            let crc = halcyon_codec::crc32(chunk);
            self.checksums.crcs.push(crc);
            self.digest.combine(&Crc32::new_with_initial_len(crc, chunk.len() as u64));
            self.writer.write(chunk).await?;
            give_way(chunk.len());
        }
        self.payload_length = self.data_length;
        Ok(())
    }

    /// Writes chunks that another thread has encoded.
    pub(super) async fn write_encoded(&mut self, encoded: &Encoded) -> Result<()> {
        let mut at = self.writer.position();
        for length in &encoded.lengths {
            self.offsets.push(at).map_err(Error::Invalid)?;
            at += *length as u64;
        }
        self.data_length += encoded.data_length as u64;
        self.payload_length += (encoded.stored.len() - CRC * encoded.lengths.len()) as u64;
        self.digest.combine(&encoded.digest);
        Ok(self.writer.write(&encoded.stored).await?)
    }

    pub(super) fn position(&self) -> u64 {
        self.writer.position()
    }

    pub(super) async fn finish(self) -> Result<DataSummary> {
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
