//! Checks that the paths in the documents exist.
//!
//! Three forms are checked: the target of a link, `[text](docs/README.md)`, relative to its document; a path between backticks whose
//! first part is a folder of the repository or of `crates/`, as in `stream/src/fragment.rs`; and behind such a path a name that its file
//! must contain, as in `stream/src/fragment.rs` (`FragmentStream`). Code blocks, placeholders and globs are skipped.

use std::fs;
use std::path::Path;

use crate::printed::output;
use crate::{Result, repository};

/// Test data brings documents of others.
const SKIPPED: &str = "testdata/";

pub(super) fn check() -> Result<Vec<String>> {
    let root = repository();
    let mut findings = Vec::new();
    let documents = output("git", &["ls-files", "--", "*.md"])?;
    let documents = std::str::from_utf8(&documents)?.lines();
    for document in documents.filter(|document| !document.starts_with(SKIPPED)) {
        let text = fs::read_to_string(root.join(document))?;
        let folder = root.join(document);
        let folder = folder.parent().unwrap_or(&root);
        let missing_link = |link: &&str| is_path(link) && !folder.join(link).exists();
        let missing_span = |span: &&str| is_path(span) && is_missing(&root, span);
        let missing = links(&text).into_iter().filter(missing_link);
        let missing = missing.chain(spans(&text).filter(missing_span));
        findings.extend(missing.map(|path| format!("{document}: {path} does not exist")));
        let lost = names(&text).filter(|(path, name)| !contains(&root, path, name));
        findings.extend(lost.map(|(path, name)| format!("{document}: {path} has no `{name}`")));
    }
    Ok(findings)
}

/// Each path that a name in parentheses follows: `` `path` (`Name`) ``.
fn names(text: &str) -> impl Iterator<Item = (&str, &str)> {
    prose(text)
        .flat_map(|line| line.match_indices("` (`").map(move |(at, _)| (line, at)))
        .filter_map(|(line, at)| {
            let path = line.get(..at)?.rsplit('`').next().filter(|path| is_path(path))?;
            let name = line.get(at + "` (`".len()..)?.split_once("`)")?.0;
            path.ends_with(".rs").then_some((path, name))
        })
}

fn contains(root: &Path, path: &str, name: &str) -> bool {
    let file = [root.to_owned(), root.join("crates")].into_iter().map(|base| base.join(path));
    let texts = file.filter_map(|file| fs::read_to_string(file).ok());
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    texts.into_iter().any(|text| text.split(|letter| !is_part(letter)).any(|word| word == name))
}

/// Whether the text is a plain relative path: no web address, command, placeholder, glob or anchor.
fn is_path(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    text.chars().all(plain) && !text.starts_with(['/', '.', '-']) && !text.contains("//")
}

/// Paths of the root and of `crates/` are both written without a prefix; results and data of the benchmarks need not exist.
fn is_missing(root: &Path, path: &str) -> bool {
    let Some((first, _)) = path.split_once('/') else { return false };
    let bases = [root.to_owned(), root.join("crates")];
    let mut bases = bases.into_iter().filter(|base| base.join(first).is_dir()).peekable();
    let is_made = path.starts_with("bench/data") || path.starts_with("target/");
    let known = bases.peek().is_some() && !is_made;
    known && !bases.any(|base| base.join(path).exists())
}

fn links(text: &str) -> Vec<&str> {
    let target = |rest: &'_ str| rest.split_once(')').map(|(target, _)| target.len());
    let mut found = Vec::new();
    for line in prose(text) {
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            found.extend(target(rest).and_then(|len| rest.get(..len)));
        }
    }
    found
}

fn spans(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which texts are taken for paths, and that code blocks are skipped.
    #[test]
    fn paths_of_a_document() {
        let text = "see [it](docs/a.md) and `b/c.rs`\n```\n`d/e.rs` [f](g.md)\n```\n`cargo x test`";
        assert_eq!(links(text), ["docs/a.md"]);
        assert_eq!(spans(text).collect::<Vec<_>>(), ["b/c.rs", "cargo x test"]);
        let skipped =
            ["cargo x test", "snapshots/<name>/", "crates/*", "https://a.b", "/sys/block"];
        assert!(!skipped.iter().any(|text| is_path(text)));
        assert!(is_path("stream/src/merge.rs"));
    }

    /// Proves that a name behind a path is found as a whole word only.
    #[test]
    fn names_behind_paths() {
        let text = "in `stream/src/fragment.rs` (`FragmentStream`), `a` (`b`), `x/y.rs` (as `z`)";
        let found: Vec<_> = names(text).collect();
        assert_eq!(found, [("stream/src/fragment.rs", "FragmentStream")]);
        let root = repository();
        assert!(contains(&root, "stream/src/fragment.rs", "FragmentStream"));
        assert!(!contains(&root, "stream/src/fragment.rs", "FragmentStrea"));
    }

    /// Proves that a path is missing only if its first folder is ours and the rest does not exist.
    #[test]
    fn missing_paths() {
        let root = repository();
        let missing = |path| is_missing(&root, path);
        assert!(missing("stream/src/no_such_file.rs") && missing("docs/no_such_file.md"));
        assert!(!missing("stream/src/merge.rs") && !missing("docs/README.md"));
        assert!(!missing("org/apache/cassandra") && !missing("bench/data/node"));
    }
}
