//! CRC.db: the checksums of an uncompressed Data.db.
//!
//! ```text
//! i32 chunk size (65536) │ u32 CRC32 of each chunk of Data.db; the last chunk may be short
//! ```

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeResult};

pub const DEFAULT_CRC_CHUNK_SIZE: u32 = 1 << 16;
/// Cassandra always writes the default; the bound limits the allocation for a corrupt file.
const MAX_CRC_CHUNK_SIZE: u32 = 1 << 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkCrcs {
    pub chunk_size: u32,
    pub crcs: Vec<u32>,
}

impl ChunkCrcs {
    /// The chunk that holds the byte of Data.db at `position`.
    pub fn chunk_index(&self, position: u64) -> usize {
        (position / u64::from(self.chunk_size.max(1))) as usize
    }

    /// Checks one whole chunk; the error describes the difference. A chunk without a checksum is an error too.
    pub fn verify(&self, chunk: usize, bytes: &[u8]) -> Result<(), String> {
        let computed = halcyon_codec::crc32(bytes);
        match self.crcs.get(chunk) {
            Some(stored) if *stored == computed => Ok(()),
            Some(stored) => Err(format!(
                "checksum of chunk {chunk} mismatches: stored {stored:08x}, computed {computed:08x}"
            )),
            None => Err(format!("CRC.db has {} checksums, none of chunk {chunk}", self.crcs.len())),
        }
    }

    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<ChunkCrcs> {
        let chunk_size = cursor.i32()?;
        let valid =
            u32::try_from(chunk_size).ok().filter(|size| (1..=MAX_CRC_CHUNK_SIZE).contains(size));
        let chunk_size = valid.ok_or_else(|| {
            cursor.error(format!(
                "chunk size of 1 to {MAX_CRC_CHUNK_SIZE} bytes expected, found {chunk_size}"
            ))
        })?;
        cursor.note(|| format!("chunk size {chunk_size}"));
        let mut crcs = Vec::with_capacity(cursor.remaining() / 4);
        while cursor.remaining() > 0 {
            crcs.push(cursor.u32()?);
            cursor.note(|| format!("CRC32 of chunk {}", crcs.len() - 1));
        }
        Ok(ChunkCrcs { chunk_size, crcs })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.chunk_size);
        self.crcs.iter().for_each(|crc| out.put_u32(*crc));
    }
}

/// Computes the checksums as Data.db is written, in pieces of any length.
#[derive(Debug)]
pub struct ChunkCrcsBuilder {
    chunk_size: u32,
    crcs: Vec<u32>,
    hasher: halcyon_codec::Crc32,
    /// Bytes that the current chunk still takes.
    room: usize,
}

impl Default for ChunkCrcsBuilder {
    fn default() -> Self {
        ChunkCrcsBuilder {
            chunk_size: DEFAULT_CRC_CHUNK_SIZE,
            crcs: Vec::new(),
            hasher: halcyon_codec::Crc32::new(),
            room: DEFAULT_CRC_CHUNK_SIZE as usize,
        }
    }
}

impl ChunkCrcsBuilder {
    pub fn update(&mut self, mut bytes: &[u8]) {
        while let Some((head, tail)) = bytes.split_at_checked(self.room) {
            self.hasher.update(head);
            self.close();
            bytes = tail;
        }
        self.hasher.update(bytes);
        self.room -= bytes.len();
    }

    fn close(&mut self) {
        self.crcs.push(std::mem::take(&mut self.hasher).finalize());
        self.room = self.chunk_size as usize;
    }

    pub fn finish(mut self) -> ChunkCrcs {
        if self.room < self.chunk_size as usize {
            self.close();
        }
        ChunkCrcs { chunk_size: self.chunk_size, crcs: self.crcs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{check_bytes, survives_corruption};

    #[test]
    fn pieces_of_any_length() {
        let data: Vec<u8> = (0..200_000u32).map(|i| (i * 31 / 8) as u8).collect();
        for length in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let data = &data[..length];
            for piece in [1000, 65_536, 200_000] {
                let mut builder = ChunkCrcsBuilder::default();
                data.chunks(piece).for_each(|piece| builder.update(piece));
                let crcs = builder.finish();
                assert_eq!(crcs.crcs.len(), length.div_ceil(65_536));
                for (i, chunk) in data.chunks(65_536).enumerate() {
                    assert_eq!(crcs.verify(i, chunk), Ok(()));
                    assert!(crcs.verify(i, &chunk[1..]).is_err());
                }
                assert!(crcs.verify(crcs.crcs.len(), &[]).is_err());
            }
        }
    }

    #[test]
    fn bytes() {
        let crcs = ChunkCrcs { chunk_size: 65_536, crcs: vec![1, 2, u32::MAX] };
        let mut out = Vec::new();
        crcs.encode(&mut out);
        assert_eq!(check_bytes(&out, ChunkCrcs::decode), crcs);
        survives_corruption(&out, ChunkCrcs::decode);
    }
}
