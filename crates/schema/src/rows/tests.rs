use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{SchemaRow, SchemaRows, WriteTime, difference, set_version};
use crate::catalog::{Catalog, Keyspace, Table, TableKind};
use crate::index::Index;
use crate::{system_tables, virtual_keyspace};
use halcyon_model::clustering::ClusteringValue;
use halcyon_stream::Mutation;

/// Applies writes to rows, as storage would.
pub(crate) fn apply(rows: &mut SchemaRows, mutations: &[Mutation]) {
    let system = system_tables();
    for mutation in mutations {
        let table = system.tables().find(|table| table.id == mutation.table).expect("a table");
        let all = rows.entry(table.schema.name.clone()).or_default();
        let keyspace = Some(mutation.key.bytes.clone());
        if !mutation.deletion.is_live() {
            all.retain(|row| row["keyspace_name"] != keyspace);
        }
        for written in &mutation.rows {
            let written = written.row();
            let mut key: SchemaRow =
                BTreeMap::from([("keyspace_name".to_owned(), keyspace.clone())]);
            let count = table.schema.clustering.len();
            let values = table.layout.clusterings.values(written.clustering, count);
            for (column, value) in table.schema.clustering.iter().zip(values) {
                let value = match value {
                    ClusteringValue::Bytes(bytes) => Some(bytes.to_vec()),
                    ClusteringValue::Null => None,
                };
                key.insert(column.name.clone(), value);
            }
            let at = all
                .iter()
                .position(|row| key.iter().all(|(name, value)| row.get(name) == Some(value)));
            let mut row = at.map_or(key, |at| all.remove(at));
            if !written.deletion.time.is_live() {
                continue;
            }
            for cell in written.cells {
                let name =
                    String::from_utf8_lossy(&table.layout.regulars[usize::from(cell.column)].name);
                let value = (!cell.is_tombstone()).then(|| cell.value.of(written.bytes).to_vec());
                row.insert(name.into_owned(), value);
            }
            all.push(row);
        }
    }
}

/// Proves that the system's tables are parsed, and that reading their rows gives the same tables.
#[test]
fn system_tables_are_rows_and_back() {
    let begun = Instant::now();
    let system = system_tables();
    println!("{:?}", begun.elapsed());
    let counts: Vec<usize> =
        system.keyspaces.values().map(|keyspace| keyspace.tables.len()).collect();
    assert_eq!(counts, [23, 8, 4, 11, 2]);
    assert!(system.tables().all(|table| table.id != [0; 16]));
    let mut rows = SchemaRows::new();
    let at = WriteTime { micros: 1, seconds: 1 };
    apply(&mut rows, &difference(&Catalog::default(), &system, at));
    assert_eq!(rows["tables"].len(), 48);
    let again = Catalog::from_rows(&rows);
    assert_eq!(again, system);
    assert!(difference(&again, &system, at).is_empty());
}

/// Proves that what a change is found to change is what differs: tables that come, go or are altered anywhere among others are, and the
/// version is that of the whole schema.
#[test]
fn a_change_is_what_two_catalogs_do_not_share() {
    let at = WriteTime { micros: 1, seconds: 1 };
    let mut system = system_tables();
    let mut keyspace = Keyspace::clone(&system.keyspaces["system_distributed"]);
    keyspace.name = "ks".to_owned();
    for table in keyspace.tables.values_mut() {
        let table = Arc::make_mut(table);
        table.schema.keyspace = "ks".to_owned();
        // Two tables with one id are set apart.
        table.id = table.id.map(|byte| !byte);
        table.schema.id = Some(table.id);
    }
    let names: Vec<String> = keyspace.tables.keys().cloned().collect();
    assert_eq!(names.len(), 4);
    system.keyspaces.insert("ks".to_owned(), Arc::new(keyspace));
    // Of each table: it stays, it is another one, it was removed.
    let states = 3_usize.pow(4);
    let catalog = |state: usize| {
        let mut catalog = system.clone();
        let keyspace = catalog.keyspaces.get_mut("ks").map(Arc::make_mut).expect("it is there");
        for (index, table) in names.iter().enumerate() {
            match state / 3_usize.pow(index as u32) % 3 {
                0 => {}
                1 => {
                    let table = keyspace.tables.get_mut(table).map(Arc::make_mut).expect(table);
                    table.schema.options.comment = "another".to_owned();
                }
                _ => drop(keyspace.tables.remove(table)),
            }
        }
        set_version(&Catalog::default(), &mut catalog);
        catalog
    };
    let all: Vec<Catalog> = (0..states).map(catalog).collect();
    for (state, before) in all.iter().enumerate() {
        let mut rows = SchemaRows::new();
        apply(&mut rows, &difference(&Catalog::default(), before, at));
        let after = &all[(state * 7 + 5) % states];
        apply(&mut rows, &difference(before, after, at));
        let again = Catalog::from_rows(&rows);
        assert_eq!(again.version, after.version);
        // They share nothing, so this compares all of them.
        assert!(difference(&again, after, at).is_empty());
        let mut changed = after.clone();
        set_version(before, &mut changed);
        assert_eq!(changed.version, after.version);
    }
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

/// The rows of the system and of `ks.good` with an index, and of what `edit` makes of copies of these rows under another name.
fn with_copy(name: &str, id: [u8; 16], edit: impl Fn(&str, &mut SchemaRow)) -> SchemaRows {
    let keyspace =
        virtual_keyspace("CREATE TABLE ks.good (k int, c int, v int, PRIMARY KEY (k, c))");
    let mut keyspace = keyspace.expect("a keyspace");
    keyspace.is_virtual = false;
    let schema = keyspace.tables["good"].schema.clone();
    let mut table = Table::new([1; 16], TableKind::Regular, schema);
    let options = [("target".to_owned(), "v".to_owned())].into();
    table.indexes.push(Index::stored("i".to_owned(), "COMPOSITES", options, |_| None));
    keyspace.tables.insert("good".to_owned(), Arc::new(table));
    let mut catalog = system_tables();
    catalog.keyspaces.insert("ks".to_owned(), Arc::new(keyspace));
    let mut rows = SchemaRows::new();
    let at = WriteTime { micros: 1, seconds: 1 };
    apply(&mut rows, &difference(&Catalog::default(), &catalog, at));
    for (of, rows) in &mut rows {
        let of_table = |row: &&SchemaRow| row.get("table_name") == Some(&text("good"));
        let mut copies: Vec<SchemaRow> = rows.iter().filter(of_table).cloned().collect();
        for row in &mut copies {
            row.insert("table_name".to_owned(), text(name));
            if of == "tables" {
                row.insert("id".to_owned(), Some(id.to_vec()));
            }
            edit(of, row);
        }
        rows.append(&mut copies);
    }
    rows
}

/// What is set apart, and why; `ks.good` must be served whatever stands beside it, but for its index where the copy is of that.
fn apart(rows: &SchemaRows) -> Vec<(String, String)> {
    let catalog = Catalog::from_rows(rows);
    let good = catalog.table("ks", "good").expect("served");
    assert_eq!(good.indexes.len(), 1);
    let found = catalog.set_apart.iter();
    found
        .map(|((keyspace, name), apart)| (format!("{keyspace}|{name}"), apart.why.clone()))
        .collect()
}

/// Proves that a stored table whose name a statement would refuse is set apart under its name, with the statement's words.
#[test]
fn stored_names_of_tables_are_checked() {
    let long = "x".repeat(223);
    for name in ["../../../esc", "", ".", "a/b", "a\0b", "\u{e9}", long.as_str()] {
        let rows = with_copy(name, [2; 16], |_, _| ());
        let found = apart(&rows);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0].0, format!("ks|{name}"));
        assert!(found[0].1.contains("Table name must not be"), "{found:?}");
        assert!(Catalog::from_rows(&rows).table("ks", name).is_none());
    }
    let rows = with_copy(&"x".repeat(222), [2; 16], |_, _| ());
    assert_eq!(apart(&rows), []);
}

/// Proves that a stored keyspace whose name a statement would refuse is set apart with all its tables, and named where it has none.
#[test]
fn stored_names_of_keyspaces_are_checked() {
    let long = "x".repeat(49);
    for name in ["../../../esc", "", "a\0b", long.as_str()] {
        let mut rows = with_copy("t", [2; 16], |_, row| {
            row.insert("keyspace_name".to_owned(), text(name));
        });
        let mut row = rows["keyspaces"].last().expect("a keyspace").clone();
        row.insert("keyspace_name".to_owned(), text(name));
        rows.get_mut("keyspaces").expect("keyspaces").push(row);
        let found = apart(&rows);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, [format!("{name}|"), format!("{name}|t")]);
        assert!(
            found.iter().all(|(_, why)| why.contains("Keyspace name must not be")),
            "{found:?}"
        );
        assert!(Catalog::from_rows(&rows).keyspace(name).is_none());
    }
}

/// Proves that an index whose name a statement would refuse is set apart, and that its table is served without it.
#[test]
fn stored_names_of_indexes_are_checked() {
    for name in ["../x", "", "a\0b", "a-b"] {
        let rows = with_copy("t", [2; 16], |of, row| {
            if of == "indexes" {
                row.insert("index_name".to_owned(), text(name));
            }
        });
        let found = apart(&rows);
        assert_eq!(found, [("ks|t.index 1".to_owned(), format!("Illegal index name {name}"))]);
        let catalog = Catalog::from_rows(&rows);
        assert!(catalog.table("ks", "t").expect("served").indexes.is_empty());
    }
}

/// Proves that tables with one id are all set apart, because their folders and writes cannot be told apart, but for the system's.
#[test]
fn stored_ids_name_one_table() {
    let rows = with_copy("t", [1; 16], |_, _| ());
    let catalog = Catalog::from_rows(&rows);
    assert!(catalog.table("ks", "t").is_none() && catalog.table("ks", "good").is_none());
    assert_eq!(catalog.set_apart.len(), 2);
    let system = system_tables();
    let columns = system.table("system_schema", "columns").expect("a table").id;
    let rows = with_copy("t", columns, |_, _| ());
    assert_eq!(apart(&rows), [("ks|t".to_owned(), "another table has its id".to_owned())]);
    assert!(Catalog::from_rows(&rows).table("system_schema", "columns").is_some());
}

/// Proves that a stored type which no statement puts into a key is refused there, and that options out of range are the defaults.
#[test]
fn stored_columns_and_options_are_checked() {
    let rows = with_copy("t", [2; 16], |of, row| {
        if of == "columns" && row["column_name"] == text("c") {
            row.insert("type".to_owned(), text("duration"));
        }
    });
    let found = apart(&rows);
    assert!(found[0].1.contains("duration type is not supported for PRIMARY KEY"), "{found:?}");
    let rows = with_copy("t", [2; 16], |of, row| {
        if of == "tables" {
            for (name, value) in [("bloom_filter_fp_chance", f64::NAN), ("crc_check_chance", -1.0)]
            {
                row.insert(name.to_owned(), Some(value.to_be_bytes().to_vec()));
            }
        }
    });
    assert_eq!(apart(&rows), []);
    let catalog = Catalog::from_rows(&rows);
    catalog.table("ks", "t").expect("served").schema.options.validate_numbers().expect("in range");
}

/// Proves that a stored index whose name fits no file is not kept up to date, so that no file gets the name, and that one that fits is.
#[test]
fn stored_indexes_with_long_names_are_not_kept() {
    for (length, is_kept) in [(191, true), (192, false), (240, false), (300, false)] {
        let rows = with_copy("t", [2; 16], |of, row| {
            if of == "indexes" {
                row.insert("index_name".to_owned(), text(&"i".repeat(length)));
            }
        });
        assert_eq!(apart(&rows), []);
        let catalog = Catalog::from_rows(&rows);
        assert_eq!(catalog.table("ks", "t").expect("served").indexes[0].is_kept(), is_kept);
    }
}
