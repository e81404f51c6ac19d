//! Chunks as Data.db stores them: compressed, or raw if that does not save enough, each with its CRC32.
//!
//! Chunks that compression did not make smaller are followed by such: blobs, what is encrypted or compressed already. After
//! [`FAILURES`] of them in a row the next ones are not searched for what repeats, but for each [`PROBE`]th. They are blocks of the same
//! compressor without a match, or raw where `min_compress_ratio` allows it. What a batch began with decides, not the batches before it:
//! threads that encode batches side by side write the same file as one thread.

use halcyon_codec::{Crc32, Effort};
use halcyon_io::give_way;
use halcyon_model::options::Compression;

use super::compress::{Compressor, Search};
use crate::{Error, Result};

/// Bytes of a chunk's CRC32, behind its payload.
pub(super) const CRC: usize = 4;

/// Chunks in a row that a search did not make smaller, before the search is skipped.
const FAILURES: u32 = 2;
/// From one search to the next while it is skipped.
const PROBE: u32 = 16;
/// A chunk that keeps this share of its bytes, or more, was not made smaller. Chosen: of a thirtieth the device notices nothing.
const KEPT: f64 = 0.97;

/// What became of the chunks before, in one batch.
#[derive(Default)]
struct Experience {
    failures: u32,
    skipped: u32,
}

impl Experience {
    fn search(&self) -> Search {
        let is_due = self.failures < FAILURES || self.skipped + 1 == PROBE;
        if is_due { Search::Whole } else { Search::Skipped }
    }

    fn add(&mut self, search: Search, chunk: usize, payload: usize) {
        match search {
            Search::Skipped => self.skipped += 1,
            Search::Whole if payload as f64 >= KEPT * chunk as f64 => {
                *self = Experience { failures: self.failures + 1, skipped: 0 };
            }
            Search::Whole => *self = Experience::default(),
        }
    }
}

/// Encodes chunks, one after the other.
pub(super) struct ChunkEncoder {
    compressor: Compressor,
    compression: Compression,
    experience: Experience,
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
    pub(super) fn new(compression: &Compression, effort: Effort) -> Result<ChunkEncoder> {
        let compressor = Compressor::new(&compression.kind, effort).map_err(Error::Invalid)?;
        let length = compression.chunk_length as usize;
        let output = vec![0; compressor.bound(length).max(length) + CRC];
        let (compression, experience) = (compression.clone(), Experience::default());
        Ok(ChunkEncoder { compressor, compression, experience, output })
    }

    /// Begins a batch: its chunks, of which only the last may be short.
    pub(super) fn chunks_of<'b>(
        &mut self,
        batch: &'b [u8],
    ) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        self.experience = Experience::default();
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
        let search = self.experience.search();
        let length = match search {
            // Compressed, it would not be shorter than it is.
            Search::Skipped if max <= chunk.len() => max,
            _ => {
                let compressed = self.compressor.compress(chunk, search, &mut self.output);
                compressed.map_err(Error::Invalid)?
            }
        };
        self.experience.add(search, chunk.len(), length);
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

#[cfg(test)]
mod tests {
    use halcyon_io::Random;
    use halcyon_model::options::CompressorKind;
    use halcyon_model::options::compression::NO_MAX_COMPRESSED_LENGTH;

    use super::super::compress::Decompressor;
    use super::*;

    const CHUNK: usize = 4096;

    fn encoder(kind: CompressorKind, max_compressed_length: u32) -> ChunkEncoder {
        let compression = Compression { max_compressed_length, ..Compression::new(kind, 4096) };
        ChunkEncoder::new(&compression, Effort::Default).expect("known")
    }

    /// `letters`: chunk by chunk, n for noise, t for text.
    fn batch(letters: &str) -> Vec<u8> {
        let mut random = Random::seeded(7);
        let mut chunk = |letter: char| {
            let repeats = if letter == 'n' { u64::MAX } else { 16 };
            (0..CHUNK / 8).flat_map(|_| (random.next_u64() % repeats).to_le_bytes()).collect()
        };
        letters.chars().map(&mut chunk).collect::<Vec<Vec<u8>>>().concat()
    }

    /// Lengths of the payloads, each of which was decompressed.
    fn payloads(encoder: &mut ChunkEncoder, batch: &[u8]) -> Vec<usize> {
        let max = encoder.compression.max_compressed_length as usize;
        let class = encoder.compression.kind.class();
        let mut decompressor = Decompressor::new(class, None).expect("known");
        let chunks = encoder.chunks_of(batch);
        let encode = |chunk: &[u8]| {
            let stored = encoder.encode(chunk).expect("encoded");
            let (payload, _) = stored.split_last_chunk::<CRC>().expect("a checksum");
            if payload.len() < max {
                let mut plain = vec![0; chunk.len()];
                decompressor.decompress(payload, &mut plain).expect("a sound block");
                assert!(plain == chunk);
            } else {
                assert_eq!(payload, chunk);
            }
            payload.len()
        };
        chunks.map(encode).collect()
    }

    /// Proves for runs of every length that text after noise is compressed again within sixteen chunks, and at once where a batch begins.
    #[test]
    fn text_after_noise_is_noticed_within_sixteen_chunks() {
        let kinds =
            [CompressorKind::Lz4, CompressorKind::Deflate, CompressorKind::Zstd { level: 3 }];
        for (kind, max) in
            kinds.into_iter().flat_map(|k| [(k, NO_MAX_COMPRESSED_LENGTH), (k, 4096)])
        {
            let mut encoder = encoder(kind, max);
            for noise in 0..40 {
                let batch = batch(&("n".repeat(noise) + &"t".repeat(20)));
                let lengths = payloads(&mut encoder, &batch);
                let (before, after) = lengths.split_at(noise);
                assert!(before.iter().all(|length| *length >= CHUNK), "{kind:?}");
                let noticed = after.iter().position(|length| *length < CHUNK / 2);
                let noticed = noticed.expect("text is compressed");
                assert!(
                    noticed < 16 && (noise >= 2 || noticed == 0),
                    "{kind:?}: {noise} {noticed}"
                );
                assert!(after[noticed..].iter().all(|length| *length < CHUNK / 2), "{kind:?}");
            }
        }
    }

    /// Proves that chunks which are not searched are blocks of literals, or raw if `min_compress_ratio` is set.
    #[test]
    fn chunks_without_a_search_are_literals_or_raw() {
        // What would be found in text shows which chunks are searched: the first, third and those after a probe.
        let batch = batch("nnttttttttttttttttt");
        let lengths = payloads(&mut encoder(CompressorKind::Lz4, NO_MAX_COMPRESSED_LENGTH), &batch);
        let literals = 4 + CHUNK + (CHUNK - 15) / 255 + 2;
        assert!(lengths[..17].iter().all(|length| *length == literals), "{lengths:?}");
        assert!(lengths[17..].iter().all(|length| *length < CHUNK / 2), "{lengths:?}");
        let lengths = payloads(&mut encoder(CompressorKind::Lz4, CHUNK as u32), &batch);
        assert!(lengths[..17].iter().all(|length| *length == CHUNK), "{lengths:?}");
    }
}
