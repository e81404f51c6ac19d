//! How an SSTable is written.

use halcyon_codec::Effort;
use halcyon_io::{AccessMode, Purpose};
use halcyon_model::options::Compression;

use crate::format::statistics::collector::Provenance;

/// Everything that the stream does not determine.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    pub mode: AccessMode,
    pub purpose: Purpose,
    /// Bytes of one write to Data.db (`direct_write_buffer_size`).
    pub buffer_size: usize,
    /// Preallocated for Data.db; 0 if unknown.
    pub expected_length: u64,
    pub compression: Option<Compression>,
    /// Spent on the compression: little for what is soon rewritten.
    pub effort: Effort,
    pub estimated_keys: u64,
    pub min_index_interval: u32,
    /// Bytes of a block in the row index; `None`: 64 KiB for BIG, 16 KiB for BTI.
    pub column_index_size: Option<u64>,
    /// Compress and write on threads of its own.
    pub own_thread: bool,
    /// Compare what the device gives back of Data.db with what was written.
    pub read_back: bool,
    pub expiration_overflow: ExpirationOverflow,
    /// Properties that the data does not determine; the writer sets the compression ratio.
    pub provenance: Provenance,
}

/// The treatment of expirations that the version has no room for: those after 2038 in `nb` (`expiration_date_overflow_policy`,
/// CASSANDRA-14092).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpirationOverflow {
    #[default]
    Reject,
    /// Expire at the last second that the version can store.
    Cap,
}
