//! A table's `compaction` options: names, defaults, and Cassandra 5.0's words for what is wrong with them.
//!
//! The order of the checks is Cassandra's: the class, what all strategies share, the strategy's own, what nobody
//! understands, the thresholds.

use std::collections::BTreeMap;

use super::numbers::{self, java_double, java_hash_order};

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// What to merge, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Strategy {
    /// `false`: nothing is compacted in the background.
    pub enabled: bool,
    pub tombstones: Tombstones,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    SizeTiered { thresholds: Thresholds, tiers: Tiers },
    Leveled { thresholds: Thresholds, tiers: Tiers, levels: Levels },
    TimeWindow { thresholds: Thresholds, tiers: Tiers, windows: Windows },
    Unified(Unified),
}

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

/// `min_threshold`, `max_threshold`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    pub min: usize,
    pub max: usize,
}

/// How sizes make buckets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiers {
    pub min_sstable_size: u64,
    pub bucket_low: f64,
    pub bucket_high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Bytes (`sstable_size_in_mb`).
    pub sstable_size: u64,
    pub fanout: u64,
    /// An SSTable that overlaps nothing in the next level is moved there as it is.
    pub single_sstable_uplevel: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Seconds.
    pub size: i64,
    pub resolution: Resolution,
    pub expired_check_ms: i64,
    /// `unsafe_aggressive_sstable_expiration`
    pub ignore_overlaps: bool,
}

/// `timestamp_resolution`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

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
    pub ignore_overlaps: bool,
    pub overlap_inclusion: OverlapInclusion,
}

/// `overlap_inclusion_method`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlapInclusion {
    None,
    Single,
    Transitive,
}

/// Reads options, and remembers which of them somebody understood.
struct Reader<'a> {
    options: &'a BTreeMap<String, String>,
    understood: Vec<&'static str>,
}

type Checked<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn get(&mut self, name: &'static str) -> Option<&'a str> {
        self.understood.push(name);
        self.options.get(name).map(String::as_str)
    }

    /// As Java's `Integer.parseInt`.
    fn int(&mut self, name: &'static str) -> Checked<Option<i32>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| format!("{text} is not a parsable int (base10) for {name}"))
        };
        self.get(name).map(parse).transpose()
    }

    fn long(&mut self, name: &'static str, called: &str) -> Checked<Option<i64>> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| format!("{text} is not a parsable {called} (base10) for {name}"))
        };
        self.get(name).map(parse).transpose()
    }

    fn boolean(&mut self, name: &'static str, wrong: impl Fn(&str) -> String) -> Checked<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("true") => Ok(true),
            Some(word) if word.eq_ignore_ascii_case("false") => Ok(false),
            Some(word) => Err(wrong(word)),
        }
    }
}

impl Strategy {
    /// Reads a table's `compaction` option. The error is the message of Cassandra's ConfigurationException.
    pub fn parse(options: &BTreeMap<String, String>) -> Result<Strategy, String> {
        Strategy::parse_with(options, false)
    }

    /// `allow_unsafe_expiration` is Cassandra's `-Dcassandra.allow_unsafe_aggressive_sstable_expiration=true`.
    pub fn parse_with(
        options: &BTreeMap<String, String>,
        allow_unsafe_expiration: bool,
    ) -> Result<Strategy, String> {
        let mut reader = Reader { options, understood: Vec::new() };
        let class = class(&mut reader)?;
        overlapping_tombstones(&mut reader)?;
        let (mut tombstones, enabled) = shared(&mut reader)?;
        let kind = match class {
            "SizeTieredCompactionStrategy" => {
                let tiers = tiers(&mut reader)?;
                Kind::SizeTiered { thresholds: thresholds(&mut reader, class)?, tiers }
            }
            "LeveledCompactionStrategy" => {
                let (levels, tiers) = (levels(&mut reader)?, tiers(&mut reader)?);
                Kind::Leveled { thresholds: thresholds(&mut reader, class)?, tiers, levels }
            }
            "TimeWindowCompactionStrategy" => {
                let asked = ["tombstone_threshold", "tombstone_compaction_interval"];
                let set = asked.iter().any(|name| options.contains_key(*name));
                tombstones.disabled = !set && !tombstones.unchecked;
                let windows = windows(&mut reader, allow_unsafe_expiration)?;
                let tiers = tiers(&mut reader)?;
                Kind::TimeWindow { thresholds: thresholds(&mut reader, class)?, tiers, windows }
            }
            _ => {
                let unified = unified(&mut reader, allow_unsafe_expiration)?;
                refuse_unknown(&reader, class)?;
                Kind::Unified(unified)
            }
        };
        Ok(Strategy { enabled, tombstones, kind })
    }
}

/// The class without its package.
fn class<'a>(reader: &mut Reader<'a>) -> Checked<&'a str> {
    let named =
        reader.get("class").ok_or("Missing sub-option 'class' for the 'compaction' option")?;
    let full = if named.contains('.') { named.to_owned() } else { format!("{PACKAGE}{named}") };
    let simple = if named.contains('.') { named.strip_prefix(PACKAGE) } else { Some(named) };
    match simple {
        Some(
            simple @ ("SizeTieredCompactionStrategy"
            | "LeveledCompactionStrategy"
            | "TimeWindowCompactionStrategy"
            | "UnifiedCompactionStrategy"),
        ) => Ok(simple),
        _ => Err(format!("Unable to find compaction strategy class '{full}'")),
    }
}

fn overlapping_tombstones(reader: &mut Reader<'_>) -> Checked<()> {
    let name = "provide_overlapping_tombstones";
    match reader.get(name).map(str::to_uppercase).as_deref() {
        None | Some("NONE" | "ROW" | "CELL") => Ok(()),
        Some(word) => Err(format!(
            "Invalid value {word} for '{name}' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
        )),
    }
}

/// What all strategies share.
fn shared(reader: &mut Reader<'_>) -> Checked<(Tombstones, bool)> {
    let mut tombstones =
        Tombstones { threshold: 0.2, interval: 86_400, unchecked: false, disabled: false };
    let name = "tombstone_threshold";
    if let Some(text) = reader.get(name) {
        let parsed = numbers::parse_float(text);
        let threshold =
            parsed.ok_or_else(|| format!("{text} is not a parsable int (base10) for {name}"))?;
        if threshold < 0.0 {
            return Err(format!("{name} must be greater than 0, but was {threshold:.6}"));
        }
        tombstones.threshold = threshold as f32;
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
    let enabled = reader.options.contains_key("enabled");
    let said = reader.boolean("enabled", |word| {
        format!("enabled should either be 'true' or 'false', not {word}")
    })?;
    reader.get("only_purge_repaired_tombstones");
    Ok((tombstones, !enabled || said))
}

fn tiers(reader: &mut Reader<'_>) -> Checked<Tiers> {
    let name = "min_sstable_size";
    let size = reader.long(name, "int")?.unwrap_or(50 << 20);
    let min_sstable_size =
        u64::try_from(size).map_err(|_| format!("{name} must be non negative: {size}"))?;
    let mut bucket = |name, default| match reader.get(name) {
        None => Ok(default),
        Some(text) => numbers::parse_float(text)
            .ok_or_else(|| format!("{text} is not a parsable float for {name}")),
    };
    let bucket_low = bucket("bucket_low", 0.5)?;
    let bucket_high = bucket("bucket_high", 1.5)?;
    if bucket_high <= bucket_low {
        return Err(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            java_double(bucket_high),
            java_double(bucket_low)
        ));
    }
    Ok(Tiers { min_sstable_size, bucket_low, bucket_high })
}

/// The highest level that an SSTable can have.
pub(crate) const LEVEL_MAX: u32 = 8;

fn levels(reader: &mut Reader<'_>) -> Checked<Levels> {
    let positive = |name, value: Option<i32>| match value {
        Some(value) if value < 1 => Err(format!("{name} must be larger than 0, but was {value}")),
        value => Ok(value.map(|value| value as u64)),
    };
    let name = "sstable_size_in_mb";
    let value = reader.int(name)?;
    let size = positive(name, value)?;
    let name = "fanout_size";
    let value = reader.int(name)?;
    let fanout = positive(name, value)?.unwrap_or(10);
    // Where no size is given, Cassandra checks with one of 1 MiB.
    let checked = (size.unwrap_or(1) << 20) as f64;
    let largest = (fanout as f64).powi(LEVEL_MAX as i32) * checked;
    if largest > i64::MAX as f64 {
        return Err(format!(
            "At most {} bytes may be in a compaction level; your maxSSTableSize must be absurdly high to compute {largest}",
            i64::MAX
        ));
    }
    let uplevel = reader.get("single_sstable_uplevel");
    let single_sstable_uplevel = uplevel.is_some_and(|word| word.eq_ignore_ascii_case("true"));
    Ok(Levels { sstable_size: size.unwrap_or(160) << 20, fanout, single_sstable_uplevel })
}

fn windows(reader: &mut Reader<'_>, allow_unsafe: bool) -> Checked<Windows> {
    let name = "timestamp_resolution";
    let resolution = match reader.get(name) {
        None | Some("MICROSECONDS") => Resolution::Microseconds,
        Some("NANOSECONDS") => Resolution::Nanoseconds,
        Some("MILLISECONDS") => Resolution::Milliseconds,
        Some("SECONDS") => Resolution::Seconds,
        Some(word) => return Err(format!("{word} is not valid for {name}")),
    };
    let name = "compaction_window_unit";
    let unit = match reader.get(name) {
        None | Some("DAYS") => 86_400,
        Some("HOURS") => 3_600,
        Some("MINUTES") => 60,
        Some(word) => return Err(format!("{word} is not valid for {name}")),
    };
    let name = "compaction_window_size";
    let size = reader.int(name)?.unwrap_or(1);
    if size < 1 {
        return Err(format!("{size} must be greater than 1 for {name}"));
    }
    let name = "expired_sstable_check_frequency_seconds";
    let frequency = reader.long(name, "int")?.unwrap_or(600);
    if frequency < 0 {
        return Err(format!("{name} must not be negative, but was {frequency}"));
    }
    let name = "unsafe_aggressive_sstable_expiration";
    let ignore_overlaps =
        reader.boolean(name, |word| format!("{name} is not 'true' or 'false' ({word})"))?;
    if ignore_overlaps && !allow_unsafe {
        return Err(format!(
            "{name} is requested but not allowed, restart cassandra with -Dcassandra.allow_{name}=true to allow it"
        ));
    }
    let expired_check_ms = frequency.saturating_mul(1000);
    Ok(Windows { size: i64::from(size) * unit, resolution, expired_check_ms, ignore_overlaps })
}

fn unified(reader: &mut Reader<'_>, allow_unsafe: bool) -> Checked<Unified> {
    let scaling = reader.get("scaling_parameters").unwrap_or("T4");
    let scaling_parameters = scaling_parameters(scaling)?;
    let base_shard_count = positive(reader, "base_shard_count", "int", 4)?;
    let target = size(reader, "target_sstable_size")?.unwrap_or(1 << 30);
    let flush_size_override = size(reader, "flush_size_override")?;
    let max_sstables_to_compact = match reader.int("max_sstables_to_compact")? {
        Some(max) if max > 0 => max as usize,
        _ => usize::MAX,
    };
    let name = "expired_sstable_check_frequency_seconds";
    let frequency = positive(reader, name, "long", 600)?;
    let name = "unsafe_aggressive_sstable_expiration";
    let ignore_overlaps = reader
        .boolean(name, |word| format!("{name} should either be 'true' or 'false', not {word}"))?;
    let name = "sstable_growth";
    let sstable_growth = match reader.get(name) {
        None => 0.333,
        Some(text) => match numbers::parse_percent(text) {
            None => {
                return Err(format!(
                    "{name} is not a valid number between 0 and 1: For input string: \"{text}\""
                ));
            }
            Some(share) if !(0.0..=1.0).contains(&share) => {
                return Err(format!("{name} {text} must be between 0 and 1"));
            }
            Some(share) => share,
        },
    };
    let min_sstable_size = min_size(reader, target)?;
    let name = "overlap_inclusion_method";
    let overlap_inclusion = match reader.get(name).map(str::to_uppercase).as_deref() {
        None | Some("TRANSITIVE") => OverlapInclusion::Transitive,
        Some("SINGLE") => OverlapInclusion::Single,
        Some("NONE") => OverlapInclusion::None,
        Some(_) => {
            let word = reader.get(name).unwrap_or_default();
            return Err(format!(
                "Invalid overlap inclusion method {word}. The valid options are [NONE, SINGLE, TRANSITIVE]."
            ));
        }
    };
    Ok(Unified {
        scaling_parameters,
        min_sstable_size,
        target_sstable_size: target as f64,
        flush_size_override,
        base_shard_count: u32::try_from(base_shard_count).unwrap_or(u32::MAX),
        sstable_growth,
        max_sstables_to_compact,
        expired_check_ms: frequency.saturating_mul(1000),
        ignore_overlaps: ignore_overlaps && allow_unsafe,
        overlap_inclusion,
    })
}

fn positive(
    reader: &mut Reader<'_>,
    name: &'static str,
    called: &str,
    default: i64,
) -> Checked<i64> {
    let value = if called == "int" {
        reader.int(name)?.map(i64::from)
    } else {
        reader.long(name, called)?
    };
    match value.unwrap_or(default) {
        value if value > 0 => Ok(value),
        value => Err(format!("Invalid configuration, {name} should be positive: {value}")),
    }
}

/// A size of at least 1 MiB.
fn size(reader: &mut Reader<'_>, name: &'static str) -> Checked<Option<u64>> {
    let Some(text) = reader.get(name) else { return Ok(None) };
    let bytes = numbers::parse_bytes(text)
        .map_err(|why| format!("{name} {text} is not a valid size in bytes: {why}"))?;
    if bytes >= i64::MAX as f64 {
        return Err(format!("{name} {text} is out of range of Long."));
    }
    if bytes < f64::from(1 << 20) {
        return Err(format!("{name} {text} is not acceptable, size must be at least 1.000MiB"));
    }
    Ok(Some(bytes as u64))
}

fn min_size(reader: &mut Reader<'_>, target: u64) -> Checked<u64> {
    let name = "min_sstable_size";
    let Some(text) = reader.get(name) else { return Ok(100 << 20) };
    let bytes = numbers::parse_bytes(text)
        .map_err(|_| format!("{text} is not a valid size in bytes for {name}"))?;
    if bytes < 0.0 {
        return Err(format!(
            "Invalid configuration, {name} should be greater than or equal to 0 (zero)"
        ));
    }
    if bytes >= target as f64 * std::f64::consts::FRAC_1_SQRT_2 {
        return Err(format!(
            "Invalid configuration, {name} ({}) should be less than 70% of the targetSSTableSize ({})",
            numbers::pretty_bytes(bytes),
            numbers::pretty_bytes(target as f64)
        ));
    }
    Ok(bytes as u64)
}

/// `T4`, `L10`, `N` or a number, with commas between.
fn scaling_parameters(text: &str) -> Checked<Vec<i32>> {
    // As Java splits: what is empty at the end does not count.
    let trimmed = text.trim_end_matches(',');
    trimmed.split(',').map(|word| scaling_parameter(word.trim())).collect()
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

/// The last thing that is checked, behind what nobody understands.
fn thresholds(reader: &mut Reader<'_>, class: &str) -> Checked<Thresholds> {
    let texts = (reader.get("min_threshold"), reader.get("max_threshold"));
    refuse_unknown(reader, class)?;
    let parse = |name: &str, text: Option<&str>, default| match text {
        None => Ok(default),
        Some(text) if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => Err(format!(
            "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
        )),
        Some(text) => text.parse::<i32>().map_err(|_| format!("For input string: \"{text}\"")),
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

fn refuse_unknown(reader: &Reader<'_>, class: &str) -> Checked<()> {
    let known = |name: &&String| !reader.understood.contains(&name.as_str());
    let mut unknown: Vec<&str> = reader.options.keys().filter(known).map(String::as_str).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    // Without the class, and with the thresholds that Cassandra adds for the strategies that have them.
    let thresholds = ["min_threshold", "max_threshold"]
        .iter()
        .filter(|name| reader.understood.contains(name) && !reader.options.contains_key(**name));
    java_hash_order(&mut unknown, reader.options.len() - 1 + thresholds.count());
    let unknown = unknown.join(", ");
    Err(format!("Properties specified [{unknown}] are not understood by {class}"))
}
