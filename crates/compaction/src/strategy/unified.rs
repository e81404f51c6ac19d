//! Unified: levels by density, the size per share of the token space. The parameter W makes a level tiered (W > 0) or leveled
//! (W < 0).
//!
//! ```text
//!           W     fanout   threshold
//!   T4      2        4          4      tiered: four SSTables become one of the next level
//!   N       0        2          2
//!   L10    -8       10          2      leveled: each new SSTable is merged with those of the level
//! ```
//!
//! 1. A level needs compaction if at least `threshold` of its SSTables overlap. The level with the largest overlap is picked.
//! 2. `overlap_inclusion_method` determines which SSTables are picked with a section.
//! 3. The output is split into shards. Their number grows with the density; their boundaries are always the same tokens.

use super::candidates::{Candidate, History, Output, PickContext, Reason, Task, ids, total};
use super::overlaps::{Section, grouped, sections};
use halcyon_model::options::Unified;
use halcyon_model::options::compaction::OverlapInclusion;

/// A smaller share of the token space is not a measure of density.
const COVERAGE_MIN: f64 = 1.0 / (1u64 << 48) as f64;

struct Level<'a> {
    index: usize,
    tables: Vec<&'a Candidate>,
}

/// The compaction that a level needs.
struct Work<'a> {
    tables: Vec<&'a Candidate>,
    estimated_tasks: usize,
}

fn coverage(first: i64, last: i64) -> f64 {
    (i128::from(last) - i128::from(first)) as f64 / (1u128 << 64) as f64
}

/// Bytes divided by the share of the token space.
pub(super) fn density(table: &Candidate) -> f64 {
    let reported = table.token_space_coverage;
    let share = if reported > 0.0 { reported } else { coverage(table.first, table.last) };
    table.size as f64 / if share >= COVERAGE_MIN { share } else { 1.0 }
}

/// Of what they become together.
pub(super) fn density_of_all(tables: &[&Candidate]) -> f64 {
    let first = tables.iter().map(|table| table.first).min().unwrap_or(0);
    let last = tables.iter().map(|table| table.last).max().unwrap_or(0);
    let share = coverage(first, last);
    total(tables) as f64 / if share >= COVERAGE_MIN { share } else { 1.0 }
}

/// The levels that the options make of SSTables.
pub(super) struct Levels<'a>(pub(super) &'a Unified);

impl Levels<'_> {
    /// The upper bound of the first level: the size of a flush with a margin.
    fn first_level_max(&self, moment: &PickContext<'_>) -> f64 {
        let mib = 1u64 << 20;
        let flush = self.0.flush_size_override.unwrap_or(moment.flush_size.div_ceil(mib) * mib);
        let fanout = self.0.fanout(0) as f64;
        flush.max(mib) as f64 * (1.0 - 0.9 / fanout) * fanout
    }

    fn levels<'a>(&self, tables: &[&'a Candidate], moment: &PickContext<'_>) -> Vec<Level<'a>> {
        let mut sorted: Vec<(f64, &Candidate)> =
            tables.iter().map(|table| (density(table), *table)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.id.cmp(&b.1.id)));
        let mut levels = vec![Level { index: 0, tables: Vec::new() }];
        let mut max = self.first_level_max(moment).floor();
        for (density, table) in sorted {
            while density >= max && max.is_finite() {
                let index = levels.len();
                max = (max * self.0.fanout(index) as f64).floor();
                levels.push(Level { index, tables: Vec::new() });
            }
            if let Some(level) = levels.last_mut() {
                level.tables.push(table);
            }
        }
        levels
    }

    /// Picks from `tables`, and adds `expired`.
    pub(super) fn pick(
        &self,
        tables: &[&Candidate],
        expired: &[&Candidate],
        moment: &PickContext<'_>,
        history: &mut History,
    ) -> Option<Task> {
        let mut chosen = Vec::new();
        let mut most = None;
        for level in self.levels(tables, moment) {
            let (overlap, work) = self.work(&level, history);
            // As in Cassandra: if the level with the largest overlap is below its threshold, no task follows, even if another
            // level has one.
            if overlap > most {
                most = overlap;
                chosen = work.map_or_else(Vec::new, |work| work.tables);
            }
        }
        let output = Output::Sharded { shards: self.shards_of(&chosen) };
        let reason = if chosen.is_empty() { Reason::Expired } else { Reason::Compaction };
        chosen.extend(expired);
        let expired = ids(expired);
        (!chosen.is_empty()).then(|| Task { inputs: ids(&chosen), expired, reason, output })
    }

    /// One task for each set of SSTables that overlap, directly or through others.
    pub(super) fn major(&self, tables: &[Candidate]) -> Vec<Task> {
        let tables: Vec<&Candidate> = tables.iter().collect();
        let sections = sections(&tables);
        let task = |group: std::ops::Range<usize>| {
            let indexes: Section = sections[group].iter().flatten().copied().collect();
            let set: Vec<&Candidate> = indexes.into_iter().map(|index| tables[index]).collect();
            Task {
                inputs: ids(&set),
                expired: Vec::new(),
                reason: Reason::Compaction,
                output: Output::Sharded { shards: self.shards_of(&set) },
            }
        };
        grouped(1, OverlapInclusion::Transitive, &sections).into_iter().map(task).collect()
    }

    /// What all of them together become.
    pub(super) fn sharded(&self, tables: &[Candidate]) -> Output {
        Output::Sharded { shards: self.shards_of(&tables.iter().collect::<Vec<_>>()) }
    }

    fn shards_of(&self, tables: &[&Candidate]) -> u32 {
        self.0.shard_count(density_of_all(tables))
    }

    /// The level's overlap, and the compaction that it needs.
    fn work<'a>(
        &self,
        level: &Level<'a>,
        history: &mut History,
    ) -> (Option<usize>, Option<Work<'a>>) {
        let sections = sections(&level.tables);
        let overlap = sections.iter().map(Section::len).max();
        let threshold = self.0.threshold(level.index);
        let Some(most) = overlap.filter(|overlap| *overlap >= threshold) else {
            return (overlap, None);
        };
        let (mut tables, mut equal, mut estimated_tasks) = (Vec::new(), 0, 0);
        for group in grouped(threshold, self.0.overlap_inclusion, &sections) {
            let group = &sections[group];
            let overlap = group.iter().map(Section::len).max().unwrap_or(0);
            estimated_tasks += overlap / threshold;
            if overlap == most {
                equal += 1;
                // Pick among equal ones at random, with equal chances.
                if history.random.below(equal) == 0 {
                    tables = self.choose_in_group(level, group, overlap);
                }
            }
        }
        (overlap, Some(Work { tables, estimated_tasks }))
    }

    /// All SSTables of a group; if compaction is behind, only as many of the oldest as keep the shape of the levels.
    fn choose_in_group<'a>(
        &self,
        level: &Level<'a>,
        group: &[Section],
        overlap: usize,
    ) -> Vec<&'a Candidate> {
        let fanout = self.0.fanout(level.index);
        let max = self.0.max_sstables_to_compact.max(fanout);
        let limit = if overlap <= fanout {
            usize::MAX
        } else if overlap <= fanout.saturating_mul(self.0.fanout(level.index + 1)) || max == fanout
        {
            max
        } else {
            self.pick_size(level.index, max.min(overlap))
        };
        let all: Section = group.iter().flatten().copied().collect();
        let mut oldest: Vec<usize> = all.into_iter().collect();
        oldest.sort_by_key(|index| (level.tables[*index].max_timestamp, level.tables[*index].id));
        let mut counts = vec![0; group.len()];
        let mut chosen = Vec::new();
        for index in oldest {
            for (section, count) in group.iter().zip(&mut counts) {
                *count += usize::from(section.contains(&index));
            }
            if counts.iter().any(|count| *count > limit) {
                break;
            }
            chosen.push(level.tables[index]);
        }
        chosen
    }

    fn pick_size(&self, mut index: usize, limit: usize) -> usize {
        let leveled = self.0.is_leveled(index);
        let mut size = self.0.fanout(index);
        loop {
            index += 1;
            match size.checked_mul(self.0.fanout(index)) {
                Some(next) if next <= limit => size = next,
                _ => break,
            }
        }
        if leveled { size * (limit / size).max(1) } else { size }
    }

    pub(super) fn estimated_tasks(&self, tables: &[&Candidate], moment: &PickContext<'_>) -> usize {
        let mut history = History::new(halcyon_io::Random::seeded(0));
        let levels = self.levels(tables, moment);
        let work = levels.iter().filter_map(|level| self.work(level, &mut history).1);
        work.map(|work| work.estimated_tasks).sum()
    }
}
