use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::{SchemaRow, SchemaRows, WriteTime, difference, set_version};
use crate::catalog::{Catalog, Keyspace};
use crate::system_tables;
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
        Arc::make_mut(table).schema.keyspace = "ks".to_owned();
    }
    let names: Vec<String> = keyspace.tables.keys().cloned().collect();
    assert_eq!(names.len(), 4);
    system.keyspaces.insert("ks".to_owned(), Arc::new(keyspace));
    // Of each table: it stays, it is another one, it is gone.
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
