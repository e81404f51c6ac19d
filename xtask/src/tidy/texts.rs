//! The golden file of what the programs say: log lines, errors, help.
//!
//! A text is a string literal of several words in production code, or the help of an argument. They stand in one file, so that they are
//! read as prose, and a change of one is seen in review. `cargo x tidy --accept` writes it.

use std::fmt::Write;
use std::fs;

use super::source::Source;
use crate::{Result, repository};

const GOLDEN: &str = "docs/texts.txt";
const INTRO: &str = "What the programs say, by file: log lines, errors, help. `cargo x tidy --accept` writes this list; read a change of it as prose.\n";
/// Fewer words are names, keys and parts of texts.
const WORDS: usize = 3;
/// Definitions of tables are long, and no text.
const DEFINITION: &str = "CREATE TABLE";

pub(super) fn check(sources: &[Source], accept: bool) -> Result<Vec<String>> {
    let texts = golden(sources);
    let path = repository().join(GOLDEN);
    if accept {
        fs::write(path, texts)?;
        return Ok(Vec::new());
    }
    let known = fs::read_to_string(path).unwrap_or_default();
    let is_known = known == texts;
    Ok(if is_known {
        Vec::new()
    } else {
        vec![format!("{GOLDEN}: {}", difference(&known, &texts))]
    })
}

fn golden(sources: &[Source]) -> String {
    let mut all = INTRO.to_owned();
    let is_example = |source: &&Source| source.shown.iter().any(|part| part == "examples");
    let programs = sources.iter().filter(|source| source.shown.starts_with("crates"));
    let programs = programs.filter(|source| !is_example(source));
    for source in programs.filter(|source| source.is_production) {
        let texts: Vec<String> = source.texts().into_iter().filter(|text| is_text(text)).collect();
        if texts.is_empty() {
            continue;
        }
        let _ = write!(all, "\n## {}\n", source.shown.display());
        texts.iter().for_each(|text| {
            let _ = writeln!(all, "{}", text.split_whitespace().collect::<Vec<_>>().join(" "));
        });
    }
    all
}

fn is_text(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().any(char::is_alphabetic) && !word.contains('_');
    text.split_whitespace().filter(is_word).count() >= WORDS && !text.contains(DEFINITION)
}

/// The first line that is not the same.
fn difference(known: &str, found: &str) -> String {
    let mut lines = known.lines().zip(found.lines()).filter(|(known, found)| known != found);
    match lines.next() {
        Some((known, found)) => {
            format!("`{found}`, not `{known}`; `cargo x tidy --accept` writes it")
        }
        None => "another length; `cargo x tidy --accept` writes it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Proves that messages and the help of arguments are texts, and that comments, names, definitions and unit tests are not.
    #[test]
    fn texts_of_a_file() {
        let code = "/// A comment of a function.\nfn f() { g(\"no such file\"); h(\"two words\"); i(\"CREATE TABLE a b c\") }\n\
                    /// Help of an argument.\n#[derive(Debug, clap::Args)]\nstruct A {\n /// How many of them\n a: u8 }\n\
                    #[derive(Error)]\nenum E {\n /// Not a text here.\n #[error(\"{0} is not a \\\n  file\")]\n A }\n\
                    #[cfg(test)]\nmod tests { const A: &str = \"of a unit test\"; }\n";
        let path = Path::new("crates/a/src/lib.rs");
        let source = Source::parse(path, code.to_owned(), true).expect("it is Rust");
        let texts = golden(&[source]);
        let texts: Vec<&str> = texts.lines().skip(2).collect();
        assert_eq!(
            texts,
            [
                "## crates/a/src/lib.rs",
                "no such file",
                "Help of an argument.",
                "How many of them",
                "{0} is not a file"
            ]
        );
    }
}
