//! Unified: levels by density, the size per share of the token space. One parameter per level, W, says how tiered
//! (W > 0) or how leveled (W < 0) it is.
//!
//! ```text
//!           W     fanout   threshold
//!   T4      2        4          4      tiered: four SSTables become one of the next level
//!   N       0        2          2
//!   L10    -8       10          2      leveled: each that comes is merged with what is there
//! ```
//!
//! 1. A level whose SSTables overlap at least threshold-fold somewhere has work to do; of the levels, the one with the most
//!    overlap is chosen.
//! 2. What is chosen with a section is what overlaps it, as `overlap_inclusion_method` says.
//! 3. The output is split at shards whose number grows with its density, always at the same tokens.

use super::candidates::{Candidate, History, Moment, Output, Reason, Task, ids, total};
use super::overlaps::{Section, grouped, sections};
use halcyon_model::options::Unified;
use halcyon_model::options::compaction::OverlapInclusion;

/// Shares of the token space below this are no measure of density.
const COVERAGE_MIN: f64 = 1.0 / (1u64 << 48) as f64;

struct Level<'a> {
    index: usize,
    tables: Vec<&'a Candidate>,
}

/// What a level has to do.
struct Work<'a> {
    tables: Vec<&'a Candidate>,
    estimated_tasks: usize,
}

fn coverage(first: i64, last: i64) -> f64 {
    (i128::from(last) - i128::from(first)) as f64 / (1u128 << 64) as f64
}

/// Bytes per whole token space.
fn density(table: &Candidate) -> f64 {
    let reported = table.token_space_coverage;
    let share = if reported > 0.0 { reported } else { coverage(table.first, table.last) };
    table.size as f64 / if share >= COVERAGE_MIN { share } else { 1.0 }
}

/// The levels that the options make of SSTables.
pub(super) struct Levels<'a>(pub(super) &'a Unified);

impl Levels<'_> {
    /// Where the first level ends: a flush, and some leeway.
    fn first_level_max(&self, moment: &Moment<'_>) -> f64 {
        let mib = 1u64 << 20;
        let flush = self.0.flush_size_override.unwrap_or(moment.flush_size.div_ceil(mib) * mib);
        let fanout = self.0.fanout(0) as f64;
        flush.max(mib) as f64 * (1.0 - 0.9 / fanout) * fanout
    }

    fn levels<'a>(&self, tables: &[&'a Candidate], moment: &Moment<'_>) -> Vec<Level<'a>> {
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

    /// `tables` are those that may be chosen; `expired` are taken along.
    pub(super) fn pick(
        &self,
        tables: &[&Candidate],
        expired: &[&Candidate],
        moment: &Moment<'_>,
        history: &mut History,
    ) -> Option<Task> {
        let mut chosen = Vec::new();
        let mut most = None;
        for level in self.levels(tables, moment) {
            let (overlap, work) = self.work(&level, history);
            // A level with more overlap than the others, but below its threshold, leaves nothing to do: so it is in
            // Cassandra.
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

    /// Everything: what overlaps, directly or through others, together.
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

    fn shards_of(&self, tables: &[&Candidate]) -> u32 {
        let first = tables.iter().map(|table| table.first).min().unwrap_or(0);
        let last = tables.iter().map(|table| table.last).max().unwrap_or(0);
        let share = coverage(first, last);
        self.0.shard_count(total(tables) as f64 / if share >= COVERAGE_MIN { share } else { 1.0 })
    }

    /// The level's overlap, and what is to be done about it.
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
                // One of those with the most overlap, each with the same chance.
                if history.random.below(equal) == 0 {
                    tables = self.choose_in_group(level, group, overlap);
                }
            }
        }
        (overlap, Some(Work { tables, estimated_tasks }))
    }

    /// All of a group, or if it is late its oldest SSTables, as many as keep the shape of the levels.
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

    pub(super) fn estimated_tasks(&self, tables: &[&Candidate], moment: &Moment<'_>) -> usize {
        let mut history = History::new(halcyon_io::Random::seeded(0));
        let levels = self.levels(tables, moment);
        let work = levels.iter().filter_map(|level| self.work(level, &mut history).1);
        work.map(|work| work.estimated_tasks).sum()
    }
}
