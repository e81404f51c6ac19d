//! The values of all settings of guardrails, validated as Cassandra does at its start (`GuardrailsOptions`).

use std::collections::BTreeSet;

use halcyon_model::options::hash_order;
use halcyon_model::request::Consistency;
use halcyon_model::units::settings;

use crate::specs::{
    FLAG_COUNT, Flag, FlagSpec, THRESHOLD_COUNT, Threshold, ThresholdSpec, Unit, VALUES_COUNT,
    Values, ValuesSpec,
};

/// A value of the settings file. Its syntax is checked before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    Scalar(String),
    List(Vec<String>),
}

/// Why a configuration is refused. `text` is Cassandra's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub setting: String,
    pub text: String,
}

/// The two limits of a threshold, in its unit (bytes, microseconds, percent or a count). `None`: off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    pub warn: Option<i64>,
    pub fail: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) enabled: bool,
    pub(crate) warned: bool,
}

const ALLOWED: Switch = Switch { enabled: true, warned: false };

/// Words in the order in which Cassandra prints them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words {
    pub(crate) warned: Vec<String>,
    pub(crate) ignored: Vec<String>,
    pub(crate) disallowed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    bounds: [Bounds; THRESHOLD_COUNT],
    switches: [Switch; FLAG_COUNT],
    words: [Words; VALUES_COUNT],
    /// `data_disk_usage_max_disk_size`, bytes.
    pub data_disk_usage_max_disk_size: Option<u64>,
}

/// The values of a threshold, as they are given, for errors.
struct Pair<'a> {
    spec: &'a ThresholdSpec,
    warn: Option<(String, i64)>,
    fail: Option<(String, i64)>,
}

impl Config {
    /// Allows everything.
    pub fn off() -> Config {
        Config {
            bounds: [Bounds::default(); THRESHOLD_COUNT],
            switches: [ALLOWED; FLAG_COUNT],
            words: std::array::from_fn(|_| Words::default()),
            data_disk_usage_max_disk_size: None,
        }
    }

    /// Reads the settings that `given` finds. Without `with_defaults`, a setting that is not given is off: Cassandra's defaults
    /// hold for clients that log in.
    pub fn read(
        given: &dyn Fn(&str) -> Option<Given>,
        properties: &[&str],
        with_defaults: bool,
    ) -> Result<Config, Vec<Fault>> {
        let mut config = Config::off();
        let mut faults = Vec::new();
        for (spec, bounds) in Threshold::ALL.iter().zip(&mut config.bounds) {
            match threshold(spec, given, with_defaults) {
                Ok(found) => *bounds = found,
                Err(fault) => faults.push(fault),
            }
        }
        for (spec, switch) in Flag::ALL.iter().zip(&mut config.switches) {
            *switch = flag(spec, given, with_defaults);
        }
        for (spec, words) in Values::ALL.iter().zip(&mut config.words) {
            match values(spec, given, properties) {
                Ok(found) => *words = found,
                Err(fault) => faults.push(fault),
            }
        }
        config.data_disk_usage_max_disk_size =
            scalar(given, "data_disk_usage_max_disk_size").and_then(|text| settings::size(&text));
        if config.data_disk_usage_max_disk_size == Some(0) {
            let name = "data_disk_usage_max_disk_size";
            faults.push(fault(name, zero(name, Unit::Bytes)));
        }
        if faults.is_empty() { Ok(config) } else { Err(faults) }
    }

    pub fn bounds(&self, threshold: Threshold) -> Bounds {
        self.bounds.get(threshold as usize).copied().unwrap_or_default()
    }

    pub(crate) fn switch(&self, flag: Flag) -> Switch {
        self.switches.get(flag as usize).copied().unwrap_or(ALLOWED)
    }

    pub(crate) fn words(&self, values: Values) -> Option<&Words> {
        self.words.get(values as usize)
    }

    /// Whether it allows everything and warns of nothing.
    pub fn is_off(&self) -> bool {
        *self
            == Config {
                data_disk_usage_max_disk_size: self.data_disk_usage_max_disk_size,
                ..Config::off()
            }
    }
}

fn fault(setting: &str, text: String) -> Fault {
    Fault { setting: setting.to_owned(), text }
}

fn scalar(given: &dyn Fn(&str) -> Option<Given>, name: &str) -> Option<String> {
    match given(name)? {
        Given::Scalar(text) => Some(text),
        Given::List(_) => None,
    }
}

/// A value in the threshold's unit.
fn number(unit: Unit, text: &str) -> Option<i64> {
    match unit {
        Unit::Count | Unit::LongCount | Unit::Percent => text.parse().ok(),
        Unit::Bytes => settings::size(text).and_then(|bytes| i64::try_from(bytes).ok()),
        Unit::Micros => {
            settings::duration(text).and_then(|time| i64::try_from(time.as_micros()).ok())
        }
    }
}

fn threshold(
    spec: &ThresholdSpec,
    given: &dyn Fn(&str) -> Option<Given>,
    with_defaults: bool,
) -> Result<Bounds, Fault> {
    let find = |level: &str, default: Option<&'static str>| {
        let name = format!("{}_{level}_threshold", spec.setting);
        let default = default.filter(|_| with_defaults).map(str::to_owned);
        let given = scalar(given, &name).or(default);
        // An empty text is what nodetool sets to turn it off.
        let Some(text) = given.filter(|text| !text.is_empty()) else { return Ok(None) };
        let syntax = || fault(&name, format!("Invalid value for {name}: '{text}'"));
        let number = number(spec.unit, &text).ok_or_else(syntax)?;
        check(spec, &name, number).map_err(|text| fault(&name, text))?;
        Ok(Some((text, number)).filter(|(_, number)| *number != -1 || !is_counted(spec.unit)))
    };
    let warn = find("warn", spec.warn_default)?;
    let fail = find("fail", spec.fail_default)?;
    let pair = Pair { spec, warn, fail };
    check_pair(&pair)?;
    Ok(Bounds { warn: pair.warn.map(|(_, n)| n), fail: pair.fail.map(|(_, n)| n) })
}

/// Whether -1 turns it off.
fn is_counted(unit: Unit) -> bool {
    matches!(unit, Unit::Count | Unit::LongCount | Unit::Percent)
}

/// Whether Cassandra leaves the settings of this guardrail unchecked at its start.
fn is_unchecked(id: Threshold) -> bool {
    matches!(
        id,
        Threshold::SaiStringTermSize | Threshold::SaiFrozenTermSize | Threshold::SaiVectorTermSize
    )
}

fn zero(name: &str, unit: Unit) -> String {
    let off = if is_counted(unit) { "-1" } else { "an empty value" };
    format!("Invalid value for {name}: 0 is not allowed; if attempting to disable use {off}")
}

fn check(spec: &ThresholdSpec, name: &str, number: i64) -> Result<(), String> {
    if is_unchecked(spec.id) {
        return Ok(());
    }
    let most = if spec.unit == Unit::Percent { 100 } else { i64::MAX };
    match number {
        -1 if is_counted(spec.unit) => Ok(()),
        number if number > most => {
            Err(format!("Invalid value {number} for {name}: maximum allowed value is {most}"))
        }
        0 if spec.unit != Unit::Micros => Err(zero(name, spec.unit)),
        number if number < 0 => Err(format!(
            "Invalid value {number} for {name}: negative values are not allowed, outside of -1 which disables the guardrail"
        )),
        _ => Ok(()),
    }
}

fn check_pair(pair: &Pair<'_>) -> Result<(), Fault> {
    let Pair { spec, warn: Some((warn_text, warn)), fail: Some((fail_text, fail)) } = pair else {
        return Ok(());
    };
    // Of timestamps, both are distances from now.
    let is_minimum = spec.id == Threshold::MinimumReplicationFactor;
    let is_wrong = if is_minimum { fail > warn } else { fail < warn };
    if !is_wrong || is_unchecked(spec.id) {
        return Ok(());
    }
    let (warn, fail) = match spec.unit {
        Unit::Bytes => (warn_text.clone(), fail_text.clone()),
        _ => (warn.to_string(), fail.to_string()),
    };
    let (name, direction) = (spec.setting, if is_minimum { "greater" } else { "lower" });
    let text = format!(
        "The warn threshold {warn} for {name}_warn_threshold should be {direction} than the fail threshold {fail}"
    );
    Err(fault(&format!("{name}_warn_threshold"), text))
}

fn flag(spec: &FlagSpec, given: &dyn Fn(&str) -> Option<Given>, with_defaults: bool) -> Switch {
    let is_on = |name: &str| {
        scalar(given, name).map(|text| matches!(&*text.to_ascii_lowercase(), "true" | "yes" | "on"))
    };
    Switch {
        enabled: is_on(spec.enabled).unwrap_or(true),
        // Where there is one, its default is to warn.
        warned: spec.warned.is_some_and(|name| is_on(name).unwrap_or(with_defaults)),
    }
}

fn values(
    spec: &ValuesSpec,
    given: &dyn Fn(&str) -> Option<Given>,
    properties: &[&str],
) -> Result<Words, Fault> {
    let read = |name: &str| {
        let found = match given(name) {
            None => return Ok(Vec::new()),
            Some(Given::Scalar(text)) => vec![text],
            Some(Given::List(list)) => list,
        };
        match spec.id {
            Values::TableProperties => table_properties(name, found, properties),
            _ => consistency_levels(name, &found),
        }
    };
    Ok(Words {
        warned: read(spec.warned)?,
        ignored: spec.ignored.map_or(Ok(Vec::new()), read)?,
        disallowed: read(spec.disallowed)?,
    })
}

/// In the order of a Java HashSet.
fn table_properties(name: &str, found: Vec<String>, known: &[&str]) -> Result<Vec<String>, Fault> {
    let mut seen = BTreeSet::new();
    let lower: Vec<String> = found.iter().map(|word| word.to_lowercase()).collect();
    let mut words: Vec<&str> = lower.iter().map(String::as_str).collect();
    words.retain(|word| !word.is_empty() && seen.insert(*word));
    // It grows beyond its first size with the thirteenth.
    let count = words.len();
    hash_order(&mut words, if count <= 12 { 11 } else { count });
    let unknown: Vec<&str> = words.iter().filter(|word| !known.contains(word)).copied().collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        return Err(fault(
            name,
            format!(
                "Invalid value for {name}: '[{unknown}]' do not parse as valid table properties"
            ),
        ));
    }
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// In the order of the enum.
fn consistency_levels(name: &str, found: &[String]) -> Result<Vec<String>, Fault> {
    let levels = || (0..).map_while(Consistency::from_code).map(Consistency::name);
    let is_level = |word: &&String| levels().any(|level| level == word.as_str());
    if let Some(wrong) = found.iter().filter(|word| !word.is_empty()).find(|word| !is_level(word)) {
        let allowed = levels().collect::<Vec<_>>().join(", ");
        let text = format!("Invalid value for {name}: '{wrong}'; expected one of {allowed}");
        return Err(fault(name, text));
    }
    let is_given = |level: &&str| found.iter().any(|word| word == level);
    Ok(levels().filter(is_given).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPERTIES: [&str; 3] = ["comment", "cdc", "id"];

    fn read(settings: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let given = |name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name)?.1;
            Some(match found.strip_prefix('[') {
                Some(list) => {
                    let items = list.trim_end_matches(']').split(", ").map(str::to_owned);
                    Given::List(items.collect())
                }
                None => Given::Scalar(found.to_owned()),
            })
        };
        let read = Config::read(&given, &PROPERTIES, true);
        read.map_err(|faults| faults.into_iter().map(|fault| fault.text).collect())
    }

    /// Proves that defaults are Cassandra's for those who log in, and that for others nothing is on that the file does not set.
    #[test]
    fn defaults_hold_for_those_who_log_in() {
        let config = read(&[]).expect("defaults");
        let bounds = config.bounds(Threshold::SaiStringTermSize);
        assert_eq!(bounds, Bounds { warn: Some(1024), fail: Some(8192) });
        assert!(config.switch(Flag::ZeroTtlOnTwcs).warned);
        assert!(!config.is_off());
        assert!(Config::read(&|_| None, &PROPERTIES, false).expect("none").is_off());
    }

    /// Proves that values which Cassandra 5.0.9 refuses at its start are refused, in its words.
    #[test]
    fn wrong_values_are_refused_in_cassandras_words() {
        for (settings, expected) in [
            (
                &[("tables_warn_threshold", "5"), ("tables_fail_threshold", "4")][..],
                "The warn threshold 5 for tables_warn_threshold should be lower than the fail threshold 4",
            ),
            (
                &[("page_size_warn_threshold", "0")],
                "Invalid value for page_size_warn_threshold: 0 is not allowed; if attempting to disable use -1",
            ),
            (
                &[("keyspaces_fail_threshold", "-5")],
                "Invalid value -5 for keyspaces_fail_threshold: negative values are not allowed, outside of -1 which disables the guardrail",
            ),
            (
                &[("data_disk_usage_percentage_fail_threshold", "101")],
                "Invalid value 101 for data_disk_usage_percentage_fail_threshold: maximum allowed value is 100",
            ),
            (
                &[
                    ("collection_size_warn_threshold", "2KiB"),
                    ("collection_size_fail_threshold", "1KiB"),
                ],
                "The warn threshold 2KiB for collection_size_warn_threshold should be lower than the fail threshold 1KiB",
            ),
            (
                &[("column_value_size_fail_threshold", "0B")],
                "Invalid value for column_value_size_fail_threshold: 0 is not allowed; if attempting to disable use an empty value",
            ),
            (
                &[
                    ("minimum_replication_factor_warn_threshold", "1"),
                    ("minimum_replication_factor_fail_threshold", "2"),
                ],
                "The warn threshold 1 for minimum_replication_factor_warn_threshold should be greater than the fail threshold 2",
            ),
            (
                &[
                    ("maximum_timestamp_warn_threshold", "2s"),
                    ("maximum_timestamp_fail_threshold", "1s"),
                ],
                "The warn threshold 2000000 for maximum_timestamp_warn_threshold should be lower than the fail threshold 1000000",
            ),
            (
                &[("table_properties_warned", "[comment, nonsense]")],
                "Invalid value for table_properties_warned: '[nonsense]' do not parse as valid table properties",
            ),
        ] {
            assert_eq!(read(settings), Err(vec![expected.to_owned()]));
        }
    }

    /// Proves that values are read in their units, and levels in the order in which Cassandra prints them.
    #[test]
    fn values_are_read() {
        let config = read(&[
            ("maximum_timestamp_warn_threshold", "1s"),
            ("read_consistency_levels_disallowed", "[QUORUM, ONE]"),
            ("tables_warn_threshold", "-1"),
            ("user_timestamps_enabled", "false"),
        ])
        .expect("good");
        assert_eq!(config.bounds(Threshold::MaximumTimestamp).warn, Some(1_000_000));
        assert_eq!(config.bounds(Threshold::Tables), Bounds::default());
        let words = config.words(Values::ReadConsistencyLevels).expect("words");
        assert_eq!(words.disallowed, ["ONE", "QUORUM"]);
        assert!(!config.switch(Flag::UserTimestamps).enabled);
    }
}
