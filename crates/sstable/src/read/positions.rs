//! Where the partitions between two samples of an index summary are, in 6 bytes each: who has them asks Index.db nothing.
//!
//! ```text
//! interval   4 × u16 position of the first partition │ n × u16 hash │ n × u16 low, n × u16 high half of the distance to the first one
//! ```
//! 1. An interval is made from its entries of Index.db, by a walk in the background (`walked.rs`), or by one read when one of its keys is
//!    looked for before. All threads share it. It is kept as long as the SSTable is open, if the budget of all SSTables has room.
//! 2. A key whose hash is not there has no partition. One whose hash is there twice is looked for in Index.db, and so is a partition with
//!    a row index.
//! 3. Keys may share a hash: who gets a position compares the key in Data.db, which is read next anyway.
//! 4. Entries out of order, or that are not what the summary names, make no interval: the look-up in Index.db then tells what is wrong.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use halcyon_model::Partitioner;
use halcyon_model::token::murmur3_hash;

use super::budget::Budget;
use super::entries::Entries;
use crate::format::summary::{Summary, SummaryEntry};
use crate::row_index::IndexSource;
use crate::{Error, Result};

/// Of an interval of 128 partitions.
pub(super) const TYPICAL: u64 = 8 + 128 * 6;
/// A thinned summary has fewer and longer intervals.
const PARTITIONS_MAX: usize = 4096;
const BASE: usize = 4;
/// The distance of a partition that has a row index, or is too far away.
const ASK: u32 = u32::MAX;

/// Of one SSTable.
#[derive(Debug, Default)]
pub(super) struct Positions {
    intervals: Box<[OnceLock<Box<[u16]>>]>,
    held: AtomicU64,
    budget: OnceLock<Arc<Budget>>,
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// Nothing: the interval is not made.
    Unknown,
    Absent,
    /// In the data, if the key there is the one; and where the next partition begins, if that is known.
    Maybe(u64, Option<u64>),
    /// Index.db says it.
    Ask,
}

/// Half of the second hash: keys of one interval have tokens that are alike.
fn hash(hashes: (i64, i64)) -> u16 {
    hashes.1 as u16
}

impl Positions {
    pub(super) fn of(summary: &Summary) -> Positions {
        let intervals = (0..summary.len()).map(|_| OnceLock::new()).collect();
        Positions { intervals, held: AtomicU64::new(0), budget: OnceLock::new() }
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.intervals) + self.held.load(Relaxed) as usize
    }

    pub(super) fn look_up(&self, interval: usize, hashes: (i64, i64)) -> Whereabouts {
        match self.intervals.get(interval).and_then(OnceLock::get) {
            Some(made) => look_up(made, hash(hashes)),
            None => Whereabouts::Unknown,
        }
    }

    pub(super) fn has(&self, interval: usize) -> bool {
        self.intervals.get(interval).is_some_and(|made| made.get().is_some())
    }

    /// Keeps what was made, if there is room for it.
    pub(super) fn keep(&self, interval: usize, made: Box<[u16]>, budget: &Arc<Budget>) {
        let bytes = size_of_val(&*made) as u64;
        let Some(place) = self.intervals.get(interval) else { return };
        let budget = self.budget.get_or_init(|| budget.clone());
        if place.get().is_some() || !budget.take(bytes) {
            return;
        }
        match place.set(made) {
            Ok(()) => {
                self.held.fetch_add(bytes, Relaxed);
            }
            // Another thread was faster.
            Err(_) => budget.give_back(bytes),
        }
    }
}

impl Drop for Positions {
    fn drop(&mut self) {
        if let Some(budget) = self.budget.get() {
            budget.give_back(self.held.load(Relaxed));
        }
    }
}

fn look_up(made: &[u16], hash: u16) -> Whereabouts {
    let Some((base, parts)) = made.split_at_checked(BASE) else { return Whereabouts::Ask };
    let count = parts.len() / 3;
    let (hashes, distances) = parts.split_at(count);
    let mut found = hashes.iter().enumerate().filter(|(_, other)| **other == hash);
    let Some((at, _)) = found.next() else { return Whereabouts::Absent };
    if found.next().is_some() {
        return Whereabouts::Ask;
    }
    let half = |at: usize| u32::from(distances.get(at).copied().unwrap_or(u16::MAX));
    let base = base.iter().fold(0, |base, part| base << 16 | u64::from(*part));
    let position = |at: usize| match half(at) | half(count + at) << 16 {
        ASK => None,
        distance => Some(base.saturating_add(u64::from(distance))),
    };
    match position(at) {
        Some(start) => {
            Whereabouts::Maybe(start, (at + 1 < count).then(|| position(at + 1)).flatten())
        }
        None => Whereabouts::Ask,
    }
}

/// Makes the interval of a sample from its entries, up to the next sample; `None` if they are not what they should be.
pub(super) async fn interval<S: IndexSource<Error = Error>>(
    index: &S,
    partitioner: &Partitioner,
    (sample, until): (SummaryEntry<'_>, u64),
    (data_length, last_key): (u64, Option<&[u8]>),
) -> Result<Option<Box<[u16]>>> {
    let length = usize::try_from(until.saturating_sub(sample.position)).unwrap_or(usize::MAX);
    let mut entries = Entries::new(index, sample.position, length.clamp(1, WINDOW));
    let (mut hashes, mut distances) = (Vec::new(), Vec::new());
    let mut before: Option<(Vec<u8>, u64)> = None;
    let mut base = 0;
    while let Some(head) = entries.next_of(until, |_| true).await? {
        let in_order = match &before {
            Some((key, position)) => {
                partitioner.compare(key, &entries.key).is_lt() && *position < head.data_position
            }
            None => {
                base = head.data_position;
                entries.key == sample.key
            }
        };
        if !in_order || head.data_position >= data_length || hashes.len() == PARTITIONS_MAX {
            return Ok(None);
        }
        let distance = u32::try_from(head.data_position - base).unwrap_or(ASK);
        hashes.push(hash(murmur3_hash(&entries.key)));
        distances.push(if head.promoted.is_empty() { distance } else { ASK });
        let (key, position) = before.get_or_insert_default();
        key.clone_from(&entries.key);
        *position = head.data_position;
    }
    let is_last = until == index.len();
    let ends_well = !is_last || last_key.is_none_or(|last| last == entries.key);
    if hashes.is_empty() || !ends_well {
        return Ok(None);
    }
    let base = [48, 32, 16, 0].map(|shift| (base >> shift) as u16);
    let low = distances.iter().map(|distance| *distance as u16);
    let high = distances.iter().map(|distance| (*distance >> 16) as u16);
    Ok(Some(base.into_iter().chain(hashes.iter().copied()).chain(low).chain(high).collect()))
}

/// Bytes of one read: an interval has some 3 to 12 KiB.
const WINDOW: usize = 64 * 1024;
