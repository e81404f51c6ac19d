//! Writes Partitions.db and Rows.db while Data.db is written.
//!
//! 1. A partition's blocks go into a trie of its own, appended to Rows.db, if there are at least two: separators as keys,
//!    offsets and open range tombstones as payloads, and a sentinel at the end.  An entry follows the trie's root.
//! 2. Its key goes into the trie of Partitions.db *one partition later*, cut to the shortest prefix that distinguishes it from
//!    both neighbours.
//! 3. `finish` writes the last key, the root and the footer.
//!
//! ```text
//!  Rows.db        nodes … root | key:sbytes | data position:uvint | root - here:svint | blocks:uvint32 | DeletionTime
//!  Partitions.db  nodes … root | first key:sbytes last key:sbytes | i64 of "first key" | i64 keys | i64 root
//! ```

use std::ops::Range;

use halcyon_model::byte_comparable::{encode_decorated_key, encode_key, encode_position};
use halcyon_model::bytes::Put;
use halcyon_model::{Clusterings, DeletionTime, Partitioner, Token};
use halcyon_stream::PartitionKey;

use super::RowIndexEntry;
use super::output::Output;
use super::payload::{MAX_ROW_OFFSET, PartitionPayload, PartitionPosition, RowPayload};
use super::separator::{sentinel, separator, shared_prefix};
use super::trie_writer::TrieWriter;
use crate::format::deletion_time::write_deletion_time;
use crate::row_index::{Block, IndexEntry, IndexSummary};
use crate::{Error, Result};

#[derive(Debug)]
pub struct IndexWriter {
    /// Bytes of Partitions.db and Rows.db that the caller may drain at any time, wholly or in part.
    pub partitions: Vec<u8>,
    pub rows: Vec<u8>,
    partitions_position: u64,
    rows_position: u64,
    keys: KeyTrie,
    blocks: BlockTrie,
    key: Vec<u8>,
    hash: u8,
    data_position: u64,
    deletion: DeletionTime,
    /// Where the row index of the current partition begins in Rows.db, and its root.
    rows_begin: u64,
    root: u64,
    partitioner: Partitioner,
}

/// A finished index: the bytes that were not drained yet.
#[derive(Debug)]
pub struct FinishedIndex {
    pub partitions: Vec<u8>,
    pub rows: Vec<u8>,
    pub summary: IndexSummary,
}

/// The trie of Partitions.db, which runs one partition behind.
#[derive(Debug)]
struct KeyTrie {
    trie: TrieWriter<PartitionPayload>,
    /// Byte-comparable form of the pending key, its payload, and the length that distinguishes it from the previous key.
    waiting: Option<PartitionPayload>,
    comparable: Vec<u8>,
    distinct: usize,
    next: Vec<u8>,
    summary: IndexSummary,
}

/// The trie of one partition's blocks.
#[derive(Debug)]
struct BlockTrie {
    trie: TrieWriter<RowPayload>,
    count: u64,
    /// Byte-comparable last clustering of the last block, and the last separator.
    last: Vec<u8>,
    separator: Vec<u8>,
    scratch: Vec<u8>,
}

impl Default for IndexWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl IndexWriter {
    pub fn new() -> Self {
        Self {
            partitions: Vec::new(),
            rows: Vec::new(),
            partitions_position: 0,
            rows_position: 0,
            keys: KeyTrie {
                trie: TrieWriter::new(),
                waiting: None,
                comparable: Vec::new(),
                distinct: 0,
                next: Vec::new(),
                summary: IndexSummary {
                    first_key: Vec::new(),
                    last_key: Vec::new(),
                    partitions: 0,
                },
            },
            blocks: BlockTrie {
                trie: TrieWriter::new(),
                count: 0,
                last: Vec::new(),
                separator: Vec::new(),
                scratch: Vec::new(),
            },
            key: Vec::new(),
            hash: 0,
            data_position: 0,
            deletion: DeletionTime::LIVE,
            rows_begin: 0,
            root: 0,
            partitioner: Partitioner::Murmur3,
        }
    }

    /// Orders keys as another partitioner does. Murmur3 is the default.
    #[must_use]
    pub fn with_partitioner(self, partitioner: Partitioner) -> Self {
        Self { partitioner, ..self }
    }

    /// Bytes after which a block of rows is closed, unless `column_index_size` says otherwise.
    pub fn default_granularity() -> u64 {
        16 * 1024
    }

    pub fn start_partition(&mut self, key: &PartitionKey, data_position: u64) {
        self.key.clear();
        self.key.extend_from_slice(&key.bytes);
        self.hash = key.hashes.1 as u8;
        self.data_position = data_position;
        self.deletion = DeletionTime::LIVE;
        self.rows_begin = self.rows_position;
        self.keys.next.clear();
        match &self.partitioner {
            Partitioner::Murmur3 => {
                encode_decorated_key(Token(key.token), &key.bytes, &mut self.keys.next);
            }
            other => encode_key(other, &key.bytes, &mut self.keys.next),
        }
        self.blocks.start();
    }

    /// Once key, deletion and static row are written.
    pub fn header(&mut self, _header_length: u64, deletion: DeletionTime) {
        self.deletion = deletion;
    }

    pub fn add_block(&mut self, clusterings: &Clusterings, block: Block<'_>) -> Result<()> {
        let mut out = Output { bytes: &mut self.rows, position: &mut self.rows_position };
        self.blocks.add(clusterings, block, &mut out)
    }

    /// `end_offset`: of the end-of-partition flag, relative to the partition's start.
    pub fn end_partition(&mut self, end_offset: u64) -> Result<IndexEntry> {
        let mut entry = IndexEntry { index_position: self.data_position, blocks: 0 };
        let mut position = PartitionPosition::Data(self.data_position);
        if self.blocks.count >= 2 {
            entry.index_position = self.write_row_index(end_offset)?;
            entry.blocks = self.blocks.count;
            position = PartitionPosition::Rows(entry.index_position);
        }
        let payload = PartitionPayload { hash: Some(self.hash), position };
        let mut out =
            Output { bytes: &mut self.partitions, position: &mut self.partitions_position };
        self.keys.add(&self.key, payload, &mut out)?;
        Ok(entry)
    }

    /// Finishes the trie of blocks, appends the entry and returns the entry's position.
    fn write_row_index(&mut self, end_offset: u64) -> Result<u64> {
        let mut out = Output { bytes: &mut self.rows, position: &mut self.rows_position };
        let root = self.blocks.complete(end_offset, &mut out)?;
        self.root = root;
        let blocks = i32::try_from(self.blocks.count).map_err(|_| too_large())?;
        let entry = *out.position;
        out.append(|bytes| bytes.put_sbytes(&self.key));
        let base = *out.position as i64;
        let mut tail = Vec::with_capacity(40);
        tail.put_uvint(self.data_position);
        tail.put_svint(root as i64 - base);
        tail.put_uvint32(blocks);
        write_deletion_time(true, &self.deletion, &mut tail)?;
        out.append(|bytes| bytes.put(&tail));
        Ok(entry)
    }

    /// The entry of the partition that was written last, which has a row index, and all of that in Rows.db.
    pub(crate) fn row_index(&self) -> (RowIndexEntry, Range<u64>) {
        let entry = RowIndexEntry {
            key: Vec::new(),
            data_position: self.data_position,
            root: self.root,
            blocks: self.blocks.count,
            deletion: self.deletion,
        };
        (entry, self.rows_begin..self.rows_position)
    }

    /// Completes Partitions.db. At least one partition must have been added.
    pub fn finish(mut self) -> Result<FinishedIndex> {
        let mut out =
            Output { bytes: &mut self.partitions, position: &mut self.partitions_position };
        let root = self.keys.complete(&mut out)?;
        let summary = IndexSummary { last_key: self.key, ..self.keys.summary };
        let keys_position = *out.position;
        out.append(|bytes| {
            bytes.put_sbytes(&summary.first_key);
            bytes.put_sbytes(&summary.last_key);
            bytes.put_i64(keys_position as i64);
            bytes.put_i64(summary.partitions as i64);
            bytes.put_i64(root as i64);
        });
        Ok(FinishedIndex { partitions: self.partitions, rows: self.rows, summary })
    }
}

impl KeyTrie {
    /// Takes the key whose comparable form is in `next`, and writes the one before.
    fn add(&mut self, key: &[u8], payload: PartitionPayload, out: &mut Output<'_>) -> Result<()> {
        if let Some(before) = self.waiting.take() {
            let distinct = 1 + shared_prefix(&self.comparable, &self.next);
            self.add_cut(distinct, before, out)?;
            self.distinct = distinct;
        } else {
            self.summary.first_key.extend_from_slice(key);
        }
        std::mem::swap(&mut self.comparable, &mut self.next);
        self.waiting = Some(payload);
        self.summary.partitions += 1;
        Ok(())
    }

    fn add_cut(
        &mut self,
        distinct: usize,
        payload: PartitionPayload,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let cut = distinct.max(self.distinct).min(self.comparable.len());
        self.trie.add(self.comparable.get(..cut).unwrap_or_default(), payload, out)
    }

    fn complete(&mut self, out: &mut Output<'_>) -> Result<u64> {
        if let Some(last) = self.waiting.take() {
            self.add_cut(0, last, out)?;
        }
        self.trie.complete(out)
    }
}

impl BlockTrie {
    fn start(&mut self) {
        if self.count > 0 {
            self.trie.reset();
            self.count = 0;
            self.last.clear();
            self.separator.clear();
        }
    }

    fn add(
        &mut self,
        clusterings: &Clusterings,
        block: Block<'_>,
        out: &mut Output<'_>,
    ) -> Result<()> {
        if block.offset > MAX_ROW_OFFSET {
            return Err(too_large());
        }
        let open = block.open_at_start.filter(|deletion| !deletion.is_live());
        if let Some(deletion) = &open {
            self.scratch.clear();
            write_deletion_time(true, deletion, &mut self.scratch)?;
        }
        if self.count > 0 {
            self.scratch.clear();
            encode_position(clusterings, block.first, &mut self.scratch);
            separator(&self.last, &self.scratch, &mut self.separator).ok_or_else(|| {
                Error::Invalid("rows of a partition are not in clustering order".into())
            })?;
        }
        self.trie.add(&self.separator, RowPayload { offset: block.offset, open }, out)?;
        self.last.clear();
        encode_position(clusterings, block.last, &mut self.last);
        self.count += 1;
        Ok(())
    }

    fn complete(&mut self, end_offset: u64, out: &mut Output<'_>) -> Result<u64> {
        if end_offset > MAX_ROW_OFFSET {
            return Err(too_large());
        }
        sentinel(&self.last, &self.separator, &mut self.scratch);
        self.trie.add(&self.scratch, RowPayload { offset: end_offset, open: None }, out)?;
        self.trie.complete(out)
    }
}

fn too_large() -> Error {
    Error::Invalid("the partition is too large for a BTI row index".into())
}
