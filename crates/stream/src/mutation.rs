//! Mutations: what one write changes in one partition of one table.
//!
//! Columns are numbered by the layout that the mutation carries; whoever applies it to a table whose layout has
//! moved on maps them by name (`Layout::mapping`).

use std::sync::Arc;

use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, DeletionTime};

use crate::fragment::{PartitionKey, RowBuf};
use crate::layout::Layout;

/// A table's id, as `system_schema.tables` has it.
pub type TableId = [u8; 16];

/// A clustering prefix with the side on which it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundBuf {
    pub kind: BoundKind,
    /// Number of values in `serialized`.
    pub count: usize,
    pub serialized: Vec<u8>,
}

impl BoundBuf {
    pub fn position(&self) -> Position<'_> {
        Position { kind: self.kind, count: self.count, serialized: &self.serialized }
    }
}

/// Deletes what lies between two bounds (an opening and a closing kind).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeTombstone {
    pub start: BoundBuf,
    pub end: BoundBuf,
    pub time: DeletionTime,
}

#[derive(Debug, Clone)]
pub struct Mutation {
    pub table: TableId,
    pub layout: Arc<Layout>,
    pub key: PartitionKey,
    pub deletion: DeletionTime,
    pub static_row: Option<RowBuf>,
    /// In no particular order; no two at the same clustering. Cells by column, then path.
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
}
