//! Cassandra's compaction strategies, as pure functions from a table's SSTables to a task.
//!
//! 1. A table's `compaction` option is a `model::options::Compaction`.
//! 2. [`pick`] picks the next task from a list of [`Candidate`]s, or none. Its
//!    memory between picks is in [`History`], which belongs to the caller.
//! 3. The task has the kind of output: one SSTable, SSTables of a size, shards, or only another level of the input.
//!
//! Nothing here reads a file or a clock: a list that was seen in production is a test.

mod candidates;
mod debt;
mod leveled;
mod life;
mod overlaps;
#[cfg(test)]
mod tests;
mod tiers;
mod tombstones;
mod unified;
mod windows;

use std::collections::HashSet;

pub use candidates::{Candidate, History, Output, PickContext, Reason, Task, shard_boundaries};
pub use debt::{Debt, debt};
pub use life::is_soon_rewritten;

use candidates::{Tables, ids};
use halcyon_model::options::compaction::Tombstones;
use halcyon_model::options::{Compaction, Strategy, TimeWindow};
use leveled::Manifest;
use unified::Levels;

/// The next background task, if one is due.
pub fn pick(
    compaction: &Compaction,
    tables: &[Candidate],
    moment: &PickContext<'_>,
    history: &mut History,
) -> Option<Task> {
    if !compaction.enabled {
        return None;
    }
    let free: Vec<&Candidate> =
        tables.iter().filter(|table| !moment.compacting.contains(&table.id)).collect();
    let tombstones = &compaction.tombstones;
    let all = Tables::new(tables.iter());
    match &compaction.strategy {
        Strategy::SizeTiered(options) => {
            let buckets = tiers::buckets(&free, &options.tiers);
            let chosen = tiers::most_interesting(buckets, options.thresholds);
            let largest = || worth_dropping(tombstones, &free, &all, moment).max_by_key(size_of);
            merged(chosen, vec![]).or_else(|| alone(largest()?, Output::Single { level: 0 }))
        }
        Strategy::Leveled(options) => {
            let manifest = Manifest::of(tables, options, *moment);
            manifest.pick(history).or_else(|| {
                let table = manifest.droppable(tombstones, &all)?;
                let max_size = options.sstable_size;
                alone(table, Output::Sized { level: table.level, max_size })
            })
        }
        Strategy::TimeWindow(options) => {
            pick_windows(options, tombstones, tables, &free, moment, history)
        }
        Strategy::Unified(options) => {
            let expired = expired(&free, tables, moment, history, options.expired_check_ms);
            Levels(options).pick(&without(&free, &expired), &expired, moment, history)
        }
    }
}

fn pick_windows(
    options: &TimeWindow,
    tombstones: &Tombstones,
    tables: &[Candidate],
    free: &[&Candidate],
    moment: &PickContext<'_>,
    history: &mut History,
) -> Option<Task> {
    let expired = expired(free, tables, moment, history, options.expired_check_ms);
    let alive = without(free, &expired);
    history.highest_window = newest(&alive, options).max(history.highest_window);
    let choice = windows::choose(&alive, options, history.highest_window);
    if choice.tables.is_empty() {
        let all = Tables::new(tables.iter());
        let smallest = worth_dropping(tombstones, &alive, &all, moment).min_by_key(size_of);
        if let Some(mut task) = smallest.and_then(|table| alone(table, Output::Single { level: 0 }))
        {
            task.inputs.extend(ids(&expired));
            task.expired = ids(&expired);
            return Some(task);
        }
    }
    merged(choice.tables, expired)
}

/// `SplittingSizeTieredCompactionWriter.DEFAULT_SMALLEST_SSTABLE_BYTES`
const SMALLEST_HALF: u64 = 50_000_000;

/// The tasks of a major compaction (`nodetool compact`), to be run in order. Only size tiers can split their output.
pub fn major(compaction: &Compaction, tables: &[Candidate], split_output: bool) -> Vec<Task> {
    let output = match &compaction.strategy {
        Strategy::Unified(options) => return Levels(options).major(tables),
        Strategy::SizeTiered(_) if split_output => Output::Halves { smallest: SMALLEST_HALF },
        Strategy::SizeTiered(_) | Strategy::TimeWindow(_) => Output::Single { level: 0 },
        Strategy::Leveled(options) => Output::Levels {
            max_size: options.sstable_size,
            fanout: u32::try_from(options.fanout).unwrap_or(u32::MAX),
        },
    };
    let inputs: Vec<u64> = tables.iter().map(|table| table.id).collect();
    let task = Task { inputs, expired: Vec::new(), reason: Reason::Compaction, output };
    (!tables.is_empty()).then_some(task).into_iter().collect()
}

/// The task for SSTables that an operator has chosen (`getUserDefinedTask`).
pub fn user_defined(compaction: &Compaction, tables: &[Candidate]) -> Option<Task> {
    let output = match (&compaction.strategy, tables) {
        (Strategy::Unified(options), tables) => Levels(options).sharded(tables),
        (Strategy::Leveled(options), [only]) if only.level > 0 => {
            Output::Sized { level: only.level, max_size: options.sstable_size }
        }
        _ => Output::Single { level: 0 },
    };
    let inputs: Vec<u64> = tables.iter().map(|table| table.id).collect();
    let task = Task { inputs, expired: Vec::new(), reason: Reason::Compaction, output };
    (!tables.is_empty()).then_some(task)
}

/// The number of tasks that would follow if writes stopped, as in `nodetool compactionstats`.
pub fn estimated_remaining_tasks(
    compaction: &Compaction,
    tables: &[Candidate],
    moment: &PickContext<'_>,
    history: &History,
) -> usize {
    let free: Vec<&Candidate> =
        tables.iter().filter(|table| !moment.compacting.contains(&table.id)).collect();
    match &compaction.strategy {
        Strategy::SizeTiered(options) => {
            let buckets = tiers::buckets(&free, &options.tiers);
            tiers::estimated_tasks(&buckets, options.thresholds)
        }
        Strategy::Leveled(options) => Manifest::of(tables, options, *moment).estimated_tasks(),
        Strategy::TimeWindow(options) => {
            let highest = newest(&free, options).max(history.highest_window);
            windows::choose(&free, options, highest).estimated_tasks
        }
        Strategy::Unified(options) => Levels(options).estimated_tasks(&free, moment),
    }
}

fn worth_dropping<'a>(
    tombstones: &'a Tombstones,
    free: &'a [&'a Candidate],
    all: &'a Tables<'a>,
    moment: &'a PickContext<'a>,
) -> impl Iterator<Item = &'a Candidate> {
    let worth = |table: &&Candidate| tombstones::worth_dropping(tombstones, table, all, moment);
    free.iter().copied().filter(worth)
}

fn size_of(table: &&Candidate) -> u64 {
    table.size
}

fn newest(tables: &[&Candidate], options: &TimeWindow) -> i64 {
    tables.iter().map(|table| windows::window(table, options)).max().unwrap_or(0)
}

fn without<'a>(tables: &[&'a Candidate], gone: &[&Candidate]) -> Vec<&'a Candidate> {
    let gone: HashSet<u64> = gone.iter().map(|table| table.id).collect();
    let stays = |table: &&&Candidate| !gone.contains(&table.id);
    tables.iter().filter(stays).copied().collect()
}

/// The expired SSTables, if a check is due.
fn expired<'a>(
    free: &[&'a Candidate],
    all: &[Candidate],
    moment: &PickContext<'_>,
    history: &mut History,
    every_ms: i64,
) -> Vec<&'a Candidate> {
    if history.check_expired(moment.now_ms, every_ms) {
        tombstones::fully_expired(free, all, moment)
    } else {
        Vec::new()
    }
}

fn merged(chosen: Vec<&Candidate>, expired: Vec<&Candidate>) -> Option<Task> {
    let reason = if chosen.is_empty() { Reason::Expired } else { Reason::Compaction };
    let inputs = [ids(&chosen), ids(&expired)].concat();
    let (expired, output) = (ids(&expired), Output::Single { level: 0 });
    (!inputs.is_empty()).then_some(Task { inputs, expired, reason, output })
}

fn alone(table: &Candidate, output: Output) -> Option<Task> {
    let (inputs, expired) = (vec![table.id], vec![]);
    Some(Task { inputs, expired, reason: Reason::TombstoneCompaction, output })
}
