//! Compression of a group's records. A group that does not get smaller is stored as it is.

use halcyon_codec::{Algorithm, Compressor, Decompressor, DeflateLevel, Method, ZstdLevel};

use crate::LogCompression;

impl LogCompression {
    /// Deflate and Zstd at a speed that a write path bears; group headers have checksums already.
    fn method(self) -> Option<Method> {
        match self {
            LogCompression::None => None,
            LogCompression::Lz4 => Some(Method::LZ4),
            LogCompression::Snappy => Some(Method::Snappy),
            LogCompression::Deflate => Some(Method::Deflate { level: DeflateLevel::FASTEST }),
            LogCompression::Zstd => {
                Some(Method::Zstd { level: ZstdLevel::FASTEST, checksum: false })
            }
        }
    }
}

/// The compressor of a log, with the buffer that it writes to.
#[derive(Default)]
pub(crate) struct GroupCompressor {
    codec: Option<Compressor>,
    output: Vec<u8>,
}

impl GroupCompressor {
    pub(crate) fn new(compression: LogCompression) -> GroupCompressor {
        // A library that cannot be set up compresses nothing, and every group is stored as it is.
        let codec = compression.method().and_then(|method| Compressor::new(method).ok());
        GroupCompressor { codec, output: Vec::new() }
    }

    /// `None`: the records do not get smaller.
    pub(crate) fn compress(&mut self, records: &[u8]) -> Option<&[u8]> {
        self.output.clear();
        self.codec.as_mut()?.append(records, &mut self.output).ok()?;
        (self.output.len() < records.len()).then_some(&self.output)
    }
}

/// The `raw` bytes that were compressed, at most `limit`.
pub(crate) fn decompress(
    compression: LogCompression,
    stored: &[u8],
    raw: usize,
    limit: usize,
) -> Result<Vec<u8>, String> {
    let algorithm: Option<Algorithm> = compression.method().map(Method::algorithm);
    let algorithm = algorithm.ok_or("it is compressed in a segment that is not")?;
    let mut output = Vec::new();
    Decompressor::new(algorithm)
        .and_then(|mut codec| codec.append(stored, raw, limit, &mut output))
        .map_err(|e| e.to_string())?;
    Ok(output)
}
