//! Our dump of every golden SSTable equals the output of Cassandra's sstabledump byte for byte.

use std::path::{Path, PathBuf};
use std::process::Command;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// The time at which sstabledump ran, which decides expiry.
fn dumped_at(table: &Path) -> String {
    let text = std::fs::read_to_string(table.join("table.json")).expect("table.json");
    let said: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    said["dumped_at"].to_string()
}

fn dump(data: &Path, now: &str) -> Result<Vec<u8>, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_halcyon"))
        .args(["sstable", "dump", "--now", now])
        .arg(data)
        .output()
        .expect("runs");
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn first_difference(ours: &[u8], theirs: &[u8]) -> String {
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let mut lines = ours.lines().zip(theirs.lines()).enumerate();
    match lines.find(|(_, (a, b))| a != b) {
        Some((i, (a, b))) => format!("line {}:\n  ours   {a}\n  theirs {b}", i + 1),
        None => format!("{} against {} bytes", ours.len(), theirs.len()),
    }
}

/// Compares the dumps of one table; returns their number.
fn compare(table: &Path, sstables: &str, dumps: &str, wrong: &mut Vec<String>) -> usize {
    let now = dumped_at(table);
    let mut compared = 0;
    for entry in std::fs::read_dir(table.join(dumps)).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().expect("UTF-8");
        let Some(prefix) = name.strip_suffix(".json") else { continue };
        let data = table.join(sstables).join(format!("{prefix}-Data.db"));
        let theirs = std::fs::read(entry.path()).expect("readable");
        match dump(&data, &now) {
            Ok(ours) if ours == theirs => {}
            Ok(ours) => {
                wrong.push(format!("{}: {}", data.display(), first_difference(&ours, &theirs)))
            }
            Err(e) => wrong.push(format!("{}: {e}", data.display())),
        }
        compared += 1;
    }
    compared
}

fn check(version: &str) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for table in folders(&testdata().join(version)) {
        compared += compare(&table, "sstables", "dumps", &mut wrong);
        compared += compare(&table, "compacted", "compacted-dumps", &mut wrong);
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 40, "{compared} golden dumps of {version}");
}

#[test]
fn nb() {
    check("nb");
}

#[test]
fn oa() {
    check("oa");
}

#[test]
fn da() {
    check("da");
}

#[test]
fn pa() {
    check("pa");
}

#[test]
fn ea() {
    check("ea");
}

/// Proves that our options print the same as those of sstabledump 5.0.9 (`tests/data/sstabledump/<version>-<table>-<id>.…`).
#[test]
fn options_print_what_sstabledump_prints() {
    let said = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sstabledump");
    for (name, options) in [
        ("oa-deletions-1.lines", &["--format", "json-lines"][..]),
        ("oa-deletions-1.keys", &["--enumerate-keys"]),
        ("oa-deletions-1.raw", &["--raw-timestamps"]),
        ("oa-deletions-1.key-3-1-not-2", &["-k", "3", "-k", "1", "-x", "2"]),
        ("oa-deletions-1.key-77", &["-k", "77"]),
        ("oa-user_types-2.lines-raw", &["--format", "json-lines", "-t"]),
        ("nb-strings-1.lines", &["--format", "json-lines"]),
        ("nb-strings-1.keys", &["-e"]),
    ] {
        let (sstable, _) = name.split_once('.').expect("a dot");
        let [version, table, id]: [&str; 3] =
            sstable.split('-').collect::<Vec<_>>().try_into().expect("three parts");
        let data = testdata().join(version).join(table).join("sstables");
        let data = data.join(format!("{version}-{id}-big-Data.db"));
        let output = Command::new(env!("CARGO_BIN_EXE_halcyon"))
            .args(["sstable", "dump"])
            .arg(data)
            .args(options)
            .output()
            .expect("runs");
        let theirs = std::fs::read(said.join(name)).expect("readable");
        assert_eq!(output.stdout, theirs, "{name}: {}", first_difference(&output.stdout, &theirs));
    }
}
