//! The schema of a table, which has more than the headers of its SSTables: names of key columns, dropped columns, options.
use std::cmp::Ordering;

use crate::options::TableOptions;
use crate::types::CqlType;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    pub name: String,
    /// Clustering columns in descending order have a `Reversed` type.
    pub cql_type: CqlType,
}

impl ColumnDef {
    /// The order of files: simple columns before complex ones, then by name.
    pub fn compare(&self, other: &ColumnDef) -> Ordering {
        let complex = |column: &ColumnDef| column.cql_type.is_multi_cell();
        let names = || compare_column_names(self.name.as_bytes(), other.name.as_bytes());
        complex(self).cmp(&complex(other)).then_with(names)
    }
}

/// The order of columns' names in files. Cassandra compares the first six bytes of names as a number whose highest bit it has turned
/// over, so what does not begin with ASCII comes first.
pub fn compare_column_names(a: &[u8], b: &[u8]) -> Ordering {
    let prefix = |name: &[u8]| {
        let mut prefix = [0; 6];
        for (to, byte) in prefix.iter_mut().zip(name) {
            *to = *byte;
        }
        prefix[0] ^= 0x80;
        prefix
    };
    prefix(a).cmp(&prefix(b)).then_with(|| a.cmp(b))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

impl ColumnKind {
    /// Part of the primary key.
    pub fn is_key(self) -> bool {
        matches!(self, ColumnKind::PartitionKey | ColumnKind::Clustering)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedColumn {
    pub name: String,
    pub cql_type: CqlType,
    pub kind: ColumnKind,
    /// Cells and complex deletions written at or before this time (µs) are ignored.
    pub dropped_time: i64,
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
    /// A row exists only by its primary key's liveness, not by its cells: for views with a column in their primary key
    /// that is not in their base's.
    pub strict_liveness: bool,
}

impl TableSchema {
    /// Whether an SSTable opened with one schema can be read with the other: both have the same columns and dropped columns.
    pub fn has_columns_of(&self, other: &TableSchema) -> bool {
        self.partition_key == other.partition_key
            && self.clustering == other.clustering
            && self.statics == other.statics
            && self.regulars == other.regulars
            && self.dropped == other.dropped
    }

    /// `COMPACT STORAGE` without clustering columns: all values are in the static row. Also after the last of them was dropped.
    pub fn is_static_compact(&self) -> bool {
        let dropped = || self.dropped.iter().any(|dropped| dropped.kind == ColumnKind::Static);
        self.options.compact_storage && (!self.statics.is_empty() || dropped())
    }

    /// `COMPACT STORAGE` with clustering columns: a row is one value.
    pub fn is_dense(&self) -> bool {
        self.options.compact_storage && !self.is_static_compact()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_begin_with_ascii_come_first() {
        let mut names = ["zz", "a", "é", "ü", "né", "nz", "aaaaaaaé", "aaaaaaaz", "Z"];
        names.sort_by(|a, b| compare_column_names(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, ["é", "ü", "Z", "a", "aaaaaaaz", "aaaaaaaé", "nz", "né", "zz"]);
    }
}
