//! Caches: `getauthcacheconfig`, `invalidate…cache`, `setcachecapacity`, `setcachekeystosave`.

use halcyon_model::units::settings::duration;
use halcyon_server::command::{CacheCapacity, Command};

use super::arguments::Call;
use super::failure::{Failure, Result};
use super::node::Node;

/// Names of caches, and how their settings begin.
const OF_SETTINGS: [(&str, &str); 3] = [
    ("CredentialsCache", "credentials"),
    ("PermissionsCache", "permissions"),
    ("RolesCache", "roles"),
];

pub(super) async fn config(call: &Call, node: &mut Node, out: &mut String) -> Result<()> {
    let name = call.option("--cache-name").unwrap_or_default();
    let Some((_, prefix)) = OF_SETTINGS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = OF_SETTINGS.iter().map(|(known, _)| *known).collect();
        return Failure::usage(format!(
            "unknown cache '{name}'; expected one of {}",
            known.join(", ")
        ));
    };
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

pub(super) async fn forget_rows(node: &mut Node) -> Result<()> {
    node.command(&Command::InvalidateRowCache, ("", "")).await
}
