//! Compressed bodies of v3 and v4: LZ4 after its uncompressed length (4 bytes, big-endian), or raw Snappy.

use lz4_flex::block;

use crate::Compression;
use crate::read::{Malformed, Result};

/// Compresses the bytes from `begin` in place; `false` if they were left unchanged.
pub(crate) fn compress(
    out: &mut Vec<u8>,
    begin: usize,
    compression: Compression,
    scratch: &mut Vec<u8>,
) -> bool {
    let body = &out[begin..];
    scratch.clear();
    let len = match compression {
        Compression::None => return false,
        Compression::Lz4 => {
            let Ok(plain) = u32::try_from(body.len()) else { return false };
            scratch.extend(plain.to_be_bytes());
            scratch.resize(4 + block::get_maximum_output_size(body.len()), 0);
            block::compress_into(body, &mut scratch[4..]).ok().map(|len| 4 + len)
        }
        Compression::Snappy => {
            scratch.resize(snap::raw::max_compress_len(body.len()), 0);
            snap::raw::Encoder::new().compress(body, scratch).ok()
        }
    };
    let Some(compressed) = len.and_then(|len| scratch.get(..len)) else { return false };
    out.truncate(begin);
    out.extend_from_slice(compressed);
    true
}

/// The most bytes that one compressed byte can produce; a length beyond it is false, and must not cause an allocation.
const LZ4_RATIO: usize = 255;
const SNAPPY_RATIO: usize = 32;

pub(crate) fn decompress(
    body: &[u8],
    compression: Compression,
    max: usize,
) -> Result<Option<Vec<u8>>> {
    match compression {
        Compression::None => Ok(None),
        Compression::Lz4 => {
            let Some((len, block)) = body.split_first_chunk::<4>() else {
                return Err("Compressed body has no length".into());
            };
            let len = checked(u32::from_be_bytes(*len) as usize, block.len(), LZ4_RATIO, max)?;
            let mut plain = vec![0; len];
            match block::decompress_into(block, &mut plain) {
                Ok(written) if written == len => Ok(Some(plain)),
                Ok(_) => Err("Compressed lengths mismatch".into()),
                Err(error) => Err(Malformed(format!("Body is not LZ4: {error}"))),
            }
        }
        Compression::Snappy => {
            let not_snappy = || "Provided frame does not appear to be Snappy compressed".into();
            let len = snap::raw::decompress_len(body).map_err(|_| not_snappy())?;
            let mut plain = vec![0; checked(len, body.len(), SNAPPY_RATIO, max)?];
            match snap::raw::Decoder::new().decompress(body, &mut plain) {
                Ok(written) if written == len => Ok(Some(plain)),
                _ => Err(not_snappy()),
            }
        }
    }
}

fn checked(len: usize, input: usize, ratio: usize, max: usize) -> Result<usize> {
    if len > max || len > input.saturating_mul(ratio) {
        return Err(Malformed(format!(
            "Body cannot have {len} bytes: {input} compressed bytes, at most {max} allowed"
        )));
    }
    Ok(len)
}
