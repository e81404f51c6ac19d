//! Finds `pub` items without a user: rustc says nothing of an unused item that a library exports.
//!
//! It counts words, not meanings: an item has a user if its name occurs anywhere but in a definition, a re-export, or the unit tests of
//! its own file. A dead item with a common name is therefore not found; what is found is dead.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// One file: its text, and its code without comments, literals and unit tests.
pub(super) struct Source {
    pub(super) shown: PathBuf,
    pub(super) text: String,
    pub(super) code: String,
    /// Tests, examples and fuzz targets are users, and need none.
    pub(super) is_production: bool,
}

const KINDS: [&str; 7] = ["fn", "struct", "enum", "const", "static", "type", "trait"];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut uses: BTreeMap<&str, i64> = BTreeMap::new();
    let exports: Vec<(String, Vec<Definition>)> = sources
        .iter()
        .map(|source| (without_exports(&source.code), definitions(&source.code)))
        .collect();
    for (source, (code, defined)) in sources.iter().zip(&exports) {
        let words = words(code).chain(interpolated(&source.text));
        words.for_each(|word| *uses.entry(word).or_default() += 1);
        defined.iter().for_each(|definition| *uses.entry(&definition.name).or_default() -= 1);
    }
    let mut findings = Vec::new();
    for (source, (_, defined)) in sources.iter().zip(&exports).filter(|(s, _)| s.is_production) {
        for Definition { name, line, .. } in defined.iter().filter(|d| d.is_exported) {
            if uses.get(name.as_str()).is_some_and(|count| *count <= 0) {
                let place = source.shown.display();
                findings.push(format!("{place}:{line}: {name} has no user"));
            }
        }
    }
    findings
}

struct Definition {
    name: String,
    line: usize,
    is_exported: bool,
}

fn definitions(code: &str) -> Vec<Definition> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let words: Vec<&str> = words(text).collect();
        let Some(kind) = words.iter().position(|word| KINDS.contains(word)) else { continue };
        // `const fn`, `unsafe fn`, `static mut`: the last such word names the kind.
        let behind =
            words.iter().skip(kind + 1).find(|word| !KINDS.contains(*word) && **word != "mut");
        let is_item = words.iter().take(kind).all(|word| {
            ["pub", "crate", "super", "in", "async", "unsafe", "extern", "default"].contains(word)
        });
        let Some(name) = behind.filter(|_| is_item) else { continue };
        let is_exported = text.trim_start().starts_with("pub ");
        found.push(Definition { name: (*name).to_owned(), line, is_exported });
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter| !is_word(letter)).filter(|word| !word.is_empty())
}

/// Names in format strings: `{name}`, `{name:?}`.
fn interpolated(text: &str) -> impl Iterator<Item = &str> {
    let behind_braces = text.split('{').skip(1);
    behind_braces.filter_map(|rest| {
        let end = rest.find(|letter| !is_word(letter))?;
        let closes = rest[end..].starts_with(['}', ':']);
        rest.get(..end).filter(|name| closes && !name.is_empty())
    })
}

/// The code without `pub use …;`.
fn without_exports(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("pub use ").or_else(|| rest.find("pub(crate) use ")) {
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        out.push_str(&rest[..at]);
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::super::mask;
    use super::*;

    fn source(name: &str, text: &str) -> Source {
        let code = mask::without_tests(&mask::code_only(text));
        Source { shown: name.into(), text: text.to_owned(), code, is_production: true }
    }

    /// A use is another file, a format string, or the own file; a re-export, a unit test beside it or a comment does not count.
    #[test]
    fn items_without_users() {
        let library = "pub use a::dead;\npub const LIMIT: u8 = 1;\npub fn dead() {}\npub const fn live() {}\npub struct Own;\n\
                       fn f(_: Own) {} // dead()\n#[cfg(test)]\nmod tests {\n fn t() { super::dead() }\n}\n";
        let user = "fn main() { f(); live(); println!(\"{LIMIT}\") }\n";
        let findings = check(&[source("lib.rs", library), source("main.rs", user)]);
        assert_eq!(findings, ["lib.rs:3: dead has no user"]);
    }
}
