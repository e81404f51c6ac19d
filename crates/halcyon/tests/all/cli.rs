//! The command line: exit codes, help, wrong use, and `verify` on damaged files.

use crate::golden::{TempFolder, golden, golden_tables, halcyon, text};

fn code(arguments: &[&str]) -> Option<i32> {
    halcyon(arguments).status.code()
}

#[test]
fn help_teaches_with_examples() {
    for verb in [
        &["sstable", "describe"][..],
        &["sstable", "dump"],
        &["sstable", "verify"],
        &["compact"],
        &["doctor"],
        &["plugin", "install"],
    ] {
        let output = halcyon(&[verb, &["--help"]].concat());
        assert_eq!(output.status.code(), Some(0), "{verb:?}");
        assert!(text(&output.stdout).contains("Examples:\n  halcyon"), "{verb:?}");
    }
    let top = text(&halcyon(&["--help"]).stdout);
    assert!(top.contains("Exit codes: 0 done, 1 a problem"), "{top}");
    assert_eq!(code(&["--version"]), Some(0));
}

#[test]
fn a_wrong_command_line_exits_with_2() {
    let table = golden("oa", "deletions");
    let sstables = table.join("sstables");
    let sstables = sstables.to_str().expect("UTF-8");
    for wrong in [
        &[][..],
        &["nonsense"],
        &["sstable", "dump"],
        &["sstable", "dump", sstables, "--format", "xml"],
        &["sstable", "dump", sstables, "--enumerate-keys", "--key", "1"],
        &["sstable", "describe", sstables, "--bytes", "--json"],
        &["compact", sstables, "--throughput", "fast"],
        &["compact", sstables, "--split-size", "1.5GB"],
        &["compact", sstables, "--access", "mmap"],
        &["compact", sstables, "--version", "zz"],
        &["compact", sstables, "--dry-run", "--version", "da", "--format", "big"],
        &["compact", sstables, "--compression", "Nonsense"],
        &["compact", sstables, "--gc-before", "1", "--gc-grace", "1"],
        &["compact", "--node", "db1", "/nowhere"],
        &["compact", "--node", "db1", "--schema", "/nowhere"],
        &["compact", "--node", "db1", "--split-size", "1GiB"],
        &["compact", "--node", "db1", "--watch", "--remove"],
        &["compact", "--node", "db1:x"],
        &["compact", "--node", "db1", "--tables", "a.b.c"],
        &["compact", "/nowhere", "--tables", "ks.t"],
        &["compact", "/nowhere", "--username", "u"],
        &["sstable", "dump", "-q", "-v", sstables],
        &["sstable", "dump", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
    ] {
        let output = halcyon(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", text(&output.stderr));
        assert!(!output.stderr.is_empty(), "{wrong:?}");
    }
}

#[test]
fn what_cannot_be_read_exits_with_3() {
    for verb in
        [&["sstable", "dump"][..], &["sstable", "verify"], &["sstable", "describe"], &["compact"]]
    {
        for path in ["/nowhere/at/all", concat!(env!("CARGO_MANIFEST_DIR"), "/src")] {
            let output = halcyon(&[verb, &[path]].concat());
            assert_eq!(output.status.code(), Some(3), "{verb:?} {path}: {}", text(&output.stderr));
            assert!(text(&output.stderr).contains(path), "names the thing");
        }
    }
}

/// Proves that every golden SSTable is sound, in every version and compressor.
#[test]
fn golden_tables_are_sound() {
    for version in ["nb", "oa", "da", "pa", "ea"] {
        let mut arguments = vec!["sstable".to_owned(), "verify".into(), "--extended".into()];
        for table in golden_tables(version) {
            for folder in ["sstables", "compacted"] {
                let folder = table.join(folder);
                let has_files =
                    std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
                if has_files {
                    arguments.push(folder.display().to_string());
                }
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = halcyon(&arguments);
        let said = text(&output.stdout);
        let lines = said.lines().filter(|line| line.starts_with("sound")).count();
        assert_eq!(output.status.code(), Some(0), "{version}: {said}{}", text(&output.stderr));
        assert!(lines > 40, "{version}: {lines} SSTables");
    }
}

/// Proves that a flipped byte anywhere in these components is found.
#[test]
fn every_flipped_byte_that_matters_is_found() {
    for (version, table) in [("oa", "statics"), ("da", "deletions"), ("nb", "uncompressed")] {
        let folder = TempFolder::copy_of(&golden(version, table).join("sstables"), Some(1));
        for (name, most) in [
            ("Data.db", 50),
            ("Digest.crc32", 10),
            ("Statistics.db", 30),
            ("Index.db", 70),
            ("Partitions.db", 70),
            ("TOC.txt", 20),
        ] {
            let Some(file) = folder.component(name) else { continue };
            folder.flip_each(&file, most, |at| {
                let output = halcyon(&["sstable", "verify", "--extended", folder.path()]);
                let (code, said) = (output.status.code(), text(&output.stdout));
                // The list of components only helps: reads are right without it.
                let is_remark = name == "TOC.txt" && said.starts_with("remarks");
                assert!(
                    matches!(code, Some(1 | 3)) || is_remark,
                    "{version} {table} {name}: byte {at} flipped, {code:?}: {said}{}",
                    text(&output.stderr)
                );
            });
        }
    }
}

/// Proves that flips in components that are optional, or whose bits can be harmless, cause no crash and no hang.
#[test]
fn other_flipped_bytes_are_survived() {
    for (version, table) in [("oa", "deletions"), ("da", "wide_asc"), ("nb", "uncompressed")] {
        let folder = TempFolder::copy_of(&golden(version, table).join("sstables"), Some(1));
        for name in ["Filter.db", "Summary.db", "CompressionInfo.db", "Rows.db", "CRC.db"] {
            let Some(file) = folder.component(name) else { continue };
            folder.flip_each(&file, 30, |at| {
                let output = halcyon(&["sstable", "verify", "--extended", folder.path()]);
                let code = output.status.code();
                assert!(
                    matches!(code, Some(0 | 1 | 3)),
                    "{name}: byte {at} flipped: {}",
                    text(&output.stderr)
                );
            });
        }
    }
}

#[test]
fn missing_components_are_named() {
    for (name, code) in [
        ("Statistics.db", 1),
        ("Index.db", 1),
        ("CompressionInfo.db", 1),
        // Reads are right without these.
        ("Filter.db", 0),
        ("Digest.crc32", 0),
    ] {
        let folder = TempFolder::copy_of(&golden("oa", "deletions").join("sstables"), Some(1));
        let file = folder.component(name).expect("a component");
        std::fs::remove_file(file).expect("removed");
        let output = halcyon(&["sstable", "verify", folder.path()]);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}{}", text(&output.stderr));
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// Proves that a compaction with `--output` writes sound SSTables and leaves its inputs unchanged.
#[test]
fn compact_writes_sound_tables() {
    for (version, table) in
        [("nb", "deletions"), ("oa", "wide_desc"), ("da", "map_multicell"), ("ea", "statics")]
    {
        let table = golden(version, table);
        let inputs = TempFolder::copy_of(&table.join("sstables"), None);
        let output = TempFolder::empty();
        let schema = table.join("schema.cql");
        let before = inputs.listing();
        let compacted = halcyon(&[
            "compact",
            inputs.path(),
            "--schema",
            schema.to_str().expect("UTF-8"),
            "--output",
            output.path(),
            "--json",
        ]);
        assert_eq!(compacted.status.code(), Some(0), "{version}: {}", text(&compacted.stderr));
        let said: serde_json::Value = serde_json::from_slice(&compacted.stdout).expect("JSON");
        assert_eq!(
            said["tables"][0]["compactions"][0]["outputs"].as_array().map(Vec::len),
            Some(1)
        );
        assert_eq!(inputs.listing(), before, "inputs are kept");
        let verified = halcyon(&["sstable", "verify", "--extended", output.path()]);
        assert_eq!(verified.status.code(), Some(0), "{version}: {}", text(&verified.stdout));
    }
}

#[test]
fn dry_run_touches_nothing() {
    let inputs = TempFolder::copy_of(&golden("oa", "deletions").join("sstables"), None);
    let before = inputs.listing();
    let output = halcyon(&["compact", inputs.path(), "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("3 SSTables") && said.contains("nothing is purged"), "{said}");
    assert_eq!(inputs.listing(), before);
}

#[test]
fn describe_names_every_byte() {
    for version in ["nb", "oa", "da", "pa", "ea"] {
        let folder = golden(version, "deletions").join("sstables");
        let output = halcyon(&["sstable", "describe", "--bytes", folder.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(0), "{version}: {}", text(&output.stderr));
        assert!(!text(&output.stdout).contains("not understood"), "{version}");
        let json = halcyon(&["sstable", "describe", "--json", folder.to_str().expect("UTF-8")]);
        for line in text(&json.stdout).lines() {
            let said: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(said["version"], version);
        }
    }
}

/// Proves that outputs of an unfinished compaction are ignored.
#[test]
fn transaction_logs_are_respected() {
    let folder = TempFolder::copy_of(&golden("oa", "deletions").join("sstables"), None);
    let log = "oa_txn_compaction_50554d6e-29bb-11e5-b345-feff819cdc9f.log";
    let added = "ADD:[/d/ks/t-00000000000000000000000000000001/oa-2-big-,0,8][3585343934]\n";
    std::fs::write(format!("{}/{log}", folder.path()), added).expect("written");
    let output = halcyon(&["sstable", "verify", folder.path()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 2, "{}", text(&output.stdout));
    assert!(
        text(&output.stderr).contains("oa-2-big-*: a transaction log"),
        "{}",
        text(&output.stderr)
    );
    let named = format!("{}/oa-2-big-Data.db", folder.path());
    assert_eq!(code(&["sstable", "dump", &named]), Some(0), "read because it was named");
    assert_eq!(code(&["compact", &named, "--dry-run"]), Some(2), "but never compacted");
}
