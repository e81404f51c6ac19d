//! Mutations of a partition that are merged apart from its memtable, by another thread, because they or the rows that they change have
//! very many parts.
//!
//! The index entries of its rows come into the memtable before the rows: a search looks at the rows of the places that it finds.

use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_sstable::attached::Held;
use halcyon_stream::{MergeError, Mutation, PartitionKey, PrimaryKey, RowMerger};

use super::key::Key;
use super::{Memtable, Partition, oldest, to_layout};
use crate::index::TableIndex;

/// What the other thread needs. Nothing else may change the partition until the outcome is in its place.
pub(crate) struct Apart {
    table: Arc<Table>,
    indexes: Vec<TableIndex>,
    key: PartitionKey,
    partition: Partition,
    mutations: Vec<Mutation>,
}

/// The partition with the mutations in it.
pub(crate) struct Merged {
    pub(crate) key: PartitionKey,
    /// Of each index of the memtable.
    pub(crate) indexed: Vec<Vec<(PrimaryKey, Held)>>,
    partition: Partition,
    grown: isize,
    min_timestamp: i64,
}

impl Apart {
    pub(crate) fn merge(self) -> Result<Merged, MergeError> {
        let Apart { table, indexes, key, mut partition, mutations } = self;
        let mut indexed: Vec<Vec<(PrimaryKey, Held)>> =
            indexes.iter().map(|_| Vec::new()).collect();
        let (mut min_timestamp, mut grown) = (i64::MAX, 0);
        let mut merger = RowMerger::new(table.layout.clone());
        for mut mutation in mutations {
            to_layout(&table.layout, &mut mutation);
            for (index, indexed) in indexes.iter().zip(&mut indexed) {
                index.target.of_mutation(&mutation, |place, held| indexed.push((place, held)));
            }
            min_timestamp = min_timestamp.min(oldest(&mutation));
            grown += partition.apply(mutation, &table.layout.clusterings, &mut merger)?;
        }
        Ok(Merged { key, indexed, partition, grown, min_timestamp })
    }
}

impl Memtable {
    pub(super) fn apart(&self, key: PartitionKey, mutations: Vec<Mutation>) -> Apart {
        Apart {
            table: self.table.clone(),
            indexes: self.indexes.iter().map(|index| index.of.clone()).collect(),
            partition: self.partition(&key).cloned().unwrap_or_default(),
            key,
            mutations,
        }
    }

    /// Takes up to `most` terms of those that one of its indexes is to have.
    pub(super) fn add_indexed(
        &mut self,
        index: usize,
        indexed: &mut impl Iterator<Item = (PrimaryKey, Held)>,
        most: usize,
    ) {
        let Some(index) = self.indexes.get_mut(index) else { return };
        let mut taken = 0;
        while taken < most
            && let Some((place, held)) = indexed.next()
        {
            taken += held.count();
            self.bytes += index.insert(place, held);
        }
    }

    /// Puts a merged partition in its place, and returns what was there.
    pub(super) fn put(&mut self, merged: Merged) -> Option<Partition> {
        let Merged { key, partition, grown, min_timestamp, .. } = merged;
        self.min_timestamp = self.min_timestamp.min(min_timestamp);
        self.has_wide |= partition.has_wide();
        self.bytes = (self.bytes + self.size_of_key(&key)).saturating_add_signed(grown);
        self.partitions.insert(Key(key), partition)
    }
}
