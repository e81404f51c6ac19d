//! What `cargo metadata` says of the packages of the workspace.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Result;
use crate::printed::{host, output};

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
    let metadata = metadata(&["--no-deps"])?;
    Ok(list(&metadata["packages"]).map(package).collect())
}

/// One package that is not of this repository, as `Cargo.lock` pins it.
pub(super) struct Library {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression, or what was usual before them.
    pub(super) license: String,
    /// `registry+…` or `git+…`
    pub(super) source: String,
}

/// All libraries that a build for this platform takes, those that libraries use too.
pub(super) fn libraries() -> Result<Vec<Library>> {
    let metadata = metadata(&["--locked", "--filter-platform", &host()?])?;
    let library = |package: &Value| {
        let text = |name: &str| package[name].as_str().map(str::to_owned);
        Some(Library {
            source: text("source")?,
            name: text("name")?,
            version: text("version")?,
            license: text("license").unwrap_or_default(),
        })
    };
    Ok(list(&metadata["packages"]).filter_map(library).collect())
}

fn metadata(arguments: &[&str]) -> Result<Value> {
    let arguments = [&["metadata", "--format-version", "1"], arguments].concat();
    Ok(serde_json::from_slice(&output("cargo", &arguments)?)?)
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
