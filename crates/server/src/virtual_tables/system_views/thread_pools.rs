//! Cassandra's thread pools. A shard does the work of most of them; a pool without a counterpart here is idle.

use halcyon_engine::Measure;

use crate::virtual_tables::rows::Rows;
use crate::virtual_tables::table::{Node, VirtualTable};

pub(in crate::virtual_tables) const TABLE: VirtualTable = VirtualTable::computed(CQL, fill);

const CQL: &str = "CREATE TABLE system_views.thread_pools (
    name text PRIMARY KEY,
    active_tasks int,
    active_tasks_limit int,
    blocked_tasks bigint,
    blocked_tasks_all_time bigint,
    completed_tasks bigint,
    pending_tasks int
) WITH ID = ae33fd8e-8d5a-3736-9c04-31c62e86f089;";

/// As 5.0.9 lists them.
const POOLS: [&str; 20] = [
    "CacheCleanupExecutor",
    "CompactionExecutor",
    "GossipStage",
    "HintsDispatcher",
    "MemtableFlushWriter",
    "MemtablePostFlush",
    "MemtableReclaimMemory",
    "MigrationStage",
    "MutationStage",
    "Native-Transport-Auth-Requests",
    "Native-Transport-Requests",
    "PendingRangeCalculator",
    "PerDiskMemtableFlushWriter_0",
    "ReadStage",
    "Sampler",
    "SecondaryIndexExecutor",
    "SecondaryIndexManagement",
    "StatusPropagationExecutor",
    "ValidationExecutor",
    "ViewBuildExecutor",
];

fn fill(node: &Node, rows: &mut Rows<'_>) {
    let mut rows = rows.with([
        "name",
        "active_tasks",
        "active_tasks_limit",
        "blocked_tasks",
        "blocked_tasks_all_time",
        "completed_tasks",
        "pending_tasks",
    ]);
    let count = |measure| -> u64 {
        node.engine.tables().summaries(measure).iter().map(|(_, _, summary)| summary.count).sum()
    };
    let stats = node.engine.tables().stats();
    let (requests, in_flight) =
        (node.sum(|shard| shard.requests.get()), node.sum(|shard| shard.in_flight.get()));
    let flushes = stats.iter().map(|table| table.flushes).sum();
    let flushing = stats.iter().map(|table| table.pending_flushes).sum();
    let reads = count(Measure::LocalRead) + count(Measure::LocalScan);
    let options = node.engine.options();
    let compacting = node.engine.compactor().tasks().len() as u64;
    let int = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    for name in POOLS {
        let (active, limit, completed, pending) = match name {
            "CompactionExecutor" => (compacting, options.concurrent_compactors, 0, 0),
            "MemtableFlushWriter" => {
                let active = u64::min(flushing, options.flush_writers as u64);
                (active, options.flush_writers, flushes, flushing - active)
            }
            "MutationStage" => (0, options.shards, count(Measure::LocalWrite), 0),
            "Native-Transport-Requests" => {
                (in_flight, usize::MAX, requests.saturating_sub(in_flight), 0)
            }
            "ReadStage" => (0, options.shards, reads, 0),
            _ => (0, 1, 0, 0),
        };
        rows.push([
            name.into(),
            int(active).into(),
            int(limit as u64).into(),
            0u64.into(),
            0u64.into(),
            completed.into(),
            int(pending).into(),
        ]);
    }
}
