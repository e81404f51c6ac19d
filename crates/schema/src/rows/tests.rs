use std::collections::BTreeMap;
use std::time::Instant;

use super::{SchemaRow, SchemaRows, WriteTime, difference};
use crate::catalog::Catalog;
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
