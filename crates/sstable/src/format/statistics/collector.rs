//! Gathers an SSTable's statistics while its data is written (`MetadataCollector`, `Rows.collectStats`).
//!
//! The writer reports:
//!
//! 1. each partition deletion, range tombstone, row and complex deletion to `deletion` (`partition_deletion` for the
//!    first kind), each row's liveness to `liveness`, its cells to `cells`;
//! 2. each row, and each static row that is not empty, to `row`;
//! 3. for each partition its first and last unfiltered, static row left out, to `cover`;
//! 4. the end of each partition to `end_partition`.
//!
//! A cell costs a few comparisons; only deletion times that are not "none" reach a histogram.

use halcyon_model::clustering::Position;
use halcyon_model::time::NO_DELETION_TIME;
use halcyon_model::{BoundKind, Clusterings, DeletionTime, Liveness, NO_TTL};

use super::cardinality::Cardinality;
use super::covered::{ClusteringBound, CoveredClustering};
use super::header::SerializationHeader;
use super::histogram::EstimatedHistogram;
use super::stats::{CommitLogPosition, NO_COMPRESSION_RATIO, Stats};
use super::tombstones::TombstoneHistogramBuilder;
use super::{Compaction, Statistics, Validation};

/// Smallest and largest value so far; nothing yet while the smallest is larger than the largest.
#[derive(Debug, Clone, Copy)]
struct MinMax<T> {
    min: T,
    max: T,
}

impl<T: Ord + Copy> MinMax<T> {
    #[inline]
    fn update(&mut self, value: T) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn or(self, min: T, max: T) -> (T, T) {
        if self.min > self.max { (min, max) } else { (self.min, self.max) }
    }
}

#[derive(Debug)]
pub struct MetadataCollector {
    clusterings: Clusterings,
    timestamps: MinMax<i64>,
    local_deletion_times: MinMax<u32>,
    ttls: MinMax<i32>,
    cells_in_partition: u64,
    tombstones_in_partition: u64,
    total_columns_set: i64,
    total_rows: i64,
    has_partition_level_deletions: bool,
    has_legacy_counter_shards: bool,
    tombstones: TombstoneHistogramBuilder,
    partition_sizes: EstimatedHistogram,
    cells_per_partition: EstimatedHistogram,
    cardinality: Cardinality,
    covered_from: Option<ClusteringBound>,
    covered_to: Option<ClusteringBound>,
    keys: Option<(Vec<u8>, Vec<u8>)>,
}

/// Properties of the SSTable that its data does not determine.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// Class name.
    pub partitioner: String,
    pub bloom_filter_fp_chance: f64,
    /// Compressed by uncompressed length, without CRCs of chunks.
    pub compression_ratio: Option<f64>,
    pub level: i32,
    pub repaired_at: i64,
    pub pending_repair: Option<[u8; 16]>,
    pub is_transient: bool,
    pub originating_host_id: Option<[u8; 16]>,
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
}

impl Provenance {
    /// Unrepaired, level 0, of no known host.
    pub fn new(partitioner: String, bloom_filter_fp_chance: f64) -> Provenance {
        Provenance {
            partitioner,
            bloom_filter_fp_chance,
            compression_ratio: None,
            level: 0,
            repaired_at: 0,
            pending_repair: None,
            is_transient: false,
            originating_host_id: None,
            commit_log_intervals: Vec::new(),
        }
    }
}

impl MetadataCollector {
    pub fn new(clusterings: Clusterings) -> MetadataCollector {
        MetadataCollector {
            clusterings,
            timestamps: MinMax { min: i64::MAX, max: i64::MIN },
            local_deletion_times: MinMax { min: u32::MAX, max: u32::MIN },
            ttls: MinMax { min: i32::MAX, max: i32::MIN },
            cells_in_partition: 0,
            tombstones_in_partition: 0,
            total_columns_set: 0,
            total_rows: 0,
            has_partition_level_deletions: false,
            has_legacy_counter_shards: false,
            tombstones: TombstoneHistogramBuilder::default(),
            partition_sizes: EstimatedHistogram::of_partition_sizes(),
            cells_per_partition: EstimatedHistogram::of_cell_counts(),
            cardinality: Cardinality::default(),
            covered_from: None,
            covered_to: None,
            keys: None,
        }
    }

    #[inline]
    pub fn update_timestamp(&mut self, timestamp: i64) {
        self.timestamps.update(timestamp);
    }

    /// 0, no TTL, counts as a value.
    #[inline]
    pub fn update_ttl(&mut self, ttl: i32) {
        self.ttls.update(ttl);
    }

    /// "None" counts as a value: the largest.
    #[inline]
    pub fn update_local_deletion_time(&mut self, time: u32) {
        self.local_deletion_times.update(time);
        if time != NO_DELETION_TIME {
            self.tombstones_in_partition += 1;
            self.tombstones.add(time);
        }
    }

    /// The cells of a row, each with timestamp, TTL and local deletion time. Each element of a collection is one, and so is
    /// a tombstone.
    #[inline]
    pub fn cells(&mut self, cells: impl Iterator<Item = (i64, i32, u32)>) {
        // In registers until the row is through.
        let (mut timestamps, mut ttls) = (self.timestamps, self.ttls);
        let mut times = self.local_deletion_times;
        for (timestamp, ttl, local_deletion_time) in cells {
            self.cells_in_partition += 1;
            timestamps.update(timestamp);
            ttls.update(ttl);
            times.update(local_deletion_time);
            if local_deletion_time != NO_DELETION_TIME {
                self.tombstones_in_partition += 1;
                self.tombstones.add(local_deletion_time);
            }
        }
        (self.timestamps, self.ttls, self.local_deletion_times) = (timestamps, ttls, times);
    }

    #[inline]
    pub fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_empty() {
            self.update_timestamp(liveness.timestamp);
            self.update_ttl(liveness.ttl);
            self.update_local_deletion_time(liveness.local_expiration_time);
        }
    }

    /// Of a row, a range or a complex column; for a boundary, both of its deletions.
    #[inline]
    pub fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.update_timestamp(deletion.marked_for_delete_at);
            self.update_local_deletion_time(deletion.local_deletion_time);
        }
    }

    pub fn partition_deletion(&mut self, deletion: &DeletionTime) {
        self.has_partition_level_deletions |= !deletion.is_live();
        self.deletion(deletion);
    }

    /// A row with cells in `columns_set` columns.
    #[inline]
    pub fn row(&mut self, columns_set: u64) {
        self.total_rows += 1;
        self.total_columns_set = self.total_columns_set.saturating_add_unsigned(columns_set);
    }

    /// A counter cell has local or remote shards.
    pub fn legacy_counter_shards(&mut self) {
        self.has_legacy_counter_shards = true;
    }

    /// Extends the covered clusterings by a partition's first or last unfiltered. Boundaries cannot be either.
    pub fn cover(&mut self, position: Position<'_>) {
        let (opens, closes) = match position.kind {
            // Without clustering columns all rows are at one position.
            BoundKind::Clustering if position.count == 0 && self.covered_to.is_some() => return,
            BoundKind::Clustering => (true, true),
            BoundKind::Static => return,
            kind if kind.is_boundary() => return,
            kind => (kind.opens(), kind.closes()),
        };
        let bound = |kind| ClusteringBound {
            kind,
            count: position.count as u16,
            serialized: position.serialized.to_vec(),
        };
        let order = |other: &ClusteringBound| self.clusterings.compare(position, other.position());
        if opens && self.covered_from.as_ref().is_none_or(|from| order(from).is_lt()) {
            let kind = if closes { BoundKind::InclStart } else { position.kind };
            self.covered_from = Some(bound(kind));
        }
        if closes && self.covered_to.as_ref().is_none_or(|to| order(to).is_gt()) {
            let kind = if opens { BoundKind::InclEnd } else { position.kind };
            self.covered_to = Some(bound(kind));
        }
    }

    /// `size`: bytes of the partition in the data, its end included. Returns how many of its times of deletion and expiration were counted.
    pub fn end_partition(&mut self, key: &[u8], size: u64) -> u64 {
        self.partition_sizes.add(size);
        self.cells_per_partition.add(std::mem::take(&mut self.cells_in_partition));
        self.cardinality.add_key(key);
        match &mut self.keys {
            None => self.keys = Some((key.to_vec(), key.to_vec())),
            Some((_, last)) => {
                last.clear();
                last.extend_from_slice(key);
            }
        }
        std::mem::take(&mut self.tombstones_in_partition)
    }

    /// The statistics, for any version that is written. `header` is the header of the data.
    pub fn finish(self, header: SerializationHeader, provenance: Provenance) -> Statistics {
        let (min_timestamp, max_timestamp) = self.timestamps.or(i64::MIN, i64::MAX);
        let (min_local_deletion_time, max_local_deletion_time) =
            self.local_deletion_times.or(NO_DELETION_TIME, NO_DELETION_TIME);
        let (min_ttl, max_ttl) = self.ttls.or(NO_TTL, NO_TTL);
        let nothing = CoveredClustering::nothing(header.clustering_types.clone());
        let (first_key, last_key) = self.keys.unzip();
        let stats = Stats {
            partition_sizes: self.partition_sizes,
            cells_per_partition: self.cells_per_partition,
            commit_log_intervals: provenance.commit_log_intervals,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio: provenance.compression_ratio.unwrap_or(NO_COMPRESSION_RATIO),
            tombstone_drop_times: self.tombstones.build(),
            level: provenance.level,
            repaired_at: provenance.repaired_at,
            covered: CoveredClustering {
                start: self.covered_from.unwrap_or(nothing.start),
                end: self.covered_to.unwrap_or(nothing.end),
                types: nothing.types,
            },
            has_legacy_counter_shards: self.has_legacy_counter_shards,
            total_columns_set: self.total_columns_set,
            total_rows: self.total_rows,
            pending_repair: provenance.pending_repair,
            is_transient: provenance.is_transient,
            originating_host_id: provenance.originating_host_id,
            has_partition_level_deletions: self.has_partition_level_deletions,
            first_key,
            last_key,
            token_space_coverage: f64::NAN,
        };
        Statistics {
            validation: Some(Validation {
                partitioner: provenance.partitioner,
                bloom_filter_fp_chance: provenance.bloom_filter_fp_chance,
            }),
            compaction: Some(Compaction::new(&self.cardinality)),
            stats,
            header,
        }
    }
}
