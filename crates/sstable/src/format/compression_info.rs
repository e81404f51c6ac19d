//! CompressionInfo.db: the compressor, and where each chunk of Data.db begins.
//!
//! ```text
//! utf compressor │ i32 n, n × (utf key, utf value) │ i32 chunk length │ i32 max compressed length (≥ na)
//! i64 data length │ i32 chunks │ i64 × chunks: offset in Data.db
//! [u8 kind, i64 id, i32 length, bytes, u32 CRC-32C]      dictionary (pa, ea), there if bytes remain
//! ```
//!
//! Chunk `i` holds the data bytes `[i·L, min((i+1)·L, data length))`; on disk it is a payload and its CRC32, up to the
//! next chunk or the end of the file.  The file has no checksum, so everything that can be checked is: the chunks
//! cover the data length, follow each other within Data.db, and none is larger than a compressor could make it.
//! 5.0 compacting to BTI leaves one more chunk, which holds no data.
//!
//! A 100 GB file has millions of chunks.  Offsets are kept as one `u64` per 16 chunks and a `u32` distance from it
//! each (4.5 bytes a chunk); the limit on the chunk length guarantees that distances fit.

use std::ops::Range;

use halcyon_model::bytes::Put;
use halcyon_model::options::compression::{MAX_CHUNK_LENGTH, NO_MAX_COMPRESSED_LENGTH};
use halcyon_model::{Cursor, DecodeResult};

use super::version::Version;

/// After the payload of each chunk.
pub const CHUNK_CRC_LENGTH: u64 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionInfo {
    /// Simple class name, as `LZ4Compressor`; a custom one has its package.
    pub compressor: String,
    /// In the order of the file.
    pub options: Vec<(String, String)>,
    /// A power of two.
    pub chunk_length: u32,
    /// Payloads of this length or longer are stored raw.
    pub max_compressed_length: u32,
    pub data_length: u64,
    /// Length of Data.db.
    pub compressed_length: u64,
    pub offsets: ChunkOffsets,
    pub dictionary: Option<CompressionDictionary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressionDictionary {
    /// 0: zstd.
    pub kind: u8,
    pub id: i64,
    pub bytes: Vec<u8>,
}

/// The position and the lengths of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in Data.db.
    pub offset: u64,
    /// Bytes stored there, without the CRC32 that follows them.
    pub payload_length: u32,
    /// Position of its first byte in the data.
    pub position: u64,
    /// Bytes of data in it.
    pub data_length: u32,
    /// Stored as it is, perhaps padded with zeros, instead of compressed.
    pub is_raw: bool,
}

/// Most bytes that any compressor makes of `chunk_length` bytes (Snappy's bound is the largest), amply.
fn max_payload_length(chunk_length: u32) -> u64 {
    u64::from(chunk_length) + u64::from(chunk_length) / 2 + 1024
}

impl CompressionInfo {
    pub fn chunk_count(&self) -> usize {
        self.offsets.len()
    }

    /// The chunk that holds the data byte at `position`.
    #[inline]
    pub fn chunk_index(&self, position: u64) -> usize {
        (position >> self.chunk_length.trailing_zeros()) as usize
    }

    /// The byte range of chunk `i` in Data.db, with its CRC32.
    #[inline]
    pub fn chunk_range(&self, i: usize) -> Option<Range<u64>> {
        let start = self.offsets.get(i)?;
        Some(start..self.offsets.get(i + 1).unwrap_or(self.compressed_length))
    }

    #[inline]
    pub fn chunk(&self, i: usize) -> Option<Chunk> {
        let range = self.chunk_range(i)?;
        let payload_length = (range.end - range.start).checked_sub(CHUNK_CRC_LENGTH)? as u32;
        let position = i as u64 * u64::from(self.chunk_length);
        let left = self.data_length.saturating_sub(position);
        let data_length = left.min(u64::from(self.chunk_length));
        Some(Chunk {
            offset: range.start,
            payload_length,
            position,
            data_length: data_length as u32,
            is_raw: payload_length >= self.max_compressed_length,
        })
    }

    /// `compressed_length` is the length of Data.db.
    pub fn decode(
        cursor: &mut Cursor<'_>,
        version: Version,
        compressed_length: u64,
    ) -> DecodeResult<CompressionInfo> {
        let compressor = cursor.utf()?;
        cursor.note(|| format!("compressor {compressor}"));
        let options = decode_options(cursor)?;
        let chunk_length = decode_chunk_length(cursor)?;
        let max_compressed_length = if version.has_max_compressed_length() {
            let max = cursor.i32()?;
            cursor.note(|| format!("chunks of {max} bytes or more are stored raw"));
            u32::try_from(max)
                .map_err(|_| cursor.error(format!("negative max compressed length {max}")))?
        } else {
            NO_MAX_COMPRESSED_LENGTH
        };
        let data_length = cursor.u64()?;
        cursor.note(|| format!("data length {data_length}"));
        let offsets = decode_offsets(cursor, chunk_length, data_length, compressed_length)?;
        let dictionary = if version.has_compression_dictionary() && cursor.remaining() > 0 {
            Some(CompressionDictionary::decode(cursor)?)
        } else {
            None
        };
        if cursor.remaining() > 0 {
            return Err(cursor.error(format!("{} bytes beyond the last chunk", cursor.remaining())));
        }
        Ok(CompressionInfo {
            compressor,
            options,
            chunk_length,
            max_compressed_length,
            data_length,
            compressed_length,
            offsets,
            dictionary,
        })
    }

    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        out.put_utf(&self.compressor);
        out.put_i32(self.options.len() as i32);
        for (key, value) in &self.options {
            out.put_utf(key);
            out.put_utf(value);
        }
        out.put_u32(self.chunk_length);
        if version.has_max_compressed_length() {
            out.put_u32(self.max_compressed_length);
        }
        out.put(&self.data_length.to_be_bytes());
        out.put_i32(self.offsets.len() as i32);
        out.reserve(8 * self.offsets.len());
        for offset in self.offsets.iter() {
            out.put(&offset.to_be_bytes());
        }
        if let Some(dictionary) =
            self.dictionary.as_ref().filter(|_| version.has_compression_dictionary())
        {
            dictionary.encode(out);
        }
    }
}

fn decode_options(cursor: &mut Cursor<'_>) -> DecodeResult<Vec<(String, String)>> {
    let count = cursor.i32()?;
    // An option takes at least its two lengths.
    let sound = usize::try_from(count).ok().filter(|n| *n <= cursor.remaining() / 4);
    let count = sound.ok_or_else(|| cursor.error(format!("{count} compressor options")))?;
    cursor.note(|| format!("{count} compressor options"));
    let mut options = Vec::with_capacity(count);
    for _ in 0..count {
        let key = cursor.utf()?;
        let value = cursor.utf()?;
        cursor.note(|| format!("option {key} = {value}"));
        options.push((key, value));
    }
    Ok(options)
}

fn decode_chunk_length(cursor: &mut Cursor<'_>) -> DecodeResult<u32> {
    let chunk_length = cursor.u32()?;
    if !chunk_length.is_power_of_two() || chunk_length > MAX_CHUNK_LENGTH {
        return Err(cursor.error(format!(
            "chunk length must be a power of two up to {MAX_CHUNK_LENGTH}, found {chunk_length}"
        )));
    }
    cursor.note(|| format!("chunk length {chunk_length}"));
    Ok(chunk_length)
}

fn decode_offsets(
    cursor: &mut Cursor<'_>,
    chunk_length: u32,
    data_length: u64,
    compressed_length: u64,
) -> DecodeResult<ChunkOffsets> {
    let count = cursor.u32()?;
    let expected = data_length.div_ceil(u64::from(chunk_length));
    if u64::from(count) < expected || count == 0 || i32::try_from(count).is_err() {
        return Err(cursor.error(format!(
            "{data_length} bytes in chunks of {chunk_length} make {expected} chunks, found {count}"
        )));
    }
    if cursor.remaining() / 8 < count as usize {
        return Err(cursor.error(format!("{count} chunk offsets do not fit in the file")));
    }
    cursor.note(|| format!("{count} chunks"));
    let most = max_payload_length(chunk_length) + CHUNK_CRC_LENGTH;
    let mut offsets = ChunkOffsets::with_capacity(count as usize);
    let mut last = None;
    for i in 0..count {
        let offset = cursor.u64()?;
        if last.is_some_and(|last| !is_chunk_length(offset, last, most))
            || offset >= compressed_length
        {
            return Err(cursor.error(format!(
                "chunk {i} at {offset} cannot follow one at {} in a file of {compressed_length} bytes",
                last.unwrap_or(0)
            )));
        }
        cursor.note(|| format!("chunk {i} at {offset}"));
        offsets.push(offset).map_err(|what| cursor.error(what))?;
        last = Some(offset);
    }
    if last.is_some_and(|last| !is_chunk_length(compressed_length, last, most)) {
        return Err(cursor.error(format!(
            "the last chunk cannot reach from {} to the end of Data.db at {compressed_length}",
            last.unwrap_or(0)
        )));
    }
    Ok(offsets)
}

fn is_chunk_length(end: u64, start: u64, most: u64) -> bool {
    end.checked_sub(start).is_some_and(|length| (CHUNK_CRC_LENGTH..=most).contains(&length))
}

impl CompressionDictionary {
    /// Over the kind, the id in *little-endian*, and the dictionary.
    fn checksum(kind: u8, id: i64, bytes: &[u8]) -> u32 {
        let crc = halcyon_codec::crc32c(&[kind]);
        halcyon_codec::crc32c_append(halcyon_codec::crc32c_append(crc, &id.to_le_bytes()), bytes)
    }

    fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<CompressionDictionary> {
        let kind = cursor.u8()?;
        cursor.note(|| format!("dictionary kind {kind}{}", if kind == 0 { " (zstd)" } else { "" }));
        let id = cursor.i64()?;
        cursor.note(|| format!("dictionary id {id}"));
        let bytes = cursor.ibytes()?.to_vec();
        cursor.note(|| format!("dictionary of {} bytes", bytes.len()));
        let stored = cursor.u32()?;
        let computed = CompressionDictionary::checksum(kind, id, &bytes);
        if stored != computed {
            return Err(cursor.error(format!(
                "dictionary checksum mismatch: stored {stored:08x}, computed {computed:08x}"
            )));
        }
        cursor.note(|| "CRC-32C of the dictionary".into());
        Ok(CompressionDictionary { kind, id, bytes })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.kind);
        out.put_i64(self.id);
        out.put_ibytes(&self.bytes);
        out.put_u32(CompressionDictionary::checksum(self.kind, self.id, &self.bytes));
    }
}

const BLOCK: usize = 16;

/// Ascending offsets in 4.5 bytes each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkOffsets {
    bases: Vec<u64>,
    distances: Vec<u32>,
}

impl ChunkOffsets {
    fn with_capacity(count: usize) -> ChunkOffsets {
        ChunkOffsets {
            bases: Vec::with_capacity(count.div_ceil(BLOCK)),
            distances: Vec::with_capacity(count),
        }
    }

    pub fn len(&self) -> usize {
        self.distances.len()
    }

    pub fn is_empty(&self) -> bool {
        self.distances.is_empty()
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<u64> {
        Some(self.bases.get(i / BLOCK)? + u64::from(*self.distances.get(i)?))
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.distances.chunks(BLOCK).zip(&self.bases).flat_map(|(distances, base)| {
            distances.iter().map(move |distance| base + u64::from(*distance))
        })
    }

    /// Appends where the next chunk begins.
    pub fn push(&mut self, offset: u64) -> Result<(), String> {
        let base = if self.distances.len().is_multiple_of(BLOCK) {
            self.bases.push(offset);
            offset
        } else {
            self.bases.last().copied().unwrap_or(offset)
        };
        let distance = offset.checked_sub(base).and_then(|distance| u32::try_from(distance).ok());
        let far = || format!("chunk offset {offset} is too far from {base}");
        self.distances.push(distance.ok_or_else(far)?);
        Ok(())
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        8 * self.bases.capacity() + 4 * self.distances.capacity()
    }
}

#[cfg(test)]
#[path = "compression_info_tests.rs"]
mod tests;
