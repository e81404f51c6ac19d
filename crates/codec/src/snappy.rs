//! Raw Snappy blocks. A block begins with its uncompressed length.

use snap::raw::{Decoder, Encoder};

use crate::{Algorithm, Error, Result};

fn refused(error: snap::Error) -> Error {
    Error::refused(Algorithm::Snappy, error)
}

pub(crate) fn compress(encoder: &mut Encoder, input: &[u8], output: &mut [u8]) -> Result<usize> {
    encoder.compress(input, output).map_err(refused)
}

pub(crate) fn bound(len: usize) -> usize {
    snap::raw::max_compress_len(len)
}

pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    Decoder::new().decompress(input, output).map_err(refused)
}

/// The length that the block says it has.
pub(crate) fn stated_len(input: &[u8]) -> Result<usize> {
    snap::raw::decompress_len(input).map_err(refused)
}
