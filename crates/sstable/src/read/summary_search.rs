//! Finds an entry of Index.db by its key: the index summary leads to at most 128 entries, which are scanned.
//!
//! 1. A missing or damaged summary is made again from Index.db, in memory.
//! 2. A summary's sample must be the entry that it names, else the scan begins at the first entry.
//! 3. First only an equal key is looked for: nearly all that the Bloom filter lets pass are there, and the tokens of 64 keys on the way
//!    cost more than all else. A key that is not there is looked for again, in order, which tells a missing key from a damaged index.

use std::cmp::Ordering;

use halcyon_io::Disk;
use halcyon_model::{Cursor, DecodeError, Partitioner};
use halcyon_stream::PartitionKey;

use super::cached_index::CachedIndex;
use super::entries::{Entries, EntryHead};
use super::positions;
use crate::format::summary::{DEFAULT_MIN_INDEX_INTERVAL, Summary, SummaryBuilder, SummaryEntry};
use crate::row_index::IndexSource;
use crate::{Component, Error, Result, SSTable};

/// Bytes of Index.db that one read of a look-up takes.
pub(super) const LOOKUP_WINDOW: usize = 16 * 1024;
/// Bytes of Index.db that one read of a walk from end to end takes.
pub(crate) const WALK_WINDOW: usize = 256 * 1024;
const MAX_SUMMARY: u64 = 3 << 30;

/// `None` if it is missing or damaged: it is only a shortcut.
async fn stored_summary(sstable: &SSTable, disk: &Disk) -> Result<Option<Summary>> {
    if !sstable.has(Component::Summary) {
        return Ok(None);
    }
    let path = sstable.descriptor().component_path(Component::Summary);
    let bytes = disk.read(&path, MAX_SUMMARY).await?;
    let summary = Summary::decode(&mut Cursor::new(&bytes)).ok();
    // No checksum covers the summary, but one does Statistics.db, which has the same two keys from `oa` on.
    Ok(summary.filter(|summary| {
        sstable.first_key().is_none_or(|first| first == summary.first_key)
            && sstable.last_key().is_none_or(|last| last == summary.last_key)
    }))
}

impl SSTable {
    /// First and last key: from Statistics.db, or before `oa` from Summary.db. `None`: neither tells.
    pub async fn ends(&self, disk: &Disk) -> Result<Option<(PartitionKey, PartitionKey)>> {
        if let Some(ends) = self.recorded_ends() {
            return Ok(Some(ends));
        }
        let summary = stored_summary(self, disk).await?;
        Ok(summary.map(|summary| {
            (PartitionKey::of(&summary.first_key), PartitionKey::of(&summary.last_key))
        }))
    }
}

/// The stored summary, or one made from Index.db.
pub(super) async fn summary_of(
    sstable: &SSTable,
    disk: &Disk,
    index: &CachedIndex<'_>,
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

pub(super) struct BigSearch<'s, S> {
    pub(super) index: &'s S,
    pub(super) partitioner: &'s Partitioner,
    pub(super) data_length: u64,
    /// Up to which the index must go, if that is known.
    pub(super) last_key: Option<&'s [u8]>,
}

/// A sample: the last one that is not after a key, or any.
pub(super) struct Floor<'a> {
    /// Its number.
    pub(super) interval: usize,
    sample: SummaryEntry<'a>,
    /// Where the next one is in Index.db, or its end.
    until: u64,
}

impl<S: IndexSource<Error = Error>> BigSearch<'_, S> {
    pub(super) fn floor<'a>(&self, summary: &'a Summary, key: &[u8]) -> Option<Floor<'a>> {
        let interval = summary.floor(self.partitioner, &self.partitioner.decorate(key))?;
        self.sample(summary, interval)
    }

    pub(super) fn sample<'a>(&self, summary: &'a Summary, interval: usize) -> Option<Floor<'a>> {
        let until = summary.get(interval + 1).map_or(self.index.len(), |next| next.position);
        Some(Floor { interval, sample: summary.get(interval)?, until })
    }

    /// The positions between a sample and the next one; `None` if something is wrong with them.
    pub(super) async fn interval(
        &self,
        index: &S,
        floor: &Floor<'_>,
    ) -> Result<Option<Box<[u16]>>> {
        let (from, known) = ((floor.sample, floor.until), (self.data_length, self.last_key));
        positions::interval(index, self.partitioner, from, known).await
    }

    pub(super) async fn find(
        &self,
        floor: Option<&Floor<'_>>,
        key: &[u8],
    ) -> Result<Option<EntryHead>> {
        let Some(Floor { sample: floor, until, .. }) = floor else {
            return self.scan(0, key).await;
        };
        if let Ok(Some(head)) = self.find_equal(floor, *until, key).await {
            check_position(self.index, &head, self.data_length)?;
            return Ok(Some(head));
        }
        let mut entries = Entries::new(self.index, floor.position, LOOKUP_WINDOW);
        match entries.next().await {
            Ok(Some(_)) if entries.key == floor.key => self.scan(floor.position, key).await,
            // The summary is damaged.
            _ => self.scan(0, key).await,
        }
    }

    /// The entry of an equal key, from a sample of the summary to the next one.
    async fn find_equal(
        &self,
        floor: &SummaryEntry<'_>,
        until: u64,
        key: &[u8],
    ) -> Result<Option<EntryHead>> {
        let length = usize::try_from(until.saturating_sub(floor.position)).unwrap_or(usize::MAX);
        let mut entries = Entries::new(self.index, floor.position, length.clamp(1, LOOKUP_WINDOW));
        match entries.next().await? {
            Some(first) if entries.key == floor.key => {
                if floor.key == key {
                    return Ok(Some(first));
                }
                entries.next_of(until, |other| other == key).await
            }
            _ => Ok(None),
        }
    }

    /// Scans the entries from `offset` to the key, or to the first key after it.
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
pub(super) fn cut_short<S: IndexSource<Error = Error>>(index: &S) -> Error {
    let what = "the index ends before the last key that Statistics.db names".to_owned();
    index.corrupt(DecodeError { offset: index.len(), what })
}

pub(super) fn check_position<S: IndexSource<Error = Error>>(
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
