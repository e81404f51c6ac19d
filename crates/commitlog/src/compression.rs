//! Compression of a group's records. A group that does not get smaller is stored as it is.

use std::io::{Read, Write};

use crate::LogCompression;

/// Deflate and Zstd at a speed that a write path bears.
const DEFLATE_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// Writes the compressed records over `output`; `None` if they do not get smaller than they are, or fail.
pub(crate) fn compress(
    compression: LogCompression,
    records: &[u8],
    output: &mut Vec<u8>,
) -> Option<usize> {
    output.clear();
    match compression {
        LogCompression::None => return None,
        LogCompression::Lz4 => {
            output.resize(lz4_flex::block::get_maximum_output_size(records.len()), 0);
            let stored = lz4_flex::block::compress_into(records, output).ok()?;
            output.truncate(stored);
        }
        LogCompression::Snappy => {
            output.resize(snap::raw::max_compress_len(records.len()), 0);
            let stored = snap::raw::Encoder::new().compress(records, output).ok()?;
            output.truncate(stored);
        }
        LogCompression::Deflate => {
            let level = flate2::Compression::new(DEFLATE_LEVEL);
            let mut encoder = flate2::write::ZlibEncoder::new(output, level);
            encoder.write_all(records).ok()?;
            let output = encoder.finish().ok()?;
            return (output.len() < records.len()).then_some(output.len());
        }
        LogCompression::Zstd => {
            output.resize(zstd::zstd_safe::compress_bound(records.len()), 0);
            let stored = zstd::bulk::compress_to_buffer(records, output, ZSTD_LEVEL).ok()?;
            output.truncate(stored);
        }
    }
    (output.len() < records.len()).then_some(output.len())
}

/// The `raw` bytes that were compressed. `raw` is bounded by the caller.
pub(crate) fn decompress(
    compression: LogCompression,
    stored: &[u8],
    raw: usize,
) -> Result<Vec<u8>, String> {
    let mut output = vec![0; raw];
    let got = match compression {
        LogCompression::None => Err("it is compressed in a segment that is not".to_owned()),
        LogCompression::Lz4 => {
            lz4_flex::block::decompress_into(stored, &mut output).map_err(|e| e.to_string())
        }
        LogCompression::Snappy => {
            snap::raw::Decoder::new().decompress(stored, &mut output).map_err(|e| e.to_string())
        }
        LogCompression::Deflate => {
            let mut decoder = flate2::read::ZlibDecoder::new(stored);
            decoder.read_exact(&mut output).map(|()| raw).map_err(|e| e.to_string())
        }
        LogCompression::Zstd => {
            zstd::bulk::decompress_to_buffer(stored, &mut output).map_err(|e| e.to_string())
        }
    };
    match got? {
        got if got == raw => Ok(output),
        got => Err(format!("it gives {got} bytes instead of {raw}")),
    }
}
