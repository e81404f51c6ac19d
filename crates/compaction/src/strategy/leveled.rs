//! Leveled: level n is a run of disjoint SSTables, ten times the size of level n - 1.
//!
//! 1. The highest level above its size is compacted: one of its SSTables with those that it overlaps in the next level. Each time, the
//!    SSTable after the last one is picked.
//! 2. Level 0 has the flushed SSTables. Once they are large enough, they are compacted with those that they overlap in level 1.
//! 3. If level 0 has more than 32 SSTables, it is first compacted within itself, by size.
//! 4. If a level was not picked 25 times, one of its SSTables is added to a compaction whose range includes it.

use std::collections::HashSet;

use super::candidates::{
    Candidate, History, Output, PickContext, Reason, Tables, Task, ids, total,
};
use super::{tiers, tombstones};
use halcyon_model::options::Leveled;
use halcyon_model::options::compaction::{LEVEL_MAX, Tombstones};

/// A larger level 0 is first compacted by size.
const L0_BEHIND: usize = 32;
/// The number of picks after which a level is starved.
const STARVED_AFTER: u32 = 25;

pub(super) struct Manifest<'a> {
    options: &'a Leveled,
    moment: PickContext<'a>,
    /// The SSTables by level, then first token.
    levels: Vec<Vec<&'a Candidate>>,
}

impl<'a> Manifest<'a> {
    /// Builds the manifest; an SSTable that overlaps another one of its level goes to level 0.
    pub(super) fn of(
        tables: &'a [Candidate],
        options: &'a Leveled,
        moment: PickContext<'a>,
    ) -> Manifest<'a> {
        let mut levels = vec![Vec::new(); LEVEL_MAX as usize + 1];
        let mut sorted: Vec<&Candidate> = tables.iter().collect();
        sorted.sort_by_key(|table| (table.first, table.id));
        for table in sorted {
            let level = table.level.min(LEVEL_MAX) as usize;
            let free = levels[level].last().is_none_or(|l: &&Candidate| l.last < table.first);
            levels[if free { level } else { 0 }].push(table);
        }
        Manifest { options, moment, levels }
    }

    fn level(&self, level: u32) -> &[&'a Candidate] {
        self.levels.get(level as usize).map_or(&[], Vec::as_slice)
    }

    /// The level in the manifest, which can differ from the one in the statistics.
    fn level_of(&self, table: &Candidate) -> u32 {
        let said = table.level.min(LEVEL_MAX);
        if said == 0 {
            return 0;
        }
        // Above level 0 none overlaps another, so the first tokens differ.
        let tables = self.level(said);
        let at = tables.partition_point(|other| other.first < table.first);
        if tables.get(at).is_some_and(|other| other.id == table.id) { said } else { 0 }
    }

    fn is_busy(&self, table: &Candidate) -> bool {
        self.moment.compacting.contains(&table.id)
    }

    fn max_bytes(&self, level: u32) -> f64 {
        let size = self.options.sstable_size as f64;
        if level == 0 { 4.0 * size } else { (self.options.fanout as f64).powi(level as i32) * size }
    }

    pub(super) fn pick(&self, history: &mut History) -> Option<Task> {
        let behind = self.size_tiered_l0();
        for level in (1..LEVEL_MAX).rev() {
            let free: Vec<&Candidate> =
                self.level(level).iter().copied().filter(|table| !self.is_busy(table)).collect();
            if total(&free) as f64 / self.max_bytes(level) <= 1.001 {
                continue;
            }
            if behind.is_some() {
                return behind;
            }
            let chosen = self.choose_in_level(level, history.last_chosen[level as usize]);
            if !chosen.is_empty() {
                let next = self.next_level(&chosen);
                let chosen = self.with_starved(next, chosen, history);
                return Some(self.task(chosen, next, history));
            }
        }
        if self.level(0).is_empty() {
            return None;
        }
        let chosen = self.choose_in_level_0();
        if chosen.is_empty() {
            return behind;
        }
        let next = self.next_level(&chosen);
        Some(self.task(chosen, next, history))
    }

    fn task(&self, chosen: Vec<&Candidate>, level: u32, history: &mut History) -> Task {
        let lowest = chosen.iter().map(|table| self.level_of(table)).min().unwrap_or(0);
        history.last_chosen[lowest as usize] = chosen.iter().map(|table| table.first).max();
        let alone = chosen.len() == 1 && self.options.single_sstable_uplevel;
        let output = if alone {
            Output::Relevel { level }
        } else {
            Output::Sized { level, max_size: self.options.sstable_size }
        };
        Task { inputs: ids(&chosen), expired: vec![], reason: Reason::Compaction, output }
    }

    fn size_tiered_l0(&self) -> Option<Task> {
        if self.level(0).len() <= L0_BEHIND {
            return None;
        }
        let free: Vec<&Candidate> =
            self.level(0).iter().copied().filter(|table| !self.is_busy(table)).collect();
        let buckets = tiers::buckets(&free, &self.options.tiers);
        let chosen = tiers::most_interesting(buckets, self.options.thresholds);
        (!chosen.is_empty()).then(|| Task {
            inputs: ids(&chosen),
            expired: vec![],
            reason: Reason::Compaction,
            output: Output::Single { level: 0 },
        })
    }

    /// One SSTable of a level and those that it overlaps in the next level, none of them being compacted.
    fn choose_in_level(&self, level: u32, last_chosen: Option<i64>) -> Vec<&'a Candidate> {
        let tables = self.level(level);
        let behind = |table: &&Candidate| last_chosen.is_some_and(|last| table.first <= last);
        let start = tables.partition_point(behind);
        for table in tables[start..].iter().chain(&tables[..start]) {
            let mut chosen = vec![*table];
            let next = self.level(level + 1);
            let from = next.partition_point(|other| other.last < table.first);
            let next = next.iter().skip(from).take_while(|other| other.first <= table.last);
            chosen.extend(next);
            if !chosen.iter().any(|table| self.is_busy(table)) {
                return chosen;
            }
        }
        Vec::new()
    }

    /// The oldest SSTables of level 0 with those that overlap them there; if they are large enough, also those that they overlap in
    /// level 1.
    fn choose_in_level_0(&self) -> Vec<&'a Candidate> {
        let busy: Vec<&Candidate> =
            self.level(0).iter().copied().filter(|table| self.is_busy(table)).collect();
        let busy_range = span(&busy);
        let mut oldest_first = self.level(0).to_vec();
        oldest_first.sort_by_key(|table| (table.max_timestamp, table.id));
        let tables = Tables::new(oldest_first.iter().copied());
        let mut taken: HashSet<u64> = HashSet::new();
        let mut chosen: Vec<&Candidate> = Vec::new();
        for table in oldest_first {
            if chosen.iter().any(|other| other.id == table.id) {
                continue;
            }
            let mut together = vec![table];
            let overlapping = tables.overlapping(table).into_iter();
            together.extend(overlapping.filter(|other| !taken.contains(&other.id)));
            if together.iter().any(|table| self.is_busy(table)) {
                continue;
            }
            let wanted = |table: &&&Candidate| {
                let known = chosen.iter().any(|other| other.id == table.id);
                !known && busy_range.is_none_or(|(first, last)| !table.overlaps(first, last))
            };
            let more: Vec<&Candidate> = together.iter().filter(wanted).copied().collect();
            chosen.extend(more);
            taken.extend(together.iter().map(|table| table.id));
            if chosen.len() > self.options.thresholds.max {
                chosen.sort_by_key(|table| (table.max_timestamp, table.id));
                chosen.truncate(self.options.thresholds.max);
                break;
            }
        }
        if total(&chosen) > self.options.sstable_size {
            let touches = |table: &Candidate, others: &[&Candidate]| {
                others.iter().any(|other| other.overlaps(table.first, table.last))
            };
            let next: Vec<&Candidate> =
                self.level(1).iter().copied().filter(|table| touches(table, &chosen)).collect();
            let hindered = next.iter().any(|table| self.is_busy(table))
                || busy.iter().any(|table| touches(table, &chosen));
            if hindered {
                return Vec::new();
            }
            chosen.extend(next);
        }
        if chosen.len() < 2 { Vec::new() } else { chosen }
    }

    fn next_level(&self, chosen: &[&Candidate]) -> u32 {
        let levels = || chosen.iter().map(|table| self.level_of(table));
        let (low, high) = (levels().min().unwrap_or(0), levels().max().unwrap_or(0));
        if low == 0 && high == 0 && total(chosen) < self.options.sstable_size {
            return 0;
        }
        let next = if low == high { high + 1 } else { high };
        next.min(LEVEL_MAX)
    }

    fn with_starved(
        &self,
        target: u32,
        mut chosen: Vec<&'a Candidate>,
        history: &mut History,
    ) -> Vec<&'a Candidate> {
        history.unchosen.iter_mut().skip(1).for_each(|count| *count += 1);
        history.unchosen[target as usize] = 0;
        let highest = (1..=LEVEL_MAX).rev().find(|level| !self.level(*level).is_empty());
        let Some(highest) = highest else { return chosen };
        if history.unchosen[highest as usize] <= STARVED_AFTER {
            return chosen;
        }
        let Some((first, last)) = span(&chosen).filter(|(first, last)| first != last) else {
            return chosen;
        };
        let known = |table: &Candidate| chosen.iter().any(|other| other.id == table.id);
        let within = |table: &&&Candidate| {
            // In Cassandra both are ranges (first, last], so an equal start counts as contained.
            table.first >= first && table.last <= last && !self.is_busy(table) && !known(table)
        };
        let starved = self.level(highest).iter().find(within).copied();
        chosen.extend(starved);
        chosen
    }

    /// The SSTable with the most droppable tombstones, from the highest level with one worth compacting.
    pub(super) fn droppable(
        &self,
        options: &Tombstones,
        all: &Tables<'a>,
    ) -> Option<&'a Candidate> {
        (0..=LEVEL_MAX).rev().find_map(|level| {
            let mut tables = self.level(level).to_vec();
            tables.sort_by(|a, b| b.droppable_ratio.total_cmp(&a.droppable_ratio));
            tables.into_iter().find(|table| {
                !self.is_busy(table)
                    && tombstones::worth_dropping(options, table, all, &self.moment)
            })
        })
    }

    pub(super) fn estimated_tasks(&self) -> usize {
        let size = self.options.sstable_size.max(1) as f64;
        let over = |level: u32| {
            let excess = total(self.level(level)) as f64 - (self.max_bytes(level) * 1.001).floor();
            (excess.max(0.0) / size).ceil() as usize
        };
        let l0 = self.level(0).len();
        let further =
            if l0 > self.options.thresholds.max { l0 / self.options.thresholds.max } else { 0 };
        (0..=LEVEL_MAX).map(over).sum::<usize>() + further
    }
}

fn span(tables: &[&Candidate]) -> Option<(i64, i64)> {
    let first = tables.iter().map(|table| table.first).min()?;
    Some((first, tables.iter().map(|table| table.last).max()?))
}
