//! Tables as the schema knows them: what SSTable headers do not say (column names of the key, dropped columns,
//! options).
use std::collections::BTreeMap;

use crate::types::CqlType;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    pub name: String,
    /// Clustering columns in descending order have a `Reversed` type.
    pub cql_type: CqlType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedColumn {
    pub name: String,
    pub cql_type: CqlType,
    pub kind: ColumnKind,
    /// Cells and complex deletions written at or before this (µs) are gone.
    pub dropped_time: i64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableOptions {
    pub comment: String,
    pub gc_grace_seconds: Option<u32>,
    pub default_time_to_live: u32,
    pub bloom_filter_fp_chance: Option<f64>,
    pub crc_check_chance: Option<f64>,
    pub min_index_interval: Option<u32>,
    pub max_index_interval: Option<u32>,
    /// `compression`, `compaction`, `caching` maps as written; keys lower-case where CQL folds them.
    pub compression: Option<BTreeMap<String, String>>,
    pub compaction: Option<BTreeMap<String, String>>,
    pub caching: Option<BTreeMap<String, String>>,
    /// `COMPACT STORAGE`: rows of a Thrift table.
    pub compact_storage: bool,
    /// Every other option, its value as text.
    pub other: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    pub keyspace: String,
    pub name: String,
    pub id: Option<[u8; 16]>,
    pub partition_key: Vec<ColumnDef>,
    pub clustering: Vec<ColumnDef>,
    pub statics: Vec<ColumnDef>,
    pub regulars: Vec<ColumnDef>,
    pub dropped: Vec<DroppedColumn>,
    pub options: TableOptions,
    /// A materialized view: its rows follow strict liveness.
    pub is_view: bool,
}

impl TableSchema {
    /// Whether what is opened by one can be read by the other: the same columns, and the same dropped.
    pub fn has_columns_of(&self, other: &TableSchema) -> bool {
        self.partition_key == other.partition_key
            && self.clustering == other.clustering
            && self.statics == other.statics
            && self.regulars == other.regulars
            && self.dropped == other.dropped
    }
}
