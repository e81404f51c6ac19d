//! How tests write small SSTables.

use halcyon_io::{AccessMode, Purpose};
use halcyon_model::Partitioner;
use halcyon_model::options::Compression;
use halcyon_sstable::format::statistics::collector::Provenance;
use halcyon_sstable::{Effort, ExpirationOverflow, WriterOptions};

pub(crate) fn options(
    partitioner: &Partitioner,
    compression: Option<Compression>,
) -> WriterOptions {
    WriterOptions {
        mode: AccessMode::Standard,
        purpose: Purpose::Flush,
        buffer_size: 1 << 20,
        expected_length: 0,
        compression,
        estimated_keys: 1,
        min_index_interval: 128,
        column_index_size: None,
        effort: Effort::default(),
        own_thread: false,
        read_back: false,
        expiration_overflow: ExpirationOverflow::Reject,
        provenance: Provenance::new(partitioner.class_name(), 0.01),
    }
}
