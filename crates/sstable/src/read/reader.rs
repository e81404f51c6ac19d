//! One SSTable as all shards share it, and how a partition is found in it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use halcyon_io::{AccessMode, Disk, Purpose};
use halcyon_model::byte_comparable::encode_key;
use halcyon_stream::{Layout, PartitionKey};

use super::cached_data::CachedData;
use super::cached_index::CachedIndex;
use super::caches::ReadCaches;
use super::data_file::DataFile;
use super::entry::{PartitionEntry, RowIndexRef};
use super::index_files::{IndexFiles, IndexSources, row_entry};
use super::positions::{Positions, TYPICAL, Whereabouts};
use super::summary_search::{BigSearch, Floor, summary_of};
use crate::big::PromotedIndex;
use crate::bti::{PartitionIndex, PartitionPosition};
use crate::data::decode::RowDecoder;
use crate::data::scanner::SSTableScanner;
use crate::format::filter::Filter;
use crate::format::summary::Summary;
use crate::{Result, SSTable};

/// Immutable; threads share what it has opened, each with caches of its own.
///
/// A stream of rows holds its reader. Where several shards read one SSTable, each has a reader of its own ([`SSTableReader::for_shard`]):
/// the reference count of a common one would be a cache line that every read of every shard writes.
pub struct SSTableReader {
    opened: Arc<Opened>,
    sstable: Arc<SSTable>,
    data: Arc<DataFile>,
    /// Of the layout that was asked for first: a table's own. It takes a comparison of each column with each to make.
    decoder: OnceLock<(Arc<Layout>, Arc<RowDecoder>)>,
}

struct Opened {
    id: u64,
    filter: Filter,
    index: IndexFiles,
    /// BIG only.
    summary: Option<Summary>,
    positions: Positions,
    first: PartitionKey,
    last: PartitionKey,
}

/// Bytes of memory by what they find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderMemory {
    pub filter: u64,
    /// The samples of an index summary, and the positions between them.
    pub summary: u64,
    pub positions: u64,
    /// Of the chunks.
    pub offsets: u64,
}

impl SSTableReader {
    /// Loads the filter and the top of the index, and opens the files.
    ///
    /// Caches know it by the id, which is unique in the process.
    pub async fn open(
        disk: &Disk,
        sstable: Arc<SSTable>,
        id: u64,
        mode: AccessMode,
    ) -> Result<SSTableReader> {
        let index = IndexFiles::open(disk, &sstable, id, (mode, Purpose::UserRead)).await?;
        let caches = ReadCaches::of_one_pass();
        let summary = match index.through(&caches) {
            IndexSources::Big { index } => Some(summary_of(&sstable, disk, &index).await?),
            IndexSources::Bti { .. } => None,
        };
        let ends = summary.as_ref().map(|summary| (&summary.first_key, &summary.last_key));
        let ends = ends.or(index.root().map(|root| (&root.first_key, &root.last_key)));
        let (first, last) = ends.map_or_else(
            || (PartitionKey::empty(), PartitionKey::empty()),
            |(first, last)| (PartitionKey::of(first), PartitionKey::of(last)),
        );
        let filter = sstable.filter(disk).await?;
        let data = Arc::new(DataFile::open(disk, &sstable, id, mode).await?);
        let positions = summary.as_ref().map(Positions::of).unwrap_or_default();
        let opened = Arc::new(Opened { id, filter, index, summary, positions, first, last });
        Ok(SSTableReader { opened, sstable, data, decoder: OnceLock::new() })
    }

    /// The same SSTable, with reference counts of its own.
    pub fn for_shard(&self) -> Arc<SSTableReader> {
        let data = Arc::new(DataFile::clone(&self.data));
        let (opened, sstable) = (self.opened.clone(), self.sstable.clone());
        Arc::new(SSTableReader { opened, sstable, data, decoder: OnceLock::new() })
    }

    /// The same files, of an SSTable that was opened again: what is known of them and cached stays.
    pub fn reopened(&self, sstable: Arc<SSTable>) -> SSTableReader {
        let (opened, data) = (self.opened.clone(), self.data.clone());
        SSTableReader { opened, sstable, data, decoder: OnceLock::new() }
    }

    /// Scans its data; `layout` numbers the columns.
    pub(super) fn scanner(
        &self,
        data: CachedData,
        layout: Arc<Layout>,
        partitions: u64,
    ) -> Result<SSTableScanner<CachedData>> {
        let sstable = &self.sstable;
        if self.decoder.get().is_none() {
            let decoder = Arc::new(sstable.decoder(&layout)?);
            // Of two threads that come here at once one is late, and its decoder the same.
            let _ = self.decoder.set((layout.clone(), decoder));
        }
        let decoder = match self.decoder.get() {
            Some((of, decoder)) if Arc::ptr_eq(of, &layout) => decoder.clone(),
            _ => Arc::new(sstable.decoder(&layout)?),
        };
        Ok(sstable.scanner_of(data, decoder, layout, partitions))
    }

    /// By which caches know it.
    pub fn id(&self) -> u64 {
        self.opened.id
    }

    pub fn sstable(&self) -> &Arc<SSTable> {
        &self.sstable
    }

    pub fn first_key(&self) -> &PartitionKey {
        &self.opened.first
    }

    pub fn last_key(&self) -> &PartitionKey {
        &self.opened.last
    }

    /// Keys that the index summary samples, in order; the format BTI has none.
    pub fn samples(&self) -> impl Iterator<Item = &[u8]> {
        self.summary().into_iter().flat_map(Summary::iter).map(|entry| entry.key)
    }

    /// Bytes of memory that it holds whether or not anything is read.
    pub fn memory(&self) -> ReaderMemory {
        let Opened { filter, summary, positions, .. } = &*self.opened;
        ReaderMemory {
            filter: filter.memory() as u64,
            summary: summary.as_ref().map_or(0, Summary::memory) as u64,
            positions: positions.memory() as u64,
            offsets: self.sstable.compression().map_or(0, |info| info.offsets.memory()) as u64,
        }
    }

    pub(super) fn summary(&self) -> Option<&Summary> {
        self.opened.summary.as_ref()
    }

    pub(super) fn positions(&self) -> &Positions {
        &self.opened.positions
    }

    pub(super) fn data(&self) -> &Arc<DataFile> {
        &self.data
    }

    pub(super) fn index<'a>(&'a self, caches: &'a ReadCaches) -> IndexSources<'a> {
        self.opened.index.through(caches)
    }

    /// The component with row indexes.
    pub(super) fn row_index<'a>(&'a self, caches: &'a ReadCaches) -> CachedIndex<'a> {
        self.opened.index.row_index(caches)
    }

    /// By key range, then by Bloom filter; no I/O. [`Self::find`] does not test them again.
    pub fn may_contain(&self, key: &PartitionKey) -> bool {
        let layout = self.sstable.layout();
        layout.compare_keys(key, &self.opened.first).is_ge()
            && layout.compare_keys(key, &self.opened.last).is_le()
            && self.opened.filter.may_contain(key.hashes)
    }

    /// The entry of the partition, from the key cache or else the index. For a key that [`Self::may_contain`] let pass: any other
    /// is not found, after a search.
    pub async fn find(
        &self,
        caches: &ReadCaches,
        key: &PartitionKey,
    ) -> Result<Option<PartitionEntry>> {
        if let Some(entry) = caches.key(self.opened.id, key.hashes, &key.bytes) {
            return Ok(Some(entry));
        }
        let entry = match self.index(caches) {
            IndexSources::Big { index } => self.find_big(caches, &index, key).await?,
            IndexSources::Bti { partitions, rows, root } => {
                self.find_bti(caches, (&partitions, &rows, root), key).await?
            }
        };
        if let Some(entry) = &entry {
            let found = || (key.bytes.as_slice().into(), entry.clone());
            caches.keep_key(self.opened.id, key.hashes, found);
        }
        Ok(entry)
    }

    pub(super) async fn promoted<'a>(
        &'a self,
        index: &'a CachedIndex<'a>,
        range: &Range<u64>,
    ) -> Result<PromotedIndex<'a, CachedIndex<'a>>> {
        let clusterings = &self.sstable.layout().clusterings;
        let oa = self.sstable.descriptor().version.has_uint_deletion_time();
        PromotedIndex::open(oa, clusterings, index, range).await
    }

    /// Blocks and bytes of the promoted index of a partition; `None`: it has none, or its row index is a trie.
    pub async fn promoted_size(
        &self,
        caches: &ReadCaches,
        entry: &PartitionEntry,
    ) -> Result<Option<(u64, u64)>> {
        let RowIndexRef::Big(range) = &entry.rows else { return Ok(None) };
        let index = self.row_index(caches);
        let promoted = self.promoted(&index, range).await?;
        Ok(Some((promoted.len() as u64, range.end.saturating_sub(range.start))))
    }

    pub(super) fn search<'s, S>(&'s self, index: &'s S) -> BigSearch<'s, S> {
        let sstable = &self.sstable;
        let partitioner = &sstable.layout().partitioner;
        let (data_length, last_key) = (sstable.data_length(), sstable.last_key());
        BigSearch { index, partitioner, data_length, last_key }
    }

    async fn find_big(
        &self,
        caches: &ReadCaches,
        index: &CachedIndex<'_>,
        key: &PartitionKey,
    ) -> Result<Option<PartitionEntry>> {
        let search = self.search(index);
        let floor = self.opened.summary.as_ref().and_then(|s| search.floor(s, &key.bytes));
        if let Some(floor) = &floor {
            match self.whereabouts(caches, &search, floor, key.hashes).await {
                Whereabouts::Absent => return Ok(None),
                Whereabouts::Maybe(data_position, next) => {
                    let mut entry = PartitionEntry::new(data_position, RowIndexRef::None);
                    if let Some(next) = next {
                        entry = entry.until(next, self.data.chunk_length());
                    }
                    let mut stored = Vec::new();
                    let read = self.key_at(caches, &entry, &mut stored).await;
                    if read.is_ok() && stored == key.bytes {
                        return Ok(Some(entry));
                    }
                }
                Whereabouts::Unknown | Whereabouts::Ask => {}
            }
        }
        let entry = search.find(floor.as_ref(), &key.bytes).await?;
        Ok(entry.map(|entry| {
            let rows = match entry.promoted.is_empty() {
                true => RowIndexRef::None,
                false => RowIndexRef::Big(entry.promoted),
            };
            PartitionEntry::new(entry.data_position, rows)
        }))
    }

    /// What the positions between two samples say, which are made if there is room for them.
    async fn whereabouts(
        &self,
        caches: &ReadCaches,
        search: &BigSearch<'_, CachedIndex<'_>>,
        floor: &Floor<'_>,
        hashes: (i64, i64),
    ) -> Whereabouts {
        let positions = &self.opened.positions;
        let known = positions.look_up(floor.interval, hashes);
        if known != Whereabouts::Unknown || !caches.positions_budget().has(TYPICAL) {
            return known;
        }
        // The lookup in the index reports what is wrong.
        if let Ok(Some(made)) = Box::pin(search.interval(&search.index.passing(), floor)).await {
            positions.keep(floor.interval, made, caches.positions_budget());
        }
        positions.look_up(floor.interval, hashes)
    }

    /// A trie holds prefixes, so the key where the payload leads decides.
    async fn find_bti(
        &self,
        caches: &ReadCaches,
        (partitions, rows, root): (&CachedIndex<'_>, &CachedIndex<'_>, &PartitionIndex),
        key: &PartitionKey,
    ) -> Result<Option<PartitionEntry>> {
        let mut comparable = Vec::new();
        encode_key(&self.sstable.layout().partitioner, &key.bytes, &mut comparable);
        let candidate = root.candidate(partitions, &comparable, key.hashes.1 as u8).await?;
        let Some(candidate) = candidate else { return Ok(None) };
        let mut stored = Vec::new();
        let mut entry = self.entry_of((partitions, rows), candidate.position, &mut stored).await?;
        if !entry.has_row_index() {
            let next = root.after(&partitions.in_memory(), &comparable).await;
            if let Ok(Some(PartitionPosition::Data(next))) = next {
                entry = entry.until(next, self.data.chunk_length());
            }
            self.key_at(caches, &entry, &mut stored).await?;
        }
        Ok((stored == key.bytes).then_some(entry))
    }

    /// The entry to which a payload of the trie of partitions leads. `key` gets the key if the partition has a row index:
    /// Rows.db then stores it.
    pub(super) async fn entry_of(
        &self,
        (partitions, rows): (&CachedIndex<'_>, &CachedIndex<'_>),
        position: PartitionPosition,
        key: &mut Vec<u8>,
    ) -> Result<PartitionEntry> {
        match position {
            PartitionPosition::Data(data_position) => {
                Ok(PartitionEntry::new(data_position, RowIndexRef::None))
            }
            PartitionPosition::Rows(position) => {
                let mut entry = row_entry(partitions, rows, position).await?;
                *key = std::mem::take(&mut entry.key);
                let data_position = entry.data_position;
                Ok(PartitionEntry::new(data_position, RowIndexRef::Bti(entry)))
            }
        }
    }

    /// The key of the partition to which an entry leads. What is read for it is what the rows need too.
    pub(super) async fn key_at(
        &self,
        caches: &ReadCaches,
        entry: &PartitionEntry,
        key: &mut Vec<u8>,
    ) -> Result<()> {
        self.data_of(caches, entry).key_at(entry.data_position, key).await
    }

    /// The data, to be read from the entry's partition on.
    pub(super) fn data_of(&self, caches: &ReadCaches, entry: &PartitionEntry) -> CachedData {
        let mut data = CachedData::new(self.data.clone(), caches.clone(), false);
        if entry.goes_on {
            data.will_need_two(entry.data_position);
        }
        data
    }
}
