//! Rules on Rust files: sizes, names, users.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::source::Source;
use super::{circles, glossary, texts, unused};
use crate::{Result, repository};

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 1000;
const LINE_LETTERS: usize = 140;
const FORBIDDEN_FILES: &[&str] =
    &["utils", "util", "common", "helpers", "helper", "manager", "misc", "v2", "new"];

pub(super) fn check(accept: bool) -> Result<Vec<String>> {
    let root = repository();
    let mut paths = Vec::new();
    for folder in
        ["bench/src", "crates", "fuzz/fuzz_targets", "fuzz/src", "oracle", "sim/src", "xtask"]
    {
        collect(&root.join(folder), &mut paths)?;
    }
    let mut sources = Vec::new();
    for path in paths {
        let shown = path.strip_prefix(&root).unwrap_or(&path);
        sources.push(Source::parse(shown, fs::read_to_string(&path)?, !is_test_path(shown))?);
    }
    let tests = test_files(&sources);
    let mut findings = Vec::new();
    for source in &mut sources {
        let shown = &source.shown;
        findings.extend(forbidden_name(shown));
        if root.join(shown).with_extension("").is_dir() && !is_test_path(shown) {
            findings.push(format!("{}: has children, so it is a mod.rs", shown.display()));
        }
        findings.extend(long_lines(source));
        source.is_production &= !tests.contains(&source.shown);
        if source.is_production {
            findings.extend(sizes(source));
        }
    }
    findings.extend(unused::check(&sources));
    findings.extend(circles::check(&sources));
    findings.extend(glossary::check(&sources)?);
    sources.sort_by(|a, b| a.shown.cmp(&b.shown));
    findings.extend(texts::check(&sources, accept)?);
    Ok(findings)
}

/// Literals do not count: a message stays in one piece, so that it can be searched for.
fn long_lines(source: &Source) -> Vec<String> {
    let mut lines: Vec<Vec<char>> =
        source.text.lines().map(|line| line.chars().collect()).collect();
    let comments: Vec<bool> =
        source.text.lines().map(|line| line.trim_start().starts_with("//")).collect();
    for (start, end) in source.literals() {
        for number in start.line..=end.line {
            let Some(line) = lines.get_mut(number - 1).filter(|_| !comments[number - 1]) else {
                continue;
            };
            let from = if number == start.line { start.column } else { 0 };
            let to = if number == end.line { end.column } else { line.len() };
            let to = to.min(line.len());
            let literal = line.get_mut(from..to);
            literal.into_iter().flatten().for_each(|letter| *letter = ' ');
        }
    }
    let mut findings = Vec::new();
    for (number, (line, is_comment)) in (1..).zip(lines.iter().zip(comments)) {
        let line: String = line.iter().collect();
        let code: Vec<&str> = line.split_whitespace().collect();
        let counted = if is_comment { line.clone() } else { code.join(" ") };
        let (letters, path) = (counted.chars().count(), source.shown.display());
        if letters > LINE_LETTERS {
            findings.push(format!("{path}:{number}: {letters} letters; at most {LINE_LETTERS}"));
        }
    }
    findings
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// The files of modules declared as `#[cfg(test)] mod name;`.
fn test_files(sources: &[Source]) -> BTreeSet<PathBuf> {
    let declared = sources.iter().flat_map(|source| {
        let folder = module_folder(&source.shown);
        source.test_modules.iter().map(move |name| folder.join(format!("{name}.rs")))
    });
    declared.collect()
}

fn module_folder(path: &Path) -> PathBuf {
    match stem(path) {
        "lib" | "main" | "mod" => path.parent().unwrap_or(path).to_owned(),
        _ => path.with_extension(""),
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

fn is_test_path(path: &Path) -> bool {
    let in_tests = path.iter().any(|part| part == "tests" || part == "benches" || part == "fuzz");
    in_tests || stem(path) == "tests" || stem(path).ends_with("_tests")
}

fn forbidden_name(path: &Path) -> Option<String> {
    let parts = [stem(path), path.parent().map_or("", stem)];
    let bad = parts.into_iter().find(|part| FORBIDDEN_FILES.contains(part))?;
    Some(format!("{}: a file must not be named {bad}; name it by the thing in it", path.display()))
}

fn sizes(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let (lines, path) = (source.lines(), source.shown.display());
    if lines >= FILE_LINES {
        findings.push(format!("{path}: {lines} lines without tests; below {FILE_LINES}"));
    }
    let functions = source.functions().into_iter();
    for function in functions.filter(|function| function.length > FUNCTION_LINES) {
        let limit = format!("{} lines; at most {FUNCTION_LINES}", function.length);
        findings.push(format!("{path}:{}: function {} has {limit}", function.line, function.name));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a long literal is not a long line, but a long comment is.
    #[test]
    fn long_lines_without_their_literals() {
        let long = "x".repeat(LINE_LETTERS);
        let text = format!(
            "// {long}
const A: &str = \"{long}\";
fn f() {{ {long}() }}
"
        );
        let source = Source::parse(Path::new("a.rs"), text, true).expect("it is Rust");
        let findings = long_lines(&source);
        assert!(findings.len() == 2 && findings[0].starts_with("a.rs:1"), "{findings:?}");
        assert!(findings[1].starts_with("a.rs:3"), "{findings:?}");
    }

    #[test]
    fn a_file_is_named_by_its_thing() {
        assert!(forbidden_name(Path::new("crates/io/src/utils.rs")).is_some());
        assert!(forbidden_name(Path::new("crates/io/src/common/mod.rs")).is_some());
        assert!(forbidden_name(Path::new("crates/io/src/pacing.rs")).is_none());
    }
}
