//! What `cargo metadata` says of the packages of the workspace.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::{Result, repository};

/// One package, without what only its tests use.
pub(super) struct Package {
    /// Without the prefix `halcyon-`.
    pub(super) name: String,
    /// Whether it is in `crates/`.
    pub(super) is_crate: bool,
    /// Packages of the workspace.
    pub(super) uses: BTreeSet<String>,
    /// Packages of a registry.
    pub(super) libraries: BTreeSet<String>,
}

pub(super) fn packages() -> Result<Vec<Package>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let output = Command::new("cargo").args(arguments).current_dir(repository()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(list(&metadata["packages"]).map(package).collect())
}

fn package(package: &Value) -> Package {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let used = list(&package["dependencies"]).filter(|used| used["kind"].as_str() != Some("dev"));
    let (inside, outside): (Vec<_>, Vec<_>) = used.partition(|used| used["path"].is_string());
    Package {
        name: short_name(package),
        is_crate: path.contains("/crates/"),
        uses: inside.into_iter().map(short_name).collect(),
        libraries: outside.into_iter().map(short_name).collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn short_name(package: &Value) -> String {
    let name = package["name"].as_str().unwrap_or_default();
    name.strip_prefix("halcyon-").unwrap_or(name).to_owned()
}
