//! Caches: `getauthcacheconfig`, `invalidate…cache`.

use halcyon_model::units::settings::duration;

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
    out.push_str(&format!(
        "Validity Period: {validity}\nUpdate Interval: {update}\nMax Entries: {entries}\nActive Update: false\n"
    ));
    Ok(())
}

/// Counters have no cache: a read before a write finds what is hot in the memtable.
pub(super) async fn no_counters() -> Result<()> {
    Ok(())
}
