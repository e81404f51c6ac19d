//! Finds `pub` items without a user: rustc says nothing of an unused item that a library exports.
//!
//! It counts words, not meanings: an item has a user if its name occurs anywhere but in a definition, a re-export, or the unit tests of
//! its own file. A dead item with a common name is therefore not found; what is found is dead.

use std::collections::BTreeMap;

use super::source::{Definition, Source};

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut uses: BTreeMap<String, i64> = BTreeMap::new();
    let defined: Vec<Vec<Definition>> = sources.iter().map(Source::definitions).collect();
    for (source, defined) in sources.iter().zip(&defined) {
        let words = source.words().into_iter().chain(interpolated(&source.text).map(str::to_owned));
        words.for_each(|word| *uses.entry(word).or_default() += 1);
        let names = defined.iter().map(|definition| definition.name.clone());
        names.for_each(|name| *uses.entry(name).or_default() -= 1);
    }
    let mut findings = Vec::new();
    for (source, defined) in sources.iter().zip(&defined).filter(|(s, _)| s.is_production) {
        for Definition { name, line, .. } in defined.iter().filter(|d| d.is_exported) {
            if uses.get(name).is_some_and(|count| *count <= 0) {
                let place = source.shown.display();
                findings.push(format!("{place}:{line}: {name} has no user"));
            }
        }
    }
    findings
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn source(name: &str, text: &str) -> Source {
        Source::parse(Path::new(name), text.to_owned(), true).expect("it is Rust")
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
