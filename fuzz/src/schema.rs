//! The rows of `system_schema` as a start finds them: tables, types and keyspaces, or what is set apart.
//!
//! ```text
//! table │ cells │ (column │ length, 65535 null │ bytes)…        and so on, a row after the other
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_schema::catalog::{Catalog, Keyspace, Table};
use halcyon_schema::change::{Context, RestrictedRows, change};
use halcyon_schema::function::FunctionSettings;
use halcyon_schema::index::IndexSettings;
use halcyon_schema::mask::{ColumnMask, MaskSettings};
use halcyon_schema::rows::{SchemaRow, SchemaRows, WriteTime, difference};
use halcyon_schema::view::ViewSettings;
use halcyon_schema::{describe, system_tables};
use halcyon_stream::{Mutation, Row};

const AT: WriteTime = WriteTime { micros: 1, seconds: 1 };

thread_local! {
    /// The tables of `system_schema`.
    static TABLES: Vec<Table> = {
        let system = system_tables();
        let keyspace = &system.keyspaces["system_schema"];
        keyspace.tables.values().map(|table| Table::clone(table)).collect()
    };
}

fn decode(bytes: &[u8]) -> Option<SchemaRows> {
    TABLES.with(|tables| {
        let mut rows = SchemaRows::new();
        let mut rest = bytes;
        while let [table, cells, after @ ..] = rest {
            let table = &tables[usize::from(*table) % tables.len()];
            let columns: Vec<_> = table.all_columns().collect();
            rest = after;
            let mut row = SchemaRow::new();
            for _ in 0..*cells {
                let [column, high, low, after @ ..] = rest else { return Some(rows) };
                let column = columns[usize::from(*column) % columns.len()];
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let (value, after) = match length {
                    0xffff => (None, after),
                    length => {
                        let (value, after) = after.split_at(length.min(after.len()));
                        (Some(value.to_vec()), after)
                    }
                };
                rest = after;
                row.insert(column.name.clone(), value);
            }
            rows.entry(table.schema.name.clone()).or_default().push(row);
        }
        Some(rows)
    })
}

fn encode(rows: &SchemaRows) -> Vec<u8> {
    TABLES.with(|tables| {
        let mut bytes = Vec::new();
        for (at, table) in tables.iter().enumerate() {
            for row in rows.get(&table.schema.name).into_iter().flatten() {
                bytes.extend([at as u8, row.len() as u8]);
                for (column, value) in row {
                    let named = table.all_columns().position(|known| known.name == *column);
                    bytes.push(named.unwrap_or_default() as u8);
                    let length = value.as_ref().map_or(0xffff, |value| value.len() as u16);
                    bytes.extend(length.to_be_bytes());
                    bytes.extend(value.iter().flatten());
                }
            }
        }
        bytes
    })
}

/// The rows that make a catalog.
fn rows_of(catalog: &Catalog) -> SchemaRows {
    let mut rows = SchemaRows::new();
    for Mutation { table: id, key, rows: written, .. } in &difference(&system_tables(), catalog, AT)
    {
        TABLES.with(|tables| {
            let table = tables.iter().find(|table| table.id == *id).expect("a table of the schema");
            let live = |row: &Row<'_>| row.deletion.time.is_live();
            for row in written.iter().map(|row| row.row()).filter(live) {
                let keyspace = Some(key.bytes.clone());
                let mut cells = SchemaRow::from([("keyspace_name".to_owned(), keyspace)]);
                let columns = &table.schema.clustering;
                let values = table.layout.clusterings.values(row.clustering, columns.len());
                for (column, value) in columns.iter().zip(values) {
                    let ClusteringValue::Bytes(bytes) = value else { continue };
                    cells.insert(column.name.clone(), Some(bytes.to_vec()));
                }
                for cell in row.cells {
                    let column = &table.schema.regulars[usize::from(cell.column)];
                    cells.insert(column.name.clone(), Some(cell.value.of(row.bytes).to_vec()));
                }
                rows.entry(table.schema.name.clone()).or_default().push(cells);
            }
        });
    }
    rows
}

/// What a start makes of the rows can be described, and written and read again.
pub fn rows(bytes: &[u8]) {
    let Some(rows) = decode(bytes) else { return };
    let catalog = Catalog::from_rows(&rows);
    for keyspace in catalog.keyspaces.values() {
        describe::keyspace_statement(keyspace);
        for user_type in keyspace.types.values() {
            describe::type_statement(user_type);
        }
        for table in keyspace.tables.values() {
            describe::table_statement(table, false);
            describe::table_statement(table, true);
        }
    }
    let again = Catalog::from_rows(&rows_of(&catalog));
    assert_eq!(again.version, catalog.version, "{:?} and {:?}", catalog.set_apart, again.set_apart);
}

/// The rows of each table that Cassandra's recorded statements make, with the types of its keyspace.
pub fn samples() -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = Path::new("crates/schema/tests/data/ddl.txt");
    let root = here.ancestors().find(|dir| dir.join(recorded).exists()).unwrap_or(here);
    let text = std::fs::read_to_string(root.join(recorded)).expect("recorded");
    let mut catalog = system_tables();
    let mut used: Option<String> = None;
    let mut samples = Vec::new();
    for (number, statement) in text.split("\n====\n").enumerate() {
        let statement = statement.split("\n----\n").next().unwrap_or_default();
        if let Some(keyspace) = statement.strip_prefix("USE ") {
            used = Some(keyspace.trim_matches('"').to_owned());
        }
        let context = Context {
            keyspace: used.as_deref(),
            data_center: halcyon_schema::DATA_CENTER,
            default_compaction: None,
            drops_compact_storage: true,
            default_factor: 1,
            guard: &halcyon_guardrails::Guard::default(),
            functions: &FunctionSettings { are_enabled: true, ..FunctionSettings::default() },
            evaluate: &|_, _, _| Ok(None),
            masks: MaskSettings { are_enabled: true },
            find_mask: &|_, mask| {
                let function = mask.function.name.clone();
                let arguments = vec![(CqlType::Int, None)];
                Ok(ColumnMask { keyspace: "system".to_owned(), function, arguments })
            },
            indexes: &IndexSettings::default(),
            views: &ViewSettings::default(),
            view_rows: |_, _, _| Ok(RestrictedRows::default()),
            table_id: (1 + number as u128).to_be_bytes(),
            at: AT,
        };
        let Ok(parsed) = halcyon_syntax::parse_statement(statement) else { continue };
        let Ok(made) = change(&catalog, &parsed.kind, &context) else { continue };
        let table = |keyspace: &Arc<Keyspace>| {
            let id = context.table_id;
            let made = keyspace.tables.values().find(|table| table.id == id)?;
            let tables = BTreeMap::from([(made.schema.name.clone(), made.clone())]);
            Some(Keyspace { tables, ..Keyspace::clone(keyspace) })
        };
        if let Some(keyspace) = made.catalog.keyspaces.values().find_map(table) {
            let mut one = system_tables();
            one.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
            samples.push(encode(&rows_of(&one)));
        }
        catalog = made.catalog;
    }
    samples
}
