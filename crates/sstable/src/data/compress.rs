//! Cassandra's chunk compressors (`org.apache.cassandra.io.compress`), each by the class name that CompressionInfo.db and the
//! table options use.
//!
//! | class | payload of a chunk |
//! |---|---|
//! | LZ4Compressor | u32 little-endian uncompressed length, one LZ4 block |
//! | SnappyCompressor | one raw Snappy block |
//! | DeflateCompressor | one zlib stream |
//! | ZstdCompressor, ZstdDictionaryCompressor | one zstd frame with content checksum |
//! | NoopCompressor | the bytes |

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use halcyon_model::options::{CompressorKind, Entries};
use lz4_flex::block::CompressTable;

/// Compresses chunks, one after the other, with its state kept between them.
pub(crate) struct Compressor(Encoder);

enum Encoder {
    Lz4(Box<CompressTable>),
    Snappy(Box<snap::raw::Encoder>),
    Deflate(Compress),
    Zstd(zstd::bulk::Compressor<'static>),
    Noop,
}

impl Compressor {
    pub(crate) fn new(kind: &CompressorKind, chunk_length: usize) -> Result<Compressor, String> {
        Ok(Compressor(match kind {
            CompressorKind::Lz4 if chunk_length < usize::from(u16::MAX) => {
                Encoder::Lz4(Box::new(CompressTable::small()))
            }
            CompressorKind::Lz4 => Encoder::Lz4(Box::new(CompressTable::large())),
            CompressorKind::Snappy => Encoder::Snappy(Box::new(snap::raw::Encoder::new())),
            CompressorKind::Deflate => {
                Encoder::Deflate(Compress::new(Compression::default(), true))
            }
            CompressorKind::Zstd { level } => {
                let mut zstd =
                    zstd::bulk::Compressor::new(*level).map_err(|e| format!("zstd: {e}"))?;
                zstd.include_checksum(true).map_err(|e| format!("zstd: {e}"))?;
                Encoder::Zstd(zstd)
            }
            CompressorKind::Noop => Encoder::Noop,
        }))
    }

    /// Most bytes that `compress` makes of `len`.
    pub(crate) fn bound(&self, len: usize) -> usize {
        match &self.0 {
            Encoder::Lz4(_) => 4 + lz4_flex::block::get_maximum_output_size(len),
            Encoder::Snappy(_) => snap::raw::max_compress_len(len),
            Encoder::Deflate(_) => len + len / 1000 + 64,
            Encoder::Zstd(_) => zstd::zstd_safe::compress_bound(len),
            Encoder::Noop => len,
        }
    }

    /// Compresses `input` into `output`, which has at least `bound` bytes; returns the payload's length.
    pub(crate) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, String> {
        match &mut self.0 {
            Encoder::Lz4(table) => {
                let (length, block) =
                    output.split_at_mut_checked(4).ok_or("output buffer too small")?;
                length.copy_from_slice(&(input.len() as u32).to_le_bytes());
                lz4_flex::block::compress_into_with_table(input, block, table)
                    .map(|n| n + 4)
                    .map_err(|e| format!("LZ4: {e}"))
            }
            Encoder::Snappy(snappy) => {
                snappy.compress(input, output).map_err(|e| format!("Snappy: {e}"))
            }
            Encoder::Deflate(zlib) => {
                zlib.reset();
                match zlib.compress(input, output, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => Ok(zlib.total_out() as usize),
                    Ok(status) => Err(format!("Deflate: unfinished ({status:?})")),
                    Err(e) => Err(format!("Deflate: {e}")),
                }
            }
            Encoder::Zstd(zstd) => {
                zstd.compress_to_buffer(input, output).map_err(|e| format!("zstd: {e}"))
            }
            Encoder::Noop => {
                let to = output.get_mut(..input.len()).ok_or("output buffer too small")?;
                to.copy_from_slice(input);
                Ok(input.len())
            }
        }
    }
}

/// Decompresses chunks.
pub(crate) struct Decompressor(Decoder);

enum Decoder {
    Lz4,
    Snappy(snap::raw::Decoder),
    Deflate(Decompress),
    Zstd(zstd::bulk::Decompressor<'static>),
    Noop,
}

impl Decompressor {
    /// By the class name of CompressionInfo.db, with its dictionary if it has one. `ZstdDictionaryCompressor` writes plain
    /// frames until a dictionary has been trained.
    pub(crate) fn new(class: &str, dictionary: Option<&[u8]>) -> Result<Decompressor, String> {
        let kind = CompressorKind::from_class(class, &Entries::new())?;
        Ok(Decompressor(match kind {
            CompressorKind::Lz4 => Decoder::Lz4,
            CompressorKind::Snappy => Decoder::Snappy(snap::raw::Decoder::new()),
            CompressorKind::Deflate => Decoder::Deflate(Decompress::new(true)),
            CompressorKind::Zstd { .. } => Decoder::Zstd(
                match dictionary {
                    Some(bytes) => zstd::bulk::Decompressor::with_dictionary(bytes),
                    None => zstd::bulk::Decompressor::new(),
                }
                .map_err(|e| format!("zstd: {e}"))?,
            ),
            CompressorKind::Noop => Decoder::Noop,
        }))
    }

    /// Decompresses a payload that must give exactly `output.len()` bytes.
    pub(crate) fn decompress(&mut self, payload: &[u8], output: &mut [u8]) -> Result<(), String> {
        let expected = output.len();
        let length = match &mut self.0 {
            Decoder::Lz4 => {
                let (length, block) = payload.split_first_chunk::<4>().ok_or("LZ4: no length")?;
                let stored = u32::from_le_bytes(*length) as usize;
                if stored != expected {
                    return Err(format!("LZ4: chunk says {stored} bytes, {expected} expected"));
                }
                lz4_flex::block::decompress_into(block, output).map_err(|e| format!("LZ4: {e}"))?
            }
            Decoder::Snappy(snappy) => {
                snappy.decompress(payload, output).map_err(|e| format!("Snappy: {e}"))?
            }
            Decoder::Deflate(zlib) => {
                zlib.reset(true);
                match zlib.decompress(payload, output, FlushDecompress::Finish) {
                    Ok(Status::StreamEnd) => zlib.total_out() as usize,
                    Ok(_) => return Err("Deflate: stream does not end with the chunk".into()),
                    Err(e) => return Err(format!("Deflate: {e}")),
                }
            }
            Decoder::Zstd(zstd) => {
                zstd.decompress_to_buffer(payload, output).map_err(|e| format!("zstd: {e}"))?
            }
            Decoder::Noop => {
                let bytes = payload.get(..expected).ok_or("chunk too short")?;
                output.copy_from_slice(bytes);
                payload.len()
            }
        };
        if length == expected {
            Ok(())
        } else {
            Err(format!("chunk decompresses to {length} bytes, {expected} expected"))
        }
    }
}
