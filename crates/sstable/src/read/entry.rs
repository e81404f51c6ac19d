//! Where a partition is, as an index says it and the key cache keeps it.

use std::ops::Range;

use crate::bti::RowIndexEntry;

/// The index entry of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionEntry {
    /// In the uncompressed data.
    pub data_position: u64,
    /// It has no row index, and continues in the next chunk: both are read in one I/O. Only known if that costs no read.
    pub(crate) goes_on: bool,
    pub(crate) rows: RowIndexRef,
}

/// Where the row index of a partition is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowIndexRef {
    None,
    /// The promoted index, in Index.db.
    Big(Range<u64>),
    /// Root of the trie, in Rows.db.
    Bti(RowIndexEntry),
}

impl PartitionEntry {
    pub(crate) fn new(data_position: u64, rows: RowIndexRef) -> PartitionEntry {
        PartitionEntry { data_position, goes_on: false, rows }
    }

    /// The same, of a partition that ends at a position, in chunks of a length.
    pub(crate) fn until(self, end: u64, chunk_length: u64) -> PartitionEntry {
        let number = |at: u64| at / chunk_length;
        let crosses = number(end.saturating_sub(1)) > number(self.data_position);
        PartitionEntry { goes_on: crosses && !self.has_row_index(), ..self }
    }

    pub(super) fn has_row_index(&self) -> bool {
        self.rows != RowIndexRef::None
    }
}
