//! What to merge: pure functions from a table's SSTables to a task, one for each of Cassandra's strategies.
//!
//! 1. [`Strategy::parse`] reads a table's `compaction` options, and refuses in Cassandra's words.
//! 2. [`Strategy::pick`] looks at a list of [`Candidate`]s and says what to merge next, or that there is nothing to do. What
//!    it has to remember from one choice to the next is in [`History`], which belongs to the caller.
//! 3. The task says what becomes of the inputs: one SSTable, SSTables of a size, shards, or only another level.
//!
//! Nothing here reads a file or a clock: a list that was seen in production is a test.

mod candidates;
mod debt;
mod leveled;
mod numbers;
mod options;
mod overlaps;
#[cfg(test)]
mod tests;
mod tiers;
mod tombstones;
mod unified;
mod windows;

pub use candidates::{Candidate, History, Moment, Output, Reason, Task, shard_boundaries};
pub use debt::{Debt, debt};
pub use options::{
    Kind, Levels, OverlapInclusion, Resolution, Strategy, Thresholds, Tiers, Tombstones, Unified,
    Windows,
};

use candidates::ids;
use leveled::Leveled;

impl Strategy {
    /// The next task in the background, if there is something to do.
    pub fn pick(
        &self,
        tables: &[Candidate],
        moment: &Moment<'_>,
        history: &mut History,
    ) -> Option<Task> {
        if !self.enabled {
            return None;
        }
        let free: Vec<&Candidate> =
            tables.iter().filter(|table| !moment.compacting.contains(&table.id)).collect();
        match &self.kind {
            Kind::SizeTiered { thresholds, tiers } => {
                let buckets = tiers::buckets(&free, tiers);
                let chosen = tiers::most_interesting(buckets, *thresholds);
                let largest = || self.worth_dropping(&free, tables, moment).max_by_key(size_of);
                merged(chosen, vec![]).or_else(|| alone(largest()?, Output::Single { level: 0 }))
            }
            Kind::Leveled { thresholds, tiers, levels } => {
                let leveled = Leveled::manifest(tables, *thresholds, *tiers, *levels, *moment);
                leveled.pick(history).or_else(|| {
                    let table = leveled.droppable(&self.tombstones, tables)?;
                    let max_size = levels.sstable_size;
                    alone(table, Output::Sized { level: table.level, max_size })
                })
            }
            Kind::TimeWindow { thresholds, tiers, windows } => {
                let every = windows.expired_check_ms;
                let expired =
                    expired(&free, tables, moment, history, every, windows.ignore_overlaps);
                let alive = without(&free, &expired);
                history.highest_window = newest(&alive, windows).max(history.highest_window);
                let highest = history.highest_window;
                let choice = windows::choose(&alive, *thresholds, tiers, windows, highest);
                if choice.tables.is_empty() {
                    let smallest = self.worth_dropping(&alive, tables, moment).min_by_key(size_of);
                    if let Some(mut task) =
                        smallest.and_then(|table| alone(table, Output::Single { level: 0 }))
                    {
                        task.inputs.extend(ids(&expired));
                        task.expired = ids(&expired);
                        return Some(task);
                    }
                }
                merged(choice.tables, expired)
            }
            Kind::Unified(unified) => {
                let every = unified.expired_check_ms;
                let expired =
                    expired(&free, tables, moment, history, every, unified.ignore_overlaps);
                unified.pick(&without(&free, &expired), &expired, moment, history)
            }
        }
    }

    /// What a major compaction (`nodetool compact`) does with all of them, one task after the other.
    pub fn major(&self, tables: &[Candidate]) -> Vec<Task> {
        let output = match &self.kind {
            Kind::Unified(unified) => return unified.major(tables),
            Kind::SizeTiered { .. } | Kind::TimeWindow { .. } => Output::Single { level: 0 },
            Kind::Leveled { levels, .. } => Output::Levels {
                max_size: levels.sstable_size,
                fanout: u32::try_from(levels.fanout).unwrap_or(u32::MAX),
            },
        };
        let inputs: Vec<u64> = tables.iter().map(|table| table.id).collect();
        let task = Task { inputs, expired: Vec::new(), reason: Reason::Compaction, output };
        (!tables.is_empty()).then_some(task).into_iter().collect()
    }

    /// How many tasks would follow if nothing were written any more, as `nodetool compactionstats` says.
    pub fn estimated_remaining_tasks(
        &self,
        tables: &[Candidate],
        moment: &Moment<'_>,
        history: &History,
    ) -> usize {
        let free: Vec<&Candidate> =
            tables.iter().filter(|table| !moment.compacting.contains(&table.id)).collect();
        match &self.kind {
            Kind::SizeTiered { thresholds, tiers } => {
                tiers::estimated_tasks(&tiers::buckets(&free, tiers), *thresholds)
            }
            Kind::Leveled { thresholds, tiers, levels } => {
                Leveled::manifest(tables, *thresholds, *tiers, *levels, *moment).estimated_tasks()
            }
            Kind::TimeWindow { thresholds, tiers, windows } => {
                let highest = newest(&free, windows).max(history.highest_window);
                windows::choose(&free, *thresholds, tiers, windows, highest).estimated_tasks
            }
            Kind::Unified(unified) => unified.estimated_tasks(&free, moment),
        }
    }

    fn worth_dropping<'a>(
        &'a self,
        free: &'a [&'a Candidate],
        all: &'a [Candidate],
        moment: &'a Moment<'a>,
    ) -> impl Iterator<Item = &'a Candidate> {
        let worth =
            |table: &&Candidate| tombstones::worth_dropping(&self.tombstones, table, all, moment);
        free.iter().copied().filter(worth)
    }
}

fn size_of(table: &&Candidate) -> u64 {
    table.size
}

fn newest(tables: &[&Candidate], windows: &Windows) -> i64 {
    tables.iter().map(|table| windows::window(table, windows)).max().unwrap_or(0)
}

fn without<'a>(tables: &[&'a Candidate], gone: &[&Candidate]) -> Vec<&'a Candidate> {
    let stays = |table: &&&Candidate| !gone.iter().any(|other| other.id == table.id);
    tables.iter().filter(stays).copied().collect()
}

/// The expired ones, if it is time to look for them.
fn expired<'a>(
    free: &[&'a Candidate],
    all: &[Candidate],
    moment: &Moment<'_>,
    history: &mut History,
    every_ms: i64,
    ignore_overlaps: bool,
) -> Vec<&'a Candidate> {
    if history.check_expired(moment.now_ms, every_ms) {
        tombstones::fully_expired(free, all, moment, ignore_overlaps)
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
