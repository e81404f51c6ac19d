//! Compression of one block after the other.

use crate::{Effort, Method, Result, deflate, lz4, snappy, zstd};

/// Keeps what an algorithm can use again between blocks.
pub struct Compressor(Context);

enum Context {
    Lz4(Effort),
    Snappy(Box<snap::raw::Encoder>),
    Deflate(flate2::Compress),
    Zstd(::zstd::bulk::Compressor<'static>),
}

impl Compressor {
    pub fn new(method: Method) -> Result<Compressor> {
        Ok(Compressor(match method {
            Method::Lz4 { effort } => Context::Lz4(effort),
            Method::Snappy => Context::Snappy(Box::new(snap::raw::Encoder::new())),
            Method::Deflate { level } => Context::Deflate(deflate::compressor(level)),
            Method::Zstd { level, checksum } => Context::Zstd(zstd::compressor(level, checksum)?),
        }))
    }

    /// Most bytes that a block of `len` bytes can take.
    pub fn bound(&self, len: usize) -> usize {
        match &self.0 {
            Context::Lz4(_) => lz4::bound(len),
            Context::Snappy(_) => snappy::bound(len),
            Context::Deflate(_) => deflate::bound(len),
            Context::Zstd(_) => zstd::bound(len),
        }
    }

    /// Compresses `input` into `output`, which has at least [`Self::bound`] bytes. Returns the length of the block.
    pub fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        match &mut self.0 {
            Context::Lz4(effort) => lz4::compress(*effort, input, output),
            Context::Snappy(encoder) => snappy::compress(encoder, input, output),
            Context::Deflate(zlib) => deflate::compress(zlib, input, output),
            Context::Zstd(zstd) => zstd::compress(zstd, input, output),
        }
    }

    /// Appends the block to `output`. On an error `output` stays as it was.
    pub fn append(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let bound = self.bound(input.len());
        append(output, bound, |output| self.compress(input, output))
    }
}

/// For callers that keep no [`Compressor`] because there are too many of them, as connections. LZ4 takes no memory.
pub fn append_once(method: Method, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
    Compressor::new(method)?.append(input, output)
}

fn append(
    output: &mut Vec<u8>,
    bound: usize,
    compress: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<()> {
    let begin = output.len();
    output.resize(begin.saturating_add(bound), 0);
    let block = output.get_mut(begin..).unwrap_or_default();
    let result = compress(block);
    output.truncate(begin + result.as_ref().map_or(0, |len| *len));
    result.map(|_| ())
}
