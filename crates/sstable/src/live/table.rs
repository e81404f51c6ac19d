//! One SSTable as all shards share it, and how a partition is found in it.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::{AccessMode, Disk, Purpose, ReadFile};
use halcyon_model::byte_comparable::{encode_decorated_key, encode_key};
use halcyon_model::token::Token;
use halcyon_model::{Cursor, Partitioner};
use halcyon_stream::{Layout, PartitionKey};

use super::cached_data::CachedData;
use super::cached_index::CachedIndex;
use super::caches::{FileId, ReadCaches};
use crate::bti::{PartitionIndex, PartitionPosition, RowIndexEntry};
use crate::components::filter::Filter;
use crate::components::summary::Summary;
use crate::data::window::DataWindow;
use crate::lookup::{BigSearch, Entries, IndexFile, cut_short, row_entry, summary_of};
use crate::{Component, Error, Format, Result, SSTable};

const LOOKUP_WINDOW: usize = 16 * 1024;

/// The open files of an index.
enum LiveIndex {
    Big { index: ReadFile, summary: Summary },
    Bti { partitions: ReadFile, rows: ReadFile, root: PartitionIndex },
}

/// Immutable; any thread may hold it.
pub struct LiveSSTable {
    /// Unique in the process.
    id: u64,
    sstable: Arc<SSTable>,
    filter: Filter,
    index: LiveIndex,
    first: PartitionKey,
    last: PartitionKey,
    data: ReadFile,
    data_scan: ReadFile,
    data_path: PathBuf,
    codec: (u64, String),
}

/// Where a partition lies, and its row index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// In the uncompressed data.
    pub data_position: u64,
    pub(super) rows: RowIndexPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowIndexPlace {
    None,
    /// The promoted index, in Index.db.
    Big(Range<u64>),
    /// Root of the trie, in Rows.db.
    Bti(RowIndexEntry),
}

/// Where a range scan begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeStart {
    First,
    AtToken(i64),
    AfterToken(i64),
    AtKey(PartitionKey),
    AfterKey(PartitionKey),
}

impl RangeStart {
    /// Whether a key lies before the start.
    fn is_after(&self, layout: &Layout, key: &PartitionKey) -> bool {
        match self {
            RangeStart::First => false,
            RangeStart::AtToken(token) => key.token < *token,
            RangeStart::AfterToken(token) => key.token <= *token,
            RangeStart::AtKey(start) => layout.compare_keys(key, start).is_lt(),
            RangeStart::AfterKey(start) => layout.compare_keys(key, start).is_le(),
        }
    }

    /// A byte-comparable prefix that no wanted key lies before; `None` where none is known.
    fn comparable(&self, partitioner: &Partitioner, out: &mut Vec<u8>) -> bool {
        match self {
            RangeStart::First => return false,
            RangeStart::AtToken(token) | RangeStart::AfterToken(token) => {
                if !matches!(partitioner, Partitioner::Murmur3) {
                    return false;
                }
                encode_decorated_key(Token(*token), &[], out);
                // Without the (empty) key and the terminator: a prefix of all keys with the token.
                out.truncate(1 + size_of::<i64>());
            }
            RangeStart::AtKey(key) | RangeStart::AfterKey(key) => {
                encode_key(partitioner, &key.bytes, out);
            }
        }
        true
    }
}

impl LiveSSTable {
    /// Loads the filter and the top of the index, and opens the files.
    pub async fn open(disk: &Disk, sstable: Arc<SSTable>, mode: AccessMode) -> Result<LiveSSTable> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let descriptor = sstable.descriptor();
        let open = async |component: Component, purpose| {
            let path = descriptor.component_path(component);
            disk.open(&path, mode, purpose).await.map_err(Error::Io)
        };
        let window = async |component| {
            IndexFile::open(disk, descriptor, component, mode, Purpose::UserRead).await
        };
        let (index, first, last) = match descriptor.version.format {
            Format::Big => {
                let summary = summary_of(&sstable, disk, &window(Component::Index).await?).await?;
                let (first, last) = (summary.first_key.clone(), summary.last_key.clone());
                let index = open(Component::Index, Purpose::UserRead).await?;
                (LiveIndex::Big { index, summary }, first, last)
            }
            Format::Bti => {
                let root = PartitionIndex::open(&window(Component::Partitions).await?).await?;
                let (first, last) = (root.first_key.clone(), root.last_key.clone());
                let partitions = open(Component::Partitions, Purpose::UserRead).await?;
                let rows = open(Component::Rows, Purpose::UserRead).await?;
                (LiveIndex::Bti { partitions, rows, root }, first, last)
            }
        };
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let codec = match sstable.compression() {
            Some(info) if info.dictionary.is_some() => (id, info.compressor.clone()),
            Some(info) => (0, info.compressor.clone()),
            None => (0, String::new()),
        };
        Ok(LiveSSTable {
            id,
            filter: sstable.filter(disk).await?,
            index,
            first: PartitionKey::of(&first),
            last: PartitionKey::of(&last),
            data: open(Component::Data, Purpose::UserRead).await?,
            data_scan: open(Component::Data, Purpose::Scan).await?,
            data_path: descriptor.component_path(Component::Data),
            codec,
            sstable,
        })
    }

    /// Unique in the process.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn sstable(&self) -> &Arc<SSTable> {
        &self.sstable
    }

    pub fn first_key(&self) -> &PartitionKey {
        &self.first
    }

    pub fn last_key(&self) -> &PartitionKey {
        &self.last
    }

    /// Bytes of memory that it holds whether or not anything is read.
    pub fn memory(&self) -> usize {
        let index = match &self.index {
            LiveIndex::Big { summary, .. } => summary.memory(),
            LiveIndex::Bti { root, .. } => root.first_key.len() + root.last_key.len(),
        };
        self.filter.memory() + index
    }

    pub fn filter_memory(&self) -> usize {
        self.filter.memory()
    }

    pub(super) fn data_id(&self) -> FileId {
        FileId(4 * self.id)
    }

    pub(super) fn data_file(&self, scan: bool) -> &ReadFile {
        if scan { &self.data_scan } else { &self.data }
    }

    pub(super) fn data_path(&self) -> &Path {
        &self.data_path
    }

    pub(super) fn codec(&self) -> &(u64, String) {
        &self.codec
    }

    /// The component with row indexes.
    pub(super) fn row_index<'a>(&'a self, caches: &'a ReadCaches) -> CachedIndex<'a> {
        match &self.index {
            LiveIndex::Big { index, .. } => CachedIndex {
                file: index,
                id: FileId(4 * self.id + 1),
                component: Component::Index,
                caches,
            },
            LiveIndex::Bti { rows, .. } => CachedIndex {
                file: rows,
                id: FileId(4 * self.id + 2),
                component: Component::Rows,
                caches,
            },
        }
    }

    fn partition_index<'a>(
        &'a self,
        file: &'a ReadFile,
        caches: &'a ReadCaches,
    ) -> CachedIndex<'a> {
        CachedIndex { file, id: FileId(4 * self.id + 3), component: Component::Partitions, caches }
    }

    /// By key range and Bloom filter; no I/O.
    pub fn may_contain(&self, key: &PartitionKey) -> bool {
        let layout = self.sstable.layout();
        layout.compare_keys(key, &self.first).is_ge()
            && layout.compare_keys(key, &self.last).is_le()
            && self.filter.may_contain(key.hashes)
    }

    /// Where the partition is. Asks filter, key cache, index, in this order.
    pub async fn find(
        self: &Arc<Self>,
        caches: &ReadCaches,
        key: &PartitionKey,
    ) -> Result<Option<Found>> {
        if !self.may_contain(key) {
            caches.count_filter_negative();
            return Ok(None);
        }
        if let Some(found) = caches.key(self.id, key.hashes, &key.bytes) {
            return Ok(Some(found));
        }
        let found = match &self.index {
            LiveIndex::Big { summary, .. } => self.find_big(caches, summary, key).await?,
            LiveIndex::Bti { partitions, root, .. } => {
                let index = self.partition_index(partitions, caches);
                self.find_bti(caches, &index, root, key).await?
            }
        };
        match &found {
            Some(found) => caches.keep_key(self.id, key.hashes, &key.bytes, found),
            None => caches.count_false_positive(),
        }
        Ok(found)
    }

    async fn find_big(
        &self,
        caches: &ReadCaches,
        summary: &Summary,
        key: &PartitionKey,
    ) -> Result<Option<Found>> {
        let index = self.row_index(caches);
        let partitioner = &self.sstable.layout().partitioner;
        let data_length = self.sstable.data_length();
        let last_key = self.sstable.last_key();
        let search = BigSearch { index: &index, partitioner, data_length, last_key };
        let entry = search.find(Some(summary), &key.bytes).await?;
        Ok(entry.map(|entry| Found {
            data_position: entry.data_position,
            rows: match entry.promoted.is_empty() {
                true => RowIndexPlace::None,
                false => RowIndexPlace::Big(entry.promoted),
            },
        }))
    }

    async fn find_bti(
        self: &Arc<Self>,
        caches: &ReadCaches,
        index: &CachedIndex<'_>,
        root: &PartitionIndex,
        key: &PartitionKey,
    ) -> Result<Option<Found>> {
        let mut comparable = Vec::new();
        encode_key(&self.sstable.layout().partitioner, &key.bytes, &mut comparable);
        let candidate = root.candidate(index, &comparable, key.hashes.1 as u8).await?;
        let Some(candidate) = candidate else { return Ok(None) };
        let (found, found_key) = self.at(caches, index, candidate.position).await?;
        match found_key {
            Some(other) => Ok((other == key.bytes).then_some(found)),
            // The scanner reads the key anyway; whoever reads the partition compares it.
            None => {
                let mut data = Vec::new();
                self.key_at(caches, found.data_position, &mut data).await?;
                Ok((data == key.bytes).then_some(found))
            }
        }
    }

    /// What a payload of the trie of partitions leads to; the key if it stands there.
    async fn at(
        &self,
        caches: &ReadCaches,
        index: &CachedIndex<'_>,
        position: PartitionPosition,
    ) -> Result<(Found, Option<Vec<u8>>)> {
        match position {
            PartitionPosition::Data(data_position) => {
                Ok((Found { data_position, rows: RowIndexPlace::None }, None))
            }
            PartitionPosition::Rows(position) => {
                let mut entry = row_entry(index, &self.row_index(caches), position).await?;
                let key = std::mem::take(&mut entry.key);
                let data_position = entry.data_position;
                Ok((Found { data_position, rows: RowIndexPlace::Bti(entry) }, Some(key)))
            }
        }
    }

    /// The key of the partition at a position of the data.
    async fn key_at(
        self: &Arc<Self>,
        caches: &ReadCaches,
        position: u64,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        let mut data = CachedData::new(self.clone(), caches.clone(), false);
        data.seek(position).await?;
        data.fill(2).await?;
        let length = data.available().first_chunk().map_or(0, |length| u16::from_be_bytes(*length));
        data.fill(2 + usize::from(length)).await?;
        let read = Cursor::at_offset(data.available(), position).sbytes().map(<[u8]>::to_vec);
        *key = read.map_err(|e| data.corrupt(e.offset, e.what))?;
        Ok(())
    }

    /// Where in the data the first partition at or after `start` begins; the data's length if there is none.
    pub async fn position_of(
        self: &Arc<Self>,
        caches: &ReadCaches,
        start: &RangeStart,
    ) -> Result<u64> {
        let layout = self.sstable.layout().clone();
        if !start.is_after(&layout, &self.first) {
            return Ok(0);
        }
        if start.is_after(&layout, &self.last) {
            return Ok(self.sstable.data_length());
        }
        let mut key = PartitionKey::empty();
        match &self.index {
            LiveIndex::Big { summary, .. } => {
                let index = self.row_index(caches);
                let floor = summary.floor_by(|other| {
                    key.set(other);
                    if start.is_after(&layout, &key) { Ordering::Less } else { Ordering::Greater }
                });
                let from = floor.and_then(|at| summary.get(at)).map_or(0, |entry| entry.position);
                let mut entries = Entries::new(&index, from, LOOKUP_WINDOW);
                while let Some(entry) = entries.next().await? {
                    key.set(&entries.key);
                    if !start.is_after(&layout, &key) {
                        return Ok(entry.data_position.min(self.sstable.data_length()));
                    }
                }
                if self.sstable.last_key().is_some() {
                    return Err(cut_short(&index));
                }
            }
            LiveIndex::Bti { partitions, root, .. } => {
                let index = self.partition_index(partitions, caches);
                let mut cursor = root.cursor(&index);
                let mut comparable = Vec::new();
                let mut payload = match start.comparable(&layout.partitioner, &mut comparable) {
                    true => cursor.seek_candidate(&comparable).await?,
                    false => cursor.first().await?,
                };
                let mut bytes = Vec::new();
                while let Some(found) = payload {
                    let (found, found_key) = self.at(caches, &index, found.position).await?;
                    match found_key {
                        Some(found_key) => key.set(&found_key),
                        None => {
                            self.key_at(caches, found.data_position, &mut bytes).await?;
                            key.set(&bytes);
                        }
                    }
                    if !start.is_after(&layout, &key) {
                        return Ok(found.data_position.min(self.sstable.data_length()));
                    }
                    payload = cursor.next().await?;
                }
            }
        }
        Ok(self.sstable.data_length())
    }
}
