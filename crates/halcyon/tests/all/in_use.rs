//! `halcyon compact` beside other processes.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::golden::{TempFolder, golden, halcyon, text};

/// A data directory with a table in it.
fn data() -> (TempFolder, String) {
    let data = TempFolder::empty();
    let table = Path::new(data.path()).join("ks/t-0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(&table).expect("created");
    for entry in std::fs::read_dir(golden("oa", "statics").join("sstables")).expect("golden") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), table.join(entry.file_name())).expect("copied");
    }
    let table = table.to_str().expect("UTF-8").to_owned();
    (data, table)
}

fn refused(table: &str) -> String {
    let output = halcyon(&["compact", table]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    said
}

/// Proves that a compaction is refused below a data directory that a node has, by whatever path, with process, folder and cure; that
/// reading is not; and that it is done when the node has gone.
#[test]
fn a_node_has_the_data_directory() {
    let (data, table) = data();
    let node = File::open(data.path()).expect("opens");
    node.try_lock().expect("free");
    let aside = TempFolder::empty();
    let link = Path::new(aside.path()).join("link");
    std::os::unix::fs::symlink(&table, &link).expect("a link");
    for path in [table.as_str(), link.to_str().expect("UTF-8"), data.path()] {
        let said = refused(path);
        let expected = [data.path(), &format!("process {} (all", std::process::id()), "stop it"];
        assert!(expected.iter().all(|part| said.contains(part)), "{path}: {said}");
    }
    let within = Path::new(&table).join("backups");
    let within = within.to_str().expect("UTF-8");
    let into = halcyon(&["compact", &table, "--output", within]);
    assert_eq!(into.status.code(), Some(3), "{}", text(&into.stderr));
    for reads in [&["sstable", "verify", &table][..], &["compact", &table, "--dry-run"]] {
        assert_eq!(halcyon(reads).status.code(), Some(0), "{reads:?}");
    }
    let elsewhere = aside.path().to_owned() + "/out";
    let copy = halcyon(&["compact", &table, "--output", &elsewhere]);
    assert_eq!(copy.status.code(), Some(0), "{}", text(&copy.stderr));
    drop(node);
    assert_eq!(halcyon(&["compact", &table]).status.code(), Some(0));
}

/// Proves that tools in other tables do not hinder a compaction, and one in the same table does; and that a node, which wants the data
/// directory alone, is kept out meanwhile.
#[test]
fn tools_beside_each_other() {
    let (data, table) = data();
    let other = File::open(data.path()).expect("opens");
    other.try_lock_shared().expect("free");
    assert_eq!(halcyon(&["compact", &table]).status.code(), Some(0));
    let same = File::open(&table).expect("opens");
    same.try_lock().expect("free");
    assert!(refused(&table).contains(&table));
    assert!(File::open(data.path()).expect("opens").try_lock().is_err());
}

/// Proves that a process that takes no locks is seen by a file that it has open: its folder is not changed.
#[test]
fn a_file_is_open() {
    let (_data, table) = data();
    let before: Vec<_> = std::fs::read_dir(&table).expect("lists").flatten().collect();
    let open = Path::new(&table).join("oa-1-big-Data.db");
    let mut user = Command::new("sleep")
        .arg("600")
        .stdin(File::open(&open).expect("opens"))
        .spawn()
        .expect("sleeps");
    let said = refused(&table);
    user.kill().expect("ends");
    user.wait().expect("ended");
    let expected = [open.to_str().expect("UTF-8"), &format!("process {} (sleep)", user.id())];
    assert!(expected.iter().all(|part| said.contains(part)), "{said}");
    let after = std::fs::read_dir(&table).expect("lists").flatten();
    assert!(after.map(|e| e.path()).eq(before.iter().map(std::fs::DirEntry::path)));
    assert_eq!(halcyon(&["compact", &table]).status.code(), Some(0));
}
