//! `halcyon doctor` on the data directory of a real Cassandra node, and without one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::golden::{TempFolder, halcyon, text};
use serde_json::Value;

fn node() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/nodes/5.0.9-drained")
}

fn json_of(directory: &Path) -> Value {
    let output = halcyon(&["doctor", "--json", "--data-dir", directory.to_str().expect("UTF-8")]);
    // The exit code depends on the device on which the tests run.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Every file and folder below a folder, with length and modification time.
fn state(folder: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("readable").flatten() {
        let about = entry.metadata().expect("readable");
        all.push((entry.path(), about.len(), about.modified().expect("a time")));
        if about.is_dir() {
            all.extend(state(&entry.path()));
        }
    }
    all.sort();
    all
}

/// Proves that a node's directory and its `data` give the same tables with the values of Statistics.db, and that small tables
/// give notes only.
#[test]
fn a_cassandra_node() {
    let whole = json_of(&node());
    assert_eq!(whole["tables"], json_of(&node().join("data"))["tables"]);
    let tables = whole["tables"].as_array().expect("tables");
    let names: Vec<&str> = tables.iter().filter_map(|table| table["table"].as_str()).collect();
    assert_eq!(names, ["alt", "cnt", "t"], "no system tables, none that was dropped");
    let t = &tables[2];
    assert_eq!((&t["sstables"], &t["chunk_length"]), (&Value::from(2), &Value::from(16384)));
    assert!(t["rows"].as_u64().is_some_and(|rows| rows >= 100), "{t}");
    let findings = whole["findings"].as_array().expect("findings");
    let chunks = findings.iter().find(|f| f["kind"] == "chunk_length" && f["of"] == "ks.t");
    let chunks = chunks.expect("16 KiB for rows of a hundred bytes");
    assert_eq!(chunks["severity"], "note");
    assert!(chunks["bytes_per_query"].as_u64().is_some_and(|bytes| bytes > 0), "{chunks}");
    let cure = chunks["cure"][0].as_str().expect("a cure");
    assert!(
        cure.starts_with("ALTER TABLE ks.t WITH compression = {'chunk_length_in_kb': '4'"),
        "{cure}"
    );
}

/// Proves that nothing is written, created or touched.
#[test]
fn nothing_is_touched() {
    let before = state(&node());
    json_of(&node());
    assert_eq!(state(&node()), before);
}

/// Proves that the report names what was examined, what was not, and how to have it examined.
#[test]
fn people_are_told() {
    let output = halcyon(&["doctor", "--data-dir", node().to_str().expect("UTF-8")]);
    let said = text(&output.stdout);
    for part in [
        "looked at  ",
        "3 tables in 5 SSTables",
        "not seen   caches",
        "--live HOST",
        "   evidence  ",
        "   cost      ",
        "   cure      ",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

/// Proves that a damaged SSTable is a finding and does not end the run.
#[test]
fn a_damaged_sstable_is_a_finding() {
    let folder = TempFolder::empty();
    let table = "data/ks/t-f7340e70e55911f182a38d2f66b9b406";
    let copy = Path::new(folder.path()).join(table);
    std::fs::create_dir_all(&copy).expect("created");
    for entry in std::fs::read_dir(node().join(table)).expect("golden").flatten() {
        std::fs::copy(entry.path(), copy.join(entry.file_name())).expect("copied");
    }
    std::fs::write(copy.join("oa-1-big-Statistics.db"), b"nonsense").expect("written");
    let found = json_of(Path::new(folder.path()));
    assert_eq!(found["findings"][0]["kind"], "unreadable", "{found}");
    assert_eq!(found["findings"][0]["severity"], "critical");
    assert_eq!(found["tables"][0]["sstables"], 1, "the other one was looked at");
}

/// Proves the exit codes of wrong use and of an unreachable server.
#[test]
fn wrong_use() {
    let code = |arguments: &[&str]| halcyon(&[&["doctor"], arguments].concat()).status.code();
    assert_eq!(code(&[]), Some(2));
    assert_eq!(code(&["--data-dir", "/no/such/directory"]), Some(3));
    // No test machine listens on the discard port.
    assert_eq!(code(&["--live", "127.0.0.1:9"]), Some(3));
}
