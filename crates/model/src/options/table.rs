//! All options of one table (`TableAttributes`, `TableParams`).

use super::map_option::{Entries, MapOption, SubOptions};
use super::{Caching, Compaction, Compressed, OptionError, defaults, speculative};
use crate::value::{double_to_string, parse_double};

/// The options that a statement may state, in the order in which Cassandra reads them. `extensions` belongs to tools of
/// others; it is accepted and not kept.
pub const NAMES: [&str; 19] = [
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "comment",
    "compaction",
    "compression",
    "memtable",
    "default_time_to_live",
    "gc_grace_seconds",
    "incremental_backups",
    "max_index_interval",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "speculative_retry",
    "additional_write_policy",
    "crc_check_chance",
    "cdc",
    "read_repair",
    "extensions",
];

/// `None` where nothing states the option: the methods of the same names then have Cassandra's default. An offline tool
/// sees the difference, since a table's files may come without its schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableOptions {
    pub comment: String,
    pub gc_grace_seconds: Option<i32>,
    /// Seconds; 0: rows live for ever.
    pub default_time_to_live: i32,
    pub bloom_filter_fp_chance: Option<f64>,
    pub crc_check_chance: Option<f64>,
    pub min_index_interval: Option<i32>,
    pub max_index_interval: Option<i32>,
    /// 0: the age of a memtable does not cause a flush.
    pub memtable_flush_period_in_ms: i32,
    pub compression: Option<MapOption<Compressed>>,
    pub compaction: Option<MapOption<Compaction>>,
    pub caching: Option<MapOption<Caching>>,
    /// `COMPACT STORAGE`: rows of a Thrift table.
    pub compact_storage: bool,
    pub speculative_retry: Option<String>,
    pub additional_write_policy: Option<String>,
    pub read_repair: Option<String>,
    pub memtable: Option<String>,
    pub allow_auto_snapshot: Option<bool>,
    pub incremental_backups: Option<bool>,
    pub cdc: Option<bool>,
}

/// A value as a statement has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given<'a> {
    Text(&'a str),
    Map(Entries),
}

/// An option of a statement, whose name is part of Cassandra's messages.
struct Stated<'a> {
    name: &'a str,
    value: Given<'a>,
}

impl<'a> Stated<'a> {
    fn text(&self) -> Result<&'a str, OptionError> {
        match &self.value {
            Given::Text(text) => Ok(text),
            Given::Map(_) => Err(OptionError::Syntax(format!(
                "Invalid value for property '{}'. It should be a string",
                self.name
            ))),
        }
    }

    fn map<T: SubOptions>(self) -> Result<Option<MapOption<T>>, OptionError> {
        match self.value {
            Given::Map(entries) => MapOption::read(entries).map(Some),
            Given::Text(_) => Err(OptionError::Syntax(format!(
                "Invalid value for property '{}'. It should be a map.",
                self.name
            ))),
        }
    }

    fn number<T>(&self, kind: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, OptionError> {
        let text = self.text()?;
        parse(text).ok_or_else(|| {
            OptionError::Syntax(format!("Invalid {kind} value {text} for '{}'", self.name))
        })
    }

    fn int(&self) -> Result<i32, OptionError> {
        self.number("integer", |text| text.parse().ok())
    }

    fn double(&self) -> Result<f64, OptionError> {
        self.number("double", parse_double)
    }

    fn boolean(&self) -> Result<bool, OptionError> {
        let text = self.text()?;
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(true),
            "0" | "false" | "no" => Ok(false),
            _ => Err(OptionError::Syntax(format!(
                "Invalid boolean value {text} for '{}'. Positive values can be '1', 'true' or 'yes'. Negative values can be '0', 'false' or 'no'.",
                self.name
            ))),
        }
    }
}

/// A boolean property of a statement (`PropertyDefinitions.getBoolean`).
pub fn boolean(name: &str, value: Given<'_>) -> Result<bool, OptionError> {
    Stated { name, value }.boolean()
}

impl TableOptions {
    /// Reads one of [`NAMES`] from a statement; another name changes nothing.
    pub fn set(&mut self, name: &str, value: Given<'_>) -> Result<(), OptionError> {
        let stated = Stated { name, value };
        match name {
            "allow_auto_snapshot" => self.allow_auto_snapshot = Some(stated.boolean()?),
            // −1 asks for the default.
            "bloom_filter_fp_chance" => {
                self.bloom_filter_fp_chance =
                    Some(stated.double()?).filter(|chance| *chance != -1.0);
            }
            "caching" => self.caching = stated.map()?,
            "comment" => self.comment = stated.text()?.to_owned(),
            "compaction" => self.compaction = stated.map()?,
            "compression" => self.compression = stated.map()?,
            "memtable" => self.memtable = Some(memtable(stated.text()?)?),
            "default_time_to_live" => self.default_time_to_live = stated.int()?,
            "gc_grace_seconds" => self.gc_grace_seconds = Some(stated.int()?),
            "incremental_backups" => self.incremental_backups = Some(stated.boolean()?),
            "max_index_interval" => self.max_index_interval = Some(stated.int()?),
            "memtable_flush_period_in_ms" => self.memtable_flush_period_in_ms = stated.int()?,
            "min_index_interval" => self.min_index_interval = Some(stated.int()?),
            "speculative_retry" => {
                self.speculative_retry = Some(speculative::policy(stated.text()?)?);
            }
            "additional_write_policy" => {
                self.additional_write_policy = Some(speculative::policy(stated.text()?)?);
            }
            "crc_check_chance" => self.crc_check_chance = Some(stated.double()?),
            "cdc" => self.cdc = Some(stated.boolean()?),
            "read_repair" => self.read_repair = Some(read_repair(stated.text()?)?),
            _ => {}
        }
        Ok(())
    }

    /// Bounds of what is in force, whether it was just stated or not.
    pub fn validate(&self) -> Result<(), OptionError> {
        self.compaction.as_ref().map_or(Ok(()), MapOption::validate)?;
        self.compression.as_ref().map_or(Ok(()), MapOption::validate)?;
        self.validate_numbers()
    }

    /// The part of [`TableOptions::validate`] that is not about strategies and compressors.
    pub fn validate_numbers(&self) -> Result<(), OptionError> {
        let fraction = |name: &str, what: &str, value: f64| {
            let value = double_to_string(value);
            Err(OptionError::Configuration(format!("{name} must be {what} (got {value})")))
        };
        // Cassandra accepts NaN, with which neither a filter nor a comparison works.
        let fp_chance = self.bloom_filter_fp_chance.unwrap_or(defaults::BLOOM_FILTER_FP_CHANCE);
        if !(fp_chance > defaults::MIN_BLOOM_FILTER_FP_CHANCE && fp_chance <= 1.0) {
            let what = "larger than 6.71E-5 and less than or equal to 1.0";
            return fraction("bloom_filter_fp_chance", what, fp_chance);
        }
        let crc = self.crc_check_chance();
        if !(0.0..=1.0).contains(&crc) {
            let what = "larger than or equal to 0 and smaller than or equal to 1.0";
            return fraction("crc_check_chance", what, crc);
        }
        let ttl = self.default_time_to_live;
        at_least("default_time_to_live", "0", 0, ttl)?;
        if ttl > defaults::MAX_TTL {
            return Err(OptionError::Configuration(format!(
                "default_time_to_live must be less than or equal to {} (got {ttl})",
                defaults::MAX_TTL
            )));
        }
        at_least("gc_grace_seconds", "0", 0, self.gc_grace_seconds.unwrap_or(0))?;
        let min = self.min_index_interval.unwrap_or(defaults::MIN_INDEX_INTERVAL);
        at_least("min_index_interval", "1", 1, min)?;
        let max = self.max_index_interval.unwrap_or(defaults::MAX_INDEX_INTERVAL);
        at_least("max_index_interval", &format!("min_index_interval ({min})"), min, max)?;
        at_least("memtable_flush_period_in_ms", "0", 0, self.memtable_flush_period_in_ms)
    }

    /// States what was left out, so that every option says what is in force.
    pub fn complete(&mut self) {
        self.compression.get_or_insert_default();
        let compaction = self.compaction.get_or_insert_default();
        let fp_chance = compaction.value().default_fp_chance();
        self.bloom_filter_fp_chance.get_or_insert(fp_chance);
        self.caching.get_or_insert_default();
        self.gc_grace_seconds.get_or_insert(defaults::GC_GRACE_SECONDS);
        self.crc_check_chance.get_or_insert(defaults::CRC_CHECK_CHANCE);
        self.min_index_interval.get_or_insert(defaults::MIN_INDEX_INTERVAL);
        self.max_index_interval.get_or_insert(defaults::MAX_INDEX_INTERVAL);
    }

    /// What [`MapOption::lenient`] could not take as it is stored.
    pub fn problems(&self) -> Vec<String> {
        let compaction = self.compaction.as_ref().map(MapOption::validate);
        let compression = self.compression.as_ref().map(MapOption::validate);
        let caching = self.caching.as_ref().map(MapOption::validate);
        let named =
            [("compaction", compaction), ("compression", compression), ("caching", caching)];
        let problem = |(name, result): (&str, Option<Result<(), OptionError>>)| {
            Some(format!("{name}: {}", result?.err()?))
        };
        named.into_iter().filter_map(problem).collect()
    }

    pub fn gc_grace_seconds(&self) -> u32 {
        self.gc_grace_seconds.unwrap_or(defaults::GC_GRACE_SECONDS).max(0).unsigned_abs()
    }

    pub fn bloom_filter_fp_chance(&self) -> f64 {
        let sound = |chance: &f64| *chance > 0.0 && *chance <= 1.0;
        self.bloom_filter_fp_chance
            .filter(sound)
            .unwrap_or_else(|| self.compaction().default_fp_chance())
    }

    pub fn crc_check_chance(&self) -> f64 {
        self.crc_check_chance.unwrap_or(defaults::CRC_CHECK_CHANCE)
    }

    pub fn min_index_interval(&self) -> u32 {
        self.min_index_interval.unwrap_or(defaults::MIN_INDEX_INTERVAL).max(1).unsigned_abs()
    }

    /// `None`: uncompressed.
    pub fn compression(&self) -> Option<super::Compression> {
        let stated = self.compression.as_ref().map(|option| option.value().clone());
        stated.unwrap_or_default().0
    }

    pub fn compaction(&self) -> Compaction {
        let stated = self.compaction.as_ref().map(|option| option.value().clone());
        stated.unwrap_or_default()
    }

    pub fn caching(&self) -> Caching {
        self.caching.as_ref().map(|option| *option.value()).unwrap_or_default()
    }
}

fn at_least(name: &str, bound: &str, least: i32, value: i32) -> Result<(), OptionError> {
    if value >= least {
        return Ok(());
    }
    let what = format!("{name} must be greater than or equal to {bound} (got {value})");
    Err(OptionError::Configuration(what))
}

fn memtable(name: &str) -> Result<String, OptionError> {
    if name == "default" {
        return Ok(name.to_owned());
    }
    let what = format!("Memtable configuration \"{name}\" not found.");
    Err(OptionError::Configuration(what))
}

fn read_repair(text: &str) -> Result<String, OptionError> {
    match text.to_ascii_uppercase() {
        known if known == "BLOCKING" || known == "NONE" => Ok(known),
        unknown => Err(OptionError::Configuration(format!(
            "No enum constant org.apache.cassandra.service.reads.repair.ReadRepairStrategy.{unknown}"
        ))),
    }
}
