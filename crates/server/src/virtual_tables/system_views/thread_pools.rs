//! Cassandra's thread pools (`metrics/pools.rs`).

use crate::metrics::pools::pools;
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
    let int = |n: u64| i32::try_from(n).unwrap_or(i32::MAX);
    for pool in pools(&node.engine, &node.engine.tables().stats(), &node.facts.metrics) {
        rows.push([
            pool.name.into(),
            int(pool.active).into(),
            int(pool.limit as u64).into(),
            0u64.into(),
            0u64.into(),
            pool.completed.into(),
            int(pool.pending).into(),
        ]);
    }
}
