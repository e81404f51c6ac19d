//! Mutations: the changes that one write makes to one partition of one table.
//!
//! A mutation carries the layout that numbers its columns. If the table's layout has changed since, the engine maps the columns
//! by name (`Layout::mapping`) when it applies the mutation.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::{ClusteringValue, PositionBuf};

use crate::fragment::{Cell, PartitionKey, RowBuf};
use crate::layout::Layout;

/// A table's id in `system_schema.tables`.
pub type TableId = [u8; 16];

/// The deletion of all rows between two bounds; `start` has an opening kind, `end` a closing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    pub start: PositionBuf,
    pub end: PositionBuf,
    pub time: DeletionTime,
}

#[derive(Debug, Clone)]
pub struct Mutation {
    pub table: TableId,
    pub layout: Arc<Layout>,
    pub key: PartitionKey,
    pub deletion: DeletionTime,
    pub static_row: Option<RowBuf>,
    /// In any order, each clustering once. Cells are sorted by column, then path.
    pub rows: Vec<RowBuf>,
    pub range_tombstones: Vec<RangeTombstone>,
}

impl Mutation {
    pub fn new(table: TableId, layout: Arc<Layout>, key: PartitionKey) -> Mutation {
        Mutation {
            table,
            layout,
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            range_tombstones: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.is_none()
            && self.rows.is_empty()
            && self.range_tombstones.is_empty()
    }

    /// Bytes in Cassandra's estimation (`PartitionUpdate.dataSize`), without [`EMPTY_PARTITION`].
    pub fn data_size(&self) -> usize {
        let clusterings = &self.layout.clusterings;
        let clustering = |row: &RowBuf| -> usize {
            let bytes = row.parts.clustering.of(&row.bytes);
            let length = |value| match value {
                ClusteringValue::Bytes(bytes) => bytes.len(),
                ClusteringValue::Null => 0,
            };
            let count = if bytes.is_empty() { 0 } else { clusterings.len() };
            clusterings.values(bytes, count).map(length).sum()
        };
        let cell = |cell: &Cell| 20 + (cell.path.len + cell.value.len) as usize;
        let row = |row: &RowBuf| {
            let cells: usize = row.parts.cells.iter().map(cell).sum();
            let expiring = if row.parts.liveness.is_expiring() { 12 } else { 0 };
            EMPTY_ROW + expiring + clustering(row) + 12 * row.parts.complex_deletions.len() + cells
        };
        let rows: usize = self.rows.iter().map(row).sum();
        let static_row = self.static_row.as_ref().map_or(0, |of| row(of) - EMPTY_ROW);
        let ranges = self
            .range_tombstones
            .iter()
            .map(|range| range.start.serialized.len() + range.end.serialized.len() + 12);
        static_row + rows + ranges.sum::<usize>()
    }
}

const EMPTY_ROW: usize = 8 + 13;
/// The deletion and the static row that each partition of a write has in Cassandra's estimation.
pub const EMPTY_PARTITION: usize = 8 + EMPTY_ROW;
