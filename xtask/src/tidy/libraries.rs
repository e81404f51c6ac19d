//! Compares the table of libraries of ARCHITECTURE.md with `cargo metadata`.
//!
//! The first cell of a row names libraries, and may restrict them to one package: `| snap, in `codec` only | … | … |`.
//! A crate cannot name what it does not depend on, so this is also the check that only `io` names the runtime and `libc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::metadata::{self, Package};
use crate::{Result, repository};

const HEADING: &str = "\n## Libraries\n\n| crate | for | why this one |\n|---|---|---|\n";

/// Each listed library, with the only package that may use it.
type Listed = BTreeMap<String, Option<String>>;

pub(super) fn check() -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md"))?;
    Ok(compare(&parse(&text), &metadata::packages()?))
}

fn parse(text: &str) -> Listed {
    let rows = text.split_once(HEADING).map_or("", |(_, rest)| rest);
    let cells = rows.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    cells.flat_map(|(cell, _)| parse_cell(cell)).collect()
}

fn parse_cell(cell: &str) -> Vec<(String, Option<String>)> {
    let (owners, names): (Vec<&str>, Vec<&str>) =
        cell.split(", ").partition(|part| part.starts_with("in `"));
    let owner = owners.first().and_then(|part| part.split('`').nth(1));
    let name = |part: &&str| part.split(' ').next().unwrap_or_default().to_owned();
    names.iter().map(|part| (name(part), owner.map(str::to_owned))).collect()
}

fn compare(listed: &Listed, packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |text: String| findings.push(format!("ARCHITECTURE.md: {text}"));
    let mut used = BTreeSet::new();
    for Package { name, libraries, .. } in packages {
        used.extend(libraries);
        for library in libraries {
            match listed.get(library) {
                None => find(format!("{name} uses {library}, which Libraries does not list")),
                Some(Some(owner)) if owner != name => {
                    find(format!("{name} uses {library}, which Libraries allows {owner} only"));
                }
                Some(_) => {}
            }
        }
    }
    // `fuzz/` is a workspace of its own.
    let expected = listed.iter().filter(|(_, owner)| owner.as_deref() != Some("fuzz"));
    for (library, _) in expected.filter(|(library, _)| !used.contains(library)) {
        find(format!("Libraries lists {library}, which no package uses"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, libraries: &[&str]) -> Package {
        let libraries = libraries.iter().map(|library| (*library).to_owned()).collect();
        Package { name: name.to_owned(), is_crate: true, uses: BTreeSet::new(), libraries }
    }

    /// Proves that a library without a row, in a package that may not use it, or with a row but no user is a finding.
    #[test]
    fn each_difference_is_found() {
        let text = HEADING.to_owned()
            + "| compio (=1.2), in `io` only | the runtime |\n| md-5, sha1 | ids |\n";
        let packages = [package("io", &["compio", "md-5"]), package("query", &["compio", "rand"])];
        let findings = compare(&parse(&text), &packages);
        assert_eq!(
            findings,
            [
                "ARCHITECTURE.md: query uses compio, which Libraries allows io only",
                "ARCHITECTURE.md: query uses rand, which Libraries does not list",
                "ARCHITECTURE.md: Libraries lists sha1, which no package uses",
            ]
        );
    }
}
