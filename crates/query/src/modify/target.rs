//! What the conditions of a statement are about: a row, or the partition.

use std::cmp::Ordering;
use std::sync::Arc;

use halcyon_cql::plan::modify::{BoundModification, BoundRows};
use halcyon_model::BoundKind;
use halcyon_model::clustering::Position;
use halcyon_stream::Layout;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Static,
    Row(Clustering),
}

/// Compared by the types of its columns: of one row, statements may give other bytes.
#[derive(Debug, Clone)]
pub(super) struct Clustering {
    pub layout: Arc<Layout>,
    pub serialized: Vec<u8>,
}

impl Target {
    /// The row that a conditional statement means.
    pub(super) fn of(modification: &BoundModification) -> Target {
        let table = &modification.table;
        let row = |serialized| Target::Row(Clustering { layout: table.layout.clone(), serialized });
        match &modification.rows {
            BoundRows::Rows(rows) => rows.first().cloned().map_or(Target::Static, row),
            BoundRows::Partition if table.schema.clustering.is_empty() => row(Vec::new()),
            _ => Target::Static,
        }
    }

    pub(super) fn row(&self) -> Option<&Vec<u8>> {
        match self {
            Target::Static => None,
            Target::Row(clustering) => Some(&clustering.serialized),
        }
    }
}

impl Clustering {
    fn position(&self) -> Position<'_> {
        let (kind, count) = (BoundKind::Clustering, self.layout.clusterings.len());
        Position { kind, count, serialized: &self.serialized }
    }
}

impl Ord for Clustering {
    fn cmp(&self, other: &Clustering) -> Ordering {
        self.layout.clusterings.compare(self.position(), other.position())
    }
}

impl PartialOrd for Clustering {
    fn partial_cmp(&self, other: &Clustering) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Clustering {
    fn eq(&self, other: &Clustering) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Clustering {}
