//! Compaction debt: the tasks that a strategy would pick if writes stopped, found by simulating it.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use halcyon_io::Random;
use halcyon_model::options::Compaction;

use super::candidates::{
    Candidate, History, Output, PickContext, Reason, Task, shard_boundaries, total,
};
use super::pick;

/// The simulation stops after this many tasks: a larger debt has the same consequences.
const TASKS_MAX: usize = 64;

/// First and last token.
type TokenRange = (i64, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Debt {
    pub tasks: usize,
    /// Bytes to read.
    pub bytes: u64,
    /// SSTables that the tasks would save a read, at the token where they would save most.
    pub excess: usize,
}

impl Debt {
    pub fn add(&mut self, other: Debt) {
        self.tasks += other.tasks;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.excess += other.excess;
    }
}

/// Tasks that only purge tombstones or drop expired SSTables are not debt: reads are as fast without them.
pub fn debt(compaction: &Compaction, mut tables: Vec<Candidate>, moment: &PickContext<'_>) -> Debt {
    let moment = PickContext { compacting: &BTreeSet::new(), ..*moment };
    let mut history = History::new(Random::seeded(0));
    let mut next = tables.iter().map(|table| table.id).max().map_or(0, |id| id + 1);
    let mut debt = Debt::default();
    let before: Vec<TokenRange> = tables.iter().map(range).collect();
    while debt.tasks < TASKS_MAX
        && let Some(task) = pick(compaction, &tables, &moment, &mut history)
        && task.reason == Reason::Compaction
    {
        let ids: HashSet<u64> = task.inputs.iter().copied().collect();
        let chosen = |table: &Candidate| ids.contains(&table.id);
        let (inputs, rest): (Vec<_>, Vec<_>) = tables.into_iter().partition(chosen);
        debt.tasks += 1;
        let inputs: Vec<&Candidate> = inputs.iter().collect();
        if !matches!(task.output, Output::Relevel { .. }) {
            debt.bytes = debt.bytes.saturating_add(total(&inputs));
        }
        tables = rest;
        for output in outputs(&task, &inputs, moment.now_ms) {
            tables.push(Candidate { id: next, ..output });
            next += 1;
        }
    }
    debt.excess = most_saved(&before, tables.iter().map(range));
    debt
}

fn range(table: &Candidate) -> TokenRange {
    (table.first, table.last)
}

/// By how many fewer ranges a token is covered afterwards, at most. Savings at different tokens do not add up: a read has one token.
fn most_saved(before: &[TokenRange], after: impl Iterator<Item = TokenRange>) -> usize {
    let mut saved_from: BTreeMap<i128, isize> = BTreeMap::new();
    let before = before.iter().map(|range| (*range, 1));
    for ((first, last), by) in before.chain(after.map(|range| (range, -1))) {
        *saved_from.entry(first.into()).or_default() += by;
        *saved_from.entry(i128::from(last) + 1).or_default() -= by;
    }
    let saved = saved_from.into_values().scan(0, |saved, by| {
        *saved += by;
        Some(*saved)
    });
    usize::try_from(saved.max().unwrap_or(0)).unwrap_or(0)
}

/// The SSTables that a task would write.
fn outputs(task: &Task, inputs: &[&Candidate], now_ms: i64) -> Vec<Candidate> {
    let least = |of: fn(&Candidate) -> i64| inputs.iter().map(|table| of(table)).min();
    let most = |of: fn(&Candidate) -> i64| inputs.iter().map(|table| of(table)).max();
    let (Some(first), Some(last)) = (least(|t| t.first), most(|t| t.last)) else {
        return Vec::new();
    };
    let size = total(inputs);
    let (level, ranges) = match task.output {
        Output::Single { level } | Output::Relevel { level } => (level, vec![(first, last)]),
        // Only an operator asks for these.
        Output::Halves { .. } => (0, vec![(first, last)]),
        Output::Levels { max_size, .. } => (1, evenly(first, last, size.div_ceil(max_size.max(1)))),
        Output::Sized { level, max_size } => {
            (level, evenly(first, last, size.div_ceil(max_size.max(1))))
        }
        Output::Sharded { shards } => (0, between(first, last, &shard_boundaries(shards))),
    };
    let share = size / ranges.len().max(1) as u64;
    let output = |(first, last)| Candidate {
        id: 0,
        level,
        size: share,
        first,
        last,
        min_timestamp: least(|t| t.min_timestamp).unwrap_or(0),
        max_timestamp: most(|t| t.max_timestamp).unwrap_or(0),
        max_local_deletion_time: most(|t| t.max_local_deletion_time).unwrap_or(i64::MAX),
        droppable_ratio: 0.0,
        created_ms: now_ms,
        hotness: 0.0,
        token_space_coverage: 0.0,
    };
    ranges.into_iter().map(output).collect()
}

/// Splits a range into equal parts.
fn evenly(first: i64, last: i64, parts: u64) -> Vec<TokenRange> {
    let parts = i128::from(parts.clamp(1, 4096));
    let width = i128::from(last) - i128::from(first);
    let at = |part: i128| (i128::from(first) + width * part / parts) as i64;
    let part = |part: i128| {
        let end = if part + 1 == parts { last } else { at(part + 1).saturating_sub(1) };
        (at(part), end.max(at(part)))
    };
    (0..parts).map(part).collect()
}

/// Splits a range at boundaries.
fn between(first: i64, last: i64, boundaries: &[i64]) -> Vec<TokenRange> {
    let mut ranges = Vec::new();
    let mut start = first;
    for boundary in boundaries.iter().filter(|at| **at > first && **at <= last) {
        ranges.push((start, boundary - 1));
        start = *boundary;
    }
    ranges.push((start, last));
    ranges
}

#[cfg(test)]
mod tests {
    use halcyon_model::options::MapOption;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn flushed(count: u64, mib: u64) -> Vec<Candidate> {
        let table = |id| Candidate {
            id,
            level: 0,
            size: mib * MIB,
            first: i64::MIN + 1,
            last: i64::MAX,
            min_timestamp: id as i64 * 1_000_000,
            max_timestamp: id as i64 * 1_000_000 + 1,
            max_local_deletion_time: i64::MAX,
            droppable_ratio: 0.0,
            created_ms: 0,
            hotness: 0.0,
            token_space_coverage: 0.0,
        };
        (0..count).map(table).collect()
    }

    fn debt_of(class: &str, tables: Vec<Candidate>) -> Debt {
        let entries = [("class".to_owned(), class.to_owned())].into();
        let option = MapOption::<Compaction>::checked(entries).expect("a strategy");
        let moment = PickContext {
            now_ms: 1_000_000,
            gc_before: 0,
            compacting: &BTreeSet::new(),
            memtable_min_timestamp: None,
            flush_size: 10 * MIB,
        };
        debt(option.value(), tables, &moment)
    }

    /// Proves each strategy's debt for flushed SSTables over the whole token space.
    #[test]
    fn what_flushes_leave() {
        let cases = [
            ("SizeTieredCompactionStrategy", 3, 100, Debt { tasks: 0, bytes: 0, excess: 0 }),
            (
                "SizeTieredCompactionStrategy",
                4,
                100,
                Debt { tasks: 1, bytes: 400 * MIB, excess: 3 },
            ),
            // One task of 32; then no two SSTables have similar sizes.
            (
                "SizeTieredCompactionStrategy",
                32,
                100,
                Debt { tasks: 1, bytes: 3200 * MIB, excess: 31 },
            ),
            ("LeveledCompactionStrategy", 2, 100, Debt { tasks: 1, bytes: 200 * MIB, excess: 1 }),
            ("UnifiedCompactionStrategy", 4, 100, Debt { tasks: 1, bytes: 400 * MIB, excess: 3 }),
        ];
        for (class, count, mib, expected) in cases {
            assert_eq!(debt_of(class, flushed(count, mib)), expected, "{class} {count}");
        }
    }

    /// Proves that tasks at different tokens are not added up: flushes of two shards, and levels that are too full, of which
    /// each SSTable is a task.
    #[test]
    fn counts_what_one_read_meets() {
        let halves = flushed(64, 100).into_iter().map(|table| match table.id % 2 {
            0 => Candidate { last: -1, ..table },
            _ => Candidate { first: 0, ..table },
        });
        let two_tasks = debt_of("SizeTieredCompactionStrategy", halves.collect());
        assert_eq!((two_tasks.tasks, two_tasks.excess), (2, 30));
        let level = |level: u32, count: u64| {
            let ranges = (0..).zip(evenly(i64::MIN + 1, i64::MAX, count));
            ranges.map(move |(at, (first, last))| Candidate {
                id: u64::from(level) * 1000 + at,
                level,
                first,
                last,
                ..flushed(1, 160).remove(0)
            })
        };
        let found =
            debt_of("LeveledCompactionStrategy", level(1, 60).chain(level(2, 80)).collect());
        assert!(found.tasks > 40 && (1..=2).contains(&found.excess), "{found:?}");
    }

    /// Proves for all strategies that debt grows with neglect, and that the simulation ends.
    #[test]
    fn grows() {
        for class in [
            "SizeTieredCompactionStrategy",
            "LeveledCompactionStrategy",
            "TimeWindowCompactionStrategy",
            "UnifiedCompactionStrategy",
        ] {
            let excess: Vec<usize> =
                [0, 8, 40, 200].map(|count| debt_of(class, flushed(count, 100)).excess).into();
            assert!(excess[0] == 0 && excess.is_sorted() && excess[3] > 128, "{class} {excess:?}");
        }
    }
}
