//! Decompression of one block after the other.

use crate::{Algorithm, Error, Result, deflate, lz4, snappy, zstd};

/// Keeps what an algorithm can use again between blocks.
pub struct Decompressor(Context);

enum Context {
    Lz4,
    Snappy,
    Deflate(flate2::Decompress),
    Zstd(::zstd::bulk::Decompressor<'static>),
}

impl Decompressor {
    pub fn new(algorithm: Algorithm) -> Result<Decompressor> {
        Ok(Decompressor(match algorithm {
            Algorithm::Lz4 => Context::Lz4,
            Algorithm::Snappy => Context::Snappy,
            Algorithm::Deflate => Context::Deflate(flate2::Decompress::new(true)),
            Algorithm::Zstd => Context::Zstd(zstd::decompressor(None)?),
        }))
    }

    /// For zstd frames that were written with this dictionary.
    pub fn with_dictionary(dictionary: &[u8]) -> Result<Decompressor> {
        Ok(Decompressor(Context::Zstd(zstd::decompressor(Some(dictionary))?)))
    }

    fn algorithm(&self) -> Algorithm {
        match &self.0 {
            Context::Lz4 => Algorithm::Lz4,
            Context::Snappy => Algorithm::Snappy,
            Context::Deflate(_) => Algorithm::Deflate,
            Context::Zstd(_) => Algorithm::Zstd,
        }
    }

    /// Decompresses a block that must give exactly `output.len()` bytes.
    pub fn decompress(&mut self, block: &[u8], output: &mut [u8]) -> Result<()> {
        let expected = output.len();
        let got = match &mut self.0 {
            Context::Lz4 => lz4::decompress(block, output),
            Context::Snappy => snappy::decompress(block, output),
            Context::Deflate(zlib) => deflate::decompress(zlib, block, output),
            Context::Zstd(zstd) => zstd::decompress(zstd, block, output),
        }?;
        if got == expected { Ok(()) } else { Err(Error::Length { got, expected }) }
    }

    /// Appends what a block of a stated length gives. The length may be false: it is compared with the caller's limit and with what
    /// `block` can hold at most before it takes memory. On an error `output` stays as it was.
    pub fn append(
        &mut self,
        block: &[u8],
        len: usize,
        limit: usize,
        output: &mut Vec<u8>,
    ) -> Result<()> {
        let ratio = self.algorithm().largest_ratio();
        if len > limit || len > block.len().saturating_mul(ratio) {
            return Err(Error::Implausible { len, compressed: block.len(), limit });
        }
        let begin = output.len();
        output.resize(begin.saturating_add(len), 0);
        let result = self.decompress(block, output.get_mut(begin..).unwrap_or_default());
        if result.is_err() {
            output.truncate(begin);
        }
        result
    }
}

/// The uncompressed length that a Snappy block begins with; not compared with anything.
pub fn snappy_len(block: &[u8]) -> Result<usize> {
    snappy::stated_len(block)
}
