//! Rows of which each read is measured alone: one in each partition, of four parts of a quarter KiB.
//!
//! ```text
//! CREATE TABLE … (id bigint PRIMARY KEY, part_1 blob, part_2 blob, part_3 blob, part_4 blob)
//!
//!             SSTable 1      2        3        4
//! single   row 0  1 2 3 4    ·        ·        ·      row `n` lies, whole, in SSTable `n % sstables`
//!          row 1     ·    1 2 3 4     ·        ·
//! split    row 0  1          2        3        4      each SSTable has another part of every row: none can be left out of a read
//!          row 1  1          2        3        4
//! ```
//! All SSTables of both shapes are of about the same size, and so are their chunks.

use halcyon_io::Random;
use halcyon_model::{Clusterings, CqlType, Partitioner};
use halcyon_stream::{Column, Layout};

use crate::payload;

/// Of a row.
pub(crate) const COUNT: u64 = 4;
pub(crate) const BYTES_PER_ROW: u64 = 1040;
/// About half of a value can be compressed.
const DOCUMENT: usize = 160;
const NOISE: usize = 64;

pub(crate) fn layout() -> Layout {
    let regulars = (1..=COUNT).map(|part| {
        let name = format!("part_{part}");
        Column::new(name.into_bytes(), CqlType::Blob)
    });
    Layout {
        partitioner: Partitioner::Murmur3,
        key_type: CqlType::BigInt,
        clusterings: Clusterings::new(&[]),
        clustering_types: Vec::new(),
        statics: Vec::new(),
        regulars: regulars.collect(),
    }
}

/// Of a part.
pub(crate) fn value(random: &mut Random, to: &mut Vec<u8>) {
    payload::document(random, DOCUMENT, to);
    payload::noise(random, NOISE, to);
}
