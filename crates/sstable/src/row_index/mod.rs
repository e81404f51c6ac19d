//! The interface between the data writer, the index writers and the index readers: the blocks of rows of a partition, the
//! position of its entry, and random access to an index component.

#[cfg(test)]
mod data_walk;
#[cfg(test)]
mod real_files;
#[cfg(test)]
pub(crate) mod testing;

use halcyon_model::clustering::Position;
use halcyon_model::{DecodeError, DecodeResult, DeletionTime};

/// A closed block of consecutive unfiltereds of one partition. Offsets are relative to the partition's start.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// First and last unfiltered in the block.
    pub first: Position<'a>,
    pub last: Position<'a>,
    pub offset: u64,
    /// Includes the end-of-partition flag when the block is closed because the partition ended.
    pub width: u64,
    /// Range tombstone open where the block begins (BTI stores this one).
    pub open_at_start: Option<DeletionTime>,
    /// Range tombstone still open where the block ends (BIG stores this one).
    pub open_at_end: Option<DeletionTime>,
}

/// Where an index stores a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// BIG: of the partition's entry in Index.db. BTI: of its entry in Rows.db, or, when it has no row index, of
    /// the partition in Data.db.
    pub index_position: u64,
    /// Blocks in its row index; 0 when it has none.
    pub blocks: u64,
}

/// Totals of an index, known when its last partition is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSummary {
    /// Keys of the first and the last partition; empty when there was none.
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    pub partitions: u64,
}

/// Random access to the bytes of an index component; implementations differ in their caches.
pub trait IndexSource {
    type Bytes: AsRef<[u8]>;
    type Error;

    fn len(&self) -> u64;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes from `offset` on: `length` of them, fewer only where the component ends.
    fn read(
        &self,
        offset: u64,
        length: usize,
    ) -> impl Future<Output = Result<Self::Bytes, Self::Error>>;

    /// Adds the file and the component to a decoding error.
    fn corrupt(&self, error: DecodeError) -> Self::Error;
}

/// Turns decoding errors into those of a source.
pub(crate) trait OrCorrupt<T> {
    fn or_corrupt<S: IndexSource>(self, source: &S) -> Result<T, S::Error>;
}

impl<T> OrCorrupt<T> for DecodeResult<T> {
    fn or_corrupt<S: IndexSource>(self, source: &S) -> Result<T, S::Error> {
        self.map_err(|error| source.corrupt(error))
    }
}
