//! `compaction = { … }`: a strategy with its sub-options (`CompactionParams`, `validateOptions` of each strategy).
//!
//! The order of the checks is Cassandra's: the class, what all strategies share, the strategy's own, what it does not
//! understand, the thresholds.

mod leveled;
mod reader;
mod shared;
mod size_tiered;
#[cfg(test)]
mod tests;
mod time_window;
mod unified;

pub use leveled::{LEVEL_MAX, Leveled};
pub use shared::{Thresholds, Tombstones};
pub use size_tiered::{SizeTiered, Tiers};
pub use time_window::{Resolution, TimeWindow};
pub use unified::{OverlapInclusion, Unified};

pub use reader::hash_order;

use super::map_option::{Entries, SubOptions};
use super::{OptionError, defaults};
use reader::{Checked, Reader};

/// Of the strategies that have them.
const THRESHOLDS: [(&str, &str); 2] = [("min_threshold", "4"), ("max_threshold", "32")];
const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// What to merge, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// `false`: nothing is compacted in the background.
    pub enabled: bool,
    pub tombstones: Tombstones,
    pub strategy: Strategy,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Strategy {
    SizeTiered(SizeTiered),
    Leveled(Leveled),
    TimeWindow(TimeWindow),
    Unified(Unified),
}

impl Default for Compaction {
    fn default() -> Compaction {
        Compaction {
            enabled: true,
            tombstones: Tombstones::default(),
            strategy: Strategy::SizeTiered(SizeTiered::default()),
        }
    }
}

impl Compaction {
    /// The strategy's class, without its package.
    pub fn class(&self) -> &'static str {
        match self.strategy {
            Strategy::SizeTiered(_) => "SizeTieredCompactionStrategy",
            Strategy::Leveled(_) => "LeveledCompactionStrategy",
            Strategy::TimeWindow(_) => "TimeWindowCompactionStrategy",
            Strategy::Unified(_) => "UnifiedCompactionStrategy",
        }
    }

    /// `bloom_filter_fp_chance` of a table that does not state it: leveled reads ask fewer SSTables.
    pub fn default_fp_chance(&self) -> f64 {
        match self.strategy {
            Strategy::Leveled(_) => defaults::LEVELED_BLOOM_FILTER_FP_CHANCE,
            _ => defaults::BLOOM_FILTER_FP_CHANCE,
        }
    }
}

impl SubOptions for Compaction {
    fn defaults() -> Entries {
        let class = format!("{PACKAGE}{}", Compaction::default().class());
        let thresholds = THRESHOLDS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        [("class".to_owned(), class)].into_iter().chain(thresholds).collect()
    }

    /// The class by its full name, thresholds where the strategy has them.
    fn normalize(mut given: Entries) -> Result<Entries, OptionError> {
        let class = given.remove("class").ok_or_else(|| {
            OptionError::configuration("Missing sub-option 'class' for the 'compaction' option")
        })?;
        let full = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
        let has_thresholds = match full.strip_prefix(PACKAGE) {
            Some(
                "SizeTieredCompactionStrategy"
                | "LeveledCompactionStrategy"
                | "TimeWindowCompactionStrategy",
            ) => true,
            Some("UnifiedCompactionStrategy") => false,
            _ => {
                let what = format!("Unable to find compaction strategy class '{full}'");
                return Err(OptionError::Configuration(what));
            }
        };
        shared::check_overlapping_tombstones(&given)?;
        if has_thresholds {
            for (name, value) in THRESHOLDS {
                given.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
        given.insert("class".to_owned(), full);
        Ok(given)
    }

    fn parse(entries: &Entries) -> Result<Compaction, OptionError> {
        read(entries).map_err(OptionError::Configuration)
    }
}

fn read(entries: &Entries) -> Checked<Compaction> {
    let mut reader = Reader::new(entries);
    let class = reader.get("class").unwrap_or_default();
    let class = class.strip_prefix(PACKAGE).unwrap_or(class);
    let (mut tombstones, enabled) = shared::read(&mut reader)?;
    let strategy = match class {
        "SizeTieredCompactionStrategy" => {
            Strategy::SizeTiered(SizeTiered::read(&mut reader, class)?)
        }
        "LeveledCompactionStrategy" => Strategy::Leveled(Leveled::read(&mut reader, class)?),
        "TimeWindowCompactionStrategy" => {
            let asked = ["tombstone_threshold", "tombstone_compaction_interval"];
            let set = asked.iter().any(|name| entries.contains_key(*name));
            tombstones.disabled = !set && !tombstones.unchecked;
            Strategy::TimeWindow(TimeWindow::read(&mut reader, class)?)
        }
        _ => Strategy::Unified(Unified::read(&mut reader, class)?),
    };
    Ok(Compaction { enabled, tombstones, strategy })
}
