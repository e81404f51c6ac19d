//! Caches: `getauthcacheconfig`, `setauthcacheconfig`, `invalidate…cache`, `setcachecapacity`, `setcachekeystosave`.

use halcyon_model::units::settings::duration;
use halcyon_server::command::{CacheCapacity, Command};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

/// Names of caches, and how their settings begin. The data centers of a role are read with the role.
const OF_SETTINGS: [(&str, &str); 4] = [
    ("CredentialsCache", "credentials"),
    ("NetworkPermissionsCache", "roles"),
    ("PermissionsCache", "permissions"),
    ("RolesCache", "roles"),
];

/// How the settings of the cache that is named begin.
fn prefix(call: &Call) -> Result<&'static str> {
    let name = call.option("--cache-name").unwrap_or_default();
    match OF_SETTINGS.iter().find(|(known, _)| *known == name) {
        Some((_, prefix)) => Ok(prefix),
        None => Failure::usage(format!("Unknown cache name: {name}")),
    }
}

pub(super) async fn config(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let prefix = prefix(call)?;
    let settings = node.settings().await?;
    let setting = |name: &str| settings.get(&format!("{prefix}_{name}")).cloned();
    let millis = |text: Option<String>| text.and_then(|t| duration(&t)).map(|d| d.as_millis());
    let validity = millis(setting("validity")).unwrap_or_default();
    let update = millis(setting("update_interval")).unwrap_or(validity);
    let entries = setting("cache_max_entries").unwrap_or_default();
    let active = setting("cache_active_update").unwrap_or_default();
    out.push_str(&format!(
        "Validity Period: {validity}\nUpdate Interval: {update}\nMax Entries: {entries}\nActive Update: {active}\n"
    ));
    Ok(())
}

/// The options that change something: their titles, what is said of them, the ends of their settings, and the unit of those.
const CHANGES: [(&str, &str, &str, &str, &str); 3] = [
    ("--validity-period", "validity-period", "Changed Validity Period to", "validity", "ms"),
    ("--update-interval", "update-interval", "Changed Update Interval to", "update_interval", "ms"),
    ("--max-entries", "max-entries", "Changed Max Entries to", "cache_max_entries", ""),
];

pub(super) async fn set_config(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let (mut changes, mut is_wrong) = (Vec::new(), false);
    for (option, title, said, setting, unit) in CHANGES {
        let Some(text) = call.option(option) else { continue };
        let Ok(number) = text.parse::<i32>() else {
            return Failure::usage(format!("{title}: can not convert \"{text}\" to a Integer"));
        };
        changes.push((said, setting, number, unit));
        is_wrong |= number < 0 && !unit.is_empty();
    }
    let active = match (call.has("--enable-active-update"), call.has("--disable-active-update")) {
        (true, true) => {
            return Failure::usage(
                "enable-active-update and disable-active-update cannot be used together",
            );
        }
        (false, false) => None,
        (enabled, _) => Some(enabled),
    };
    if changes.is_empty() && active.is_none() {
        return Failure::usage("At least one optional parameter need to be passed");
    }
    let prefix = prefix(call)?;
    if is_wrong {
        return Failure::usage("Invalid duration: value must be non-negative");
    }
    for (said, setting, number, unit) in changes {
        node.set(&format!("{prefix}_{setting}"), &format!("{number}{unit}")).await?;
        out.push_str(&format!("{said} {number}\n"));
    }
    if let Some(active) = active {
        node.set(&format!("{prefix}_cache_active_update"), &active.to_string()).await?;
        out.push_str(&format!("Changed Active Update to {active}\n"));
    }
    Ok(())
}

/// Counters have no cache: a read before a write finds what is hot in the memtable.
pub(super) async fn no_counters() -> Result<()> {
    Ok(())
}

/// What shards have read of `system_auth`. As a whole: it is read again when it is needed.
pub(super) async fn forget_access(call: &Call, node: &mut Node) -> Result<()> {
    let names_role = !call.arguments.is_empty();
    if !names_role && OF_PERMISSIONS.iter().any(|option| call.has(option)) {
        return Failure::usage("No resource options allowed without a <role> being specified");
    }
    node.command(&Command::InvalidateAuthCaches, ("", "")).await
}

/// Options of `invalidatepermissionscache`.
const OF_PERMISSIONS: [&str; 11] = [
    "--all-functions",
    "--all-keyspaces",
    "--all-mbeans",
    "--all-roles",
    "--all-tables",
    "--function",
    "--functions-in-keyspace",
    "--keyspace",
    "--mbean",
    "--role",
    "--table",
];

/// Numbers of the caches of keys, rows and counters, which a command has in common with another but for the word that its arguments end
/// with.
fn of_caches(call: &Call, command: &str, word: &str) -> Result<[i32; 3]> {
    let names = ["key", "row", "counter"].map(|cache| format!("{cache}-cache-{word}"));
    let title = names.each_ref().map(|name| format!("<{name}>")).join(" ");
    let mut numbers = Vec::new();
    for text in &call.arguments {
        match text.parse::<i32>() {
            Ok(number) => numbers.push(number),
            Err(_) => {
                return Failure::usage(format!("{title}: can not convert \"{text}\" to a Integer"));
            }
        }
    }
    match <[i32; 3]>::try_from(numbers) {
        Ok(numbers) => Ok(numbers),
        Err(none) if none.is_empty() => {
            Failure::usage(format!("Required parameters are missing: {title}"))
        }
        Err(_) => {
            let [keys, rows, counters] = names;
            Failure::usage(format!("{command} requires {keys}, {rows}, and {counters} args."))
        }
    }
}

pub(super) async fn set_saved(call: &Call, node: &mut Node) -> Result<()> {
    let numbers = of_caches(call, "setcachekeystosave", "keys-to-save")?;
    for ((cache, name), most) in
        [("key", "Key"), ("row", "Row"), ("counter", "Counter")].iter().zip(numbers)
    {
        if most < 0 {
            return Failure::failed(format!("{name}CacheKeysToSave must be non-negative."));
        }
        node.set(&format!("{cache}_cache_keys_to_save"), &most.to_string()).await?;
    }
    Ok(())
}

pub(super) async fn set_capacity(call: &Call, node: &mut Node) -> Result<()> {
    let [keys, rows, _] = of_caches(call, "setcachecapacity", "capacity")?;
    let (Ok(keys), Ok(rows)) = (u32::try_from(keys), u32::try_from(rows)) else {
        return Failure::failed("capacity should not be negative.");
    };
    node.command(&Command::SetCacheCapacity(CacheCapacity { keys, rows }), ("", "")).await
}

/// Saved keys stay saved.
pub(super) async fn forget_keys(node: &mut Node) -> Result<()> {
    node.command(&Command::InvalidateKeyCache, ("", "")).await
}

pub(super) async fn forget_rows(node: &mut Node) -> Result<()> {
    node.command(&Command::InvalidateRowCache, ("", "")).await
}
