//! Reads Rows.db: the entry of one partition, and its trie of blocks.
//!
//! ```text
//!   nodes … root | key:sbytes | data position:uvint | root - here:svint | blocks:uvint32 | DeletionTime
//!                ^position    ^here
//! ```

use halcyon_model::{Cursor, DecodeError, DecodeResult, DeletionTime};

use super::payload::RowPayload;
use super::trie_cursor::TrieCursor;
use crate::format::deletion_time::read_deletion_time;
use crate::row_index::{IndexSource, OrCorrupt};

/// Longest entry.
const MAX_ENTRY: usize = 2 + 0xffff + 9 + 9 + 9 + 12;
/// Enough for most.
const USUAL_ENTRY: usize = 512;

/// The entry of a partition that has a row index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowIndexEntry {
    pub key: Vec<u8>,
    pub data_position: u64,
    pub root: u64,
    pub blocks: u64,
    pub deletion: DeletionTime,
}

impl RowIndexEntry {
    /// Reads the entry at the cursor.
    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<RowIndexEntry> {
        let position = cursor.offset();
        let key = cursor.sbytes()?.to_vec();
        cursor.note(|| format!("key of {} bytes", key.len()));
        let base = cursor.offset();
        let data_position = cursor.uvint()?;
        cursor.note(|| format!("partition at {data_position} in Data.db"));
        let at = cursor.offset();
        let distance = cursor.svint()?;
        let root = base.checked_add_signed(distance).filter(|root| *root < position);
        let root = root.ok_or_else(|| DecodeError {
            offset: at,
            what: format!("root of a row index at {distance} from {base}, not before its entry"),
        })?;
        cursor.note(|| format!("root at {root}"));
        let blocks = cursor.count()? as u64;
        cursor.note(|| format!("{blocks} blocks"));
        let deletion = read_deletion_time(true, cursor)?;
        cursor.note(|| format!("partition deletion {deletion:?}"));
        Ok(RowIndexEntry { key, data_position, root, blocks, deletion })
    }

    /// Reads the entry at `position` of Rows.db.
    pub async fn read<S: IndexSource>(
        source: &S,
        position: u64,
    ) -> Result<RowIndexEntry, S::Error> {
        let bytes = source.read(position, USUAL_ENTRY).await?;
        let usual = Self::decode(&mut Cursor::at_offset(bytes.as_ref(), position));
        if usual.is_ok() || bytes.as_ref().len() < USUAL_ENTRY {
            return usual.or_corrupt(source);
        }
        let bytes = source.read(position, MAX_ENTRY).await?;
        Self::decode(&mut Cursor::at_offset(bytes.as_ref(), position)).or_corrupt(source)
    }

    /// A cursor over the blocks.  Seek the floor of a byte-comparable clustering or bound, and read Data.db from
    /// there.  The last entry is a sentinel: its offset is that of the end-of-partition flag, and no row is
    /// after it.  Walking from end to end, stop after `blocks + 1` entries: more are corruption.
    pub fn cursor<'s, S: IndexSource>(&self, source: &'s S) -> TrieCursor<'s, S, RowPayload> {
        TrieCursor::new(source, self.root)
    }
}
