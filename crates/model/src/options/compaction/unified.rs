//! UnifiedCompactionStrategy: its sub-options, and the arithmetic of levels and shards that follows from them.

use super::PACKAGE;
use super::reader::{Checked, Reader};
use crate::units::human;

const SHARD_SHIFT_MAX: f64 = 20.0;
const MIB: f64 = 1_048_576.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Unified {
    /// W of each level; the last holds for all further ones.
    pub scaling_parameters: Vec<i32>,
    pub min_sstable_size: u64,
    pub target_sstable_size: f64,
    pub flush_size_override: Option<u64>,
    pub base_shard_count: u32,
    pub sstable_growth: f64,
    /// `usize::MAX`: without a limit.
    pub max_sstables_to_compact: usize,
    pub expired_check_ms: i64,
    pub overlap_inclusion: OverlapInclusion,
}

/// `overlap_inclusion_method`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapInclusion {
    None,
    Single,
    Transitive,
}

impl Unified {
    fn scaling(&self, level: usize) -> i64 {
        let last = self.scaling_parameters.last().copied().unwrap_or(0);
        self.scaling_parameters.get(level).copied().unwrap_or(last).into()
    }

    pub fn is_leveled(&self, level: usize) -> bool {
        self.scaling(level) < 0
    }

    /// How many of a level's SSTables make one of the next.
    pub fn fanout(&self, level: usize) -> usize {
        2 + self.scaling(level).unsigned_abs() as usize
    }

    /// How many overlapping SSTables make a level worth compacting.
    pub fn threshold(&self, level: usize) -> usize {
        2 + self.scaling(level).max(0) as usize
    }

    /// Into how many shards data of a density is split.
    pub fn shard_count(&self, density: f64) -> u32 {
        let base = self.base_shard_count;
        let highest_bit = |count: f64| {
            1 << (31 - (count.clamp(0.0, f64::from(i32::MAX)) as u32 | 1).leading_zeros())
        };
        if self.min_sstable_size > 0 {
            let count = density / self.min_sstable_size as f64;
            if count.is_nan() || count < f64::from(base) {
                // Powers of two that divide the base, so that boundaries of higher levels are kept.
                return highest_bit(count).min(base & base.wrapping_neg());
            }
        }
        if self.sstable_growth == 1.0 {
            return base;
        }
        if self.sstable_growth == 0.0 {
            let target = self.target_sstable_size * std::f64::consts::FRAC_1_SQRT_2;
            let count = (density / (target * f64::from(base))).min((1 << 20) as f64);
            return base.saturating_mul(highest_bit(count));
        }
        let count = density / (self.target_sstable_size * f64::from(base));
        let shift = count.log2() * (1.0 - self.sstable_growth) + 0.5;
        base.saturating_mul(1 << shift.clamp(0.0, SHARD_SHIFT_MAX) as u32)
    }

    pub(super) fn read(reader: &mut Reader<'_>, class: &str) -> Checked<Unified> {
        let scaling = reader.get("scaling_parameters").unwrap_or("T4");
        let scaling_parameters = scaling_parameters(scaling)?;
        let shards = reader.int("base_shard_count")?.map(i64::from);
        let base_shard_count = positive("base_shard_count", shards.unwrap_or(4))?;
        let name = "target_sstable_size";
        let target_sstable_size = match size(reader, name)? {
            None => 1024.0 * MIB,
            Some(bytes) if bytes < i64::MAX as f64 => bytes.trunc(),
            Some(_) => {
                let text = reader.get(name).unwrap_or_default();
                return Err(format!("{name} {text} is out of range of Long."));
            }
        };
        let flush_size_override = size(reader, "flush_size_override")?.map(|bytes| bytes as u64);
        let max_sstables_to_compact = match reader.int("max_sstables_to_compact")? {
            Some(max) if max > 0 => max.unsigned_abs() as usize,
            _ => usize::MAX,
        };
        let name = "expired_sstable_check_frequency_seconds";
        let frequency = positive(name, reader.long(name, "long")?.unwrap_or(600))?;
        // Cassandra keeps it without effect too, unless a system property allows it.
        let name = "unsafe_aggressive_sstable_expiration";
        reader.boolean(name, |word| {
            format!("{name} should either be 'true' or 'false', not {word}")
        })?;
        let sstable_growth = growth(reader)?;
        let min_sstable_size = min_size(reader, target_sstable_size)?;
        let overlap_inclusion = overlap_inclusion(reader)?;
        reader.refuse_unknown(class)?;
        Ok(Unified {
            scaling_parameters,
            min_sstable_size,
            target_sstable_size,
            flush_size_override,
            base_shard_count: u32::try_from(base_shard_count).unwrap_or(u32::MAX),
            sstable_growth,
            max_sstables_to_compact,
            expired_check_ms: frequency.saturating_mul(1000),
            overlap_inclusion,
        })
    }
}

fn positive(name: &str, value: i64) -> Checked<i64> {
    if value > 0 {
        return Ok(value);
    }
    Err(format!("Invalid configuration, {name} should be positive: {value}"))
}

/// A size of at least 1 MiB. Cassandra accepts `NaNB` as a target, and then divides by zero bytes; we do not.
fn size(reader: &mut Reader<'_>, name: &'static str) -> Checked<Option<f64>> {
    let Some(text) = reader.get(name) else { return Ok(None) };
    let bytes = human::size(text)
        .map_err(|why| format!("{name} {text} is not a valid size in bytes: {why}"))?;
    if bytes.is_nan() || bytes < MIB {
        return Err(format!("{name} {text} is not acceptable, size must be at least 1.000MiB"));
    }
    Ok(Some(bytes))
}

fn growth(reader: &mut Reader<'_>) -> Checked<f64> {
    let name = "sstable_growth";
    let Some(text) = reader.get(name) else { return Ok(0.333) };
    let share = human::percent(text)
        .map_err(|why| format!("{name} is not a valid number between 0 and 1: {why}"))?;
    if !share.is_nan() && !(0.0..=1.0).contains(&share) {
        return Err(format!("{name} {text} must be between 0 and 1"));
    }
    Ok(share)
}

fn min_size(reader: &mut Reader<'_>, target: f64) -> Checked<u64> {
    let name = "min_sstable_size";
    let Some(text) = reader.get(name) else { return Ok(100 << 20) };
    let bytes =
        human::size(text).map_err(|_| format!("{text} is not a valid size in bytes for {name}"))?;
    let bytes = bytes.min(i64::MAX as f64);
    if bytes < 0.0 {
        return Err(format!(
            "Invalid configuration, {name} should be greater than or equal to 0 (zero)"
        ));
    }
    if bytes >= target * std::f64::consts::FRAC_1_SQRT_2 {
        return Err(format!(
            "Invalid configuration, {name} ({}) should be less than 70% of the targetSSTableSize ({})",
            human::show_size(bytes),
            human::show_size(target)
        ));
    }
    Ok(bytes as u64)
}

fn overlap_inclusion(reader: &mut Reader<'_>) -> Checked<OverlapInclusion> {
    let Some(word) = reader.get("overlap_inclusion_method") else {
        return Ok(OverlapInclusion::Transitive);
    };
    match word.to_uppercase().as_str() {
        "TRANSITIVE" => Ok(OverlapInclusion::Transitive),
        "SINGLE" => Ok(OverlapInclusion::Single),
        "NONE" => Ok(OverlapInclusion::None),
        _ => Err(format!(
            "Invalid overlap inclusion method {word}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        )),
    }
}

/// `T4`, `L10`, `N` or a number, with commas between.
fn scaling_parameters(text: &str) -> Checked<Vec<i32>> {
    if text.is_empty() {
        return scaling_parameter(text).map(|w| vec![w]);
    }
    // As Java splits: what is empty at the end does not count.
    let words = text.trim_end_matches(',');
    if words.is_empty() {
        // Cassandra is then left without parameters; N stands for all levels.
        return Ok(Vec::new());
    }
    words.split(',').map(|word| scaling_parameter(word.trim())).collect()
}

fn scaling_parameter(word: &str) -> Checked<i32> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| {
        text.parse::<i32>().map_err(|_| {
            format!(
                "{PACKAGE}UnifiedCompactionStrategy.validateOptions() threw an error: java.lang.NumberFormatException For input string: \"{text}\""
            )
        })
    };
    let fan = |text: &str| match number(text)? {
        fan if fan < 2 => Err(format!("Fan factor cannot be lower than 2 in {word}")),
        fan => Ok(fan),
    };
    match (word.strip_prefix('L'), word.strip_prefix('T')) {
        _ if word == "N" => Ok(0),
        (Some(fanout), _) if digits(fanout) => Ok(2 - fan(fanout)?),
        (_, Some(fanout)) if digits(fanout) => Ok(fan(fanout)? - 2),
        _ if digits(word.strip_prefix(['+', '-']).unwrap_or(word)) => number(word),
        _ => Err(format!("Scaling parameter {word} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+")),
    }
}
