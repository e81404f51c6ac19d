//! Zstd frames, with a dictionary where the caller has one.

use zstd::bulk;

use crate::{Algorithm, Error, Result, ZstdLevel};

fn refused(error: std::io::Error) -> Error {
    Error::refused(Algorithm::Zstd, error)
}

pub(crate) fn compressor(level: ZstdLevel, checksum: bool) -> Result<bulk::Compressor<'static>> {
    let mut compressor = bulk::Compressor::new(level.get()).map_err(refused)?;
    compressor.include_checksum(checksum).map_err(refused)?;
    Ok(compressor)
}

pub(crate) fn compress(
    zstd: &mut bulk::Compressor<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<usize> {
    zstd.compress_to_buffer(input, output).map_err(refused)
}

pub(crate) fn bound(len: usize) -> usize {
    zstd::zstd_safe::compress_bound(len)
}

pub(crate) fn decompressor(dictionary: Option<&[u8]>) -> Result<bulk::Decompressor<'static>> {
    match dictionary {
        Some(bytes) => bulk::Decompressor::with_dictionary(bytes),
        None => bulk::Decompressor::new(),
    }
    .map_err(refused)
}

pub(crate) fn decompress(
    zstd: &mut bulk::Decompressor<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<usize> {
    zstd.decompress_to_buffer(input, output).map_err(refused)
}
