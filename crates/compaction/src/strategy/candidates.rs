//! What a strategy sees, and what it says.

use std::collections::BTreeSet;

use halcyon_io::Random;

/// A live SSTable, as far as a strategy looks at it. All candidates of one call are of one kind (repaired or not, of one
/// pending repair): others are not merged with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The caller's number for it; of two with equal timestamps the smaller is the older.
    pub id: u64,
    pub level: u32,
    /// On disk.
    pub size: u64,
    /// Tokens of its first and last partition.
    pub first: i64,
    pub last: i64,
    pub min_timestamp: i64,
    pub max_timestamp: i64,
    /// Seconds; `i64::MAX` if something in it never dies.
    pub max_local_deletion_time: i64,
    /// Estimated share of cells that are tombstones droppable now.
    pub droppable_ratio: f64,
    /// When its data was written, milliseconds since 1970.
    pub created_ms: i64,
    /// Reads per key lately; 0 if unknown.
    pub hotness: f64,
    /// Share of the token space that it covers; 0 if its statistics do not say.
    pub token_space_coverage: f64,
}

/// What else a choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Milliseconds since 1970.
    pub now_ms: i64,
    /// Seconds: what was deleted before may be dropped.
    pub gc_before: i64,
    /// Candidates that are being compacted: they count, but are not chosen.
    pub compacting: &'a BTreeSet<u64>,
    /// The oldest write that is not in an SSTable yet.
    pub memtable_min_timestamp: Option<i64>,
    /// Bytes of a flushed SSTable, on average (Unified).
    pub flush_size: u64,
}

/// What a strategy remembers of its earlier choices for a table. A new one is as after a start.
#[derive(Debug, Clone)]
pub struct History {
    /// When SSTables were last looked through for those that are expired as a whole.
    pub(super) expired_check_ms: Option<i64>,
    /// The newest window that was ever seen (TimeWindow).
    pub(super) highest_window: i64,
    /// Choices since each level was last chosen (Leveled).
    pub(super) unchosen: [u32; 9],
    /// The last SSTable, by its first token, that was chosen from each level (Leveled).
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

    /// Whether it is time to look for expired SSTables; if so, it has been done now.
    pub(super) fn check_expired(&mut self, now_ms: i64, every_ms: i64) -> bool {
        let due = self.expired_check_ms.is_none_or(|last| now_ms.saturating_sub(last) > every_ms);
        if due {
            self.expired_check_ms = Some(now_ms);
        }
        due
    }
}

/// SSTables to be replaced by others.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Ids of the SSTables to be merged, the expired ones included.
    pub inputs: Vec<u64>,
    /// Those that have nothing left that anybody could read: they are dropped without a look into them.
    pub expired: Vec<u64>,
    pub reason: Reason,
    pub output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Compaction,
    /// One SSTable, for its tombstones.
    TombstoneCompaction,
    /// Only expired SSTables.
    Expired,
}

/// What becomes of the inputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Output {
    /// One SSTable.
    Single { level: u32 },
    /// A new SSTable whenever one has grown to this size.
    Sized { level: u32, max_size: u64 },
    /// A new SSTable whenever one has grown to this size, and a new level, from 1 on, whenever one is full: the next is `fanout` times as
    /// large.
    Levels { max_size: u64, fanout: u32 },
    /// A new SSTable at each of the boundaries that [`shard_boundaries`] gives.
    Sharded { shards: u32 },
    /// Nothing is written but the level of the one input.
    Relevel { level: u32 },
}

/// The first tokens of all shards but the first, where the token space is split evenly.
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

pub(super) fn total(tables: &[&Candidate]) -> u64 {
    tables.iter().fold(0, |sum, table| sum.saturating_add(table.size))
}

pub(super) fn ids(tables: &[&Candidate]) -> Vec<u64> {
    tables.iter().map(|table| table.id).collect()
}
