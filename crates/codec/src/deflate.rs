//! Zlib streams: Deflate with zlib's header and its Adler-32.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::{Algorithm, DeflateLevel, Error, Result};

fn refused(reason: impl ToString) -> Error {
    Error::refused(Algorithm::Deflate, reason)
}

pub(crate) fn compressor(level: DeflateLevel) -> Compress {
    Compress::new(Compression::new(level.get()), true)
}

pub(crate) fn compress(zlib: &mut Compress, input: &[u8], output: &mut [u8]) -> Result<usize> {
    zlib.reset();
    match zlib.compress(input, output, FlushCompress::Finish) {
        Ok(Status::StreamEnd) => Ok(zlib.total_out() as usize),
        Ok(status) => Err(refused(format!("unfinished ({status:?})"))),
        Err(e) => Err(refused(e)),
    }
}

/// Level 1 writes literals of up to nine bits where nothing repeats, so the bound is an eighth above the input.
pub(crate) fn bound(len: usize) -> usize {
    len.saturating_add(len / 8).saturating_add(64)
}

pub(crate) fn decompress(zlib: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<usize> {
    zlib.reset(true);
    match zlib.decompress(input, output, FlushDecompress::Finish) {
        Ok(Status::StreamEnd) => Ok(zlib.total_out() as usize),
        Ok(_) => Err(refused("the stream does not end with the block")),
        Err(e) => Err(refused(e)),
    }
}
