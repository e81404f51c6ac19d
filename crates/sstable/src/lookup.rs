//! Finds a partition by its key, and lists all keys in order, from filter and index.
//!
//! ```text
//!            Bloom filter ── no ──► not there
//!                 │ maybe
//!   BIG     Summary.db: floor ──► Index.db: up to 128 entries ──► position in Data.db
//!   BTI     Partitions.db: trie, hash byte ──► Rows.db: entry, whole key ──► position in Data.db
//!                                       └────► Data.db: whole key at the position
//! ```
//!
//! 1. A missing or damaged summary is made again from Index.db, in memory.
//! 2. A summary's sample must be the entry that it names, else the scan begins at the first entry.
//! 3. A trie holds prefixes: the whole key, stored at the target, decides.
//!
//! Memory is bounded: the summary (a 128th of the index), the filter, and a few windows of each file.

mod data_key;
mod entries;
mod index_file;

use std::cmp::Ordering;

use halcyon_io::{AccessMode, Disk, Purpose};
use halcyon_model::byte_comparable::encode_key;
use halcyon_model::token::murmur3_hash;
use halcyon_model::{Cursor, DecodeError, Partitioner};

use crate::bti::{PartitionIndex, PartitionPayload, PartitionPosition, RowIndexEntry, TrieCursor};
use crate::components::filter::Filter;
use crate::components::summary::{DEFAULT_MIN_INDEX_INTERVAL, Summary, SummaryBuilder};
use crate::row_index::IndexSource;
use crate::{Component, Error, Format, Result, SSTable};

pub(crate) use data_key::DataKeys;
pub(crate) use entries::{Entries, EntryHead};
pub(crate) use index_file::IndexFile;

/// Windows of Index.db for a look-up, and for a walk from end to end.
const LOOKUP_WINDOW: usize = 16 * 1024;
pub(crate) const WALK_WINDOW: usize = 256 * 1024;
const MAX_SUMMARY: u64 = 3 << 30;

/// The open index files of an SSTable.
pub struct Index<'a> {
    sstable: &'a SSTable,
    disk: Disk,
    mode: AccessMode,
    purpose: Purpose,
    pub(crate) files: IndexFiles,
}

pub(crate) enum IndexFiles {
    Big { index: IndexFile },
    Bti { partitions: IndexFile, rows: IndexFile, root: PartitionIndex },
}

/// What is needed to find many keys in one SSTable.
pub struct Lookup<'a> {
    index: Index<'a>,
    filter: Filter,
    /// BIG only.
    summary: Option<Summary>,
    data: DataKeys<'a>,
}

/// One partition as the index knows it.
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

#[expect(clippy::large_enum_variant, reason = "one of them per walk")]
enum KeySource<'i> {
    Big {
        entries: Entries<'i, IndexFile>,
    },
    Bti {
        cursor: TrieCursor<'i, IndexFile, PartitionPayload>,
        partitions: &'i IndexFile,
        rows: &'i IndexFile,
        data: DataKeys<'i>,
        started: bool,
        /// Entries that the footer still promises.
        left: u64,
        row_key: Vec<u8>,
    },
}

impl SSTable {
    /// Where the partition with this key begins in the data; `None` if it is not here. To find many keys, open
    /// `lookup` once.
    pub async fn find(&self, disk: &Disk, key: &[u8]) -> Result<Option<u64>> {
        let filter = self.filter(disk).await?;
        if !filter.may_contain(murmur3_hash(key)) {
            return Ok(None);
        }
        let mut lookup = Lookup::open(self, disk, AccessMode::Auto, filter).await?;
        lookup.find(key).await
    }

    pub async fn lookup(&self, disk: &Disk, mode: AccessMode) -> Result<Lookup<'_>> {
        let filter = self.filter(disk).await?;
        Lookup::open(self, disk, mode, filter).await
    }

    /// Opens the index files; `Index::keys` walks them.
    pub async fn index(
        &self,
        disk: &Disk,
        mode: AccessMode,
        purpose: Purpose,
    ) -> Result<Index<'_>> {
        let open = async |component| {
            IndexFile::open(disk, self.descriptor(), component, mode, purpose).await
        };
        let files = match self.descriptor().version.format {
            Format::Big => IndexFiles::Big { index: open(Component::Index).await? },
            Format::Bti => {
                let partitions = open(Component::Partitions).await?;
                let root = PartitionIndex::open(&partitions).await?;
                IndexFiles::Bti { partitions, rows: open(Component::Rows).await?, root }
            }
        };
        Ok(Index { sstable: self, disk: disk.clone(), mode, purpose, files })
    }
}

impl Index<'_> {
    pub async fn keys(&self) -> Result<Keys<'_>> {
        let source = match &self.files {
            IndexFiles::Big { index } => {
                KeySource::Big { entries: Entries::new(index, 0, WALK_WINDOW) }
            }
            IndexFiles::Bti { partitions, rows, root } => KeySource::Bti {
                cursor: root.cursor(partitions),
                partitions,
                rows,
                data: DataKeys::open(self.sstable, &self.disk, self.mode, self.purpose).await?,
                started: false,
                left: root.partitions,
                row_key: Vec::new(),
            },
        };
        Ok(Keys { source, data_length: self.sstable.data_length() })
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
            KeySource::Bti { cursor, partitions, rows, data, started, left, row_key } => {
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
                        let key = data.key_at(data_position).await?;
                        Ok(Some(KeyEntry { key, data_position }))
                    }
                    PartitionPosition::Rows(position) => {
                        let entry = row_entry(*partitions, *rows, position).await?;
                        *row_key = entry.key;
                        let data_position = entry.data_position;
                        Ok(Some(KeyEntry { key: row_key, data_position }))
                    }
                }
            }
        }
    }
}

fn check_position<S: IndexSource<Error = Error>>(
    index: &S,
    head: &EntryHead,
    data_length: u64,
) -> Result<()> {
    if head.data_position < data_length {
        return Ok(());
    }
    let what = format!("partition at {} of {data_length} bytes of data", head.data_position);
    Err(index.corrupt(DecodeError { offset: head.index_position, what }))
}

pub(crate) async fn row_entry<S: IndexSource<Error = Error>>(
    partitions: &S,
    rows: &S,
    position: u64,
) -> Result<RowIndexEntry> {
    if position >= rows.len() {
        let what = format!("entry at {position} of the {} bytes of Rows.db", rows.len());
        return Err(partitions.corrupt(DecodeError { offset: 0, what }));
    }
    RowIndexEntry::read(rows, position).await
}

impl<'a> Lookup<'a> {
    async fn open(
        sstable: &'a SSTable,
        disk: &Disk,
        mode: AccessMode,
        filter: Filter,
    ) -> Result<Lookup<'a>> {
        let index = sstable.index(disk, mode, Purpose::UserRead).await?;
        let summary = match &index.files {
            IndexFiles::Big { index } => Some(summary_of(sstable, disk, index).await?),
            IndexFiles::Bti { .. } => None,
        };
        let data = DataKeys::open(sstable, disk, mode, Purpose::UserRead).await?;
        Ok(Lookup { index, filter, summary, data })
    }

    /// Where the partition with this key begins in the data; `None` if it is not here.
    pub async fn find(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let hashes = murmur3_hash(key);
        if !self.filter.may_contain(hashes) {
            return Ok(None);
        }
        let sstable = self.index.sstable;
        let partitioner = &sstable.layout().partitioner;
        match &self.index.files {
            IndexFiles::Big { index } => {
                let (data_length, last_key) = (sstable.data_length(), sstable.last_key());
                let search = BigSearch { index, partitioner, data_length, last_key };
                let entry = search.find(self.summary.as_ref(), key).await?;
                Ok(entry.map(|entry| entry.data_position))
            }
            IndexFiles::Bti { partitions, rows, root } => {
                let mut comparable = Vec::new();
                encode_key(partitioner, key, &mut comparable);
                let found = root.candidate(partitions, &comparable, hashes.1 as u8).await?;
                match found.map(|payload| payload.position) {
                    None => Ok(None),
                    Some(PartitionPosition::Rows(position)) => {
                        let entry = row_entry(partitions, rows, position).await?;
                        Ok((entry.key == key).then_some(entry.data_position))
                    }
                    Some(PartitionPosition::Data(position)) => {
                        let found = self.data.key_at(position).await?;
                        Ok((found == key).then_some(position))
                    }
                }
            }
        }
    }
}

/// `None` if it is missing or damaged: it is only a shortcut.
async fn stored_summary(sstable: &SSTable, disk: &Disk) -> Result<Option<Summary>> {
    if !sstable.has(Component::Summary) {
        return Ok(None);
    }
    let path = sstable.descriptor().component_path(Component::Summary);
    let bytes = disk.read(&path, MAX_SUMMARY).await?;
    let summary = Summary::decode(&mut Cursor::new(&bytes)).ok();
    // No checksum covers it, but one does the statistics.
    Ok(summary.filter(|summary| sstable.last_key().is_none_or(|last| last == summary.last_key)))
}

/// The stored summary, or one made from Index.db.
pub(crate) async fn summary_of(
    sstable: &SSTable,
    disk: &Disk,
    index: &IndexFile,
) -> Result<Summary> {
    if let Some(summary) = stored_summary(sstable, disk).await? {
        return Ok(summary);
    }
    let mut summary = SummaryBuilder::new(DEFAULT_MIN_INDEX_INTERVAL);
    let mut entries = Entries::new(index, 0, WALK_WINDOW);
    let mut first = None;
    while let Some(head) = entries.next().await? {
        first.get_or_insert_with(|| entries.key.clone());
        summary.add(&entries.key, head.index_position);
    }
    if sstable.last_key().is_some_and(|last| last != entries.key) {
        return Err(cut_short(index));
    }
    Ok(summary.finish(first.unwrap_or_default(), entries.key))
}

pub(crate) struct BigSearch<'s, S> {
    pub(crate) index: &'s S,
    pub(crate) partitioner: &'s Partitioner,
    pub(crate) data_length: u64,
    /// Up to which the index must go, if that is known.
    pub(crate) last_key: Option<&'s [u8]>,
}

impl<S: IndexSource<Error = Error>> BigSearch<'_, S> {
    pub(crate) async fn find(
        &self,
        summary: Option<&Summary>,
        key: &[u8],
    ) -> Result<Option<EntryHead>> {
        let floor = summary.and_then(|summary| {
            let at = summary.floor(self.partitioner, &self.partitioner.decorate(key))?;
            summary.get(at)
        });
        let Some(floor) = floor else { return self.scan(0, key).await };
        let mut entries = Entries::new(self.index, floor.position, LOOKUP_WINDOW);
        match entries.next().await {
            Ok(Some(_)) if entries.key == floor.key => self.scan(floor.position, key).await,
            // The summary lies.
            _ => self.scan(0, key).await,
        }
    }

    /// Looks at the entries from `offset` on, up to the key or what lies behind it.
    async fn scan(&self, offset: u64, key: &[u8]) -> Result<Option<EntryHead>> {
        let mut entries = Entries::new(self.index, offset, LOOKUP_WINDOW);
        let mut before: Option<Vec<u8>> = None;
        while let Some(head) = entries.next().await? {
            if let Some(before) = &before
                && self.partitioner.compare(before, &entries.key) != Ordering::Less
            {
                let (offset, what) = (head.index_position, "keys are out of order".into());
                return Err(self.index.corrupt(DecodeError { offset, what }));
            }
            match self.partitioner.compare(&entries.key, key) {
                Ordering::Less => before.get_or_insert_default().clone_from(&entries.key),
                Ordering::Equal => {
                    check_position(self.index, &head, self.data_length)?;
                    return Ok(Some(head));
                }
                Ordering::Greater => return Ok(None),
            }
        }
        match self.last_key {
            Some(last) if self.partitioner.compare(key, last).is_le() => Err(cut_short(self.index)),
            _ => Ok(None),
        }
    }
}

/// An Index.db without the key that Statistics.db calls the last.
pub(crate) fn cut_short<S: IndexSource<Error = Error>>(index: &S) -> Error {
    let what = "the index ends before the last key that Statistics.db names".to_owned();
    index.corrupt(DecodeError { offset: index.len(), what })
}
