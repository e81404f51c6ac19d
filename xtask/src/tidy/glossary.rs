//! Names against GLOSSARY.md: a definition does not have a name of its column *not*.
//!
//! 1. The column is read from the table, so a word that is added there is enforced from then on. What stands in parentheses explains.
//! 2. A name is split into its words, `ReplayPlace` and `replay_place` alike. The check reads items, methods and associated items of
//!    production code; it skips fields and variables, for `rest` is a good name of the end of a slice.
//! 3. Words of the column that have another meaning here, by which they are right, are listed with it.

use std::collections::BTreeMap;
use std::fs;

use super::source::Source;
use crate::{Result, repository};

/// Wrong for the thing beside which the glossary has them, right for another one.
const OTHER_MEANING: [(&str, &str); 17] = [
    ("budget", "of memory"),
    ("choice", "of an access mode, a backend, a counter shard"),
    ("edge", "of a graph of vectors"),
    ("engine", "the storage engine"),
    ("fuel", "of wasmi, which calls it so"),
    ("hash", "of a password or a Bloom filter"),
    ("live", "of a cell, a row, an SSTable"),
    ("min elsewhere", "two words"),
    ("position", "in a file or in the commit log"),
    ("rest", "of bytes"),
    ("row marker", "two words"),
    ("signal", "of POSIX"),
    ("slot", "of a cache or a table of hashes"),
    ("table", "of CQL"),
    ("user", "of the operating system; user-defined types and functions"),
    ("view", "a materialized one"),
    ("wait", "of a task"),
];

pub(super) fn check(sources: &[Source]) -> Result<Vec<String>> {
    let text = fs::read_to_string(repository().join("GLOSSARY.md"))?;
    let wrong = column(&text);
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_production) {
        for definition in source.definitions() {
            let words = words(&definition.name);
            for word in wrong.iter().filter(|word| words.contains(word)) {
                let place =
                    format!("{}:{}: {}", source.shown.display(), definition.line, definition.name);
                found.entry(word).or_default().push(place);
            }
        }
    }
    Ok(wrong
        .iter()
        .flat_map(|word| against(word, found.get(word.as_str()).map_or(&[], |places| places)))
        .collect())
}

/// The words of the last column, each once, without those that have another meaning.
fn column(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter_map(|line| line.strip_prefix("| **")?.strip_suffix(" |"));
    let cells = rows.filter_map(|row| row.rsplit('|').next());
    let outside = |cell: &str| {
        let parts =
            cell.split('(').map(|part| part.split_once(')').map_or(part, |(_, behind)| behind));
        parts.collect::<String>()
    };
    let mut words: Vec<String> = cells
        .flat_map(|cell| {
            outside(cell).split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>()
        })
        .collect();
    words.retain(|word| !word.is_empty() && !OTHER_MEANING.iter().any(|(other, _)| other == word));
    words.sort();
    words.dedup();
    words
}

/// `ReplayPlace`, `replay_place` and `REPLAY_PLACE` are replay and place.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if letter != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

fn against(word: &str, places: &[String]) -> Vec<String> {
    let mut findings = places.to_vec();
    if let count @ 1.. = places.len() {
        findings.push(format!("{count} names have `{word}`, which GLOSSARY.md replaces"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the last column is read, without what explains it, and that a word with another meaning is left out.
    #[test]
    fn the_column_is_read() {
        let row = "| **event** | What. | x | news, told |\n| **backend** | a \\| b | | engine (that is the store) |\n| **x** | y | z | |";
        assert_eq!(column(row), ["news", "told"]);
    }

    /// Proves that names are split in each spelling, and that a part of a word does not count.
    #[test]
    fn names_are_split() {
        assert_eq!(words("ReplayPlace"), ["replay", "place"]);
        assert_eq!(words("place_of_SSTable"), ["place", "of", "sstable"]);
        assert_eq!(words("REPLACED"), ["replaced"]);
    }

    /// Proves that each name is a finding with its place, and that without names there are no findings.
    #[test]
    fn each_name_is_a_finding() {
        assert_eq!(against("nowhere", &["a".to_owned()]).len(), 2);
        assert!(against("nowhere", &[]).is_empty());
    }
}
