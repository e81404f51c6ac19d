//! Caches: `getauthcacheconfig`, `invalidate…cache`.

use halcyon_model::units::settings::duration;
use halcyon_server::command::Command;

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

pub(super) async fn forget_rows(node: &mut Node) -> Result<()> {
    node.command(&Command::InvalidateRowCache, ("", "")).await
}
