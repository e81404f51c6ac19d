//! Chunks as Data.db stores them: compressed, or raw if that does not save enough, each with its CRC32.

use halcyon_codec::Crc32;
use halcyon_io::give_way;
use halcyon_model::options::Compression;

use super::compress::Compressor;
use crate::{Error, Result};

/// Bytes of a chunk's CRC32, behind its payload.
pub(super) const CRC: usize = 4;

/// Encodes chunks, one after the other; none depends on those before.
pub(super) struct ChunkEncoder {
    compressor: Compressor,
    compression: Compression,
    /// Of one chunk.
    output: Vec<u8>,
}

/// The chunks of a batch.
#[derive(Default)]
pub(super) struct Encoded {
    pub(super) stored: Vec<u8>,
    /// Of each chunk in `stored`.
    pub(super) lengths: Vec<usize>,
    /// Of `stored`.
    pub(super) digest: Crc32,
    /// Bytes of the batch.
    pub(super) data_length: usize,
}

impl ChunkEncoder {
    pub(super) fn new(compression: &Compression) -> Result<ChunkEncoder> {
        let compressor = Compressor::new(&compression.kind).map_err(Error::Invalid)?;
        let length = compression.chunk_length as usize;
        let output = vec![0; compressor.bound(length).max(length) + CRC];
        Ok(ChunkEncoder { compressor, compression: compression.clone(), output })
    }

    /// The chunks of a batch, of which only the last may be short.
    pub(super) fn chunks_of<'b>(
        &self,
        batch: &'b [u8],
    ) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        batch.chunks(self.compression.chunk_length as usize)
    }

    /// Payload and CRC32 of a chunk.
    pub(super) fn encode(&mut self, chunk: &[u8]) -> Result<&[u8]> {
        let length = self.payload(chunk)?;
        let crc = halcyon_codec::crc32(self.output.get(..length).unwrap_or_default());
        if let Some(slot) = self.output.get_mut(length..length + CRC) {
            slot.copy_from_slice(&crc.to_be_bytes());
        }
        Ok(self.output.get(..length + CRC).unwrap_or_default())
    }

    /// Puts the payload of a chunk into `output`: compressed, or raw if that does not save enough.
    fn payload(&mut self, chunk: &[u8]) -> Result<usize> {
        let max = self.compression.max_compressed_length as usize;
        let length = self.compressor.compress(chunk, &mut self.output).map_err(Error::Invalid)?;
        if length < max {
            return Ok(length);
        }
        // Raw payloads are recognized by their length, so a short last chunk is padded up to it.
        let stored = chunk.len().max(max);
        if self.output.len() < stored + CRC {
            self.output.resize(stored + CRC, 0);
        }
        if let Some((raw, padding)) = self.output.split_at_mut_checked(chunk.len()) {
            raw.copy_from_slice(chunk);
            if let Some(padding) = padding.get_mut(..stored - chunk.len()) {
                padding.fill(0);
            }
        }
        Ok(stored)
    }

    pub(super) fn encode_batch(&mut self, batch: &[u8], into: &mut Encoded) -> Result<()> {
        into.stored.clear();
        into.lengths.clear();
        (into.digest, into.data_length) = (Crc32::new(), batch.len());
        for chunk in self.chunks_of(batch) {
            let stored = self.encode(chunk)?;
            into.digest.update(stored);
            into.stored.extend_from_slice(stored);
            into.lengths.push(stored.len());
            give_way(chunk.len());
        }
        Ok(())
    }
}
