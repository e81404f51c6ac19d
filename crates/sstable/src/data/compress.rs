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

use halcyon_codec::{self as codec, Algorithm, DeflateLevel, Effort, Method, ZstdLevel};
use halcyon_model::options::{CompressorKind, Entries};

/// `None`: chunks are stored as they are. Effort changes LZ4, and Zstd above its fastest usual level. Deflate keeps its level: the next
/// one is three times as fast, but stores half as much again of documents (measured).
fn method_of(kind: &CompressorKind, effort: Effort) -> Result<Option<Method>, String> {
    Ok(Some(match kind {
        CompressorKind::Lz4 => Method::Lz4 { effort },
        CompressorKind::Snappy => Method::Snappy,
        CompressorKind::Deflate => Method::Deflate { level: DeflateLevel::DEFAULT },
        CompressorKind::Zstd { level } => {
            let level = ZstdLevel::new(*level)
                .ok_or_else(|| format!("zstd has no compression level {level}"))?;
            let level = match effort {
                Effort::Default => level,
                Effort::Fast | Effort::Literals => level.min(ZstdLevel::FASTEST),
            };
            Method::Zstd { level, checksum: true }
        }
        CompressorKind::Noop => return Ok(None),
    }))
}

/// Bytes of the length in front of an LZ4 block.
const LZ4_LENGTH: usize = 4;

/// Compresses chunks, one after the other, with its state kept between them.
pub(crate) struct Compressor {
    /// `None`: chunks are stored as they are.
    method: Option<Method>,
    codec: Option<codec::Compressor>,
    /// For chunks in which nothing repeats, from the first one on.
    without_search: Option<codec::Compressor>,
    /// Bytes in front of the block: its uncompressed length.
    prefix: usize,
}

/// Whether a chunk is searched for what repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    Whole,
    Skipped,
}

impl Compressor {
    pub(crate) fn new(kind: &CompressorKind, effort: Effort) -> Result<Compressor, String> {
        let method = method_of(kind, effort)?;
        let codec = method.map(codec::Compressor::new).transpose().map_err(|e| e.to_string())?;
        let prefix = if *kind == CompressorKind::Lz4 { LZ4_LENGTH } else { 0 };
        Ok(Compressor { method, codec, without_search: None, prefix })
    }

    /// Most bytes that `compress` makes of `len`.
    pub(crate) fn bound(&self, len: usize) -> usize {
        self.prefix + self.codec.as_ref().map_or(len, |codec| codec.bound(len))
    }

    /// Compresses `input` into `output`, which has at least `bound` bytes; returns the payload's length.
    pub(crate) fn compress(
        &mut self,
        input: &[u8],
        search: Search,
        output: &mut [u8],
    ) -> Result<usize, String> {
        let (prefix, block) =
            output.split_at_mut_checked(self.prefix).ok_or("output buffer too small")?;
        if let Some(length) = prefix.first_chunk_mut() {
            *length = (input.len() as u32).to_le_bytes();
        }
        let codec = match (search, self.method) {
            (Search::Skipped, Some(method)) => {
                if self.without_search.is_none() {
                    let new = codec::Compressor::new(method.without_search());
                    self.without_search = Some(new.map_err(|e| e.to_string())?);
                }
                &mut self.without_search
            }
            _ => &mut self.codec,
        };
        match codec {
            Some(codec) => {
                let length = codec.compress(input, block).map_err(|e| e.to_string())?;
                Ok(self.prefix + length)
            }
            None => {
                let to = block.get_mut(..input.len()).ok_or("output buffer too small")?;
                to.copy_from_slice(input);
                Ok(input.len())
            }
        }
    }
}

/// Decompresses chunks.
pub(crate) struct Decompressor {
    /// `None`: chunks are stored as they are.
    codec: Option<codec::Decompressor>,
    has_length: bool,
}

impl Decompressor {
    /// By the class name of CompressionInfo.db, with its dictionary if it has one. `ZstdDictionaryCompressor` writes plain
    /// frames until a dictionary has been trained.
    pub(crate) fn new(class: &str, dictionary: Option<&[u8]>) -> Result<Decompressor, String> {
        let kind = CompressorKind::from_class(class, &Entries::new())?;
        let algorithm = method_of(&kind, Effort::Default)?.map(Method::algorithm);
        let codec = match (algorithm, dictionary) {
            (None, _) => Ok(None),
            (Some(Algorithm::Zstd), Some(bytes)) => {
                codec::Decompressor::with_dictionary(bytes).map(Some)
            }
            (Some(algorithm), _) => codec::Decompressor::new(algorithm).map(Some),
        };
        let codec = codec.map_err(|e| e.to_string())?;
        Ok(Decompressor { codec, has_length: kind == CompressorKind::Lz4 })
    }

    /// Decompresses a payload that must give exactly `output.len()` bytes.
    pub(crate) fn decompress(&mut self, payload: &[u8], output: &mut [u8]) -> Result<(), String> {
        let expected = output.len();
        let mut block = payload;
        if self.has_length {
            let (length, rest) = payload.split_first_chunk().ok_or("LZ4: no length")?;
            let stored = u32::from_le_bytes(*length) as usize;
            if stored != expected {
                return Err(format!("LZ4: chunk says {stored} bytes, {expected} expected"));
            }
            block = rest;
        }
        match &mut self.codec {
            Some(codec) => codec.decompress(block, output).map_err(|e| e.to_string()),
            None if block.len() == expected => {
                output.copy_from_slice(block);
                Ok(())
            }
            None => Err(format!("chunk has {} bytes, {expected} expected", block.len())),
        }
    }
}
