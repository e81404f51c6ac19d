//! Mutations: the changes that one write makes to one partition of one table.
//!
//! A mutation carries the layout that numbers its columns. If the table's layout has changed since, the engine maps the columns
//! by name (`Layout::mapping`) when it applies the mutation.

use std::sync::Arc;

use halcyon_model::DeletionTime;
use halcyon_model::clustering::PositionBuf;

use crate::fragment::{PartitionKey, RowBuf};
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
}
