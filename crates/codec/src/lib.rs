//! Block compression and checksums: the only crate that names LZ4, Snappy, Deflate, Zstd and CRC libraries.
//!
//! A block is compressed and decompressed as a whole, from one slice into another. What a format puts around a block (a length in
//! front of it, a rule when to store it uncompressed) belongs to the format: SSTable chunks, commit log groups and protocol
//! frames differ in it.
//!
//! Invariants:
//! - Decompression gives exactly the number of bytes that the caller expects, or an error.
//! - Nothing here allocates by a length from outside unless it was compared with a limit ([`Decompressor::append`]).
//! - A level is in its algorithm's range before a library sees it.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::expect_used)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod checksum;
mod compressor;
mod decompressor;
mod deflate;
mod lz4;
mod method;
mod snappy;
mod zstd;

pub use checksum::{Crc32, crc32, crc32c, crc32c_append};
pub use compressor::{Compressor, append_once};
pub use decompressor::{Decompressor, snappy_len};
pub use method::{Algorithm, DeflateLevel, Effort, Method, ZstdLevel};

/// Why a block cannot be compressed or decompressed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The library refuses the bytes.
    #[error("{algorithm}: {reason}")]
    Refused { algorithm: Algorithm, reason: String },
    /// The block is intact, but has another length than its format says.
    #[error("the block decompresses to {got} bytes, {expected} expected")]
    Length { got: usize, expected: usize },
    /// The length is above the caller's limit, or above what so short a block can hold.
    #[error("{len} bytes cannot come from {compressed} compressed bytes, at most {limit} allowed")]
    Implausible { len: usize, compressed: usize, limit: usize },
}

impl Error {
    fn refused(algorithm: Algorithm, reason: impl ToString) -> Error {
        Error::Refused { algorithm, reason: reason.to_string() }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests;
