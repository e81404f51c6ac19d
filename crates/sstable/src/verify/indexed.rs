//! The index compared with the data: each partition has its entry, each entry its partition, in the same order.
//!
//! ```text
//!   data    p0      p1      p2              p4         p2: fine    p3: entry without a partition
//!   index   p0      p1      p2      p3                 p4: partition without an entry
//! ```
//!
//! Both are walked at once, by position in the data.  BTI stores no keys for small partitions: there the key must lead
//! to the very payload that the walk sees.

use std::ops::Range;

use halcyon_model::Partitioner;
use halcyon_model::byte_comparable::encode_key;
use halcyon_stream::PartitionKey;

use super::report::VerifyReport;
use super::sampled::SummaryCheck;
use crate::bti::{PartitionIndex, PartitionPayload, PartitionPosition, RowIndexEntry, TrieCursor};
use crate::read::cached_index::CachedIndex;
use crate::read::entries::Entries;
use crate::read::index_files::{IndexSources, row_entry};
use crate::read::summary_search::WALK_WINDOW;
use crate::{Component, Result};

/// An index entry.
pub(super) struct Indexed {
    pub(super) data_position: u64,
    /// Offset in Index.db.
    offset: Option<u64>,
    /// As far as the index stores it.
    key: Option<Vec<u8>>,
    payload: Option<PartitionPayload>,
    pub(super) rows: IndexedRows,
}

pub(super) enum IndexedRows {
    None,
    /// Where Index.db holds the promoted index.
    Promoted(Range<u64>),
    Entry(RowIndexEntry),
}

enum Entry<'i> {
    Big(Entries<'i, CachedIndex<'i>>),
    Bti {
        cursor: TrieCursor<'i, CachedIndex<'i>, PartitionPayload>,
        partitions: &'i CachedIndex<'i>,
        rows: &'i CachedIndex<'i>,
        root: &'i PartitionIndex,
        started: bool,
        seen: u64,
    },
}

pub(super) struct IndexEntries<'i> {
    entries: Entry<'i>,
    component: Component,
    upcoming: Option<Indexed>,
    summary: Option<SummaryCheck<'i>>,
    partitioner: &'i Partitioner,
    comparable: Vec<u8>,
    /// The index could not be read to its end.
    pub(super) broken: bool,
}

impl<'i> IndexEntries<'i> {
    pub(super) async fn start(
        sources: &'i IndexSources<'i>,
        partitioner: &'i Partitioner,
        summary: Option<SummaryCheck<'i>>,
        report: &mut VerifyReport,
    ) -> IndexEntries<'i> {
        let (entries, component) = match sources {
            IndexSources::Big { index } => {
                (Entry::Big(Entries::new(index, 0, WALK_WINDOW)), Component::Index)
            }
            IndexSources::Bti { partitions, rows, root } => {
                let cursor = root.cursor(partitions);
                let (started, seen) = (false, 0);
                let entries = Entry::Bti { cursor, partitions, rows, root, started, seen };
                (entries, Component::Partitions)
            }
        };
        let (upcoming, comparable) = (None, Vec::new());
        let mut walk = IndexEntries {
            entries,
            component,
            upcoming,
            summary,
            partitioner,
            comparable,
            broken: false,
        };
        walk.step(report).await;
        walk
    }

    /// Takes the upcoming entry and reads the one after it.
    async fn step(&mut self, report: &mut VerifyReport) -> Option<Indexed> {
        if self.broken {
            return None;
        }
        let next = self.read().await;
        if let (Ok(Some(indexed)), Some(summary)) = (&next, &mut self.summary)
            && let (Some(offset), Some(key)) = (indexed.offset, &indexed.key)
        {
            summary.entry(offset, key, report);
        }
        let next = next.unwrap_or_else(|error| {
            report.failed(self.component, &error);
            self.broken = true;
            None
        });
        std::mem::replace(&mut self.upcoming, next)
    }

    async fn read(&mut self) -> Result<Option<Indexed>> {
        match &mut self.entries {
            Entry::Big(entries) => {
                let Some(head) = entries.next().await? else { return Ok(None) };
                let rows = match head.promoted.is_empty() {
                    true => IndexedRows::None,
                    false => IndexedRows::Promoted(head.promoted),
                };
                Ok(Some(Indexed {
                    data_position: head.data_position,
                    offset: Some(head.index_position),
                    key: Some(entries.key.clone()),
                    payload: None,
                    rows,
                }))
            }
            Entry::Bti { cursor, partitions, rows, root, started, seen } => {
                let payload = if *started { cursor.next().await? } else { cursor.first().await? };
                *started = true;
                let Some(payload) = payload else { return Ok(None) };
                *seen += 1;
                if *seen > root.partitions {
                    let what =
                        format!("more than the {} partitions of the footer", root.partitions);
                    return Err(partitions.corrupt_at(root.root, what));
                }
                let entry = match payload.position {
                    PartitionPosition::Data(_) => None,
                    PartitionPosition::Rows(at) => Some(row_entry(*partitions, *rows, at).await?),
                };
                let data_position = match (payload.position, &entry) {
                    (PartitionPosition::Data(position), _) => position,
                    (_, entry) => entry.as_ref().map_or(0, |entry| entry.data_position),
                };
                Ok(Some(Indexed {
                    data_position,
                    offset: None,
                    key: entry.as_ref().map(|entry| entry.key.clone()),
                    payload: Some(payload),
                    rows: entry.map_or(IndexedRows::None, IndexedRows::Entry),
                }))
            }
        }
    }

    /// The entry of the partition at `position`; differences are reported.
    pub(super) async fn partition(
        &mut self,
        key: &PartitionKey,
        position: u64,
        report: &mut VerifyReport,
    ) -> Option<Indexed> {
        while let Some(upcoming) = self.upcoming.as_ref().filter(|u| u.data_position < position) {
            let what =
                format!("entry of a partition at {}: none begins there", upcoming.data_position);
            report.problem(self.component, upcoming.offset, what);
            self.step(report).await;
        }
        if self.upcoming.as_ref().is_none_or(|upcoming| upcoming.data_position > position) {
            if !self.broken {
                let what = format!("no entry of the partition at {position} in the data");
                report.problem(self.component, None, what);
            }
            return None;
        }
        let indexed = self.step(report).await?;
        if indexed.key.as_ref().is_some_and(|indexed| *indexed != key.bytes) {
            let what = format!("another key than that of the partition at {position}");
            let component = if indexed.offset.is_some() { self.component } else { Component::Rows };
            report.problem(component, indexed.offset, what);
        }
        self.find(key, &indexed, report).await;
        Some(indexed)
    }

    /// BTI: the result of a look-up of the key.
    async fn find(&mut self, key: &PartitionKey, indexed: &Indexed, report: &mut VerifyReport) {
        let Entry::Bti { partitions, root, .. } = &self.entries else { return };
        self.comparable.clear();
        encode_key(self.partitioner, &key.bytes, &mut self.comparable);
        let found = root.candidate(*partitions, &self.comparable, key.hashes.1 as u8).await;
        match found {
            Ok(found) if found.is_some() && found == indexed.payload => {}
            Ok(_) => {
                let at = indexed.data_position;
                let what = format!("the key of the partition at {at} does not lead to it");
                report.problem(Component::Partitions, None, what);
            }
            Err(error) => report.failed(Component::Partitions, &error),
        }
    }

    /// Where the data can be read again after damage at `position`; entries up to there are skipped.
    pub(super) async fn after(&mut self, position: u64, report: &mut VerifyReport) -> Option<u64> {
        while self.upcoming.as_ref().is_some_and(|upcoming| upcoming.data_position <= position) {
            self.step(report).await;
        }
        self.upcoming.as_ref().map(|upcoming| upcoming.data_position)
    }

    /// The data is at its end.
    pub(super) async fn finish(mut self, partitions: u64, report: &mut VerifyReport) {
        while let Some(left) = self.step(report).await {
            let what = format!("entry of a partition at {}: none begins there", left.data_position);
            report.problem(self.component, left.offset, what);
        }
        if self.broken {
            return;
        }
        if let Some(summary) = self.summary {
            summary.finish(report);
        }
        if let Entry::Bti { root, .. } = self.entries
            && root.partitions != partitions
        {
            let what = format!("footer counts {} partitions of {partitions}", root.partitions);
            report.problem(Component::Partitions, None, what);
        }
    }
}
