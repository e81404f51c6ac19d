//! The live set of a table: one immutable version, replaced as a whole.
//!
//! ```text
//!   sstables   oldest ──────── by newest timestamp ────────► newest        merged in this order, read from the end
//!   index      token interval ─► position in `sstables`                    interval tree
//! ```
//! 1. A read takes the current version and keeps it until it is done, and with it the SSTables.
//! 2. A flush, compaction or truncation applies an [`Edit`] (`edit.rs`) to the version that is then current: a copy of the pointers, a
//!    merge of sorted lists, no comparison of names.
//! 3. When the last holder drops an obsolete SSTable, its files are deleted, then the transaction's log.
//!
//! Unlike Cassandra's `View` it does not list the inputs of running compactions: claims (`compact/claims.rs`) do, by serial number.

mod attached;
mod edit;
mod hotness;
mod live;
mod purge;

use std::sync::{Arc, OnceLock};

use halcyon_compaction::IntervalIndex;
use halcyon_sstable::format::statistics::cardinality::Cardinality;

pub(crate) use edit::Edit;
pub(crate) use hotness::SAMPLE;
pub(crate) use live::{LiveSSTable, replaced};
pub(crate) use purge::LiveSetBound;

#[derive(Default)]
pub(crate) struct Version {
    sstables: Vec<Arc<LiveSSTable>>,
    index: IntervalIndex,
    totals: OnceLock<Totals>,
    partitions: OnceLock<u64>,
}

/// Sums over a version's SSTables.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) disk_space: u64,
    pub(crate) max_sstable_size: u64,
    /// From the SSTables' statistics.
    pub(crate) max_partition_size: u64,
    /// `None` without partitions.
    pub(crate) min_partition_size: Option<u64>,
    pub(crate) mean_partition_size: u64,
    /// Milliseconds between the oldest and the newest write of an SSTable.
    pub(crate) max_sstable_duration: u64,
    /// Bytes that are in memory as long as the SSTables are open; positions of partitions have a budget of their own.
    pub(crate) filter_memory: u64,
    pub(crate) summary_memory: u64,
    pub(crate) offsets_memory: u64,
    /// Of compressed SSTables, as stored and uncompressed.
    compressed: (u64, u64),
    /// Uncompressed: of all SSTables, and of repaired ones.
    data: u64,
    repaired: u64,
}

impl Version {
    pub(crate) fn of(sstables: Vec<Arc<LiveSSTable>>) -> Version {
        Version::default().edited(&Edit { added: sstables, ..Edit::default() })
    }

    /// Oldest first, by newest timestamp: the order of a merge's inputs.
    pub(crate) fn sstables(&self) -> &[Arc<LiveSSTable>] {
        &self.sstables
    }

    pub(crate) fn len(&self) -> usize {
        self.sstables.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sstables.is_empty()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&Arc<LiveSSTable>> {
        self.sstables.get(at as usize)
    }

    /// Those whose token interval meets `first..=last`, in no particular order.
    pub(crate) fn visit_overlapping(
        &self,
        first: i64,
        last: i64,
        mut visit: impl FnMut(&Arc<LiveSSTable>),
    ) {
        self.index.overlapping(first, last, |at| {
            if let Some(live) = self.get(at) {
                visit(live);
            }
        });
    }

    /// The positions of those whose token interval meets `first..=last`, oldest first.
    pub(crate) fn overlapping(&self, first: i64, last: i64) -> Vec<u32> {
        let mut found = Vec::new();
        self.index.overlapping(first, last, |at| found.push(at));
        found.sort_unstable();
        found
    }

    pub(crate) fn totals(&self) -> Totals {
        *self.totals.get_or_init(|| {
            let mut totals = Totals::default();
            self.sstables.iter().for_each(|live| totals.add(live));
            totals.mean_partition_size = mean_partition_size(&self.sstables);
            totals
        })
    }

    /// An estimate by the sketches of SSTables, which is computed once.
    pub(crate) fn partitions(&self) -> u64 {
        *self.partitions.get_or_init(|| {
            let (mut keys, mut others) = (Cardinality::default(), 0);
            for live in &self.sstables {
                let statistics = live.sstable().statistics();
                match statistics.compaction.as_ref().and_then(|c| c.cardinality().ok()) {
                    Some(sketch) => keys.merge(&sketch),
                    None => others += live.sstable().estimated_keys(),
                }
            }
            others + keys.estimate()
        })
    }
}

impl Totals {
    fn add(&mut self, live: &LiveSSTable) {
        let of = &live.sstable().statistics().stats;
        let extremes = of.partition_sizes.extremes();
        let micros = of.max_timestamp.saturating_sub(of.min_timestamp);
        let positive = |value: i64| u64::try_from(value).unwrap_or(0);
        let memory = live.table.memory();
        self.filter_memory += memory.filter;
        self.summary_memory += memory.summary;
        self.offsets_memory += memory.offsets;
        let data = live.sstable().data_length();
        self.data += data;
        self.repaired += if of.repaired_at > 0 { data } else { 0 };
        if live.sstable().compression().is_some() {
            self.compressed.0 += live.sstable().file_length();
            self.compressed.1 += data;
        }
        self.disk_space += live.bytes_on_disk;
        self.max_sstable_size = self.max_sstable_size.max(live.bytes_on_disk);
        if let Some((smallest, largest)) = extremes {
            let smallest = positive(smallest);
            self.max_partition_size = self.max_partition_size.max(positive(largest));
            self.min_partition_size =
                Some(self.min_partition_size.map_or(smallest, |min| min.min(smallest)));
        }
        self.max_sstable_duration = self.max_sstable_duration.max(positive(micros / 1000));
    }

    pub(crate) fn memory(&self) -> u64 {
        self.filter_memory + self.summary_memory + self.offsets_memory
    }

    /// Stored bytes for each byte of data, of compressed SSTables; -1 (`NO_COMPRESSION_RATIO`) without any.
    pub(crate) fn compression_ratio(&self) -> f64 {
        let (stored, data) = self.compressed;
        if data > 0 { stored as f64 / data as f64 } else { -1.0 }
    }

    /// Without data, everything is.
    pub(crate) fn percent_repaired(&self) -> f64 {
        if self.data > 0 { self.repaired as f64 / self.data as f64 * 100.0 } else { 100.0 }
    }
}

fn mean_partition_size(sstables: &[Arc<LiveSSTable>]) -> u64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for live in sstables {
        let sizes = &live.sstable().statistics().stats.partition_sizes;
        let of_sstable = sizes.count() as f64;
        sum += sizes.mean() * of_sstable;
        count += of_sstable;
    }
    if count > 0.0 { (sum / count) as u64 } else { 0 }
}
