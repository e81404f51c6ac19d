//! `compaction = { … }`: a strategy with its options (`CompactionParams`, `validateOptions` of each strategy).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use halcyon_model::value::{double_to_string, float_to_string};

use super::table_options::configuration;
use halcyon_syntax::{Error, Result};

type Options = BTreeMap<String, String>;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";
/// The default chance of LeveledCompactionStrategy, whose reads ask fewer SSTables.
pub(super) const LEVELED_FP_CHANCE: f64 = 0.1;

pub(super) fn is_leveled(options: &Options) -> bool {
    options.get("class").is_some_and(|class| class.ends_with(".LeveledCompactionStrategy"))
}

/// The options as they are kept: the class by its full name, thresholds where the strategy has them.
pub(super) fn read(mut given: Options) -> Result<Options> {
    let class = given
        .remove("class")
        .ok_or_else(|| configuration("Missing sub-option 'class' for the 'compaction' option"))?;
    let full = if class.contains('.') { class } else { format!("{PACKAGE}{class}") };
    let has_thresholds = match full.strip_prefix(PACKAGE) {
        Some(
            "SizeTieredCompactionStrategy"
            | "LeveledCompactionStrategy"
            | "TimeWindowCompactionStrategy",
        ) => true,
        Some("UnifiedCompactionStrategy") => false,
        _ => {
            return Err(configuration(format!(
                "Unable to find compaction strategy class '{full}'"
            )));
        }
    };
    if has_thresholds {
        given.entry("min_threshold".to_owned()).or_insert_with(|| "4".to_owned());
        given.entry("max_threshold".to_owned()).or_insert_with(|| "32".to_owned());
    }
    given.insert("class".to_owned(), full);
    Ok(given)
}

/// What `default_compaction` of a node's settings says, as a table's option.
pub fn default_compaction(mut parameters: Options, class: &str) -> Result<Options> {
    parameters.insert("class".to_owned(), class.to_owned());
    let options = read(parameters)?;
    check(&options)?;
    Ok(options)
}

fn parsed<T: FromStr>(options: &Options, name: &str, what: &str) -> Result<Option<T>> {
    let Some(text) = options.get(name) else { return Ok(None) };
    let found = text
        .parse()
        .map_err(|_| configuration(format!("{text} is not a parsable {what} for {name}")))?;
    Ok(Some(found))
}

fn int<T: FromStr>(options: &Options, name: &str) -> Result<Option<T>> {
    parsed(options, name, "int (base10)")
}

fn not_above<T: Display>(name: &str, value: T) -> Error {
    configuration(format!("{name} must be larger than 0, but was {value}"))
}

/// All but the common options, which are checked last.
pub(super) fn check(options: &Options) -> Result<()> {
    let class = options.get("class").map(String::as_str).unwrap_or_default();
    let name = class.strip_prefix(PACKAGE).unwrap_or(class);
    common(options)?;
    let known: &[&str] = match name {
        "SizeTieredCompactionStrategy" => {
            size_tiered(options)?;
            &SIZE_TIERED
        }
        "LeveledCompactionStrategy" => {
            leveled(options)?;
            size_tiered(options)?;
            &LEVELED
        }
        "TimeWindowCompactionStrategy" => {
            time_window(options)?;
            size_tiered(options)?;
            &TIME_WINDOW
        }
        _ => {
            unified(options)?;
            &UNIFIED
        }
    };
    let unknown: Vec<&str> = options
        .keys()
        .map(String::as_str)
        .filter(|option| !known.contains(option) && !COMMON.contains(option))
        .collect();
    if !unknown.is_empty() {
        return Err(configuration(format!(
            "Properties specified [{}] are not understood by {name}",
            unknown.join(", ")
        )));
    }
    thresholds(options)
}

const COMMON: [&str; 8] = [
    "class",
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
];
const SIZE_TIERED: [&str; 5] =
    ["min_threshold", "max_threshold", "min_sstable_size", "bucket_low", "bucket_high"];
const LEVELED: [&str; 8] = [
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
    "sstable_size_in_mb",
    "fanout_size",
    "single_sstable_uplevel",
];
const TIME_WINDOW: [&str; 10] = [
    "min_threshold",
    "max_threshold",
    "min_sstable_size",
    "bucket_low",
    "bucket_high",
    "compaction_window_unit",
    "compaction_window_size",
    "timestamp_resolution",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
];
const UNIFIED: [&str; 9] = [
    "scaling_parameters",
    "target_sstable_size",
    "min_sstable_size",
    "base_shard_count",
    "sstable_growth",
    "flush_size_override",
    "overlap_inclusion_method",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
];

/// `AbstractCompactionStrategy.validateOptions`
fn common(options: &Options) -> Result<()> {
    if let Some(threshold) = int::<f32>(options, "tombstone_threshold")?
        && threshold < 0.0
    {
        return Err(configuration(format!(
            "tombstone_threshold must be greater than 0, but was {threshold:.6}"
        )));
    }
    if let Some(interval) = int::<i64>(options, "tombstone_compaction_interval")?
        && interval < 0
    {
        return Err(configuration(format!(
            "tombstone_compaction_interval must be greater than 0, but was {interval}"
        )));
    }
    let is_boolean =
        |text: &str| text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    for name in ["unchecked_tombstone_compaction", "only_purge_repaired_tombstones"] {
        if let Some(text) = options.get(name).filter(|text| !is_boolean(text)) {
            return Err(configuration(format!(
                "'{name}' should be either 'true' or 'false', not '{text}'"
            )));
        }
    }
    if let Some(text) = options.get("enabled").filter(|text| !is_boolean(text)) {
        return Err(configuration(format!(
            "enabled should either be 'true' or 'false', not {text}"
        )));
    }
    Ok(())
}

fn size_tiered(options: &Options) -> Result<()> {
    if let Some(size) = int::<i64>(options, "min_sstable_size")?
        && size < 0
    {
        return Err(configuration(format!("min_sstable_size must be non negative: {size}")));
    }
    let low: f64 = parsed(options, "bucket_low", "float")?.unwrap_or(0.5);
    let high: f64 = parsed(options, "bucket_high", "float")?.unwrap_or(1.5);
    if high <= low {
        return Err(configuration(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            double_to_string(high),
            double_to_string(low)
        )));
    }
    Ok(())
}

fn leveled(options: &Options) -> Result<()> {
    for name in ["sstable_size_in_mb", "fanout_size"] {
        if let Some(size) = int::<i32>(options, name)?
            && size < 1
        {
            return Err(not_above(name, size));
        }
    }
    Ok(())
}

fn time_window(options: &Options) -> Result<()> {
    const RESOLUTIONS: [&str; 7] =
        ["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];
    let one_of = |name: &str, known: &[&str]| match options.get(name) {
        Some(text) if !known.contains(&text.as_str()) => {
            Err(configuration(format!("{text} is not valid for {name}")))
        }
        _ => Ok(()),
    };
    one_of("timestamp_resolution", &RESOLUTIONS)?;
    one_of("compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    if let Some(size) = int::<i32>(options, "compaction_window_size")?
        && size < 1
    {
        return Err(configuration(format!(
            "{size} must be greater than 1 for compaction_window_size"
        )));
    }
    expiration(options)
}

fn expiration(options: &Options) -> Result<()> {
    if let Some(seconds) = int::<i64>(options, "expired_sstable_check_frequency_seconds")?
        && seconds < 0
    {
        return Err(configuration(format!(
            "expired_sstable_check_frequency_seconds must not be negative, but was {seconds}"
        )));
    }
    match options.get("unsafe_aggressive_sstable_expiration") {
        Some(text) if !matches!(text.to_ascii_lowercase().as_str(), "true" | "false") => {
            Err(configuration(format!(
                "unsafe_aggressive_sstable_expiration is not 'true' or 'false' ({text})"
            )))
        }
        _ => Ok(()),
    }
}

fn unified(options: &Options) -> Result<()> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    for parameter in options.get("scaling_parameters").iter().flat_map(|text| text.split(',')) {
        let parameter = parameter.trim();
        let rest = parameter.get(1..).unwrap_or_default();
        let fits = parameter == "N"
            || (parameter.starts_with(['L', 'T', '+', '-']) && is_number(rest))
            || is_number(parameter);
        if !fits {
            return Err(configuration(format!(
                "Scaling parameter {parameter} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
            )));
        }
    }
    if let Some(text) = options.get("target_sstable_size") {
        let bytes = size(text).ok_or_else(|| {
            configuration(format!(
                "target_sstable_size {text} is not a valid size in bytes: Invalid size {text}"
            ))
        })?;
        if bytes < 1024.0 * 1024.0 {
            return Err(configuration(format!(
                "target_sstable_size {text} is not acceptable, size must be at least 1.000MiB"
            )));
        }
    }
    if let Some(count) = int::<i32>(options, "base_shard_count")?
        && count <= 0
    {
        return Err(configuration(format!(
            "Invalid configuration, base_shard_count should be positive: {count}"
        )));
    }
    if let Some(growth) = parsed::<f32>(options, "sstable_growth", "float")?
        && !(0.0..=1.0).contains(&growth)
    {
        return Err(configuration(format!(
            "sstable_growth {} must be between 0 and 1",
            float_to_string(growth)
        )));
    }
    expiration(options)
}

/// A number of bytes with a unit: `1GiB`, `200 MiB`.
fn size(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let number: f64 = number.trim().parse().ok()?;
    let factor = match unit {
        "" | "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * factor)
}

fn thresholds(options: &Options) -> Result<()> {
    let threshold = |name: &str| -> Result<Option<i64>> {
        let Some(text) = options.get(name) else { return Ok(None) };
        let found = text.parse::<i64>().ok().filter(|n| *n >= 0);
        found.map(Some).ok_or_else(|| {
            configuration(format!(
                "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
            ))
        })
    };
    let (min, max) = (threshold("min_threshold")?, threshold("max_threshold")?);
    let (Some(min), Some(max)) = (min, max) else { return Ok(()) };
    if min == 0 || max == 0 {
        return Err(configuration(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option 'enabled' to false instead.",
        ));
    }
    if min < 2 {
        return Err(configuration(format!(
            "Min compaction threshold cannot be less than 2 (got {min})"
        )));
    }
    if min > max {
        return Err(configuration(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        )));
    }
    Ok(())
}
