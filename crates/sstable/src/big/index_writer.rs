//! Writes Index.db while Data.db is written.
//!
//! ```text
//!  entry     key:sbytes  position:uvint  size:uvint32  promoted
//!  promoted  header length:uvint  DeletionTime  count:uvint32  IndexInfo × count  offset:i32 × count
//!  IndexInfo first, last:prefix  offset:uvint  width - 65536:svint  has open:bool  [DeletionTime]
//!  prefix    kind:u8  values                         of a clustering
//!            kind:u8  count:u16  values              of a bound
//! ```
//!
//! The promoted part is written for partitions of two blocks and more (size 0 otherwise).  Its size precedes it, so
//! the blocks of the current partition are held in memory, serialized: a few dozen bytes per 64 KiB of data.

use halcyon_model::bytes::{Put, uvint_len};
use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, Clusterings, DeletionTime};
use halcyon_stream::PartitionKey;

use super::promoted::WIDTH_BASE;
use crate::format::deletion_time::{deletion_time_len, write_deletion_time};
use crate::row_index::{Block, IndexEntry, IndexSummary};
use crate::{Error, Result};

#[derive(Debug)]
pub struct IndexWriter {
    /// Bytes of Index.db that the caller may drain at any time, wholly or in part.
    pub index: Vec<u8>,
    position: u64,
    version_is_oa_or_later: bool,
    summary: IndexSummary,
    /// The current partition: its key, and its blocks as they will be written.
    key: Vec<u8>,
    data_position: u64,
    header_length: u64,
    deletion: DeletionTime,
    infos: Vec<u8>,
    offsets: Vec<i32>,
}

/// A finished index: the bytes that were not drained yet.
#[derive(Debug)]
pub struct FinishedIndex {
    pub index: Vec<u8>,
    pub summary: IndexSummary,
}

impl IndexWriter {
    pub fn new(version_is_oa_or_later: bool) -> Self {
        Self {
            index: Vec::new(),
            position: 0,
            version_is_oa_or_later,
            summary: IndexSummary { first_key: Vec::new(), last_key: Vec::new(), partitions: 0 },
            key: Vec::new(),
            data_position: 0,
            header_length: 0,
            deletion: DeletionTime::LIVE,
            infos: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// Bytes after which a block of rows is closed, unless `column_index_size` says otherwise.
    pub fn default_granularity() -> u64 {
        64 * 1024
    }

    pub fn start_partition(&mut self, key: &PartitionKey, data_position: u64) {
        self.key.clear();
        self.key.extend_from_slice(&key.bytes);
        self.data_position = data_position;
        self.header_length = 0;
        self.deletion = DeletionTime::LIVE;
        self.infos.clear();
        self.offsets.clear();
    }

    /// Once key, deletion and static row are written.
    pub fn header(&mut self, header_length: u64, deletion: DeletionTime) {
        self.header_length = header_length;
        self.deletion = deletion;
    }

    /// The serialized positions are copied; `clusterings` matters to BTI only.
    pub fn add_block(&mut self, _clusterings: &Clusterings, block: Block<'_>) -> Result<()> {
        let start = i32::try_from(self.infos.len()).map_err(|_| self.too_many_blocks())?;
        self.offsets.push(start);
        put_prefix(block.first, &mut self.infos);
        put_prefix(block.last, &mut self.infos);
        self.infos.put_uvint(block.offset);
        self.infos.put_svint((block.width as i64).wrapping_sub(WIDTH_BASE));
        let open = block.open_at_end.filter(|deletion| !deletion.is_live());
        self.infos.put_bool(open.is_some());
        match open {
            Some(open) => write_deletion_time(self.version_is_oa_or_later, &open, &mut self.infos),
            None => Ok(()),
        }
    }

    /// `_end_offset` matters to BTI only.
    pub fn end_partition(&mut self, _end_offset: u64) -> Result<IndexEntry> {
        let index_position = self.position;
        let before = self.index.len();
        let blocks = if self.offsets.len() >= 2 { self.offsets.len() } else { 0 };
        let promoted = if blocks == 0 { 0 } else { self.promoted_len()? };
        self.index.put_sbytes(&self.key);
        self.index.put_uvint(self.data_position);
        self.index.put_uvint32(promoted);
        if blocks > 0 {
            self.write_promoted()?;
        }
        self.position += (self.index.len() - before) as u64;
        if self.summary.partitions == 0 {
            self.summary.first_key.extend_from_slice(&self.key);
        }
        std::mem::swap(&mut self.summary.last_key, &mut self.key);
        self.summary.partitions += 1;
        Ok(IndexEntry { index_position, blocks: blocks as u64 })
    }

    /// Of the next byte of Index.db.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Of the partition that was written last; it has at least two blocks.
    pub(crate) fn promoted_length(&self) -> u64 {
        self.promoted_len().map_or(0, |length| u64::from(length.unsigned_abs()))
    }

    pub fn finish(self) -> Result<FinishedIndex> {
        Ok(FinishedIndex { index: self.index, summary: self.summary })
    }

    fn promoted_len(&self) -> Result<i32> {
        let len = uvint_len(self.header_length)
            + deletion_time_len(self.version_is_oa_or_later, &self.deletion)
            + uvint_len(self.offsets.len() as u64)
            + self.infos.len()
            + 4 * self.offsets.len();
        i32::try_from(len).map_err(|_| self.too_many_blocks())
    }

    fn write_promoted(&mut self) -> Result<()> {
        let count = i32::try_from(self.offsets.len()).map_err(|_| self.too_many_blocks())?;
        self.index.put_uvint(self.header_length);
        write_deletion_time(self.version_is_oa_or_later, &self.deletion, &mut self.index)?;
        self.index.put_uvint32(count);
        self.index.put(&self.infos);
        for offset in &self.offsets {
            self.index.put_i32(*offset);
        }
        Ok(())
    }

    fn too_many_blocks(&self) -> Error {
        Error::Invalid(format!(
            "the partition at {} has a row index above 2 GiB, which Index.db cannot hold: \
             raise column_index_size or use BTI",
            self.data_position
        ))
    }
}

fn put_prefix(position: Position<'_>, out: &mut Vec<u8>) {
    out.put_u8(position.kind as u8);
    if position.kind != BoundKind::Clustering {
        // A bound has at most as many values as the table has clustering columns.
        out.put_u16(position.count as u16);
    }
    out.put(position.serialized);
}
