//! The purge bound (`CompactionController`): a tombstone goes when it is past gc grace and older than everything that SSTables outside of
//! the compaction, or memtables, may hold for its partition.
//!
//! A node answers from its live set, whose Bloom filters are in memory already ([`PurgeBound`]). Offline, the filters of the SSTables that
//! overlap the inputs are loaded; those of the others are not, since they cannot hold a partition of the inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::Partitioner;
use halcyon_sstable::SSTable;
use halcyon_sstable::format::filter::Filter;
use halcyon_stream::{Layout, PartitionKey, PurgeRule};

use crate::interval::IntervalIndex;
use crate::{Group, Result};

/// What else of a table bounds the purge.
pub trait PurgeBound: Send + Sync {
    /// The oldest timestamp that anything outside of the compaction may hold for the partition; `i64::MAX`: nothing does.
    fn min_timestamp(&self, key: &PartitionKey) -> i64;

    /// The oldest timestamp that anything outside of the compaction may hold for any partition, where an answer about one costs much.
    fn floor(&self) -> i64 {
        i64::MIN
    }
}

/// An SSTable that overlaps the inputs.
struct Overlapping {
    min_timestamp: i64,
    /// First and last key; `None` where its version does not record them.
    range: Option<(PartitionKey, PartitionKey)>,
    filter: Filter,
}

/// SSTables that are not compacted now, by their own filters.
struct SSTables {
    layout: Arc<Layout>,
    tables: Vec<Overlapping>,
    index: IntervalIndex,
}

impl SSTables {
    async fn load(disk: &Disk, group: &Group, layout: Arc<Layout>) -> Result<SSTables> {
        let (first, last) = token_range(&group.inputs, &layout);
        let mut tables = Vec::new();
        let mut intervals = Vec::new();
        for sstable in &group.elsewhere {
            let interval = token_range(std::slice::from_ref(sstable), &layout);
            if interval.1 < first || last < interval.0 {
                continue;
            }
            intervals.push(interval);
            tables.push(Overlapping {
                min_timestamp: sstable.statistics().stats.min_timestamp,
                range: sstable.recorded_ends(),
                filter: sstable.filter(disk).await?,
            });
        }
        Ok(SSTables { layout, tables, index: IntervalIndex::new(intervals) })
    }

    fn may_hold(&self, table: &Overlapping, key: &PartitionKey) -> bool {
        let in_range = table.range.as_ref().is_none_or(|(first, last)| {
            self.layout.compare_keys(first, key).is_le()
                && self.layout.compare_keys(key, last).is_le()
        });
        in_range && table.filter.may_contain(key.hashes)
    }
}

impl PurgeBound for SSTables {
    fn min_timestamp(&self, key: &PartitionKey) -> i64 {
        let mut least = i64::MAX;
        // By another partitioner all intervals are unbounded, so any token finds them.
        self.index.overlapping(key.token, key.token, |at| {
            if let Some(table) = self.tables.get(at as usize)
                && table.min_timestamp < least
                && self.may_hold(table, key)
            {
                least = table.min_timestamp;
            }
        });
        least
    }
}

/// First and last token of some SSTables; all tokens if they are unknown, or if the partitioner does not order by token.
fn token_range(sstables: &[Arc<SSTable>], layout: &Layout) -> (i64, i64) {
    let everything = (i64::MIN, i64::MAX);
    if !matches!(layout.partitioner, Partitioner::Murmur3) {
        return everything;
    }
    let ranges: Option<Vec<_>> = sstables.iter().map(|sstable| sstable.recorded_ends()).collect();
    let Some(ranges) = ranges else { return everything };
    let first = ranges.iter().map(|(first, _)| first.token).min();
    let last = ranges.iter().map(|(_, last)| last.token).max();
    first.zip(last).unwrap_or(everything)
}

/// The rule of one compaction.
pub(crate) struct Purging {
    gc_before: u32,
    now: u32,
    strict_liveness: bool,
    /// Keys of partitions whose tombstones go without gc grace.
    forced: BTreeSet<Vec<u8>>,
    bounds: Vec<Arc<dyn PurgeBound>>,
}

impl Purging {
    /// `bound` holds beside the SSTables of `group.elsewhere`.
    pub(crate) async fn load(
        disk: &Disk,
        group: &Group,
        layout: Arc<Layout>,
        (gc_before, now): (u32, u32),
        (strict_liveness, forced): (bool, BTreeSet<Vec<u8>>),
        bound: Option<Arc<dyn PurgeBound>>,
    ) -> Result<Purging> {
        let mut bounds = Vec::from_iter(bound);
        if !group.elsewhere.is_empty() {
            bounds.push(Arc::new(SSTables::load(disk, group, layout).await?));
        }
        Ok(Purging { gc_before, now, strict_liveness, forced, bounds })
    }
}

impl PurgeRule for Purging {
    fn gc_before(&self, key: &PartitionKey) -> u32 {
        // The set is empty but for a compaction of some keys on request.
        let is_forced = !self.forced.is_empty() && self.forced.contains(&key.bytes);
        if is_forced { u32::MAX } else { self.gc_before }
    }

    fn now(&self) -> u32 {
        self.now
    }

    fn strict_liveness(&self) -> bool {
        self.strict_liveness
    }

    fn purge_bound(&mut self, key: &PartitionKey) -> i64 {
        self.bounds.iter().map(|bound| bound.min_timestamp(key)).min().unwrap_or(i64::MAX)
    }

    fn purge_floor(&self) -> i64 {
        self.bounds.iter().map(|bound| bound.floor()).min().unwrap_or(i64::MAX)
    }
}
