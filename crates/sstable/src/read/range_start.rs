//! Where a range scan begins, and the position in the data to which it leads.

use std::cmp::Ordering;

use halcyon_model::Partitioner;
use halcyon_model::byte_comparable::{encode_decorated_key, encode_key};
use halcyon_model::token::Token;
use halcyon_stream::{Layout, PartitionKey};

use super::caches::ReadCaches;
use super::entries::Entries;
use super::index_files::IndexSources;
use super::reader::SSTableReader;
use super::summary_search::{LOOKUP_WINDOW, cut_short};
use crate::Result;
use crate::bti::PartitionIndex;
use crate::read::cached_index::CachedIndex;

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
    /// Whether the scan begins after this key.
    fn is_after(&self, layout: &Layout, key: &PartitionKey) -> bool {
        match self {
            RangeStart::First => false,
            RangeStart::AtToken(token) => key.token < *token,
            RangeStart::AfterToken(token) => key.token <= *token,
            RangeStart::AtKey(start) => layout.compare_keys(key, start).is_lt(),
            RangeStart::AfterKey(start) => layout.compare_keys(key, start).is_le(),
        }
    }

    /// Writes a byte-comparable prefix that is not above any key of the scan; false where none is known.
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

impl SSTableReader {
    /// The position in the data of the first partition at or after `start`; the data's length if there is none.
    pub async fn position_of(&self, caches: &ReadCaches, start: &RangeStart) -> Result<u64> {
        let layout = self.sstable().layout();
        if !start.is_after(layout, self.first_key()) {
            return Ok(0);
        }
        let data_length = self.sstable().data_length();
        if start.is_after(layout, self.last_key()) {
            return Ok(data_length);
        }
        let position = match self.index(caches) {
            IndexSources::Big { index } => self.position_in_big(&index, start).await?,
            IndexSources::Bti { partitions, rows, root } => {
                self.position_in_bti(caches, (&partitions, &rows, root), start).await?
            }
        };
        Ok(position.map_or(data_length, |position| position.min(data_length)))
    }

    async fn position_in_big(
        &self,
        index: &CachedIndex<'_>,
        start: &RangeStart,
    ) -> Result<Option<u64>> {
        let layout = self.sstable().layout();
        let mut key = PartitionKey::empty();
        let from = self.summary().and_then(|summary| {
            let floor = summary.floor_by(|other| {
                key.set(other);
                if start.is_after(layout, &key) { Ordering::Less } else { Ordering::Greater }
            });
            summary.get(floor?)
        });
        let from = from.map_or(0, |entry| entry.position);
        let mut entries = Entries::new(index, from, LOOKUP_WINDOW);
        while let Some(entry) = entries.next().await? {
            key.set(&entries.key);
            if !start.is_after(layout, &key) {
                return Ok(Some(entry.data_position));
            }
        }
        match self.sstable().last_key() {
            Some(_) => Err(cut_short(index)),
            None => Ok(None),
        }
    }

    async fn position_in_bti(
        &self,
        caches: &ReadCaches,
        (partitions, rows, root): (&CachedIndex<'_>, &CachedIndex<'_>, &PartitionIndex),
        start: &RangeStart,
    ) -> Result<Option<u64>> {
        let layout = self.sstable().layout();
        let mut key = PartitionKey::empty();
        let mut cursor = root.cursor(partitions);
        let mut comparable = Vec::new();
        let mut payload = match start.comparable(&layout.partitioner, &mut comparable) {
            true => cursor.seek_candidate(&comparable).await?,
            false => cursor.first().await?,
        };
        let mut bytes = Vec::new();
        while let Some(found) = payload {
            let entry = self.entry_of((partitions, rows), found.position, &mut bytes).await?;
            if !entry.has_row_index() {
                self.key_at(caches, &entry, &mut bytes).await?;
            }
            key.set(&bytes);
            if !start.is_after(layout, &key) {
                return Ok(Some(entry.data_position));
            }
            payload = cursor.next().await?;
        }
        Ok(None)
    }
}
