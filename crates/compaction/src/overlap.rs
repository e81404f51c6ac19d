//! What may be purged (`CompactionController`): a deletion that is past its grace and older than everything that SSTables outside
//! of the compaction could hold for the partition.

use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_sstable::SSTable;
use halcyon_sstable::format::filter::Filter;
use halcyon_stream::{Layout, PartitionKey, PurgeRule};

use crate::Result;

/// An SSTable that is not compacted now.
struct Elsewhere {
    min_timestamp: i64,
    /// First and last key, where its version tells.
    range: Option<(PartitionKey, PartitionKey)>,
    filter: Filter,
}

pub(crate) struct Overlaps {
    gc_before: u32,
    now: u32,
    strict_liveness: bool,
    layout: Arc<Layout>,
    elsewhere: Vec<Elsewhere>,
    /// The oldest write that is in no SSTable of either kind.
    unflushed: Option<Arc<dyn Fn() -> i64 + Send + Sync>>,
}

impl Overlaps {
    pub(crate) async fn load(
        disk: &Disk,
        elsewhere: &[Arc<SSTable>],
        layout: Arc<Layout>,
        (gc_before, now): (u32, u32),
        strict_liveness: bool,
    ) -> Result<Overlaps> {
        let mut loaded = Vec::with_capacity(elsewhere.len());
        for sstable in elsewhere {
            let stats = &sstable.statistics().stats;
            let keys = stats.first_key.as_deref().zip(stats.last_key.as_deref());
            loaded.push(Elsewhere {
                min_timestamp: stats.min_timestamp,
                range: keys.map(|(first, last)| (PartitionKey::of(first), PartitionKey::of(last))),
                filter: sstable.filter(disk).await?,
            });
        }
        let elsewhere = loaded;
        Ok(Overlaps { gc_before, now, strict_liveness, layout, elsewhere, unflushed: None })
    }

    pub(crate) fn with_unflushed(
        self,
        unflushed: Option<Arc<dyn Fn() -> i64 + Send + Sync>>,
    ) -> Overlaps {
        Overlaps { unflushed, ..self }
    }
}

impl PurgeRule for Overlaps {
    fn gc_before(&self) -> u32 {
        self.gc_before
    }

    fn now(&self) -> u32 {
        self.now
    }

    fn strict_liveness(&self) -> bool {
        self.strict_liveness
    }

    fn purge_bound(&mut self, key: &PartitionKey) -> i64 {
        let may_hold = |other: &&Elsewhere| {
            let in_range = other.range.as_ref().is_none_or(|(first, last)| {
                self.layout.compare_keys(first, key).is_le()
                    && self.layout.compare_keys(key, last).is_le()
            });
            in_range && other.filter.may_contain(key.hashes)
        };
        let holders = self.elsewhere.iter().filter(may_hold);
        let unflushed = self.unflushed.as_ref().map_or(i64::MAX, |oldest| oldest());
        holders.map(|other| other.min_timestamp).min().unwrap_or(i64::MAX).min(unflushed)
    }
}
