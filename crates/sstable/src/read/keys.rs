//! An SSTable's index with caches of its own, as the tools walk it from end to end.

use std::sync::Arc;

use halcyon_io::{AccessMode, Disk, Purpose};

use super::cached_data::CachedData;
use super::cached_index::CachedIndex;
use super::caches::ReadCaches;
use super::data_file::DataFile;
use super::entries::Entries;
use super::index_files::{IndexFiles, IndexSources, row_entry};
use super::summary_search::{WALK_WINDOW, check_position};
use crate::bti::{PartitionPayload, PartitionPosition, TrieCursor};
use crate::{Result, SSTable};

/// The open index of an SSTable. Nothing but the index is needed: a damaged filter or summary does not keep it from being walked.
pub struct IndexWalk {
    files: IndexFiles,
    data: Arc<DataFile>,
    caches: ReadCaches,
}

/// A partition by its index entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyEntry<'k> {
    pub key: &'k [u8],
    /// Of the partition in the data.
    pub data_position: u64,
}

/// All keys in order, from the index alone. What BTI does not store is read from where the index points.
pub struct Keys<'i> {
    source: KeySource<'i>,
    data_length: u64,
}

enum KeySource<'i> {
    Big {
        entries: Entries<'i, CachedIndex<'i>>,
    },
    Bti {
        cursor: TrieCursor<'i, CachedIndex<'i>, PartitionPayload>,
        partitions: &'i CachedIndex<'i>,
        rows: &'i CachedIndex<'i>,
        data: CachedData,
        started: bool,
        /// Entries that the footer still promises.
        left: u64,
        key: Vec<u8>,
    },
}

impl IndexWalk {
    pub async fn open(disk: &Disk, sstable: &SSTable, mode: AccessMode) -> Result<IndexWalk> {
        let caches = ReadCaches::of_one_pass();
        let files = IndexFiles::open(disk, sstable, 0, (mode, Purpose::Scan)).await?;
        let data = Arc::new(DataFile::open(disk, sstable, 0, mode).await?);
        Ok(IndexWalk { files, data, caches })
    }

    /// The index through the caches of this walk.
    pub fn sources(&self) -> IndexSources<'_> {
        self.files.through(&self.caches)
    }

    /// All keys in order.
    pub fn keys<'i>(&'i self, sources: &'i IndexSources<'i>) -> Keys<'i> {
        let source = match sources {
            IndexSources::Big { index } => {
                KeySource::Big { entries: Entries::new(index, 0, WALK_WINDOW) }
            }
            IndexSources::Bti { partitions, rows, root } => KeySource::Bti {
                cursor: root.cursor(partitions),
                partitions,
                rows,
                data: CachedData::new(self.data.clone(), self.caches.clone(), false),
                started: false,
                left: root.partitions,
                key: Vec::new(),
            },
        };
        Keys { source, data_length: self.data.data_length() }
    }
}

impl Keys<'_> {
    /// The next key; `None` after the last. After an error the walk is over.
    pub async fn next(&mut self) -> Result<Option<KeyEntry<'_>>> {
        match &mut self.source {
            KeySource::Big { entries } => {
                let Some(head) = entries.next().await? else { return Ok(None) };
                check_position(entries.file(), &head, self.data_length)?;
                Ok(Some(KeyEntry { key: &entries.key, data_position: head.data_position }))
            }
            KeySource::Bti { cursor, partitions, rows, data, started, left, key } => {
                let payload = if *started { cursor.next().await? } else { cursor.first().await? };
                *started = true;
                let Some(payload) = payload else { return Ok(None) };
                let Some(rest) = left.checked_sub(1) else {
                    let what = "the trie holds more partitions than the footer says";
                    return Err(partitions.corrupt_at(0, what));
                };
                *left = rest;
                match payload.position {
                    PartitionPosition::Data(data_position) => {
                        data.key_at(data_position, key).await?;
                        Ok(Some(KeyEntry { key, data_position }))
                    }
                    PartitionPosition::Rows(position) => {
                        let entry = row_entry(*partitions, *rows, position).await?;
                        *key = entry.key;
                        let data_position = entry.data_position;
                        Ok(Some(KeyEntry { key, data_position }))
                    }
                }
            }
        }
    }
}
