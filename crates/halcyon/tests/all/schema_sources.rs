//! A schema from DESCRIBE's text equals the one from the `system_schema` tables of a data directory.

use std::path::{Path, PathBuf};

use crate::golden::{self, halcyon, text};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn dumped(extra: &[&str]) -> String {
    let shop = data("data_directory/shop");
    let arguments = ["sstable", "dump", "--format", "cql", shop.to_str().expect("UTF-8")];
    let output = halcyon(&[&arguments, extra].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn system_tables_say_what_describe_says() {
    let schema = data("shop.cql");
    let from_tables = dumped(&[]);
    let from_text = dumped(&["--schema", schema.to_str().expect("UTF-8")]);
    assert_eq!(from_tables, from_text);
    for said in [
        "INSERT INTO shop.by_v (v, k) VALUES (2, 1)",
        "INSERT INTO shop.orders (shop_id, day, seq, item, amount) VALUES (1, '2024-02-29', 50554d6e",
        "who.\"Home\" = {street: 'Main', zip: 1, country: 'X'}",
    ] {
        assert!(from_tables.contains(said), "{said}\n{from_tables}");
    }
    // Both were dropped after they were written; `back` was added again, without its old value.
    assert!(!from_tables.contains("gone") && !from_tables.contains("back"), "{from_tables}");
}

#[test]
fn options_of_the_table_decide_what_a_compaction_does() {
    let orders = data("data_directory/shop/orders-b04f69c0e54311f18846d97fde274ca9");
    let output = halcyon(&["compact", "--dry-run", orders.to_str().expect("UTF-8")]);
    let said = text(&output.stdout);
    assert!(said.contains("ZstdCompressor with 4.0 KiB chunks: as the schema says"), "{said}");
    assert!(said.contains("gc_grace_seconds of the schema"), "{said}");
}

/// Proves that key columns without a schema get the names of Cassandra's offline tools.
#[test]
fn neutral_names() {
    let table = golden::golden("oa", "clusterings_35").join("sstables");
    let output = halcyon(&["sstable", "dump", "--format", "cql", table.to_str().expect("UTF-8")]);
    let said = text(&output.stdout);
    assert!(said.contains("(\"PartitionKey\", clustering, clustering1, clustering2,"), "{said}");
}

#[test]
fn a_schema_that_does_not_fit_is_refused() {
    let schema = data("shop.cql");
    let schema = schema.to_str().expect("UTF-8");
    let table = golden::golden("oa", "deletions").join("sstables");
    let table = table.to_str().expect("UTF-8");
    let dump = ["sstable", "dump", "--format", "cql", table, "--schema", schema];
    let ambiguous = halcyon(&dump);
    assert_eq!(ambiguous.status.code(), Some(2));
    assert!(text(&ambiguous.stderr).contains("--table"), "{}", text(&ambiguous.stderr));
    let foreign = halcyon(&[&dump[..], &["--table", "shop.orders"]].concat());
    assert_eq!(foreign.status.code(), Some(2), "{}", text(&foreign.stderr));
    let unknown = halcyon(&[&dump[..], &["--table", "shop.nothing"]].concat());
    assert!(
        text(&unknown.stderr).contains("it has no table shop.nothing"),
        "{}",
        text(&unknown.stderr)
    );
}

/// A data directory in which `shop.orders` was dropped and created again with other columns. Returns it with the folder of the
/// table that was dropped, whose SSTables are those of `corpus.deletions`.
fn recreated() -> (golden::TempFolder, PathBuf) {
    let folder = golden::TempFolder::empty();
    let root = PathBuf::from(folder.path());
    copy(&data("data_directory"), &root);
    let dropped = root.join("shop/orders-a0f5ae50e53c11f184627f8ea7365e1e");
    copy(&golden::golden("oa", "deletions").join("sstables"), &dropped);
    (folder, dropped)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(from).expect("readable").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => std::fs::copy(&from, &to).map(|_| ()).expect("copied"),
        }
    }
}

fn statements_of(folder: &Path) -> String {
    let folder = folder.to_str().expect("UTF-8");
    let verified = halcyon(&["sstable", "verify", "--extended", folder]);
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stdout));
    let described = halcyon(&["sstable", "describe", folder]);
    assert_eq!(described.status.code(), Some(0), "{}", text(&described.stderr));
    let output = halcyon(&["sstable", "dump", "--format", "cql", folder]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The table that has the name now has another schema: it is not that of the folder.
#[test]
fn a_recreated_table_does_not_lend_its_schema() {
    let (folder, dropped) = recreated();
    let said = statements_of(&dropped);
    assert!(said.contains("(\"PartitionKey\", clustering, "), "{said}");
    let current = Path::new(folder.path()).join("shop/orders-b04f69c0e54311f18846d97fde274ca9");
    let said = statements_of(&current);
    assert!(said.contains("INSERT INTO shop.orders (shop_id, day, seq, "), "{said}");
}

/// The `schema.cql` of a snapshot is used where `system_schema` does not have the table, and only if it is of this table.
#[test]
fn a_snapshot_has_its_own_schema() {
    let (_folder, dropped) = recreated();
    let snapshot = dropped.join("snapshots/dropped-1");
    copy(&golden::golden("oa", "deletions").join("sstables"), &snapshot);
    let schema = std::fs::read_to_string(golden::golden("oa", "deletions").join("schema.cql"));
    let schema = schema.expect("readable").replace("corpus.deletions", "shop.orders");
    let file = snapshot.join("schema.cql");
    std::fs::write(&file, &schema).expect("written");
    let said = statements_of(&snapshot);
    assert!(said.contains("INSERT INTO shop.orders (k, c, "), "{said}");
    for unusable in [schema.replace("a0f5ae50", "a0f5ae51"), "CREATE TABLE".into()] {
        std::fs::write(&file, unusable).expect("written");
        let said = statements_of(&snapshot);
        assert!(said.contains("(\"PartitionKey\", clustering, "), "{said}");
    }
}
