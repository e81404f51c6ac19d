//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;

use halcyon_guardrails::{Flag, Threshold};

use super::context::{Change, Context, existing, forbidden, invalid, unchanged, with_keyspace};
use super::guard::violated;
use crate::catalog::{Catalog, Keyspace};
use crate::checks;
use crate::function::Functions;
use crate::system;
use halcyon_model::request::{SchemaAction, SchemaChange, SchemaTarget};
use halcyon_syntax::ast::{OptionValue, TableOption};
use halcyon_syntax::{Error, Result};

const LOCATOR: &str = "org.apache.cassandra.locator.";

fn event(action: SchemaAction, keyspace: &str) -> SchemaChange {
    let keyspace = keyspace.to_owned();
    SchemaChange {
        action,
        target: SchemaTarget::Keyspace,
        keyspace,
        name: String::new(),
        arguments: Vec::new(),
    }
}

struct Attributes<'a> {
    replication: Option<BTreeMap<String, String>>,
    /// Not read yet: it is not used if the keyspace exists.
    durable_writes: Option<&'a TableOption>,
}

fn durable_writes(option: Option<&TableOption>, otherwise: bool) -> Result<bool> {
    Ok(option.map(super::table_options::boolean).transpose()?.unwrap_or(otherwise))
}

fn attributes(options: &[TableOption]) -> Result<Attributes<'_>> {
    let syntax = |option: &TableOption, message: String| Error::Syntax {
        location: option.name.location,
        message,
    };
    let known = |option: &&TableOption| {
        matches!(option.name.text.as_str(), "replication" | "durable_writes")
    };
    if let Some(option) = options.iter().find(|option| !known(option)) {
        return Err(syntax(option, format!("Unknown property '{}'", option.name.text)));
    }
    let mut found = Attributes { replication: None, durable_writes: None };
    for option in options {
        match (option.name.text.as_str(), &option.value) {
            ("replication", OptionValue::Map(entries)) => {
                found.replication = Some(entries.iter().cloned().collect());
            }
            ("replication", OptionValue::Simple(_)) => {
                let what = "Invalid value for property 'replication'. It should be a map.";
                return Err(syntax(option, what.to_owned()));
            }
            _ => found.durable_writes = Some(option),
        }
    }
    // Cassandra looks for the class before it looks for the keyspace.
    match &found.replication {
        Some(given) if !given.is_empty() && !given.contains_key("class") => Err(without_class()),
        _ => Ok(found),
    }
}

fn without_class() -> Error {
    Error::Configuration("Missing replication strategy class".to_owned())
}

pub(super) fn create(
    catalog: &Catalog,
    name: &str,
    if_not_exists: bool,
    options: &[TableOption],
    context: &Context<'_>,
) -> Result<Change> {
    if system::is_local(name) || catalog.is_virtual(name) {
        return Err(invalid(format!("System keyspace '{name}' is not user-modifiable")));
    }
    checks::keyspace_name(name)?;
    let attributes = attributes(options)?;
    let Some(replication) = attributes.replication else {
        return Err(Error::invalid_request("Missing mandatory option 'replication'"));
    };
    check_strategy(&replication, context)?;
    if catalog.keyspaces.contains_key(name) {
        if if_not_exists {
            return Ok(unchanged(catalog));
        }
        return Err(Error::AlreadyExists {
            keyspace: name.to_owned(),
            table: String::new(),
            message: format!("Cannot add existing keyspace \"{name}\""),
        });
    }
    let class = replication.get("class").map(String::as_str).unwrap_or_default();
    if class == "LocalStrategy" || class == "org.apache.cassandra.locator.LocalStrategy" {
        return Err(local_strategy());
    }
    let durable_writes = durable_writes(attributes.durable_writes, true)?;
    let replication = check_replication(name, replication, &BTreeMap::new(), context)?;
    check_factors(name, &replication, context)?;
    let warnings = replication_warnings(name, &replication);
    let keyspace = Keyspace {
        name: name.to_owned(),
        replication,
        durable_writes,
        is_virtual: false,
        tables: BTreeMap::new(),
        types: BTreeMap::new(),
        functions: Functions::default(),
    };
    Ok(Change { warnings, ..with_keyspace(catalog, keyspace, event(SchemaAction::Created, name)) })
}

fn local_strategy() -> Error {
    Error::invalid_request(
        "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
    )
}

/// The replication as it is stored: the full name of the class, factors by data center. A factor that is not given keeps its old value:
/// `replication_factor` applies only to data centers without one.
fn check_replication(
    keyspace: &str,
    mut given: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
    context: &Context<'_>,
) -> Result<BTreeMap<String, String>> {
    let class = given.remove("class").ok_or_else(without_class)?;
    let full = if class.contains('.') { class } else { format!("{LOCATOR}{class}") };
    let factor = "replication_factor".to_owned();
    let default = context.default_factor.to_string();
    match full.strip_prefix(LOCATOR) {
        Some("SimpleStrategy") => {
            unrecognized(&given, &[&factor], "SimpleStrategy", keyspace)?;
            let known = before.get(&factor).unwrap_or(&default);
            given.entry(factor).or_insert_with(|| known.clone());
        }
        Some("NetworkTopologyStrategy") => {
            let everywhere = given.remove(&factor);
            unrecognized(&given, &[context.data_center], "NetworkTopologyStrategy", keyspace)?;
            let known = before.get(context.data_center);
            let known = known.or(everywhere.as_ref()).or_else(|| before.get(&factor));
            let known = known.unwrap_or(&default);
            given.entry(context.data_center.to_owned()).or_insert_with(|| known.clone());
            given.values().try_for_each(|factor| check_factor(factor))?;
            given.retain(|_, factor| factor.parse() != Ok(0));
            if given.is_empty() {
                return Err(Error::Configuration(
                    "Configuration for at least one datacenter must be present".to_owned(),
                ));
            }
        }
        Some("LocalStrategy") => return Err(local_strategy()),
        Some("OldNetworkTopologyStrategy") => {
            return Err(Error::Configuration(
                "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. The keyspace strategy should be switch to NetworkTopologyStrategy".to_owned(),
            ));
        }
        _ => {
            return Err(Error::Configuration(format!(
                "Unable to find replication strategy class '{full}'"
            )));
        }
    }
    given.values().try_for_each(|factor| check_factor(factor))?;
    given.insert("class".to_owned(), full);
    Ok(given)
}

fn unrecognized(
    options: &BTreeMap<String, String>,
    known: &[&str],
    class: &str,
    keyspace: &str,
) -> Result<()> {
    match options.keys().find(|option| !known.contains(&option.as_str())) {
        None => Ok(()),
        Some(option) => Err(Error::Configuration(format!(
            "Unrecognized strategy option {{{option}}} passed to {class} for keyspace {keyspace}"
        ))),
    }
}

fn check_factor(text: &str) -> Result<()> {
    let refused = |message: String| Err(Error::Configuration(message));
    let number = |text: &str| {
        let number = text.parse::<i32>();
        number.map_err(|_| Error::Configuration(format!("For input string: \"{text}\"")))
    };
    let (full, transient) = match text.split_once('/') {
        None => (number(text)?, 0),
        Some((_, "")) => {
            let format = "Replication factor format is <replicas> or <replicas>/<transient>";
            return refused(format.to_owned());
        }
        Some((full, transient)) => (number(full)?, number(transient)?),
    };
    if let Some(negative) = [full, transient].into_iter().find(|factor| *factor < 0) {
        return refused(format!("Replication factor must be non-negative, found {negative}"));
    }
    if transient > 0 {
        return refused("Transient replication is not enabled on this node".to_owned());
    }
    Ok(())
}

/// Asks whether SimpleStrategy is allowed. Its full name is not asked for, as in Cassandra.
fn check_strategy(given: &BTreeMap<String, String>, context: &Context<'_>) -> Result<()> {
    match given.get("class").map(String::as_str) {
        Some("SimpleStrategy") => context.guard.allow(Flag::SimpleStrategy).map_err(violated),
        _ => Ok(()),
    }
}

/// Asks whether each data centre has neither too few replicas nor too many.
fn check_factors(
    keyspace: &str,
    replication: &BTreeMap<String, String>,
    context: &Context<'_>,
) -> Result<()> {
    if system::is_replicated_system(keyspace) {
        return Ok(());
    }
    let factors = replication.iter().filter(|(option, _)| *option != "class");
    for factor in factors.filter_map(|(_, factor)| factor.parse().ok()) {
        for threshold in [Threshold::MinimumReplicationFactor, Threshold::MaximumReplicationFactor]
        {
            context.guard.check(threshold, factor, keyspace).map_err(violated)?;
        }
    }
    Ok(())
}

/// This node is its ring's only one.
fn replication_warnings(keyspace: &str, replication: &BTreeMap<String, String>) -> Vec<String> {
    let is_simple = replication.contains_key("replication_factor");
    let factors = replication.iter().filter(|(option, _)| *option != "class");
    let too_high = factors.filter(|(_, factor)| factor.parse::<i32>().is_ok_and(|n| n > 1));
    let warning = |(option, factor): (&String, &String)| {
        let mut text = format!(
            "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes 1"
        );
        if !is_simple {
            text.push_str(&format!(" for datacenter {option}"));
        }
        text
    };
    too_high.map(warning).collect()
}

pub(super) fn alter(
    catalog: &Catalog,
    name: &str,
    if_exists: bool,
    options: &[TableOption],
    context: &Context<'_>,
) -> Result<Change> {
    forbidden(catalog, name, "ALTER", "")?;
    let attributes = attributes(options)?;
    let class = attributes.replication.as_ref().and_then(|map| map.get("class"));
    if class.is_some_and(|class| class == "LocalStrategy") {
        return Err(local_strategy());
    }
    let Some(known) = catalog.keyspace(name) else {
        return if if_exists {
            Ok(unchanged(catalog))
        } else {
            existing(catalog, name).map(|_| unchanged(catalog))
        };
    };
    let mut keyspace = Keyspace::clone(known);
    if let Some(replication) = attributes.replication.filter(|given| !given.is_empty()) {
        let strategy = replication.clone();
        keyspace.replication = check_replication(name, replication, &known.replication, context)?;
        check_strategy(&strategy, context)?;
    }
    check_factors(name, &keyspace.replication, context)?;
    let mut warnings = replication_warnings(name, &keyspace.replication);
    let sum = |of: &Keyspace| -> i64 {
        of.replication.values().filter_map(|factor| factor.parse::<i64>().ok()).sum()
    };
    if sum(&keyspace) > sum(known) {
        warnings.push("When increasing replication factor you need to run a full (-full) repair to distribute the data.".to_owned());
    }
    keyspace.durable_writes = durable_writes(attributes.durable_writes, keyspace.durable_writes)?;
    Ok(Change { warnings, ..with_keyspace(catalog, keyspace, event(SchemaAction::Updated, name)) })
}

pub(super) fn remove(
    catalog: &Catalog,
    name: &str,
    if_exists: bool,
    context: &Context<'_>,
) -> Result<Change> {
    forbidden(catalog, name, "DROP", &format!("keyspace {name}"))?;
    checks::keyspace_name(name)?;
    context.guard.allow(Flag::DropKeyspace).map_err(violated)?;
    if catalog.keyspace(name).is_none() {
        return if if_exists {
            Ok(unchanged(catalog))
        } else {
            existing(catalog, name).map(|_| unchanged(catalog))
        };
    }
    let mut catalog = catalog.clone();
    catalog.keyspaces.remove(name);
    Ok(Change { catalog, event: Some(event(SchemaAction::Dropped, name)), warnings: Vec::new() })
}
