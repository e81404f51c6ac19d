//! The options of a table: read, given their defaults, and checked (`TableAttributes`, `TableParams`).

use std::collections::BTreeMap;
use std::fmt::Display;

use halcyon_model::schema::TableOptions;
use halcyon_model::value::double_to_string;

use super::{compaction, compression};
use crate::options::complete;
use halcyon_syntax::ast::{OptionValue, TableOption};
use halcyon_syntax::{Error, Result};

const KNOWN: [&str; 20] = [
    "additional_write_policy",
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

pub(super) struct NewTable {
    pub(super) options: TableOptions,
    pub(super) id: Option<[u8; 16]>,
}

fn syntax(option: &TableOption, message: String) -> Error {
    Error::Syntax { place: option.name.place, message }
}

pub(super) fn configuration(message: impl Into<String>) -> Error {
    Error::Configuration(message.into())
}

pub(super) fn for_new_table(
    given: &[TableOption],
    default_compaction: Option<&BTreeMap<String, String>>,
) -> Result<NewTable> {
    let mut options = TableOptions::default();
    let id = read(&mut options, given)?;
    options.compaction = options.compaction.or(default_compaction.cloned());
    complete(&mut options);
    let is_leveled = options.compaction.as_ref().is_some_and(compaction::is_leveled);
    if is_leveled && !given.iter().any(|option| option.name.text == "bloom_filter_fp_chance") {
        options.bloom_filter_fp_chance = Some(compaction::LEVELED_FP_CHANCE);
    }
    Ok(NewTable { options, id })
}

pub(super) fn alter(options: &mut TableOptions, given: &[TableOption]) -> Result<()> {
    check_known(given)?;
    if given.iter().any(|option| option.name.text == "id") {
        return Err(configuration("Cannot alter table id."));
    }
    read(options, given).map(|_| ())
}

fn check_known(given: &[TableOption]) -> Result<()> {
    match given.iter().find(|option| !KNOWN.contains(&option.name.text.as_str())) {
        None => Ok(()),
        Some(option) => Err(syntax(option, format!("Unknown property '{}'", option.name.text))),
    }
}

/// Reads what is given, in the order in which Cassandra does.
fn read(options: &mut TableOptions, given: &[TableOption]) -> Result<Option<[u8; 16]>> {
    check_known(given)?;
    let mut id = None;
    for name in KNOWN {
        let Some(option) = given.iter().find(|option| option.name.text == name) else { continue };
        match name {
            "id" => id = Some(uuid(simple(option)?)?),
            "bloom_filter_fp_chance" => options.bloom_filter_fp_chance = Some(double(option)?),
            "crc_check_chance" => options.crc_check_chance = Some(double(option)?),
            "comment" => options.comment = simple(option)?.to_owned(),
            "caching" => options.caching = Some(caching(map(option)?)?),
            "compaction" => options.compaction = Some(compaction::read(map(option)?)?),
            "compression" => options.compression = Some(compression::read(map(option)?)?),
            "default_time_to_live" => {
                let value = bounded(name, int(option)?, 0)?;
                options.default_time_to_live = value;
            }
            "gc_grace_seconds" => options.gc_grace_seconds = Some(bounded(name, int(option)?, 0)?),
            "max_index_interval" => {
                options.max_index_interval = Some(bounded(name, int(option)?, 0)?);
            }
            "min_index_interval" => {
                options.min_index_interval = Some(bounded(name, int(option)?, 1)?);
            }
            _ => {
                let value = other(name, option)?;
                options.other.insert(name.to_owned(), value);
            }
        }
    }
    Ok(id)
}

/// An option that is kept as text.
fn other(name: &str, option: &TableOption) -> Result<String> {
    Ok(match name {
        "allow_auto_snapshot" | "cdc" | "incremental_backups" => boolean(option)?.to_string(),
        "memtable_flush_period_in_ms" => bounded(name, int(option)?, 0)?.to_string(),
        "speculative_retry" | "additional_write_policy" => speculative(simple(option)?)?,
        "read_repair" => match simple(option)?.to_ascii_uppercase() {
            known if known == "BLOCKING" || known == "NONE" => known,
            unknown => {
                return Err(configuration(format!(
                    "No enum constant org.apache.cassandra.service.reads.repair.ReadRepairStrategy.{unknown}"
                )));
            }
        },
        "memtable" => match simple(option)? {
            "default" => "default".to_owned(),
            unknown => {
                let what = format!("Memtable configuration \"{unknown}\" not found.");
                return Err(configuration(what));
            }
        },
        // Nothing reads them; Cassandra keeps bytes that only tools of others understand.
        _ => "{}".to_owned(),
    })
}

fn simple(option: &TableOption) -> Result<&str> {
    match &option.value {
        OptionValue::Simple(text) => Ok(text),
        OptionValue::Map(_) => Err(syntax(
            option,
            format!("Invalid value for property '{}'. It should be a string", option.name.text),
        )),
    }
}

fn map(option: &TableOption) -> Result<BTreeMap<String, String>> {
    match &option.value {
        OptionValue::Map(entries) => Ok(entries.iter().cloned().collect()),
        OptionValue::Simple(_) => Err(syntax(
            option,
            format!("Invalid value for property '{}'. It should be a map.", option.name.text),
        )),
    }
}

pub(super) fn boolean(option: &TableOption) -> Result<bool> {
    let text = simple(option)?;
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(syntax(
            option,
            format!(
                "Invalid boolean value {text} for '{}'. Positive values can be '1', 'true' or 'yes'. Negative values can be '0', 'false' or 'no'.",
                option.name.text
            ),
        )),
    }
}

fn int(option: &TableOption) -> Result<i32> {
    let text = simple(option)?;
    text.parse().map_err(|_| {
        syntax(option, format!("Invalid integer value {text} for '{}'", option.name.text))
    })
}

fn double(option: &TableOption) -> Result<f64> {
    let text = simple(option)?;
    text.parse().map_err(|_| {
        syntax(option, format!("Invalid double value {text} for '{}'", option.name.text))
    })
}

fn bounded(name: &str, value: i32, least: u32) -> Result<u32> {
    u32::try_from(value).ok().filter(|value| *value >= least).ok_or_else(|| {
        configuration(format!("{name} must be greater than or equal to {least} (got {value})"))
    })
}

fn uuid(text: &str) -> Result<[u8; 16]> {
    let parsed = halcyon_model::uuid::parse_digits(&text.replace('-', ""));
    parsed.ok_or_else(|| configuration("Invalid table id"))
}

fn caching(given: BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let unknown: Vec<&str> = given
        .keys()
        .map(String::as_str)
        .filter(|key| !matches!(*key, "keys" | "rows_per_partition"))
        .collect();
    if !unknown.is_empty() {
        return Err(configuration(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        )));
    }
    let mut found = BTreeMap::new();
    // An empty map caches nothing; a key that is left out has its default.
    let default = if given.is_empty() { "NONE" } else { "ALL" };
    let given_keys = given.get("keys").map_or(default, String::as_str);
    let keys = given_keys.to_ascii_uppercase();
    if !matches!(keys.as_str(), "ALL" | "NONE") {
        return Err(configuration(format!(
            "Invalid value '{given_keys}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
        )));
    }
    let rows = given.get("rows_per_partition").map_or("NONE", String::as_str);
    let upper = rows.to_ascii_uppercase();
    let is_number = rows.bytes().all(|b| b.is_ascii_digit()) && rows.parse::<i32>().is_ok();
    if !is_number && !matches!(upper.as_str(), "ALL" | "NONE") {
        return Err(configuration(format!(
            "Invalid value '{rows}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer values are allowed"
        )));
    }
    found.insert("keys".to_owned(), keys);
    found.insert("rows_per_partition".to_owned(), upper);
    Ok(found)
}

/// `SpeculativeRetryPolicy.fromString`, spelled as Cassandra spells it.
fn speculative(text: &str) -> Result<String> {
    let invalid = || configuration(format!("Invalid value {text} for option 'speculative_retry'"));
    let upper = text.to_ascii_uppercase();
    if matches!(upper.as_str(), "ALWAYS" | "NEVER" | "NONE") {
        return Ok(if upper == "NONE" { "NEVER".to_owned() } else { upper });
    }
    for function in ["MIN", "MAX"] {
        let inner = upper
            .strip_prefix(function)
            .and_then(|rest| rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')));
        if let Some((left, right)) = inner.and_then(|inner| inner.split_once(',')) {
            let simple = |part: &str| {
                let found = speculative(part.trim()).ok();
                found.filter(|found| found.ends_with(['p', 's']))
            };
            let (left, right) =
                simple(left).and_then(|left| Some((left, simple(right)?))).ok_or_else(invalid)?;
            if left.ends_with('p') == right.ends_with('p') {
                let kind = if left.ends_with('p') { "PERCENTILE" } else { "FIXED" };
                return Err(configuration(format!(
                    "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, but both are of type {kind}"
                )));
            }
            return Ok(format!("{function}({left},{right})"));
        }
    }
    if let Some(millis) = upper.strip_suffix("MS") {
        let millis: f64 = number(millis).ok_or_else(invalid)?;
        return Ok(format!("{}ms", trimmed(millis)));
    }
    let percent = upper.strip_suffix("PERCENTILE").or_else(|| upper.strip_suffix('P'));
    let value: f64 = percent.and_then(number).ok_or_else(invalid)?;
    if !(value > 0.0 && value < 100.0) {
        return Err(configuration(format!(
            "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
        )));
    }
    Ok(format!("{}p", trimmed(value)))
}

fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

fn trimmed(value: f64) -> String {
    let text = double_to_string(value);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Bounds that concern what is in force, whether it was just given or not.
pub(super) fn check(options: &TableOptions) -> Result<()> {
    if let Some(compaction) = &options.compaction {
        compaction::check(compaction)?;
    }
    if let Some(compression) = &options.compression {
        compression::check(compression)?;
    }
    let fraction = |name: &str, what: &str, value: f64| {
        Err(configuration(format!("{name} must be {what} (got {})", double_to_string(value))))
    };
    let fp_chance = options.bloom_filter_fp_chance.unwrap_or(0.01);
    if !(fp_chance > 6.71e-5 && fp_chance <= 1.0) {
        let what = "larger than 6.71E-5 and less than or equal to 1.0";
        return fraction("bloom_filter_fp_chance", what, fp_chance);
    }
    let crc = options.crc_check_chance.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&crc) {
        let what = "larger than or equal to 0 and smaller than or equal to 1.0";
        return fraction("crc_check_chance", what, crc);
    }
    const LONGEST_TTL: u32 = 630_720_000;
    if options.default_time_to_live > LONGEST_TTL {
        return Err(at_most("default_time_to_live", LONGEST_TTL, options.default_time_to_live));
    }
    let min = options.min_index_interval.unwrap_or(128);
    let max = options.max_index_interval.unwrap_or(2048);
    if max < min {
        return Err(configuration(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({min}) (got {max})"
        )));
    }
    Ok(())
}

fn at_most(name: &str, most: impl Display, found: impl Display) -> Error {
    configuration(format!("{name} must be less than or equal to {most} (got {found})"))
}
