//! Places of rows, in the order of their table.

use std::sync::Arc;

use halcyon_model::byte_comparable::encode_position;
use halcyon_model::clustering::Position;
use halcyon_model::{BoundKind, Clusterings};

use crate::PartitionKey;

/// A row of a table, or a whole partition. The order is that of the table; a partition is before its rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrimaryKey {
    pub token: i64,
    pub key: Arc<[u8]>,
    /// The clustering in byte-comparable form; empty for a partition.
    order: Arc<[u8]>,
    /// As serialized; empty for a partition.
    pub clustering: Arc<[u8]>,
}

impl PrimaryKey {
    pub fn partition(key: &PartitionKey) -> PrimaryKey {
        PrimaryKey::of(key.token, Arc::from(key.bytes.as_slice()))
    }

    fn of(token: i64, key: Arc<[u8]>) -> PrimaryKey {
        PrimaryKey { token, key, order: Arc::default(), clustering: Arc::default() }
    }

    /// A table without clustering columns has partitions only.
    pub fn row(
        token: i64,
        key: Arc<[u8]>,
        clustering: &[u8],
        clusterings: &Clusterings,
    ) -> PrimaryKey {
        if clusterings.is_empty() {
            return PrimaryKey::of(token, key);
        }
        let mut order = Vec::with_capacity(clustering.len() + clusterings.len() * 2 + 1);
        let position = Position {
            kind: BoundKind::Clustering,
            count: clusterings.len(),
            serialized: clustering,
        };
        encode_position(clusterings, position, &mut order);
        PrimaryKey { token, key, order: order.into(), clustering: clustering.into() }
    }

    pub fn is_row(&self) -> bool {
        !self.order.is_empty()
    }

    pub fn is_in(&self, key: &PartitionKey) -> bool {
        *self.key == *key.bytes
    }

    /// The first place that is behind this one: no place lies between them.
    #[must_use]
    pub fn next(&self) -> PrimaryKey {
        let mut order = self.order.to_vec();
        order.push(0);
        PrimaryKey { order: order.into(), ..self.clone() }
    }

    /// The first place that is not part of this one: of a partition, behind its rows.
    #[must_use]
    pub fn behind(&self) -> PrimaryKey {
        if self.is_row() {
            return self.next();
        }
        let mut key = self.key.to_vec();
        key.push(0);
        PrimaryKey::of(self.token, key.into())
    }

    /// The partition that it is in.
    #[must_use]
    pub fn whole_partition(&self) -> PrimaryKey {
        PrimaryKey::of(self.token, self.key.clone())
    }

    /// Before all partitions of a token.
    pub fn before_token(token: i64) -> PrimaryKey {
        PrimaryKey::of(token, Arc::default())
    }

    /// Behind all partitions of a token; `None`: behind everything.
    pub fn after_token(token: i64) -> Option<PrimaryKey> {
        token.checked_add(1).map(PrimaryKey::before_token)
    }

    /// Behind a partition and its rows: the least key that is greater has one zero more.
    pub fn after_partition(key: &PartitionKey) -> PrimaryKey {
        PrimaryKey::partition(key).behind()
    }

    /// Bytes of memory.
    pub fn size(&self) -> usize {
        size_of::<PrimaryKey>() + self.key.len() + self.order.len() + self.clustering.len()
    }
}

/// From one place to another, which is not in it; `None`: to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKeyRange {
    pub start: PrimaryKey,
    pub end: Option<PrimaryKey>,
}

impl PrimaryKeyRange {
    pub fn contains(&self, place: &PrimaryKey) -> bool {
        self.start <= *place && self.end.as_ref().is_none_or(|end| place < end)
    }

    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// The part of it that is in another one.
    #[must_use]
    pub fn cut_to(self, other: PrimaryKeyRange) -> PrimaryKeyRange {
        let end = match (self.end, other.end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        PrimaryKeyRange { start: self.start.max(other.start), end }
    }

    pub fn partition(key: &PartitionKey) -> PrimaryKeyRange {
        PrimaryKeyRange {
            start: PrimaryKey::partition(key),
            end: Some(PrimaryKey::after_partition(key)),
        }
    }
}
