//! `halcyon compact` against Cassandra's own major compaction of every golden table: the same rows, cells, tombstones,
//! and the same things purged.

use std::path::{Path, PathBuf};

use crate::golden::{TempFolder, golden_tables, halcyon, text};

fn said(table: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(table.join("table.json")).expect("table.json");
    serde_json::from_str(&text).expect("JSON")
}

/// Removes positions: they depend on the header's bases, against which timestamps are encoded.
fn without_positions(dump: &str) -> String {
    let lines = dump.lines().map(|line| match line.split_once("\"position\" : ") {
        Some((before, after)) => {
            format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Cassandra's dumps of its own outputs; empty if everything was purged.
fn theirs(table: &Path) -> String {
    let dumps = sorted(&table.join("compacted-dumps"));
    let dumps = dumps.iter().filter(|path| path.extension().is_some_and(|e| e == "json"));
    dumps.map(|path| std::fs::read_to_string(path).expect("readable")).collect()
}

fn compact(table: &Path, said: &serde_json::Value, output: &TempFolder) {
    let sstables = table.join("sstables");
    let named = |file: &serde_json::Value| sstables.join(file.as_str().expect("a name"));
    let inputs = match said["compacted_inputs"].as_array() {
        Some(files) => files.iter().map(named).collect(),
        None => vec![sstables.clone()],
    };
    let name = |field: &str| said[field].as_str().expect("a name").to_owned();
    let mut arguments: Vec<String> = vec!["compact".into()];
    arguments.extend(inputs.iter().map(|path| path.display().to_string()));
    arguments.extend(["--schema".into(), table.join("schema.cql").display().to_string()]);
    arguments.extend(["--table".into(), format!("{}.{}", name("keyspace"), name("table"))]);
    arguments.extend(["--output".into(), output.path().into()]);
    arguments.extend(["--gc-before".into(), said["gc_before"].to_string()]);
    arguments.extend(["--now".into(), said["compacted_between"][1].to_string()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let compacted = halcyon(&arguments);
    let errors = text(&compacted.stderr);
    assert_eq!(compacted.status.code(), Some(0), "{}: {errors}", table.display());
}

fn check(version: &str) {
    let mut compared = 0;
    for table in golden_tables(version) {
        let said = said(&table);
        // The tables of indexes have no schema.
        if said["compacted_between"].is_null() || said["kind"] == "INDEX" {
            continue;
        }
        let output = TempFolder::empty();
        compact(&table, &said, &output);
        let mut ours = String::new();
        if output.component("Data.db").is_some() {
            let now = said["dumped_at"].to_string();
            ours = text(&halcyon(&["sstable", "dump", "--now", &now, output.path()]).stdout);
        }
        let (ours, theirs) = (without_positions(&ours), without_positions(&theirs(&table)));
        let mut lines = ours.lines().zip(theirs.lines()).enumerate();
        let differs = lines.find(|(_, (a, b))| a != b);
        assert!(ours == theirs, "{}: first difference {differs:?}", table.display());
        compared += 1;
    }
    assert!(compared >= 40, "{compared} golden tables of {version}");
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
