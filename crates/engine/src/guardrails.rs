//! Guardrails of what no request causes: partitions and collections that are written to SSTables are too large. Nothing is refused; the log
//! says so (`SortedTableWriter.guardPartitionThreshold`, `guardCollectionSize`).

use std::collections::BTreeMap;
use std::sync::Arc;

use halcyon_guardrails::{Config, Threshold};
use halcyon_model::CqlType;
use halcyon_model::clustering::ClusteringValue;
use halcyon_model::token::split_key;
use halcyon_model::value::{to_cql_literal, to_string};
use halcyon_schema::catalog::Table;
use halcyon_schema::{is_local, is_replicated_system};
use halcyon_sstable::{Component, Descriptor, Watch};
use halcyon_stream::{Column, PartitionKey, Row};

use crate::Options;
use crate::reporter::{Event, Reporter};

/// What a cell has beside its path and value (`Cell.dataSize`), and what a collection has beside its cells.
const CELL: usize = 20;
const COLLECTION: usize = 12;

/// Watches what is written of one table.
pub(crate) struct Watched {
    config: Arc<Config>,
    table: Arc<Table>,
    reporter: Arc<Reporter>,
}

impl Watched {
    /// `None`: no guardrail of these is on.
    pub(crate) fn of(
        table: &Arc<Table>,
        options: &Options,
        reporter: &Arc<Reporter>,
    ) -> Option<Arc<dyn Watch>> {
        let config = options.guardrails.of_node()?;
        let (table, reporter) = (table.clone(), reporter.clone());
        let watched = Watched { config, table, reporter };
        let partitions = [Threshold::PartitionSize, Threshold::PartitionTombstones];
        let is_on = watched.sees_rows() || partitions.into_iter().any(|of| watched.is_on(of));
        is_on.then(|| Arc::new(watched) as Arc<dyn Watch>)
    }

    fn is_on(&self, threshold: Threshold) -> bool {
        let bounds = self.config.bounds(threshold);
        bounds.warn.is_some() || bounds.fail.is_some()
    }

    /// `what` is made only if there is something to say.
    fn check(&self, threshold: Threshold, value: u64, what: impl FnOnce() -> String) {
        let (spec, bounds) = (threshold.spec(), self.config.bounds(threshold));
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        if spec.judge(bounds, value, "").is_none() {
            return;
        }
        if let Some(said) = spec.judge(bounds, value, &what()) {
            self.reporter.report(Event::Guardrail(said));
        }
    }

    /// `ks.t:1:2 on sstable …-Data.db`
    fn partition_name(&self, of: &Descriptor, key: &PartitionKey) -> String {
        let text = key_text(&self.table, &key.bytes);
        let file = of.component_path(Component::Data);
        format!("{}:{text} on sstable {}", self.table.full_name(), file.display())
    }

    /// `c in row (1, 2) in table ks.t`
    fn collection_name(&self, column: &Column, key: &PartitionKey, clustering: &[u8]) -> String {
        let types = key_types(&self.table);
        let parts = split_key(&key.bytes, types.len()).unwrap_or_default();
        let mut literals: Vec<String> =
            types.iter().zip(parts).map(|(of, part)| to_cql_literal(of, part)).collect();
        if !clustering.is_empty() {
            let clusterings = &self.table.layout.clusterings;
            let values = clusterings.values(clustering, clusterings.len());
            for (value, def) in values.zip(&self.table.schema.clustering) {
                literals.push(match value {
                    ClusteringValue::Bytes(bytes) => to_cql_literal(def.cql_type.base(), bytes),
                    ClusteringValue::Null => "null".to_owned(),
                });
            }
        }
        let row = match literals.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        let name = String::from_utf8_lossy(&column.name);
        format!("{name} in row {row} in table {}", self.table.full_name())
    }
}

fn key_types(table: &Table) -> Vec<&CqlType> {
    table.schema.partition_key.iter().map(|def| &def.cql_type).collect()
}

/// The components of a partition key, separated by colons.
pub(crate) fn key_text(table: &Table, key: &[u8]) -> String {
    let types = key_types(table);
    let Some(parts) = split_key(key, types.len()) else { return String::new() };
    let texts = types.iter().zip(parts).map(|(of, part)| to_string(of, part));
    texts.collect::<Vec<_>>().join(":")
}

impl Watch for Watched {
    fn sees_rows(&self) -> bool {
        let is_collection =
            |of: &CqlType| matches!(of, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..));
        let keyspace = &self.table.schema.keyspace;
        let collections = [Threshold::CollectionSize, Threshold::ItemsPerCollection];
        !is_local(keyspace)
            && !is_replicated_system(keyspace)
            && collections.into_iter().any(|of| self.is_on(of))
            && self.table.all_columns().any(|column| is_collection(&column.cql_type))
    }

    fn row(&self, key: &PartitionKey, columns: &[Column], row: Row<'_>) {
        // Elements and bytes by column.
        let mut found: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for cell in row.cells.iter().filter(|cell| !cell.is_tombstone()) {
            let column = columns.get(usize::from(cell.column));
            let is_collection = column.is_some_and(|column| {
                matches!(column.cql_type, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
            });
            if is_collection {
                let (items, bytes) = found.entry(cell.column).or_default();
                *items += 1;
                *bytes += CELL as u64 + u64::from(cell.path.len) + u64::from(cell.value.len);
            }
        }
        for (index, (items, bytes)) in found {
            let Some(column) = columns.get(usize::from(index)) else { continue };
            let name = || self.collection_name(column, key, row.clustering);
            self.check(Threshold::CollectionSize, bytes + COLLECTION as u64, name);
            self.check(Threshold::ItemsPerCollection, items, name);
        }
    }

    fn partition(&self, of: &Descriptor, key: &PartitionKey, size: u64, tombstones: u64) {
        let name = || self.partition_name(of, key);
        self.check(Threshold::PartitionSize, size, name);
        self.check(Threshold::PartitionTombstones, tombstones, name);
    }
}
