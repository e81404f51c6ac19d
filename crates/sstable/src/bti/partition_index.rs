//! Reads Partitions.db: the footer, one key, or all keys in order.
//!
//! ```text
//!   nodes … root | first key:sbytes last key:sbytes | i64 of "first key" | i64 keys | i64 root |
//!                                                   |<------------- 24 bytes at the end ------>|
//! ```
//!
//! A trie key is a prefix of the partition's byte-comparable key that no other partition shares.  Finding one is
//! therefore no proof: the hash byte rejects 255 of 256 strangers, and the whole key at the target decides.

use halcyon_model::{Cursor, DecodeError, DecodeResult};

use super::payload::{PartitionPayload, PartitionPosition, Payload};
use super::trie_cursor::{Nodes, TrieCursor};
use crate::row_index::{IndexSource, OrCorrupt};

const FOOTER: u64 = 24;
const MAX_KEYS: usize = 2 * (2 + 0xffff);

/// The footer of Partitions.db.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionIndex {
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
    /// Where the tries end and the keys begin.
    pub keys_position: u64,
    pub partitions: u64,
    pub root: u64,
}

impl PartitionIndex {
    pub async fn open<S: IndexSource>(source: &S) -> Result<PartitionIndex, S::Error> {
        let len = source.len();
        let Some(footer_position) = len.checked_sub(FOOTER) else {
            let what = format!("partition index of {len} bytes has no footer");
            return Err(source.corrupt(DecodeError { offset: 0, what }));
        };
        let footer = source.read(footer_position, FOOTER as usize).await?;
        let mut cursor = Cursor::at_offset(footer.as_ref(), footer_position);
        let (keys_position, partitions, root) =
            read_footer(&mut cursor, footer_position).or_corrupt(source)?;
        let keys_len = usize::try_from(footer_position - keys_position).unwrap_or(usize::MAX);
        let keys = source.read(keys_position, keys_len.min(MAX_KEYS)).await?;
        let mut cursor = Cursor::at_offset(keys.as_ref(), keys_position);
        let (first_key, last_key) = read_keys(&mut cursor).or_corrupt(source)?;
        Ok(PartitionIndex { first_key, last_key, keys_position, partitions, root })
    }

    /// The one partition that can have this byte-comparable key, or none. `hash`: low byte of the key's second hash.
    pub async fn candidate<S: IndexSource>(
        &self,
        source: &S,
        comparable_key: &[u8],
        hash: u8,
    ) -> Result<Option<PartitionPayload>, S::Error> {
        let mut nodes = Nodes::new(source);
        let mut position = self.root;
        let mut rest = comparable_key.iter();
        loop {
            let node = nodes.read(position).await?;
            let next = rest.next();
            let child = match next {
                Some(&byte) => node.child(byte).or_corrupt(source)?,
                None => None,
            };
            if let Some(child) = child {
                position = child;
                continue;
            }
            // A prefix that continues in another way belongs to another key.
            if node.payload_bits() == 0 || (next.is_some() && node.has_children()) {
                return Ok(None);
            }
            let payload = PartitionPayload::read(node.payload_bits(), &mut node.payload())
                .or_corrupt(source)?;
            return Ok(Some(payload).filter(|payload| payload.hash.is_none_or(|own| own == hash)));
        }
    }

    /// The partition after the one that [`Self::candidate`] finds for the key.
    pub async fn after<S: IndexSource>(
        &self,
        source: &S,
        comparable_key: &[u8],
    ) -> Result<Option<PartitionPosition>, S::Error> {
        let mut cursor = self.cursor(source);
        cursor.seek_candidate(comparable_key).await?;
        Ok(cursor.next().await?.map(|payload| payload.position))
    }

    /// A cursor over all partitions. Walking from end to end, stop after `partitions` entries: more are corruption.
    pub fn cursor<'s, S: IndexSource>(&self, source: &'s S) -> TrieCursor<'s, S, PartitionPayload> {
        TrieCursor::new(source, self.root)
    }
}

/// Position of the keys, number of partitions, root.
pub(crate) fn read_footer(
    cursor: &mut Cursor<'_>,
    footer_position: u64,
) -> DecodeResult<(u64, u64, u64)> {
    let mut field = |what: &str, limit: u64| {
        let offset = cursor.offset();
        let value = cursor.i64()?;
        cursor.note(|| format!("{what}: {value}"));
        u64::try_from(value)
            .ok()
            .filter(|value| *value < limit)
            .ok_or_else(|| DecodeError { offset, what: format!("{what} {value} is out of range") })
    };
    let keys_position = field("position of the first key", footer_position)?;
    // Each partition has a leaf of its own, which has two bytes at least.
    let partitions = field("number of partitions", footer_position)?;
    let root = field("root position", keys_position)?;
    Ok((keys_position, partitions, root))
}

pub(crate) fn read_keys(cursor: &mut Cursor<'_>) -> DecodeResult<(Vec<u8>, Vec<u8>)> {
    let first = cursor.sbytes()?.to_vec();
    cursor.note(|| "first key".into());
    let last = cursor.sbytes()?.to_vec();
    cursor.note(|| "last key".into());
    Ok((first, last))
}
