//! What all strategies share (`AbstractCompactionStrategy.validateOptions`), and the thresholds of those that have them.

use super::super::OptionError;
use super::super::map_option::Entries;
use super::reader::{Checked, Reader};
use crate::value::parse_double;

/// When one SSTable is compacted for its tombstones alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tombstones {
    /// `tombstone_threshold`: share of droppable tombstones.
    pub threshold: f32,
    /// `tombstone_compaction_interval`: seconds of age.
    pub interval: i64,
    /// `unchecked_tombstone_compaction`: without a look at what overlaps.
    pub unchecked: bool,
    /// Never, as under TimeWindow unless one of the three is set.
    pub disabled: bool,
}

impl Default for Tombstones {
    fn default() -> Tombstones {
        Tombstones { threshold: 0.2, interval: 86_400, unchecked: false, disabled: false }
    }
}

/// `min_threshold`, `max_threshold`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    pub min: usize,
    pub max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { min: 4, max: 32 }
    }
}

/// Cassandra reads this sub-option as it builds the strategy's parameters, before everything else.
pub(super) fn check_overlapping_tombstones(given: &Entries) -> Result<(), OptionError> {
    let name = "provide_overlapping_tombstones";
    match given.get(name).map(|word| word.to_uppercase()).as_deref() {
        None | Some("NONE" | "ROW" | "CELL") => Ok(()),
        Some(word) => Err(OptionError::Configuration(format!(
            "Invalid value {word} for '{name}' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
        ))),
    }
}

/// With whether compaction is enabled.
pub(super) fn read(reader: &mut Reader<'_>) -> Checked<(Tombstones, bool)> {
    let mut tombstones = Tombstones::default();
    let name = "tombstone_threshold";
    if let Some(text) = reader.get(name) {
        let parsed = parse_double(text);
        let threshold =
            parsed.ok_or_else(|| format!("{text} is not a parsable int (base10) for {name}"))?;
        let threshold = threshold as f32;
        if threshold < 0.0 {
            return Err(format!("{name} must be greater than 0, but was {threshold:.6}"));
        }
        tombstones.threshold = threshold;
    }
    let name = "tombstone_compaction_interval";
    if let Some(interval) = reader.long(name, "int")? {
        if interval < 0 {
            return Err(format!("{name} must be greater than 0, but was {interval}"));
        }
        tombstones.interval = interval;
    }
    let name = "unchecked_tombstone_compaction";
    tombstones.unchecked = reader.boolean(name, |word| {
        format!("'{name}' should be either 'true' or 'false', not '{word}'")
    })?;
    reader.boolean("log_all", |word| {
        format!("'log_all' should either be 'true' or 'false', not {word}")
    })?;
    let stated = reader.entries.contains_key("enabled");
    let enabled = reader.boolean("enabled", |word| {
        format!("enabled should either be 'true' or 'false', not {word}")
    })?;
    reader.get("only_purge_repaired_tombstones");
    reader.get("provide_overlapping_tombstones");
    Ok((tombstones, !stated || enabled))
}

impl Thresholds {
    /// The last check of all, after the sub-options that the strategy does not understand.
    pub(super) fn read(reader: &mut Reader<'_>, class: &str) -> Checked<Thresholds> {
        let texts = (reader.get("min_threshold"), reader.get("max_threshold"));
        reader.refuse_unknown(class)?;
        let parse = |name: &str, text: Option<&str>, default| match text {
            None => Ok(default),
            Some(text) if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => {
                Err(format!(
                    "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
                ))
            }
            Some(text) => text
                .parse::<u32>()
                .ok()
                .filter(|n| i32::try_from(*n).is_ok())
                .ok_or_else(|| format!("For input string: \"{text}\"")),
        };
        let min = parse("min_threshold", texts.0, 4)?;
        let max = parse("max_threshold", texts.1, 32)?;
        if min == 0 || max == 0 {
            return Err("Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option 'enabled' to false instead.".to_owned());
        }
        if min < 2 {
            return Err(format!("Min compaction threshold cannot be less than 2 (got {min})"));
        }
        if min > max {
            return Err(format!(
                "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
            ));
        }
        Ok(Thresholds { min: min as usize, max: max as usize })
    }
}
