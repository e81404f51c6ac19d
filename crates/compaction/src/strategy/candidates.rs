//! The input and output of a strategy.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use halcyon_io::Random;

use crate::IntervalIndex;

/// The facts about a live SSTable that a strategy uses. All candidates of a call are of one kind (repaired or not, of one pending
/// repair), because different kinds are never merged.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Assigned by the caller; with equal timestamps, the smaller id is older.
    pub id: u64,
    pub level: u32,
    /// On disk.
    pub size: u64,
    /// The tokens of the first and last partition.
    pub first: i64,
    pub last: i64,
    pub min_timestamp: i64,
    pub max_timestamp: i64,
    /// In seconds; `i64::MAX` if a cell never expires.
    pub max_local_deletion_time: i64,
    /// The estimated share of droppable tombstones among the cells.
    pub droppable_ratio: f64,
    /// When its data was written, milliseconds since 1970.
    pub created_ms: i64,
    /// Recent reads per key; 0 if unknown.
    pub hotness: f64,
    /// The share of the token space that it covers; 0 if its statistics lack it.
    pub token_space_coverage: f64,
}

/// The other inputs of a pick.
#[derive(Debug, Clone, Copy)]
pub struct PickContext<'a> {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// In seconds: tombstones from before are droppable.
    pub gc_before: i64,
    /// Candidates that are being compacted: they count, but are not picked.
    pub compacting: &'a BTreeSet<u64>,
    /// The oldest timestamp in a memtable.
    pub memtable_min_timestamp: Option<i64>,
    /// The average size of a flushed SSTable (Unified).
    pub flush_size: u64,
}

/// A strategy's memory of earlier picks for a table; empty after a start.
#[derive(Debug, Clone)]
pub struct History {
    /// The last check for fully expired SSTables.
    pub(super) expired_check_ms: Option<i64>,
    /// The newest window so far (TimeWindow).
    pub(super) highest_window: i64,
    /// Picks since each level was last picked (Leveled).
    pub(super) unchosen: [u32; 9],
    /// The first token of the SSTable last picked from each level (Leveled).
    pub(super) last_chosen: [Option<i64>; 9],
    pub(super) random: Random,
}

impl History {
    pub fn new(random: Random) -> History {
        History {
            expired_check_ms: None,
            highest_window: 0,
            unchosen: [0; 9],
            last_chosen: [None; 9],
            random,
        }
    }

    /// Whether a check for expired SSTables is due; if so, records it.
    pub(super) fn check_expired(&mut self, now_ms: i64, every_ms: i64) -> bool {
        let due = self.expired_check_ms.is_none_or(|last| now_ms.saturating_sub(last) > every_ms);
        if due {
            self.expired_check_ms = Some(now_ms);
        }
        due
    }
}

/// The SSTables to compact, and the kind of output.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The ids of the inputs, including expired SSTables.
    pub inputs: Vec<u64>,
    /// Fully expired inputs: they are dropped without being read.
    pub expired: Vec<u64>,
    pub reason: Reason,
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Compaction,
    /// One SSTable, to purge tombstones.
    TombstoneCompaction,
    /// Only expired SSTables.
    Expired,
}

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output {
    /// One SSTable.
    Single { level: u32 },
    /// A new SSTable whenever one reaches this size.
    Sized { level: u32, max_size: u64 },
    /// A new SSTable whenever one reaches this size, and a new level, from 1 on, whenever one is full; each level is larger than the last
    /// by `fanout`.
    Levels { max_size: u64, fanout: u32 },
    /// An SSTable of half the inputs' size, one of a quarter, and so on; what would be smaller than this is one.
    Halves { smallest: u64 },
    /// A new SSTable at each boundary of [`shard_boundaries`].
    Sharded { shards: u32 },
    /// Only the level of the single input changes.
    Relevel { level: u32 },
}

/// The first tokens of all shards but the first, with the token space split evenly.
pub fn shard_boundaries(shards: u32) -> Vec<i64> {
    let shards = u128::from(shards.max(1));
    let token = |index: u128| ((index << 64) / shards) as u64;
    (1..shards).map(|index| (token(index) ^ (1 << 63)) as i64).collect()
}

impl Candidate {
    pub(super) fn overlaps(&self, first: i64, last: i64) -> bool {
        self.first <= last && first <= self.last
    }
}

/// All candidates, and which of them overlap; the index is built at its first use.
pub(super) struct Tables<'a> {
    all: Vec<&'a Candidate>,
    index: OnceCell<IntervalIndex>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(all: impl Iterator<Item = &'a Candidate>) -> Tables<'a> {
        Tables { all: all.collect(), index: OnceCell::new() }
    }

    /// What shares a token with `table`, without it, in the order of `all`.
    pub(super) fn overlapping(&self, table: &Candidate) -> Vec<&'a Candidate> {
        let range = |table: &&Candidate| (table.first, table.last);
        let index = self.index.get_or_init(|| IntervalIndex::new(self.all.iter().map(range)));
        let mut found = Vec::new();
        index.overlapping(table.first, table.last, |at| found.push(at));
        found.sort_unstable();
        let tables = found.into_iter().filter_map(|at| self.all.get(at as usize).copied());
        tables.filter(|other| other.id != table.id).collect()
    }
}

pub(super) fn total(tables: &[&Candidate]) -> u64 {
    tables.iter().fold(0, |sum, table| sum.saturating_add(table.size))
}

pub(super) fn ids(tables: &[&Candidate]) -> Vec<u64> {
    tables.iter().map(|table| table.id).collect()
}
