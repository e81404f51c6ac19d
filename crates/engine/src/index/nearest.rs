//! Searches for the vectors that are near a given one.
//!
//! 1. The memtables of each shard are asked by that shard, all SSTables by one shard: their rows are of all shards. Memtables first: what a
//!    flush moves meanwhile is then found twice, and not lost.
//! 2. A search compares vectors for some 100 µs, then it lets others run.
//! 3. The answer is candidates: the caller reads the rows, and wants more where rows are deleted or have other vectors by now.

use std::sync::Arc;

use halcyon_schema::catalog::Table;
use halcyon_schema::index::NearestSearch;
use halcyon_sstable::attached::{Neighbour, Neighbours};

use super::TableIndex;
use crate::current::Current;
use crate::shard::Shard;
use crate::version::LiveSSTable;
use crate::{Error, Result};

impl Shard {
    /// The nearest rows of this shard that are not in SSTables: at least `count`, if they exist.
    pub async fn nearest_in_memtables(
        &self,
        table: &Arc<Table>,
        search: &NearestSearch,
        count: usize,
    ) -> Result<Neighbours> {
        let table = self.table(table)?;
        self.tables().check_readable(&table.store)?;
        let current = table.current();
        let slots = table.slots();
        let index = index_of(&current, search)?;
        let vector = search.similarity.kept(search.vector.clone());
        let mut found = Neighbours::default();
        for slot in slots {
            if slot.with(|memtable| memtable.index(index).is_none() && !memtable.is_empty()) {
                return Err(Error::IndexNotAvailable(index.name.clone()));
            }
            let mut chunk = 0;
            let show = |found: &mut Neighbours, chunk| {
                slot.with(|memtable| {
                    let (of, floor) = (memtable.index(index)?, found.others);
                    let near = of.neighbours(search.similarity, &vector, chunk, floor)?;
                    found.near.extend(near);
                    Some(())
                })
            };
            while show(&mut found, chunk).is_some() {
                chunk += 1;
                if found.near.len() >= 2 * count {
                    keep_nearest(&mut found, count);
                }
                halcyon_io::yield_now().await;
            }
        }
        keep_nearest(&mut found, count);
        Ok(found)
    }

    /// The nearest rows in the SSTables of the table: at least `count` of each part, if they exist.
    pub async fn nearest_in_sstables(
        &self,
        table: &Arc<Table>,
        search: &NearestSearch,
        count: usize,
    ) -> Result<Neighbours> {
        let table = self.table(table)?;
        let version = table.store.version.load_full();
        let current = table.current();
        let index = index_of(&current, search)?;
        let missing = || Error::IndexNotAvailable(index.name.clone());
        let vector = search.similarity.kept(search.vector.clone());
        let mut found = Neighbours::default();
        let attached = |live: &Arc<LiveSSTable>| live.attached(index).ok_or_else(missing);
        let indexes = version.sstables().iter().map(attached).collect::<Result<Vec<_>>>()?;
        let of = indexes.iter().map(|attached| attached.entries()).sum();
        for (live, attached) in version.sstables().iter().zip(&indexes) {
            let near = self.tables().memory.segments.nearest(attached, &vector, count, of).await;
            found.add(near.map_err(|error| match error {
                halcyon_sstable::Error::Corrupt { .. } => {
                    self.index_damaged(&table.store, live, index, &error);
                    missing()
                }
                other => other.into(),
            })?);
        }
        Ok(found)
    }
}

fn index_of<'a>(current: &'a Current, search: &NearestSearch) -> Result<&'a TableIndex> {
    let mut indexes = current.definition.indexes.iter();
    let index = indexes.find(|index| index.name == search.index);
    index.ok_or_else(|| Error::IndexNotAvailable(search.index.clone()))
}

/// Leaves out all but the nearest.
fn keep_nearest(found: &mut Neighbours, count: usize) {
    let order = |a: &Neighbour, b: &Neighbour| b.score.total_cmp(&a.score);
    if found.near.len() > count && count > 0 {
        found.near.select_nth_unstable_by(count - 1, order);
        found.near.truncate(count);
        let worst = found.near.last().map(|near| near.score);
        found.others = match (found.others, worst) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}
