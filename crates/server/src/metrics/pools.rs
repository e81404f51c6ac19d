//! Cassandra's thread pools. A shard does the work of most of them; a pool without a counterpart here is idle.

use halcyon_engine::{Engine, TableStats};

use super::ClientMetrics;

/// A pool, and what stands for it here.
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    /// What it belongs to in the identity of its metrics.
    pub(crate) path: &'static str,
    pub(crate) active: u64,
    pub(crate) limit: usize,
    pub(crate) completed: u64,
    pub(crate) pending: u64,
}

/// As 5.0.9 lists them.
const POOLS: [(&str, &str); 20] = [
    ("CacheCleanupExecutor", "internal"),
    ("CompactionExecutor", "internal"),
    ("GossipStage", "internal"),
    ("HintsDispatcher", "internal"),
    ("MemtableFlushWriter", "internal"),
    ("MemtablePostFlush", "internal"),
    ("MemtableReclaimMemory", "internal"),
    ("MigrationStage", "internal"),
    ("MutationStage", "request"),
    ("Native-Transport-Auth-Requests", "transport"),
    ("Native-Transport-Requests", "transport"),
    ("PendingRangeCalculator", "internal"),
    ("PerDiskMemtableFlushWriter_0", "internal"),
    ("ReadStage", "request"),
    ("Sampler", "internal"),
    ("SecondaryIndexExecutor", "internal"),
    ("SecondaryIndexManagement", "internal"),
    ("StatusPropagationExecutor", "internal"),
    ("ValidationExecutor", "internal"),
    ("ViewBuildExecutor", "internal"),
];

/// All pools as they are now. `clients`: of all shards.
pub(crate) fn pools(
    engine: &Engine,
    stats: &[TableStats],
    clients: &[ClientMetrics],
) -> impl Iterator<Item = Pool> {
    let sum = |of: fn(&ClientMetrics) -> u64| -> u64 { clients.iter().map(of).sum() };
    let (requests, in_flight) = (sum(|of| of.requests.get()), sum(|of| of.in_flight.get()));
    let of_tables = |of: fn(&TableStats) -> u64| -> u64 { stats.iter().map(of).sum() };
    let flushes = of_tables(|table| table.flushes);
    let flushing = of_tables(|table| table.pending_flushes);
    let reads = of_tables(|table| table.reads + table.scans);
    let writes = of_tables(|table| table.writes);
    let (compacted, _) = engine.compactor().ended();
    let options = engine.options();
    let (shards, writers) = (options.shards, options.flush_writers);
    let compactors = options.concurrent_compactors;
    let compacting = engine.compactor().tasks().len() as u64;
    POOLS.into_iter().map(move |(name, path)| {
        let (active, limit, completed, pending) = match name {
            "CompactionExecutor" => (compacting, compactors, compacted, 0),
            "MemtableFlushWriter" => {
                let active = u64::min(flushing, writers as u64);
                (active, writers, flushes, flushing - active)
            }
            "MutationStage" => (0, shards, writes, 0),
            "Native-Transport-Requests" => {
                (in_flight, usize::MAX, requests.saturating_sub(in_flight), 0)
            }
            "ReadStage" => (0, shards, reads, 0),
            _ => (0, 1, 0, 0),
        };
        Pool { name, path, active, limit, completed, pending }
    })
}
