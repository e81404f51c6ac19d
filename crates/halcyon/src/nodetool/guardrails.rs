//! `getguardrailsconfig`, `setguardrailsconfig`: guardrails by the names of their settings. A threshold has one name for both levels.

use std::collections::BTreeMap;

use halcyon_server::command::{Command, SetGuardrail};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;
use super::text;

/// Categories in the order in which they are printed.
const CATEGORIES: [&str; 4] = ["flags", "thresholds", "values", "others"];
/// What warns of a feature that can also be off.
const WARNED_FLAGS: [&str; 2] = ["intersect_filtering_query_warned", "zero_ttl_on_twcs_warned"];
const FLAGS: [&str; 15] = [
    "allow_filtering_enabled",
    "alter_table_enabled",
    "compact_tables_enabled",
    "drop_keyspace_enabled",
    "drop_truncate_table_enabled",
    "group_by_enabled",
    "intersect_filtering_query_enabled",
    "non_partition_restricted_index_query_enabled",
    "read_before_write_list_operations_enabled",
    "secondary_indexes_enabled",
    "simplestrategy_enabled",
    "uncompressed_tables_enabled",
    "user_timestamps_enabled",
    "vector_type_enabled",
    "zero_ttl_on_twcs_enabled",
];
const OTHERS: [&str; 1] = ["data_disk_usage_max_disk_size"];
/// Settings that end like a guardrail's, and names of 4.0 for guardrails.
const NOT_THRESHOLDS: [&str; 10] = [
    "batch_size",
    "coordinator_read_size",
    "gc",
    "keyspace_count",
    "local_read_size",
    "replica_filtering_protection.cached_rows",
    "row_index_read_size",
    "table_count",
    "tombstone",
    "unlogged_batch_across_partitions",
];

fn category(name: &str) -> Option<&'static str> {
    let is_level = |level: &str| {
        let setting = name.strip_suffix(level);
        setting.is_some_and(|setting| !NOT_THRESHOLDS.contains(&setting))
    };
    let ends = |ends: [&str; 3]| ends.into_iter().any(|end| name.ends_with(end));
    match name {
        _ if FLAGS.contains(&name) || WARNED_FLAGS.contains(&name) => Some("flags"),
        _ if is_level("_warn_threshold") || is_level("_fail_threshold") => Some("thresholds"),
        _ if ends(["_warned", "_ignored", "_disallowed"]) => Some("values"),
        _ if OTHERS.contains(&name) => Some("others"),
        _ => None,
    }
}

/// One name for both levels.
fn shared(name: &str) -> String {
    name.replace("_warn_threshold", "_threshold").replace("_fail_threshold", "_threshold")
}

pub(super) async fn show(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let wanted = call.option("-c").map(str::to_lowercase);
    if let Some(wanted) = wanted.as_deref().filter(|wanted| !CATEGORIES.contains(wanted)) {
        return Failure::usage(format!(
            "Illegal value for -c/--category used: '{wanted}'. Supported values are values,thresholds,flags,others."
        ));
    }
    let name = call.arguments.first().map(String::as_str);
    if name.is_some() && wanted.is_some() {
        return Failure::usage("Do not specify additional arguments when --category/-c is set.");
    }
    let rows = node.rows("SELECT name, value FROM system_views.settings").await?;
    // By category and name; of a threshold the value that fails comes first.
    let mut found: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let mut settings: Vec<(String, String)> =
        rows.iter().map(|row| (row.text("name"), row.text("value"))).collect();
    settings.sort();
    for (setting, value) in settings {
        let Some(of) = category(&setting) else { continue };
        let shown = shared(&setting);
        let is_named = name.is_none_or(|name| name == setting || name == shown);
        if !is_named || wanted.as_deref().is_some_and(|wanted| wanted != of) {
            continue;
        }
        let at = CATEGORIES.iter().position(|known| *known == of).unwrap_or(0);
        let key = if call.option("--expand").is_some() { setting } else { shown };
        let value = match value.as_str() {
            "" if of == "values" => "[]".to_owned(),
            "" => "null".to_owned(),
            _ => value,
        };
        found.entry((at, key)).or_default().push(value);
    }
    if let Some(name) = name.filter(|_| found.is_empty()) {
        return Failure::usage(format!("Guardrail {name} not found."));
    }
    let value = |values: &[String]| match values {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let is_alone = found.len() == 1 && wanted.is_none();
    let row = |((_, name), values): (&(usize, String), &Vec<String>)| match is_alone {
        true => vec![value(values)],
        false => vec![name.clone(), value(values)],
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    out.push_str(&text::table(&rows, " "));
    Ok(())
}

pub(super) async fn set(call: &Call, node: &mut Node) -> Result<()> {
    let Some((name, values)) = call.arguments.split_first() else {
        return Failure::usage("No arguments.");
    };
    let words = call.arguments.clone();
    let command = Command::SetGuardrailsConfig(SetGuardrail { words });
    let done = node.command(&command, ("", "")).await;
    let Err(Failure::Failed(why)) = done else { return done };
    if why == format!("Guardrail {name} not found.") || why.contains(" is expecting ") {
        return Failure::usage(why);
    }
    Failure::usage(format!(
        "Error occured when setting the config for setter {name} with arguments [{}]: {}",
        values.join(", "),
        why.trim_start_matches("Invalid guardrails configuration: ")
    ))
}
