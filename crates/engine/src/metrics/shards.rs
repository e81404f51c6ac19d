//! What each shard counts besides its tables.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use halcyon_commitlog::{GroupGap, LogMetrics};
use halcyon_io::clock::Instant;
use halcyon_model::request::BatchKind;
use halcyon_pacing::{LatencyCounts, LatencyHistogram};

use super::table::{BatchMetrics, Distribution, Summary};

/// The metrics of one shard. Only that shard writes them, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct OfShard {
    /// How long clients waited for reads of single partitions.
    pub(crate) reads: LatencyHistogram,
    pub(crate) batches: BatchMetrics,
    /// How long writes waited because memtables were full, in nanoseconds.
    pub(crate) memtable_waits: Distribution,
    /// Of the shard's log, once it is open; under `batch`.
    pub(crate) group_gap: OnceLock<GroupGap>,
    /// Of the shard's log, once it is open.
    pub(crate) log: OnceLock<Arc<LogMetrics>>,
}

/// The metrics of all shards, by their index.
pub struct ShardMetrics(Box<[OfShard]>);

impl ShardMetrics {
    pub(crate) fn new(shards: usize) -> ShardMetrics {
        ShardMetrics((0..shards).map(|_| OfShard::default()).collect())
    }

    pub(crate) fn of(&self, shard: usize) -> Option<&OfShard> {
        self.0.get(shard)
    }

    /// How long clients waited for reads of single partitions, on all shards.
    pub(crate) fn read_latency(&self) -> LatencyCounts {
        let mut all = LatencyCounts::default();
        self.0.iter().for_each(|shard| all.add(&shard.reads.counts()));
        all
    }

    /// How far apart a shard's log starts its groups, because the device does not keep up; zero: one after the other.
    pub fn group_gap(&self, shard: usize) -> Duration {
        let gap = self.of(shard).and_then(|shard| shard.group_gap.get());
        gap.map_or(Duration::ZERO, GroupGap::get)
    }

    /// How long writes waited because memtables were full, over all shards.
    pub(crate) fn memtable_waits(&self, now: Instant) -> Summary {
        let mut summary = Summary::nothing();
        self.0.iter().for_each(|shard| summary.add(&shard.memtable_waits, now));
        summary
    }

    /// Those of the open logs.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &LogMetrics> {
        self.0.iter().filter_map(|shard| shard.log.get().map(Arc::as_ref))
    }

    /// Partitions in a batch, over all shards.
    pub fn batch_sizes(&self, kind: BatchKind, now: Instant) -> Summary {
        let mut summary = Summary::nothing();
        self.0.iter().for_each(|shard| summary.add(shard.batches.of(kind), now));
        summary
    }
}
