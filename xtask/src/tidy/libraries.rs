//! Compares `[workspace.dependencies]` of Cargo.toml with `cargo metadata`.
//!
//! A comment there says why the libraries below it, up to a blank line, are used. One that begins with ``Only `snap`:`` keeps other
//! packages from using them. A crate cannot name what it does not depend on, so this is also the check that only `io` names the runtime
//! and `libc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::metadata::{self, Package};
use crate::{Result, repository};

const HEADING: &str = "\n[workspace.dependencies]\n";
const OURS: &str = "halcyon-";

/// Each library that has a reason, with the only package that may use it.
type Listed = BTreeMap<String, Option<String>>;

pub(super) fn check() -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join("Cargo.toml"))?;
    Ok(compare(&parse(&text), &metadata::packages()?))
}

fn parse(text: &str) -> Listed {
    let section = text.split_once(HEADING).map_or("", |(_, rest)| rest);
    let section = section.split_once("\n[").map_or(section, |(section, _)| section);
    section.split("\n\n").filter_map(parse_group).flatten().collect()
}

/// `None` without a comment.
fn parse_group(group: &str) -> Option<Listed> {
    let reason = group.trim_start().strip_prefix("# ")?;
    let owner = reason.strip_prefix("Only `").and_then(|rest| rest.split('`').next());
    let entries = group.lines().filter(|line| !line.starts_with('#'));
    let names = entries.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned());
    Some(names.map(|name| (name, owner.map(str::to_owned))).collect())
}

fn compare(listed: &Listed, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |text: String| findings.push(format!("Cargo.toml: {text}"));
    let mut used = BTreeSet::new();
    for Package { name, libraries, .. } in packages {
        used.extend(libraries);
        for library in libraries {
            match listed.get(library) {
                None => find(format!("{name} uses {library}, which has no reason")),
                Some(Some(owner)) if owner != name => {
                    find(format!("{name} uses {library}, which only {owner} may use"));
                }
                Some(_) => {}
            }
        }
    }
    let unused = listed.keys().filter(|name| !used.contains(name) && !name.starts_with(OURS));
    unused.for_each(|library| find(format!("no package uses {library}")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, libraries: &[&str]) -> Package {
        let libraries = libraries.iter().map(|library| (*library).to_owned()).collect();
        Package { name: name.to_owned(), is_crate: true, uses: BTreeSet::new(), libraries }
    }

    /// Proves that a library without a reason, in a package that may not use it, or without a user is a finding.
    #[test]
    fn each_difference_is_found() {
        let text = HEADING.to_owned()
            + "halcyon-io = { path = \"crates/io\" }\n\n# Only `io`: the runtime.\ncompio = \"=1.2\"\n\n"
            + "# Ids.\nmd-5 = \"0.10\"\nsha1 = \"0.10\"\n\nrand = \"1\"\n\n[profile.dev]\n# Speed.\nsnap = 3\n";
        let packages = [package("io", &["compio", "md-5"]), package("query", &["compio", "rand"])];
        let findings = compare(&parse(&text), &packages);
        assert_eq!(
            findings,
            [
                "Cargo.toml: query uses compio, which only io may use",
                "Cargo.toml: query uses rand, which has no reason",
                "Cargo.toml: no package uses sha1",
            ]
        );
    }
}
