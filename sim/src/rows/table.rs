//! What is known of a table: the changes that were sent, and whether each of them happened.
//!
//! 1. A part is what one operation changes in one partition: it happens wholly or not at all.
//! 2. An acknowledged part is [`Certainty::Done`]. One without an answer is [`Certainty::Maybe`]: an answer may show it or not.
//! 3. An answer is right if there is a set of the partition's uncertain parts with which the model gives it. Parts that are in all such
//!    sets have been seen, and are done.
//! 4. After a power failure under `periodic`, what was acknowledged in the last moments is uncertain again ([`Table::may_lack`]).
//! 5. After a restart nothing is under way any more. The whole table is read and [`Table::settle`] decides about every part. There the
//!    parts of a logged batch must all have happened, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use halcyon_io::Random;

use super::model::{self, Cells, Column, Drops, Mutation, Partition, Timestamp};

/// Uncertain parts of one partition with which it is still written.
pub(crate) const MAYBES_MAX: usize = 5;
/// Timestamps of clients, below those of the node's clock.
const FIRST_TIMESTAMP: Timestamp = 1_500_000_000_000_000;
/// Timestamps in between are left for what CQL derives from them.
const TIMESTAMP_STEP: i64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    Done,
    Maybe,
    /// Did not happen, or was truncated.
    JobLost,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) operation: u64,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) certainty: Certainty,
    /// When it was found done.
    done_at: Duration,
    /// Of a logged batch: it shares the fate of the other parts of its operation.
    pub(crate) logged: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct KeptPage {
    pub(crate) text: String,
    pub(crate) state: Vec<u8>,
    pub(crate) last_row: Cells,
}

/// A change of a table as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TableChange {
    Create,
    Drop,
    Truncate,
    AddExtra,
    DropExtra(Timestamp),
    /// Compaction, compression, caching: no answer depends on it.
    Options(String),
}

/// What SELECT depends on beside the rows.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: String,
    /// Of `a` and `b`.
    pub(crate) descending: [bool; 2],
    pub(crate) has_extra: bool,
}

/// What a table has beside its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Derived {
    pub(crate) has_indexes: bool,
    /// Then neither the table nor a column of it can be dropped.
    pub(crate) has_view: bool,
}

impl Derived {
    pub(crate) fn generate(random: &mut Random) -> Derived {
        Derived { has_indexes: random.chance(1, 2), has_view: random.chance(1, 3) }
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) shape: Shape,
    /// `WITH`, without the order.
    pub(crate) options: String,
    /// Tombstones may be purged soon: timestamps must then increase, and no change may be under way twice in a partition.
    pub(crate) purges: bool,
    pub(crate) derived: Derived,
    pub(crate) exists: bool,
    drops: Drops,
    parts: Vec<Part>,
    by_key: BTreeMap<i32, Vec<usize>>,
    operations: u64,
    timestamps: BTreeSet<Timestamp>,
    last_timestamp: Timestamp,
    last_element: i32,
    floor: Timestamp,
    /// A scan of all that was left after a page: the next start continues it.
    pub(crate) kept: Option<KeptPage>,
    /// Sent, and not answered: the next start knows.
    pub(crate) unsettled: Option<TableChange>,
}

impl Table {
    pub(crate) fn new(shape: Shape, options: String, purges: bool, derived: Derived) -> Table {
        Table {
            shape,
            options,
            purges,
            derived,
            exists: false,
            drops: Drops::new(),
            parts: Vec::new(),
            by_key: BTreeMap::new(),
            operations: 0,
            timestamps: BTreeSet::new(),
            last_timestamp: FIRST_TIMESTAMP,
            last_element: 0,
            floor: FIRST_TIMESTAMP,
            kept: None,
            unsettled: None,
        }
    }

    /// A newer timestamp than all others, without microseconds: the row of a dropped column has none, as in Cassandra, so that after a
    /// restart older cells than the DROP could be newer than it.
    pub(crate) fn whole_millisecond(&mut self) -> Timestamp {
        self.last_timestamp = (self.last_timestamp / 1000 + 1) * 1000;
        self.timestamps.insert(self.last_timestamp);
        self.last_timestamp
    }

    /// For a list.
    pub(crate) fn next_element(&mut self) -> i32 {
        self.last_element += 1;
        self.last_element
    }

    /// A timestamp that no change has, as many steps before the last one as wished, if that is allowed.
    pub(crate) fn timestamp(&mut self, back: u64) -> Timestamp {
        self.last_timestamp += TIMESTAMP_STEP;
        let earlier = self.last_timestamp - TIMESTAMP_STEP * back as i64;
        let may_be_earlier =
            !self.purges && earlier > self.floor && !self.timestamps.contains(&earlier);
        let chosen = if may_be_earlier { earlier } else { self.last_timestamp };
        self.timestamps.insert(chosen);
        chosen
    }

    /// Adds what is about to be sent. Returns the operation's number.
    pub(crate) fn send(&mut self, changes: Vec<(i32, Vec<Mutation>)>, logged: bool) -> u64 {
        self.operations += 1;
        let operation = self.operations;
        for (key, mutations) in changes {
            self.by_key.entry(key).or_default().push(self.parts.len());
            let (certainty, done_at) = (Certainty::Maybe, Duration::ZERO);
            self.parts.push(Part { operation, mutations, certainty, done_at, logged });
        }
        operation
    }

    pub(crate) fn decide(&mut self, operation: u64, certainty: Certainty, now: Duration) {
        for part in self.parts.iter_mut().filter(|part| part.operation == operation) {
            part.certainty = certainty;
            part.done_at = now;
        }
    }

    /// What was found done since then may be lost.
    pub(crate) fn may_lack(&mut self, since: Duration) {
        let is_recent =
            |part: &&mut Part| part.certainty == Certainty::Done && part.done_at >= since;
        for part in self.parts.iter_mut().filter(is_recent) {
            part.certainty = Certainty::Maybe;
        }
    }

    pub(crate) fn maybes(&self, key: i32) -> Vec<usize> {
        let of_key = self.by_key.get(&key).into_iter().flatten().copied();
        of_key.filter(|index| self.parts[*index].certainty == Certainty::Maybe).collect()
    }

    /// Whether a change of this partition can be sent and checked.
    pub(crate) fn is_writable(&self, key: i32) -> bool {
        let maybes = self.maybes(key).len();
        if self.purges { maybes == 0 } else { maybes < MAYBES_MAX }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = i32> + '_ {
        self.by_key.keys().copied()
    }

    /// The state if those of the uncertain parts happened whose bits are set.
    pub(crate) fn partition(&self, key: i32, maybes: &[usize], set: u32, now: i64) -> Partition {
        let happened = |index: &&usize| match self.parts[**index].certainty {
            Certainty::Done => true,
            Certainty::JobLost => false,
            Certainty::Maybe => maybes
                .iter()
                .position(|maybe| maybe == *index)
                .is_some_and(|bit| set >> bit & 1 == 1),
        };
        let of_key = self.by_key.get(&key).into_iter().flatten();
        let mutations = of_key.filter(happened).flat_map(|index| &self.parts[*index].mutations);
        model::partition(mutations, &self.drops, now)
    }

    /// The sets of uncertain parts with which the partition is as it was seen.
    fn explanations(&self, key: i32, now: i64, is_seen: impl Fn(&Partition) -> bool) -> Vec<u32> {
        let maybes = self.maybes(key);
        (0..1u32 << maybes.len())
            .filter(|set| is_seen(&self.partition(key, &maybes, *set, now)))
            .collect()
    }

    /// Learns from an answer; `false` if nothing explains it.
    pub(crate) fn observe(
        &mut self,
        key: i32,
        (now, at): (i64, Duration),
        is_seen: impl Fn(&Partition) -> bool,
    ) -> bool {
        let maybes = self.maybes(key);
        let explanations = self.explanations(key, now, is_seen);
        let Some(always) = explanations.iter().copied().reduce(|all, set| all & set) else {
            return false;
        };
        for (bit, index) in maybes.iter().enumerate() {
            if always >> bit & 1 == 1 {
                self.parts[*index].certainty = Certainty::Done;
                self.parts[*index].done_at = at;
            }
        }
        true
    }

    /// What is known after a change of the table was acknowledged, or found done.
    pub(crate) fn change(&mut self, change: &TableChange) {
        match change {
            TableChange::Create => {
                self.exists = true;
                self.shape.has_extra = false;
                self.drops.clear();
            }
            TableChange::Drop => {
                self.exists = false;
                self.forget_rows();
            }
            TableChange::Truncate => self.forget_rows(),
            TableChange::AddExtra => self.shape.has_extra = true,
            TableChange::DropExtra(at) => {
                self.shape.has_extra = false;
                self.drops.insert(Column::Extra, *at);
                self.floor = self.last_timestamp;
            }
            TableChange::Options(_) => {}
        }
    }

    fn forget_rows(&mut self) {
        // One that is still under way may come after it.
        for part in self.parts.iter_mut().filter(|part| part.certainty == Certainty::Done) {
            part.certainty = Certainty::JobLost;
        }
        self.floor = self.last_timestamp;
    }

    /// After a restart: decides about every uncertain part from what was read of all partitions. An error is the first partition that
    /// nothing explains.
    pub(crate) fn settle(
        &mut self,
        now: i64,
        is_seen: impl Fn(i32, &Partition) -> bool,
    ) -> Result<(), i32> {
        // By operation, whether its parts of logged batches happened, in each way to explain all partitions so far.
        let mut ways: Vec<BTreeMap<u64, bool>> = vec![self.known_batches()];
        let mut decided = Vec::new();
        for key in self.keys().collect::<Vec<_>>() {
            let maybes = self.maybes(key);
            let mut explanations = self.explanations(key, now, |partition| is_seen(key, partition));
            // A row that has cells does not show whether its INSERT happened: what can have happened is taken to have.
            explanations.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
            let mut next: BTreeSet<Vec<(u64, bool)>> = BTreeSet::new();
            for way in &ways {
                for set in &explanations {
                    next.extend(self.agree(way, &maybes, *set));
                }
            }
            if next.is_empty() {
                return Err(key);
            }
            ways = next.into_iter().map(|way| way.into_iter().collect()).collect();
            ways.truncate(4096);
            decided.push((key, maybes, explanations));
        }
        let way = ways.into_iter().next().unwrap_or_default();
        for (key, maybes, explanations) in decided {
            let mut agreeing =
                explanations.into_iter().filter(|set| self.agree(&way, &maybes, *set).is_some());
            let chosen = agreeing.next().unwrap_or_default();
            let open = agreeing.fold(0, |open, other| open | (other ^ chosen));
            // What expires can hide later what it does not change now, or show what it hides.
            let parts =
                self.by_key.get(&key).into_iter().flatten().map(|index| &self.parts[*index]);
            let expires = parts.flat_map(|part| &part.mutations).any(Mutation::expires);
            for (bit, index) in maybes.iter().enumerate() {
                if expires && open >> bit & 1 == 1 {
                    continue;
                }
                let happened = chosen >> bit & 1 == 1;
                self.parts[*index].certainty =
                    if happened { Certainty::Done } else { Certainty::JobLost };
            }
        }
        Ok(())
    }

    /// Logged batches of which a part was seen: the others must be there too.
    fn known_batches(&self) -> BTreeMap<u64, bool> {
        let done =
            self.parts.iter().filter(|part| part.logged && part.certainty == Certainty::Done);
        done.map(|part| (part.operation, true)).collect()
    }

    /// The way with what the set says of logged batches; `None` if they disagree.
    fn agree(
        &self,
        way: &BTreeMap<u64, bool>,
        maybes: &[usize],
        set: u32,
    ) -> Option<Vec<(u64, bool)>> {
        let mut way = way.clone();
        for (bit, index) in
            maybes.iter().enumerate().filter(|(_, index)| self.parts[**index].logged)
        {
            let happened = set >> bit & 1 == 1;
            if *way.entry(self.parts[*index].operation).or_insert(happened) != happened {
                return None;
            }
        }
        Some(way.into_iter().collect())
    }
}
