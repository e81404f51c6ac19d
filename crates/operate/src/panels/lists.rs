//! Lists: rows of virtual tables as they are.

use super::panel::{Kind, LOOK, Panel, Unit};

const fn list(
    (name, section): (&'static str, &'static str),
    question: &'static str,
    query: &'static str,
    every: u64,
) -> Panel {
    Panel {
        name,
        section,
        title: section,
        question,
        unit: Unit::Mixed,
        kind: Kind::Rows,
        query,
        expressions: &[],
        every,
    }
}

pub(super) const ALL: [Panel; 7] = [
    list(
        ("tables", "Tables"),
        "Which tables are large, read or written most?",
        "SELECT JSON keyspace_name, table_name, read_count, read_mean_ns, write_count, write_mean_ns, sstables, disk_space AS disk_bytes, partitions, memtable_bytes, droppable_tombstone_ratio FROM halcyon_views.table_statistics",
        5 * LOOK,
    ),
    list(
        ("compactions", "Running compactions"),
        "What is being merged, and how far is it?",
        "SELECT JSON keyspace_name, table_name, kind, completion_ratio AS progress_ratio, progress AS read_bytes, total AS total_bytes, sstables, task_id FROM system_views.sstable_tasks",
        LOOK,
    ),
    list(
        ("slow_requests", "Slow requests"),
        "Which statements took longer than slow_query_log_timeout, and where did their time go?",
        "SELECT JSON ended, keyspace_name, table_name, waited_us, executed_us, log_us, sstables, device_reads, device_us, shard, client, query FROM halcyon_views.slow_requests WHERE number < 100 ALLOW FILTERING",
        3 * LOOK,
    ),
    list(
        ("clients", "Clients"),
        "Who is connected?",
        "SELECT JSON address, port, username, driver_name, driver_version, protocol_version, ssl_enabled, request_count, connection_stage FROM system_views.clients",
        5 * LOOK,
    ),
    list(
        ("settings", "Settings"),
        "Which values are in force?",
        "SELECT JSON name, value FROM system_views.settings",
        30 * LOOK,
    ),
    list(
        ("findings", "Findings of the doctor"),
        "What makes the node read more than its queries need, how is that known, and what cures it?",
        "SELECT JSON position, severity, kind, subject, finding, evidence, cost, cure FROM halcyon_views.findings",
        30 * LOOK,
    ),
    list(
        ("log", "Log"),
        "What has the node said last?",
        "SELECT JSON timestamp, order_in_millisecond, level, logger, message FROM system_views.system_logs",
        2 * LOOK,
    ),
];
