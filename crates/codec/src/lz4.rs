//! LZ4 blocks, without a length in front.

use lz4_flex::block::{self, CompressTable};

use crate::{Algorithm, Error, Result};

/// Keeps the hash table between blocks. The table begins at the size for blocks below 64 KiB and grows with the first larger one.
pub(crate) struct Lz4Compressor(Box<CompressTable>);

impl Lz4Compressor {
    pub(crate) fn new() -> Lz4Compressor {
        Lz4Compressor(Box::new(CompressTable::small()))
    }

    pub(crate) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        block::compress_into_with_table(input, output, &mut self.0)
            .map_err(|e| Error::refused(Algorithm::Lz4, e))
    }
}

/// With a hash table on the stack.
pub(crate) fn compress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    block::compress_into(input, output).map_err(|e| Error::refused(Algorithm::Lz4, e))
}

pub(crate) fn bound(len: usize) -> usize {
    block::get_maximum_output_size(len)
}

pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    block::decompress_into(input, output).map_err(|e| Error::refused(Algorithm::Lz4, e))
}
