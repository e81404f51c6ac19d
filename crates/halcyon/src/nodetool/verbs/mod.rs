//! The one list of commands, with their options and arguments: what is parsed, what help prints, what runs.
//!
//! All commands of Cassandra 5.0.9 are here (`e2e/test_nodetool.py` compares them), and `docs/operate/nodetool.md` has a row for each (a
//! test compares that too). A command that this node cannot do is parsed, has its help, and says why when it is called.

mod compaction;
mod node;
mod ring;
mod security;
mod settings;
mod tables;
mod verb;

pub(super) use verb::{Verb, Work};

/// Each by name.
const FAMILIES: [&[Verb]; 6] =
    [compaction::VERBS, node::VERBS, ring::VERBS, security::VERBS, settings::VERBS, tables::VERBS];

pub(super) fn all() -> impl Iterator<Item = &'static Verb> {
    FAMILIES.into_iter().flatten()
}

pub(super) fn find(name: &str) -> Option<&'static Verb> {
    all().find(|verb| verb.syntax.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Proves that no two commands have one name, and that families are sorted.
    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = all().map(|verb| verb.syntax.name).collect();
        assert_eq!(names.len(), all().count());
        for family in FAMILIES {
            assert!(family.is_sorted_by_key(|verb| verb.syntax.name));
        }
    }

    /// The commands in the first cells of a table, below a heading.
    fn documented(page: &str, heading: &str) -> BTreeMap<String, usize> {
        let section = page.split("\n## ").find(|section| section.starts_with(heading));
        let mut found = BTreeMap::new();
        for line in section.unwrap_or_default().lines().filter(|line| line.starts_with("| `")) {
            let cell = line.split(" | ").next().unwrap_or_default();
            for name in cell.split('`').skip(1).step_by(2) {
                *found.entry(name.to_owned()).or_default() += 1;
            }
        }
        found
    }

    /// Proves that the page of the operator has each command once, under what works or under what is refused.
    #[test]
    fn each_command_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/nodetool.md");
        let page = std::fs::read_to_string(path).expect(path);
        for (heading, is_refused) in [("What works", false), ("What is refused", true)] {
            let of_kind = |verb: &&Verb| matches!(verb.work, Work::Refuse(_)) == is_refused;
            let expected: BTreeMap<String, usize> =
                all().filter(of_kind).map(|verb| (verb.syntax.name.to_owned(), 1)).collect();
            assert_eq!(documented(&page, heading), expected, "{heading}");
        }
    }
}
