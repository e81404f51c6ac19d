//! Summary.db (BIG): every 128th entry of Index.db.
//!
//! ```text
//! i32 min_index_interval │ i32 n │ i64 bytes of offsets and entries │ i32 sampling level │ i32 size at full sampling
//! n × u32 LE offset of an entry, from here │ n × (key, i64 LE position in Index.db) │ ibytes first key │ ibytes last key
//! ```
//!
//! Numbers are big-endian but for those in offsets and entries, which Cassandra maps into memory.  A key has no length:
//! it ends 8 bytes before the next entry.  Cassandra may have thinned the sample (levels below 128), so nothing
//! follows from an entry's number; it is a sorted sample, searched for the last key that is not greater.
//!
//! The file may be missing: it can be made again from Index.db.

use std::cmp::Ordering;

use halcyon_model::bytes::Put;
use halcyon_model::token::{DecoratedKey, Partitioner};
use halcyon_model::{Cursor, DecodeResult};

/// No thinning.
pub const FULL_SAMPLING_LEVEL: u32 = 128;
pub const DEFAULT_MIN_INDEX_INTERVAL: u32 = 128;

const POSITION_LENGTH: usize = 8;
/// Cassandra maps offsets and entries with 32-bit lengths.
const MAX_LENGTH: usize = i32::MAX as usize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub min_index_interval: u32,
    pub sampling_level: u32,
    pub size_at_full_sampling: u32,
    /// Where each entry begins in `entries`.
    offsets: Vec<u32>,
    /// Keys and positions as in the file.
    entries: Vec<u8>,
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryEntry<'a> {
    pub key: &'a [u8],
    /// Offset of the key's entry in Index.db.
    pub position: u64,
}

impl Summary {
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<SummaryEntry<'_>> {
        let start = *self.offsets.get(i)? as usize;
        let end = self.offsets.get(i + 1).map_or(self.entries.len(), |next| *next as usize);
        let (key, position) =
            self.entries.get(start..end)?.split_last_chunk::<POSITION_LENGTH>()?;
        Some(SummaryEntry { key, position: u64::from_le_bytes(*position) })
    }

    pub fn iter(&self) -> impl Iterator<Item = SummaryEntry<'_>> {
        (0..self.len()).map_while(|i| self.get(i))
    }

    /// The number of the last entry that is not after the target; `compare` compares an entry's key with the target. `None`: the
    /// target is before all entries.
    pub fn floor_by(&self, mut compare: impl FnMut(&[u8]) -> Ordering) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if compare(self.get(middle)?.key).is_gt() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low.checked_sub(1)
    }

    /// `floor_by` for a key, in the partitioner's order.
    pub fn floor(&self, partitioner: &Partitioner, key: &DecoratedKey) -> Option<usize> {
        self.floor_by(|other| match partitioner {
            Partitioner::Local(_) => partitioner.compare(other, &key.key),
            _ => {
                let order = partitioner.token(other).cmp(&key.token);
                order.then_with(|| other.cmp(&key.key))
            }
        })
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        4 * self.offsets.capacity() + self.entries.capacity()
    }

    pub fn decode(cursor: &mut Cursor<'_>) -> DecodeResult<Summary> {
        let min_index_interval = decode_positive(cursor, "min_index_interval")?;
        let n = cursor.u32()? as usize;
        cursor.note(|| format!("{n} entries"));
        let length = cursor.u64()?;
        let left = cursor.remaining();
        let least = n as u64 * (4 + POSITION_LENGTH as u64);
        if length > left as u64 || length > MAX_LENGTH as u64 || length < least {
            return Err(cursor.error(format!(
                "{n} entries and their offsets in {length} bytes do not fit the {left} that follow"
            )));
        }
        cursor.note(|| format!("{length} bytes of offsets and entries"));
        let sampling_level = decode_positive(cursor, "sampling level")?;
        if sampling_level > FULL_SAMPLING_LEVEL {
            return Err(cursor.error(format!("sampling level {sampling_level}")));
        }
        let size_at_full_sampling = cursor.u32()?;
        cursor.note(|| format!("{size_at_full_sampling} entries at full sampling"));
        let offsets = decode_offsets(cursor, n, length as usize)?;
        let entries = cursor.take(length as usize - 4 * n)?.to_vec();
        cursor.note(|| "entries".into());
        let first_key = cursor.ibytes()?.to_vec();
        cursor.note(|| "first key".into());
        let last_key = cursor.ibytes()?.to_vec();
        cursor.note(|| "last key".into());
        Ok(Summary {
            min_index_interval,
            sampling_level,
            size_at_full_sampling,
            offsets,
            entries,
            first_key,
            last_key,
        })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        let table = 4 * self.offsets.len();
        out.put_u32(self.min_index_interval);
        out.put_u32(self.offsets.len() as u32);
        out.put_i64((table + self.entries.len()) as i64);
        out.put_u32(self.sampling_level);
        out.put_u32(self.size_at_full_sampling);
        for offset in &self.offsets {
            out.put(&(offset + table as u32).to_le_bytes());
        }
        out.put(&self.entries);
        out.put_ibytes(&self.first_key);
        out.put_ibytes(&self.last_key);
    }
}

fn decode_positive(cursor: &mut Cursor<'_>, what: &str) -> DecodeResult<u32> {
    let value = cursor.i32()?;
    let value = u32::try_from(value).ok().filter(|value| *value > 0);
    let value = value.ok_or_else(|| cursor.error(format!("{what} must be positive")))?;
    cursor.note(|| format!("{what} {value}"));
    Ok(value)
}

/// Offsets from the start of the entries; each entry has room for its position.
fn decode_offsets(cursor: &mut Cursor<'_>, n: usize, length: usize) -> DecodeResult<Vec<u32>> {
    let table = 4 * n;
    let mut offsets: Vec<u32> = Vec::with_capacity(n);
    let mut next = table;
    for i in 0..n {
        let offset = u32::from_le_bytes(cursor.array()?) as usize;
        let first_is_next = i > 0 || offset == table;
        if offset < next || !first_is_next || offset + POSITION_LENGTH > length {
            return Err(cursor.error(format!("entry {i} cannot begin at {offset} of {length}")));
        }
        cursor.note(|| format!("entry {i} at {offset}"));
        offsets.push((offset - table) as u32);
        next = offset + POSITION_LENGTH;
    }
    Ok(offsets)
}

/// Samples an index as it is written.
#[derive(Debug)]
pub struct SummaryBuilder {
    min_index_interval: u32,
    keys: u64,
    offsets: Vec<u32>,
    entries: Vec<u8>,
}

impl SummaryBuilder {
    pub fn new(min_index_interval: u32) -> SummaryBuilder {
        let min_index_interval = min_index_interval.max(1);
        SummaryBuilder { min_index_interval, keys: 0, offsets: Vec::new(), entries: Vec::new() }
    }

    /// Takes the next entry of Index.db and its offset there. Beyond 2 GiB nothing is sampled any more, as in
    /// Cassandra: look-ups of the keys after that scan further.
    #[inline]
    pub fn add(&mut self, key: &[u8], position: u64) {
        if self.keys.is_multiple_of(u64::from(self.min_index_interval)) {
            self.sample(key, position);
        }
        self.keys += 1;
    }

    fn sample(&mut self, key: &[u8], position: u64) {
        let length =
            4 * (self.offsets.len() + 1) + self.entries.len() + key.len() + POSITION_LENGTH;
        if length <= MAX_LENGTH {
            self.offsets.push(self.entries.len() as u32);
            self.entries.put(key);
            self.entries.put(&position.to_le_bytes());
        }
    }

    pub fn finish(self, first_key: Vec<u8>, last_key: Vec<u8>) -> Summary {
        let full = self.keys.div_ceil(u64::from(self.min_index_interval));
        Summary {
            min_index_interval: self.min_index_interval,
            sampling_level: FULL_SAMPLING_LEVEL,
            size_at_full_sampling: u32::try_from(full).unwrap_or(u32::MAX),
            offsets: self.offsets,
            entries: self.entries,
            first_key,
            last_key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{check_bytes, hex, survives_corruption};

    fn built(keys: u32) -> Summary {
        let mut builder = SummaryBuilder::new(DEFAULT_MIN_INDEX_INTERVAL);
        (0..keys).for_each(|key| builder.add(&key.to_be_bytes(), u64::from(key) * 10));
        builder.finish(vec![0; 4], keys.saturating_sub(1).to_be_bytes().to_vec())
    }

    /// The worked example of the format notes.
    #[test]
    fn golden() {
        let golden = hex("00000080 00000001 0000000000000010 00000080 00000001 04000000 \
             00000001 0000000000000000 00000004 00000001 00000004 00000003");
        let mut builder = SummaryBuilder::new(128);
        for (key, position) in [(1u32, 0), (0, 8), (2, 16), (4, 26), (3, 36)] {
            builder.add(&key.to_be_bytes(), position);
        }
        let summary = builder.finish(vec![0, 0, 0, 1], vec![0, 0, 0, 3]);
        let mut out = Vec::new();
        summary.encode(&mut out);
        assert_eq!(out, golden);
        assert_eq!(check_bytes(&golden, Summary::decode), summary);
    }

    #[test]
    fn samples_and_floors() {
        let summary = built(1000);
        assert_eq!((summary.len(), summary.size_at_full_sampling), (8, 8));
        for (key, floor) in [(0, 0), (127, 0), (128, 1), (999, 7), (u32::MAX, 7)] {
            let floor_of = |key: u32| summary.floor_by(|other| other.cmp(&key.to_be_bytes()));
            assert_eq!(floor_of(key), Some(floor));
        }
        assert_eq!(summary.floor_by(|_| Ordering::Greater), None);
        let entry = summary.get(3).expect("entry");
        assert_eq!((entry.key, entry.position), (&384u32.to_be_bytes()[..], 3840));
        assert_eq!(summary.iter().count(), 8);
    }

    #[test]
    fn floor_in_token_order() {
        let murmur3 = Partitioner::Murmur3;
        let mut keys: Vec<_> =
            (0..600u32).map(|key| murmur3.decorate(&key.to_be_bytes())).collect();
        keys.sort();
        let mut builder = SummaryBuilder::new(16);
        (0..).zip(&keys).for_each(|(i, key)| builder.add(&key.key, i));
        let summary = builder.finish(Vec::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(summary.floor(&murmur3, key), Some(i / 16));
        }
    }

    #[test]
    fn corruption_is_survived() {
        for keys in [0, 300] {
            let mut bytes = Vec::new();
            built(keys).encode(&mut bytes);
            assert_eq!(check_bytes(&bytes, Summary::decode), built(keys));
            survives_corruption(&bytes, |c| {
                let summary = Summary::decode(c)?;
                assert_eq!(summary.iter().count(), summary.len());
                Ok(summary.floor_by(|key| key.cmp(&[0, 0, 0, 200])))
            });
        }
    }
}
