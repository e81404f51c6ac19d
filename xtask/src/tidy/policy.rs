//! Which libraries may be linked: their licences, where they come from, and that there is one version of each.
//!
//! Advisories are not checked here: their database changes without this repository. `cargo audit` reads it where there is a network.

use std::collections::BTreeMap;

use super::metadata::{self, Library};
use crate::Result;

/// Licences whose terms a program under Apache-2.0 can keep.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Libraries of which several versions are linked, and why.
const SEVERAL: [(&str, &str); 11] = [
    ("block-buffer", "of digest's versions"),
    ("cpufeatures", "of digest's versions"),
    ("crypto-common", "of digest's versions, and of bcrypt's cipher"),
    ("digest", "p12-keystore wants the hashes of RustCrypto's next generation"),
    ("foldhash", "hashbrown's versions want different ones"),
    ("getrandom", "ring and rand want different ones"),
    ("hashbrown", "saphyr and wasmparser want different ones, and older ones than we"),
    ("num-bigint", "x509-parser wants an older one than we"),
    ("sha1", "of digest's versions"),
    ("sha2", "of digest's versions"),
    ("syn", "derive macros want an older one than those of thiserror"),
];

pub(super) fn check() -> Result<Vec<String>> {
    Ok(compare(&metadata::libraries()?))
}

fn compare(libraries: &[Library]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |text: String| findings.push(format!("Cargo.lock: {text}"));
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let registry = libraries.iter().find(|library| library.source.starts_with("registry+"));
    for library in libraries {
        let Library { name, version, license, source } = library;
        versions.entry(name).or_default().push(version);
        if registry.is_none_or(|registry| registry.source != *source) {
            find(format!("{name} {version} comes from {source}: allowed is one registry"));
        }
        if !allows(license) {
            find(format!("{name} {version} is under `{license}`, which is not allowed"));
        }
    }
    for (name, versions) in &versions {
        let is_known = SEVERAL.iter().any(|(known, _)| known == name);
        if versions.len() > 1 && !is_known {
            find(format!("{name} is linked in the versions {}", versions.join(" and ")));
        }
    }
    for (name, _) in SEVERAL {
        if versions.get(name).is_none_or(|versions| versions.len() < 2) {
            find(format!("{name} has one version now: take it from the list of several"));
        }
    }
    findings
}

/// Whether one of the alternatives is allowed. A `/` is the old form of `OR`.
fn allows(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>) -> bool {
    let mut allowed = all(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all(words);
    }
    allowed
}

fn all(words: &mut Words<'_>) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut Words<'_>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let allowed = any(words);
        return words.next() == Some(")") && allowed;
    }
    let mut name = words.next().unwrap_or_default().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        name = format!("{name} WITH {}", words.next().unwrap_or_default());
    }
    LICENCES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that an alternative is enough and that all parts of a sum are needed.
    #[test]
    fn expressions() {
        for allowed in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "(GPL-3.0) OR MIT",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(allows(allowed), "{allowed}");
        }
        for refused in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH X", "(MIT", "MIT MIT"] {
            assert!(!allows(refused), "{refused}");
        }
    }

    /// Proves that each kind of violation is a finding.
    #[test]
    fn violations_are_found() {
        let library = |name: &str, version: &str, license: &str, source: &str| Library {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.to_owned(),
            source: source.to_owned(),
        };
        let several = SEVERAL.iter().flat_map(|(name, _)| [(name, "1"), (name, "2")]);
        let mut libraries: Vec<Library> =
            several.map(|(name, version)| library(name, version, "MIT", "registry+a")).collect();
        libraries.push(library("one", "1", "MIT", "registry+a"));
        libraries.push(library("one", "2", "AGPL-3.0", "git+b"));
        let findings = compare(&libraries);
        assert_eq!(
            findings,
            [
                "Cargo.lock: one 2 comes from git+b: allowed is one registry",
                "Cargo.lock: one 2 is under `AGPL-3.0`, which is not allowed",
                "Cargo.lock: one is linked in the versions 1 and 2",
            ]
        );
    }
}
