//! Guardrails from settings.

use std::collections::BTreeMap;

use halcyon_guardrails::{
    Config, Fault, Flag, FlagSpec, Given, Guardrails, Threshold, ThresholdSpec, Unit,
    Values as Guarded, ValuesSpec,
};
use halcyon_model::options::NAMES;

use super::error::{Error, Result};
use super::file::Node;
use super::listed::list_of;
use super::{Errors, Values};

/// Options of tables that a guardrail may name: those of statements, and what statements of Cassandra have beside them.
fn properties() -> Vec<&'static str> {
    NAMES.into_iter().chain(["id", "auto_repair"]).collect()
}

const MAX_DISK_SIZE: &str = "data_disk_usage_max_disk_size";

/// How Cassandra's start names a wrong configuration of guardrails.
fn invalid(text: &str) -> Error {
    Error::Refused(format!("Invalid guardrails configuration: {text}"))
}

fn given(node: &Node) -> Option<Given> {
    match node {
        Node::Scalar(text) => Some(Given::Scalar(text.clone())),
        Node::List(items) => {
            let texts = items.iter().filter_map(Node::scalar).map(str::to_owned);
            Some(Given::List(texts.collect()))
        }
        Node::Null | Node::Map(_) => None,
    }
}

/// The guardrails that are set, by their settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenGuardrails(BTreeMap<String, Given>);

impl GivenGuardrails {
    /// The configurations of clients that log in and of those that do not.
    pub(super) fn configs(&self) -> Result<(Config, Config)> {
        let properties = properties();
        let find = |name: &str| self.0.get(name).cloned();
        let read = |with_defaults| {
            Config::read(&find, &properties, with_defaults).map_err(|faults: Vec<Fault>| {
                let mut errors = Errors::default();
                faults.iter().for_each(|fault| errors.add(invalid(&fault.text)));
                errors.check().err().unwrap_or_else(|| invalid("no reason"))
            })
        };
        Ok((read(true)?, read(false)?))
    }

    /// The settings of a guardrail as `system_views.settings` shows them.
    pub(super) fn listed(&self, words: &[&str]) -> Vec<(String, Option<String>)> {
        let shown = |name: &String| match self.0.get(name) {
            None => None,
            Some(Given::Scalar(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
            Some(Given::List(items)) => Some(list_of(name, items.clone())),
        };
        let names = words.first().and_then(|name| settings_of(name)).unwrap_or_default();
        names.into_iter().map(|name| (name.clone(), shown(&name))).collect()
    }
}

impl Values {
    pub(super) fn given_guardrails(&self) -> GivenGuardrails {
        let names = Flag::ALL.iter().flat_map(|spec| [Some(spec.enabled), spec.warned]);
        let of_values =
            |spec: &ValuesSpec| [Some(spec.warned), spec.ignored, Some(spec.disallowed)];
        let names = names.chain(Guarded::ALL.iter().flat_map(of_values)).flatten();
        let names = names.map(str::to_owned).chain(Threshold::ALL.iter().flat_map(levels));
        let names = names.chain([MAX_DISK_SIZE.to_owned()]);
        let found = |name: String| Some((given(self.node(&name)?)?, name));
        GivenGuardrails(names.filter_map(found).map(|(given, name)| (name, given)).collect())
    }

    pub(super) fn guardrails(&self) -> Result<Guardrails> {
        let (roles, anonymous) = self.given_guardrails().configs()?;
        check_factors(&roles, self.default_keyspace_rf()?)?;
        Ok(Guardrails::new(roles, anonymous))
    }

    pub(super) fn default_keyspace_rf(&self) -> Result<u32> {
        let factor = self.integer("default_keyspace_rf")?.unwrap_or(1);
        match u32::try_from(factor) {
            Ok(factor @ 1..=0x7fff_ffff) => Ok(factor),
            Ok(0) | Err(_) if factor < 1 => {
                Err(Error::Refused("default_keyspace_rf cannot be less than 1".to_owned()))
            }
            _ => Err(self.wrong("default_keyspace_rf", "1 to 2147483647")),
        }
    }
}

/// The settings of a threshold: the one that fails, then the one that warns.
fn levels(spec: &ThresholdSpec) -> [String; 2] {
    ["fail", "warn"].map(|level| format!("{}_{level}_threshold", spec.setting))
}

/// The settings of a guardrail that can change while the node runs.
fn settings_of(name: &str) -> Option<Vec<String>> {
    if let Some(spec) = threshold_of(name) {
        return Some(levels(spec).to_vec());
    }
    let is_flag = |spec: &FlagSpec| spec.enabled == name || spec.warned == Some(name);
    let is_values = |spec: &ValuesSpec| {
        spec.warned == name || spec.ignored == Some(name) || spec.disallowed == name
    };
    let is_known = Flag::ALL.iter().any(is_flag)
        || Guarded::ALL.iter().any(is_values)
        || name == MAX_DISK_SIZE;
    is_known.then(|| vec![name.to_owned()])
}

fn threshold_of(name: &str) -> Option<&'static ThresholdSpec> {
    let mut all = Threshold::ALL.iter();
    let named = all.find(|spec| name.strip_suffix("_threshold") == Some(spec.setting));
    named.map(|spec| spec.id.spec())
}

/// What is set after a change. The words are those of nodetool.
pub(super) fn changed(
    before: &GivenGuardrails,
    words: &[&str],
    default_factor: u32,
) -> Result<GivenGuardrails> {
    let refused = |text: String| Err(Error::Refused(text));
    let Some((name, values)) = words.split_first() else {
        return refused("No arguments.".to_owned());
    };
    let Some(settings) = settings_of(name) else {
        return refused(format!("Guardrail {name} not found."));
    };
    let is_list = Guarded::ALL.iter().any(|spec| name.starts_with(spec.name));
    let mut given = before.clone();
    if is_list {
        let empty = matches!(values, ["null" | "[]"]);
        let items = values.iter().flat_map(|value| value.split(',')).filter(|_| !empty);
        given.0.insert((*name).to_owned(), Given::List(items.map(str::to_owned).collect()));
        return Ok(given);
    }
    if values.len() != settings.len() {
        let (expected, found) = (settings.len(), values.len());
        return refused(format!(
            "{name} is expecting {expected} argument values. Getting {found} instead."
        ));
    }
    let is_flag = threshold_of(name).is_none() && *name != MAX_DISK_SIZE;
    let is_counted = threshold_of(name)
        .is_some_and(|spec| matches!(spec.unit, Unit::Count | Unit::LongCount | Unit::Percent));
    for (setting, value) in settings.into_iter().zip(values) {
        let value = match *value {
            "null" if is_counted => "-1",
            "null" if is_flag => "false",
            "null" => "",
            value => value,
        };
        if is_counted && value.parse::<i32>().is_err() {
            return refused(format!("For input string: \"{value}\""));
        }
        if is_flag && !matches!(value, "true" | "false") {
            return refused("Use 'true' or 'false' values for booleans".to_owned());
        }
        given.0.insert(setting, Given::Scalar(value.to_owned()));
    }
    let config = given.configs()?.0;
    let least = config.bounds(Threshold::MinimumReplicationFactor).fail;
    match least.filter(|least| i64::from(default_factor) < *least) {
        Some(least) => refused(format!(
            "minimum_replication_factor_fail_threshold to be set ({least}) cannot be greater than default_keyspace_rf ({default_factor})"
        )),
        None => check_factors(&config, default_factor).map(|()| given),
    }
}

/// Refuses a factor of keyspaces without one of their own that is not allowed (`DatabaseDescriptor.setDefaultKeyspaceRF`).
pub(super) fn check_default_factor(given: &GivenGuardrails, factor: u32) -> Result<()> {
    let config = given.configs()?.0;
    let of = |threshold| config.bounds(threshold).fail;
    let factor = i64::from(factor);
    let refused = |what: &str| {
        Err(Error::Refused(format!("default_keyspace_rf to be set ({factor}) cannot be {what}")))
    };
    if let Some(least) = of(Threshold::MinimumReplicationFactor).filter(|least| factor < *least) {
        return refused(&format!("less than minimum_replication_factor_fail_threshold ({least})"));
    }
    match of(Threshold::MaximumReplicationFactor).filter(|most| factor > *most) {
        Some(most) => {
            refused(&format!("greater than maximum_replication_factor_fail_threshold ({most})"))
        }
        None => Ok(()),
    }
}

/// A keyspace without a factor of its own must be allowed.
fn check_factors(config: &Config, default: u32) -> Result<()> {
    let of = |threshold| config.bounds(threshold).fail;
    let default = i64::from(default);
    if let Some(least) = of(Threshold::MinimumReplicationFactor).filter(|least| default < *least) {
        return Err(Error::Refused(format!(
            "default_keyspace_rf ({default}) cannot be less than minimum_replication_factor_fail_threshold ({least})"
        )));
    }
    if let Some(most) = of(Threshold::MaximumReplicationFactor).filter(|most| default > *most) {
        return Err(invalid(&format!(
            "maximum_replication_factor_fail_threshold to be set ({most}) cannot be lesser than default_keyspace_rf ({default})"
        )));
    }
    Ok(())
}
