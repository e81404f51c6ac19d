//! Compressed bodies of v3 and v4: LZ4 after its uncompressed length (4 bytes, big-endian), or raw Snappy.

use halcyon_codec::{Algorithm, Decompressor, Error, Method, append_once, snappy_len};

use crate::Compression;
use crate::read::{Malformed, Result};

/// Compresses the bytes from `begin` in place; `false` if they were left unchanged.
pub(crate) fn compress(
    out: &mut Vec<u8>,
    begin: usize,
    compression: Compression,
    scratch: &mut Vec<u8>,
) -> bool {
    let body = out.get(begin..).unwrap_or_default();
    scratch.clear();
    let method = match compression {
        Compression::None => return false,
        Compression::Lz4 => {
            let Ok(plain) = u32::try_from(body.len()) else { return false };
            scratch.extend(plain.to_be_bytes());
            Method::LZ4
        }
        Compression::Snappy => Method::Snappy,
    };
    if append_once(method, body, scratch).is_err() {
        return false;
    }
    out.truncate(begin);
    out.extend_from_slice(scratch);
    true
}

/// The length that a compressed body states, at most `max`. Decompression finds out whether it is true.
pub(crate) fn stated_len(body: &[u8], compression: Compression, max: usize) -> Result<usize> {
    let Some((algorithm, len, block)) = parts(body, compression)? else { return Ok(body.len()) };
    if len > max {
        let compressed = block.len();
        return Err(malformed(algorithm, &Error::Implausible { len, compressed, limit: max }));
    }
    Ok(len)
}

/// `max`: most bytes that a body may have, whatever length it states.
pub(crate) fn decompress(body: &[u8], compression: Compression, max: usize) -> Result<Vec<u8>> {
    let Some((algorithm, len, block)) = parts(body, compression)? else { return Ok(body.to_vec()) };
    let mut plain = Vec::new();
    Decompressor::new(algorithm)
        .and_then(|mut codec| codec.append(block, len, max, &mut plain))
        .map_err(|error| malformed(algorithm, &error))?;
    Ok(plain)
}

/// Algorithm, stated length, and what is to be decompressed; `None` without a compression.
fn parts(body: &[u8], compression: Compression) -> Result<Option<(Algorithm, usize, &[u8])>> {
    match compression {
        Compression::None => Ok(None),
        Compression::Lz4 => {
            let Some((len, block)) = body.split_first_chunk::<4>() else {
                return Err("Compressed body has no length".into());
            };
            Ok(Some((Algorithm::Lz4, u32::from_be_bytes(*len) as usize, block)))
        }
        Compression::Snappy => {
            let len = snappy_len(body).map_err(|error| malformed(Algorithm::Snappy, &error))?;
            Ok(Some((Algorithm::Snappy, len, body)))
        }
    }
}

fn malformed(algorithm: Algorithm, error: &Error) -> Malformed {
    match error {
        Error::Implausible { len, compressed, limit } => Malformed(format!(
            "Body cannot have {len} bytes: {compressed} compressed bytes, at most {limit} allowed"
        )),
        _ if algorithm == Algorithm::Snappy => {
            "Provided frame does not appear to be Snappy compressed".into()
        }
        Error::Length { .. } => "Compressed lengths mismatch".into(),
        Error::Refused { reason, .. } => Malformed(format!("Body is not LZ4: {reason}")),
    }
}
