//! Rules on Rust files: sizes, names, users.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::unused::{self, Source};
use super::{circles, mask};
use crate::{Result, repository};

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 1000;
const LINE_LETTERS: usize = 140;
const FORBIDDEN_FILES: &[&str] =
    &["utils", "util", "common", "helpers", "helper", "manager", "misc", "v2", "new"];

pub(super) fn check() -> Result<Vec<String>> {
    let root = repository();
    let mut paths = Vec::new();
    for folder in
        ["bench/src", "crates", "fuzz/fuzz_targets", "fuzz/src", "oracle", "sim/src", "xtask"]
    {
        collect(&root.join(folder), &mut paths)?;
    }
    let mut sources = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let code = mask::code_only(&text);
        sources.push((path, text, code));
    }
    let tests = test_files(&sources);
    let (mut findings, mut unused) = (Vec::new(), Vec::new());
    for (path, text, code) in sources {
        let shown = path.strip_prefix(&root).unwrap_or(&path).to_owned();
        findings.extend(forbidden_name(&shown));
        if path.with_extension("").is_dir() && !is_test_path(&shown) {
            findings.push(format!("{}: has children, so it is a mod.rs", shown.display()));
        }
        findings.extend(long_lines(&shown, &text, &code));
        let is_production = !tests.contains(&path) && !is_test_path(&shown);
        let code = if is_production { mask::without_tests(&code) } else { code };
        if is_production {
            findings.extend(check_code(&shown, &code));
        }
        unused.push(Source { shown, text, code, is_production });
    }
    findings.extend(unused::check(&unused));
    findings.extend(circles::check(&unused));
    Ok(findings)
}

/// Literals do not count: a message stays in one piece, so that it can be searched for.
fn long_lines(path: &Path, text: &str, code: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, (line, code)) in (1..).zip(text.lines().zip(code.lines())) {
        let is_comment = line.trim_start().starts_with("//");
        let code: Vec<&str> = code.split_whitespace().collect();
        let counted = if is_comment { line } else { &code.join(" ") };
        let (letters, path) = (counted.chars().count(), path.display());
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
fn test_files(sources: &[(PathBuf, String, String)]) -> BTreeSet<PathBuf> {
    let declared = sources.iter().flat_map(|(path, _, code)| {
        let folder = module_folder(path);
        mask::test_modules(code).into_iter().map(move |name| folder.join(name + ".rs"))
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

fn check_code(path: &Path, code: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = code.trim_end().lines().count();
    if lines >= FILE_LINES {
        findings
            .push(format!("{}: {lines} lines without tests; below {FILE_LINES}", path.display()));
    }
    for (name, line, length) in functions(code) {
        if length > FUNCTION_LINES {
            let limit = format!("{length} lines; at most {FUNCTION_LINES}");
            findings.push(format!("{}:{line}: function {name} has {limit}", path.display()));
        }
    }
    findings
}

/// Name, first line and number of lines of each function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let starts = code.match_indices("fn ").map(|(at, _)| at);
    starts.filter_map(|at| function_at(code, at)).collect()
}

fn function_at(code: &str, at: usize) -> Option<(String, usize, usize)> {
    let before = code[..at].chars().next_back();
    if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
        return None;
    }
    let name: String = code[at + 3..]
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    let open = body_start(code, at)?;
    let end = mask::block_end(code, open);
    let line = |index: usize| code[..index].matches('\n').count() + 1;
    (!name.is_empty()).then(|| (name, line(at), line(end) - line(at) + 1))
}

/// The brace that opens the body; none for a declaration that ends in `;`.
fn body_start(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, letter) in code[at..].char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '{' if depth == 0 => return Some(at + offset),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_functions() {
        let code = "trait T { fn declared(&self) -> [u8; 4]; }\nfn long(a: [u8; 3]) {\n    if a {\n    }\n}\n";
        assert_eq!(functions(code), [("long".to_owned(), 2, 4)]);
    }

    #[test]
    fn a_file_is_named_by_its_thing() {
        assert!(forbidden_name(Path::new("crates/io/src/utils.rs")).is_some());
        assert!(forbidden_name(Path::new("crates/io/src/common/mod.rs")).is_some());
        assert!(forbidden_name(Path::new("crates/io/src/pacing.rs")).is_none());
    }
}
