//! Counts the phrases that docs/STYLE.md replaces, in every text that a person reads: sources, tests, documents.
//!
//! A count may fall, not rise. When one falls, [`KNOWN`] falls with it.

use std::collections::BTreeMap;
use std::fs;

use crate::printed::output;
use crate::{Result, repository};

/// Phrases of the file's folder that are older than the check. A folder that is not listed has none.
const KNOWN: [(&str, usize); 7] = [
    ("bench", 4),
    ("crates/model", 1),
    ("crates/query", 3),
    ("crates/sstable", 1),
    ("docs", 12),
    ("e2e", 14),
    ("plugin", 1),
];

/// Words, and pairs of them. None is wrong in itself; all of them hide the subject or the noun.
const PHRASES: [&str; 25] = [
    "affair",
    "anew",
    "are gone",
    "are no",
    "are none",
    "are told",
    "as good as",
    "go on",
    "goes on",
    "in vain",
    "is gone",
    "is no",
    "is none",
    "is told",
    "leaves alone",
    "left alone",
    "let in",
    "mean nothing",
    "means nothing",
    "nobody",
    "somebody",
    "so many",
    "there and back",
    "who asks",
    "whoever",
];
/// *There is no*, *is no longer*, *is no more than* are plain.
const PLAIN_BEFORE: &str = "there";
const PLAIN_BEHIND: [&str; 2] = ["longer", "more"];

/// Python's and Rust's word for no value.
const NULL: &str = "None";

/// Texts of others, records of what a server said, and the places that list the phrases.
const SKIPPED: [&str; 3] = ["docs/STYLE.md", "testdata/", "xtask/src/tidy/words.rs"];
const ENDINGS: [&str; 4] = [".rs", ".py", ".java", ".md"];

pub(super) fn check() -> Result<Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let files = output("git", &["ls-files"])?;
    for file in std::str::from_utf8(&files)?.lines().filter(|file| is_read(file)) {
        let text = fs::read_to_string(repository().join(file)).unwrap_or_default();
        let of_folder = found.entry(folder(file)).or_default();
        for (number, line) in (1..).zip(text.lines()) {
            of_folder.extend(phrases(line).map(|phrase| format!("{file}:{number}: `{phrase}`")));
        }
    }
    Ok(found.iter().flat_map(|(folder, places)| against(folder, places)).collect())
}

/// Pages of experiments are made from templates, which are read here.
fn is_read(file: &str) -> bool {
    let is_made = file.starts_with("bench/") && file.ends_with("README.md");
    let is_text = ENDINGS.iter().any(|ending| file.ends_with(ending));
    is_text && !is_made && !SKIPPED.iter().any(|skipped| file.starts_with(skipped))
}

/// `crates/io` of `crates/io/src/file.rs`, `docs` of `docs/README.md`.
fn folder(file: &str) -> String {
    let parts = if file.starts_with("crates/") { 2 } else { 1 };
    file.split('/').take(parts).collect::<Vec<_>>().join("/")
}

fn phrases(line: &str) -> impl Iterator<Item = &'static str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = line.split(|letter: char| !is_part(letter)).filter(|word| !word.is_empty());
    let words: Vec<String> = words.filter(|word| *word != NULL).map(str::to_lowercase).collect();
    let starts = (0..words.len()).collect::<Vec<_>>().into_iter();
    starts.filter_map(move |at| {
        let phrase = PHRASES.iter().find(|phrase| {
            let mut rest = words.iter().skip(at);
            phrase.split(' ').all(|word| rest.next().is_some_and(|next| next == word))
        })?;
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let behind = words.get(at + phrase.split(' ').count());
        let is_plain = before.is_some_and(|word| word == PLAIN_BEFORE)
            || behind.is_some_and(|word| PLAIN_BEHIND.contains(&word.as_str()));
        (!is_plain).then_some(*phrase)
    })
}

fn against(folder: &str, places: &[String]) -> Vec<String> {
    let known = KNOWN.iter().find(|(of, _)| *of == folder).map_or(0, |(_, count)| *count);
    match places.len() {
        count if count == known => Vec::new(),
        count if count < known => {
            vec![format!("{folder} has {count} phrases of docs/STYLE.md; set KNOWN to it")]
        }
        count => {
            let mut findings = places.to_vec();
            findings.push(format!("{folder} has {count} phrases of docs/STYLE.md; {known} known"));
            findings
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that phrases are found as whole words in any case, and that plain English is not.
    #[test]
    fn phrases_are_whole_words() {
        let found = |line| phrases(line).collect::<Vec<_>>();
        assert_eq!(
            found("// Whoever asks: it is no file, goes on."),
            ["whoever", "is no", "goes on"]
        );
        assert_eq!(found("there is no file; it is no longer open; nobody_else"), [""; 0]);
        assert_eq!(found("So many (so many!) if x is None"), ["so many", "so many"]);
    }

    /// Proves that a count above the known one names each place, and that one below is a finding too.
    #[test]
    fn a_count_only_falls() {
        let places = ["a".to_owned(), "b".to_owned()];
        assert_eq!(against("nowhere", &places).len(), 3);
        assert!(against("nowhere", &[]).is_empty());
        assert_eq!(folder("crates/io/src/file.rs"), "crates/io");
        assert!(is_read("docs/README.md") && !is_read("bench/E1/README.md"));
    }
}
