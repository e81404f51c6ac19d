//! The mutations that change the rows of one catalog into those of another.

use std::collections::BTreeMap;

use halcyon_model::clustering::ClusteringValue;
use halcyon_model::schema::TableSchema;
use halcyon_model::token::join_key;
use halcyon_model::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};
use halcyon_stream::{Cell, Layout, Mutation, PartitionKey, RowBuf, RowDeletion, Span};

use super::described::{self, Cells};
use crate::catalog::{Catalog, Table};
use crate::system;

/// When a change was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteTime {
    pub micros: i64,
    /// Of the server's clock, for gc_grace.
    pub seconds: u32,
}

impl WriteTime {
    pub(crate) fn deletion(self) -> DeletionTime {
        DeletionTime { marked_for_delete_at: self.micros, local_deletion_time: self.seconds }
    }
}

/// The tables of `system_schema` whose rows a keyspace can have.
const TABLES: [&str; 11] = [
    "keyspaces",
    "tables",
    "columns",
    "column_masks",
    "dropped_columns",
    "triggers",
    "views",
    "types",
    "functions",
    "aggregates",
    "indexes",
];

/// The writes to `system_schema` that turn one catalog's rows into another's. From an empty catalog: all of its rows.
pub fn difference(from: &Catalog, to: &Catalog, at: WriteTime) -> Vec<Mutation> {
    let system = system::system_tables();
    let mut mutations = Vec::new();
    for (name, before, after) in described::changed_keyspaces(from, to) {
        let Some(after) = after else {
            for table in TABLES {
                if let Some(table) = system.table("system_schema", table) {
                    let mut mutation = partition(table, name);
                    mutation.deletion = at.deletion();
                    mutations.push(mutation);
                }
            }
            continue;
        };
        let old_rows = before.map(|of| described::keyspace(of, Some(after))).unwrap_or_default();
        let new_rows = described::keyspace(after, before);
        let mut by_table: BTreeMap<&str, Vec<RowBuf>> = BTreeMap::new();
        for ((table, clustering), cells) in &new_rows {
            let Some(found) = system.table("system_schema", table) else { continue };
            let old = old_rows.get(&(*table, clustering.clone()));
            // Who drops a column leaves the row of its mask behind, which must not be that of a new column.
            let mask = ("column_masks", clustering.clone());
            if *table == "columns"
                && old.is_none()
                && !new_rows.contains_key(&mask)
                && !system::is_replicated_system(name)
                && let Some(masks) = system.table("system_schema", mask.0)
            {
                let row = deleted_row(&masks.layout, clustering, at);
                by_table.entry(mask.0).or_default().push(row);
            }
            if old != Some(cells) {
                let row = live_row(&found.layout, clustering, cells, old, at);
                by_table.entry(table).or_default().push(row);
            }
        }
        for (table, clustering) in old_rows.keys().filter(|key| !new_rows.contains_key(*key)) {
            let Some(found) = system.table("system_schema", table) else { continue };
            let row = deleted_row(&found.layout, clustering, at);
            by_table.entry(table).or_default().push(row);
        }
        for (table, rows) in by_table {
            if let Some(table) = system.table("system_schema", table) {
                let mut mutation = partition(table, name);
                mutation.rows = rows;
                mutations.push(mutation);
            }
        }
    }
    mutations
}

/// The row of `system."IndexInfo"` that says that an index is built; or its deletion.
pub fn built_index(keyspace: &str, index: &str, built: bool, at: WriteTime) -> Option<Mutation> {
    let system = system::system_tables();
    let table = system.table("system", "IndexInfo")?;
    let clustering = [index.as_bytes().to_vec()];
    let mut mutation = partition(table, keyspace);
    mutation.rows.push(match built {
        true => live_row(&table.layout, &clustering, &Cells::default(), None, at),
        false => deleted_row(&table.layout, &clustering, at),
    });
    Some(mutation)
}

/// The rows that say that a materialized view is built on this node (`SystemKeyspace.finishViewBuildStatus`,
/// `SystemDistributedKeyspace`); or their deletion.
pub fn built_view(
    view: &TableSchema,
    host: Option<[u8; 16]>,
    built: bool,
    at: WriteTime,
) -> Vec<Mutation> {
    let system = system::system_tables();
    let row = |table: &Table, clustering: &[Vec<u8>], cells: Cells| match built {
        true => live_row(&table.layout, clustering, &cells, None, at),
        false => deleted_row(&table.layout, clustering, at),
    };
    let (keyspace, name) = (view.keyspace.as_bytes(), view.name.as_bytes());
    let mut mutations = Vec::new();
    if let Some(table) = system.table("system", "built_views") {
        let mut mutation = partition(table, &view.keyspace);
        let cells = Cells::from([("status_replicated", vec![1])]);
        mutation.rows.push(row(table, &[name.to_vec()], cells));
        mutations.push(mutation);
    }
    let status = system.table("system_distributed", "view_build_status");
    if let Some(((table, host), key)) = status.zip(host).zip(join_key(&[keyspace, name])) {
        let (layout, key) = (table.layout.clone(), PartitionKey::of(&key));
        let mut mutation = Mutation::new(table.id, layout, key);
        let cells = Cells::from([("status", b"SUCCESS".to_vec())]);
        mutation.rows.push(row(table, &[host.to_vec()], cells));
        mutations.push(mutation);
    }
    mutations
}

fn partition(table: &Table, keyspace: &str) -> Mutation {
    Mutation::new(table.id, table.layout.clone(), PartitionKey::of(keyspace.as_bytes()))
}

fn begin_row(layout: &Layout, clustering: &[Vec<u8>]) -> RowBuf {
    let mut row = RowBuf::new();
    let values: Vec<_> = clustering.iter().map(|value| ClusteringValue::Bytes(value)).collect();
    layout.clusterings.write(&values, &mut row.bytes);
    row.parts.clustering = Span { start: 0, len: row.bytes.len() as u32 };
    row
}

fn live_row(
    layout: &Layout,
    clustering: &[Vec<u8>],
    cells: &Cells,
    old: Option<&Cells>,
    at: WriteTime,
) -> RowBuf {
    let mut row = begin_row(layout, clustering);
    row.parts.liveness =
        Liveness { timestamp: at.micros, ttl: NO_TTL, local_expiration_time: NO_DELETION_TIME };
    for (index, column) in layout.regulars.iter().enumerate() {
        let named = |cells: &Cells| {
            cells.iter().find(|(name, _)| name.as_bytes() == column.name).map(|(_, v)| v.clone())
        };
        let (value, local_deletion_time) = match named(cells) {
            Some(value) => (value, NO_DELETION_TIME),
            None if old.is_some_and(|old| named(old).is_some()) => (Vec::new(), at.seconds),
            None => continue,
        };
        let value = row.store(&value);
        row.parts.cells.push(Cell {
            column: index as u16,
            ttl: NO_TTL,
            timestamp: at.micros,
            local_deletion_time,
            path: Span::default(),
            value,
        });
    }
    row
}

fn deleted_row(layout: &Layout, clustering: &[Vec<u8>], at: WriteTime) -> RowBuf {
    let mut row = begin_row(layout, clustering);
    row.parts.deletion = RowDeletion { time: at.deletion(), shadowable: false };
    row
}
