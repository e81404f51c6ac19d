//! Whether `fuzz/Cargo.lock` has what the crates use: fuzz targets are a workspace of their own, whose lock no build of the others writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::metadata::{self, Package};
use crate::{Result, repository};

const LOCK: &str = "fuzz/Cargo.lock";
const OURS: &str = "halcyon-";

pub(super) fn check() -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join(LOCK))?;
    Ok(compare(&parse(&text), &metadata::packages()?))
}

/// The packages of this repository in a lock, without the prefix, and what each uses.
fn parse(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let blocks = lock.split("[[package]]").filter_map(|block| {
        let (_, rest) = block.split_once(&format!("name = \"{OURS}"))?;
        let (name, _) = rest.split_once('"')?;
        let (_, uses) = block.split_once("dependencies = [").unwrap_or_default();
        let uses = uses.lines().filter_map(|line| line.trim().strip_prefix('"'));
        // A version follows where the lock has several.
        let uses = uses.filter_map(|line| line.split(['"', ' ']).next());
        Some((name, uses.map(|name| name.strip_prefix(OURS).unwrap_or(name)).collect()))
    });
    blocks.collect()
}

fn compare(locked: &BTreeMap<&str, BTreeSet<&str>>, packages: &[Package]) -> Vec<String> {
    let lacks = |package: &Package| {
        let known = locked.get(package.name.as_str())?;
        let used = package.uses.iter().chain(&package.libraries);
        let missing: Vec<&str> =
            used.map(String::as_str).filter(|name| !known.contains(name)).collect();
        (!missing.is_empty()).then(|| {
            let missing = missing.join(", ");
            format!("{LOCK}: {} uses {missing}: `cargo metadata` in fuzz/ writes it", package.name)
        })
    };
    packages.iter().filter_map(lacks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a library which the lock lacks in a package is a finding, and that a package which it lacks is not.
    #[test]
    fn what_a_lock_lacks_is_found() {
        let lock = "version = 4\n\n[[package]]\nname = \"halcyon-io\"\nversion = \"0.1.0\"\ndependencies = [\n \"compio\",\n \"halcyon-model\",\n \"rand 0.9.2\",\n]\n\n\
                    [[package]]\nname = \"rand\"\nversion = \"0.9.2\"\n";
        let package = |name: &str, libraries: &[&str]| Package {
            name: name.to_owned(),
            is_crate: true,
            uses: BTreeSet::from(["model".to_owned()]),
            libraries: libraries.iter().map(|library| (*library).to_owned()).collect(),
        };
        let packages = [package("io", &["compio", "rand", "libc"]), package("query", &["snap"])];
        let findings = compare(&parse(lock), &packages);
        assert_eq!(
            findings,
            ["fuzz/Cargo.lock: io uses libc: `cargo metadata` in fuzz/ writes it"]
        );
    }
}
