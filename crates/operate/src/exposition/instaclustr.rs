//! Cassandra's metrics under the names of cassandra-exporter (zegelin, Instaclustr), which chooses each by hand: a table of them.
//!
//! 1. Requests are shown by consistency; the sums of all consistencies are left out, as the exporter does.
//! 2. Latencies are summaries in seconds. What the exporter calls a counter has `_total` where its name has it.
//! 3. Each series has the node's place in labels: `cassandra_cluster`, `cassandra_node`, `cassandra_datacenter`, `cassandra_rack`.

use halcyon_metrics::{Metric, Origin, Sample, Unit, Value};

use super::families::{Families, Part, Type};
use super::names::NodeIdentity;
use super::recall::Recall;

/// A label that the name of a metric stands for, and its value.
type Fixed = Option<(&'static str, &'static str)>;

/// Type and name in Cassandra, the name here without its prefix, and a label.
pub(super) type Known = (&'static str, &'static str, &'static str, Fixed);

const fn plain(group: &'static str, name: &'static str, here: &'static str) -> Known {
    (group, name, here, None)
}

const fn operation(name: &'static str, here: &'static str, operation: &'static str) -> Known {
    ("Table", name, here, Some(("operation", operation)))
}

const KNOWN: [Known; 66] = [
    plain("CQL", "PreparedStatementsCount", "cql_prepared_statements"),
    plain("CQL", "PreparedStatementsEvicted", "cql_prepared_statements_evicted_total"),
    (
        "CQL",
        "PreparedStatementsExecuted",
        "cql_statements_executed_total",
        Some(("statement_type", "prepared")),
    ),
    (
        "CQL",
        "RegularStatementsExecuted",
        "cql_statements_executed_total",
        Some(("statement_type", "regular")),
    ),
    plain("Cache", "Capacity", "cache_capacity_bytes"),
    plain("Cache", "Requests", "cache_requests_total"),
    plain("Cache", "Size", "cache_estimated_size_bytes"),
    plain("Cache", "Entries", "cache_entries"),
    plain("Cache", "Hits", "cache_hits_total"),
    plain("Client", "AuthFailure", "client_authentication_failures_total"),
    plain("Client", "AuthSuccess", "client_authentication_successes_total"),
    plain("Client", "ConnectedNativeClients", "client_native_connections"),
    plain("ClientRequest", "Timeouts", "client_request_timeouts_total"),
    plain("ClientRequest", "Unavailables", "client_request_unavailable_exceptions_total"),
    plain("ClientRequest", "Failures", "client_request_failures_total"),
    plain("ClientRequest", "Latency", "client_request_latency_seconds"),
    plain(
        "ClientRequest",
        "ConditionNotMet",
        "client_request_cas_write_precondition_not_met_total",
    ),
    plain("ClientRequest", "ContentionHistogram", "client_request_cas_contentions"),
    plain("ClientRequest", "UnfinishedCommit", "client_request_cas_unfinished_commits_total"),
    plain("CommitLog", "CompletedTasks", "commit_log_completed_tasks_total"),
    plain("CommitLog", "PendingTasks", "commit_log_pending_tasks"),
    plain("CommitLog", "TotalCommitLogSize", "commit_log_size_bytes"),
    plain(
        "CommitLog",
        "WaitingOnSegmentAllocation",
        "commit_log_segment_allocation_latency_seconds",
    ),
    plain("CommitLog", "WaitingOnCommit", "commit_log_commit_latency_seconds"),
    plain("Compaction", "BytesCompacted", "compaction_bytes_compacted_total"),
    plain("Compaction", "CompletedTasks", "compaction_completed_tasks_total"),
    plain("Compaction", "TotalCompactionsCompleted", "compaction_completed_total"),
    plain("DroppedMessage", "Dropped", "dropped_messages_total"),
    plain("FailureDetector", "UpEndpointCount", "endpoint_active"),
    plain("MemtablePool", "BlockedOnAllocation", "memtable_pool_allocation_latency_seconds"),
    plain("Storage", "Exceptions", "storage_exceptions_total"),
    plain("Storage", "Load", "storage_load_bytes"),
    plain("Storage", "TotalHints", "storage_hints_total"),
    plain("Storage", "TotalHintsInProgress", "storage_hints_in_progress"),
    plain("ThreadPools", "ActiveTasks", "thread_pool_active_tasks"),
    plain("ThreadPools", "PendingTasks", "thread_pool_pending_tasks"),
    plain("ThreadPools", "CompletedTasks", "thread_pool_completed_tasks_total"),
    plain("ThreadPools", "TotalBlockedTasks", "thread_pool_blocked_tasks_total"),
    plain("ThreadPools", "CurrentlyBlockedTasks", "thread_pool_blocked_tasks"),
    plain("ThreadPools", "MaxPoolSize", "thread_pool_maximum_tasks"),
    plain("Table", "MemtableLiveDataSize", "table_memtable_live_bytes"),
    plain("Table", "MemtableSwitchCount", "table_memtable_switches"),
    plain("Table", "CompressionRatio", "table_compression_ratio"),
    plain("Table", "EstimatedPartitionCount", "table_estimated_partitions"),
    plain("Table", "SSTablesPerReadHistogram", "table_sstables_per_read"),
    plain("Table", "TombstoneScannedHistogram", "table_tombstones_scanned"),
    plain("Table", "LiveScannedHistogram", "table_live_rows_scanned"),
    plain("Table", "PendingFlushes", "table_pending_flushes"),
    plain("Table", "BytesFlushed", "table_flushed_bytes_total"),
    plain("Table", "CompactionBytesWritten", "table_compaction_bytes_written_total"),
    plain("Table", "PendingCompactions", "table_estimated_pending_compactions"),
    plain("Table", "LiveSSTableCount", "table_live_sstables"),
    plain("Table", "LiveDiskSpaceUsed", "table_live_disk_space_bytes"),
    plain("Table", "TotalDiskSpaceUsed", "table_disk_space_bytes"),
    plain("Table", "MaxPartitionSize", "table_partition_size_maximum_bytes"),
    plain("Table", "MeanPartitionSize", "table_partition_size_mean_bytes"),
    plain("Table", "MinPartitionSize", "table_partition_size_minimum_bytes"),
    plain("Table", "BloomFilterFalsePositives", "table_bloom_filter_false_positives_total"),
    plain("Table", "BloomFilterFalseRatio", "table_bloom_filter_false_ratio"),
    plain("Table", "PercentRepaired", "table_repaired_ratio"),
    plain("Table", "SpeculativeRetries", "table_speculative_retries_total"),
    operation("ReadLatency", "table_operation_latency_seconds", "read"),
    operation("RangeLatency", "table_operation_latency_seconds", "range_read"),
    operation("WriteLatency", "table_operation_latency_seconds", "write"),
    operation("CoordinatorReadLatency", "table_coordinator_latency_seconds", "read"),
    operation("CoordinatorScanLatency", "table_coordinator_latency_seconds", "scan"),
];

fn known(metric: &Metric) -> Option<&'static Known> {
    KNOWN.iter().find(|(group, name, ..)| (*group, *name) == (metric.group, metric.name))
}

pub(super) type Recalled = Recall<(), Option<&'static Known>>;

pub(super) fn add(
    families: &mut Families,
    recall: &mut Recalled,
    place: &NodeIdentity,
    sample: &Sample<'_>,
) {
    let (metric, labels) = (sample.metric, sample.labels);
    let Some((_, _, here, fixed)) =
        recall.of(metric, (), || known(metric)).filter(|_| metric.origin == Origin::Cassandra)
    else {
        return;
    };
    let (operation, level) = match labels.scope.unwrap_or_default().split_once('-') {
        Some((operation, level)) if metric.group == "ClientRequest" => (operation, Some(level)),
        _ => (labels.scope.unwrap_or_default(), None),
    };
    // The sum of all consistencies.
    if metric.group == "ClientRequest" && level.is_none() && matches!(operation, "Read" | "Write") {
        return;
    }
    let of = |group: &str| (metric.group == group).then_some(());
    let scoped = |group: &str| of(group).and(labels.scope);
    let lower = |group: &str| scoped(group).map(str::to_ascii_lowercase);
    let cache = lower("Cache");
    let operation = of("ClientRequest").map(|()| operation.to_ascii_lowercase());
    let shown = [
        ("cassandra_cluster", Some(place.cluster.as_str())),
        ("cassandra_node", Some(place.address.as_str())),
        ("cassandra_datacenter", Some(place.datacenter.as_str())),
        ("cassandra_rack", Some(place.rack.as_str())),
        ("keyspace", labels.keyspace),
        ("table", scoped("Table")),
        ("pool", scoped("ThreadPools")),
        ("group", labels.path),
        ("message_type", scoped("DroppedMessage")),
        ("cache", cache.as_deref().map(|scope| scope.strip_suffix("cache").unwrap_or(scope))),
        ("operation", operation.as_deref()),
        ("consistency", level),
        ("endpoint", of("FailureDetector").map(|()| place.address.as_str())),
        fixed.map_or(("operation", None), |(label, value)| (label, Some(value))),
    ];
    let family = |type_of: Type| {
        // The suffix of a counter is added to its family.
        let name = if type_of == Type::Counter { here.strip_suffix("_total") } else { None };
        move || format!("cassandra_{}", name.unwrap_or(here))
    };
    let type_of = match sample.value {
        Value::Distribution(_) => Type::Summary,
        _ if here.ends_with("_total") => Type::Counter,
        _ => Type::Gauge,
    };
    let mut lines = families.lines((metric, Part::Value), type_of, family(type_of));
    let suffix = if type_of == Type::Counter { "_total" } else { "" };
    match sample.value {
        Value::Number(number) => lines.add(suffix, &shown, None, number),
        Value::Fraction(fraction) => lines.add("", &shown, None, of_unit(metric, fraction)),
        Value::Distribution(values) => lines.summary(&shown, values, |value| match metric.unit {
            Unit::Nanoseconds => value as f64 / 1e9,
            _ => value as f64,
        }),
    }
}

/// Percents are ratios here, and a ratio that is unknown is not a number.
fn of_unit(metric: &Metric, fraction: f64) -> f64 {
    match metric.name {
        "PercentRepaired" => fraction / 100.0,
        "CompressionRatio" if fraction < 0.0 => f64::NAN,
        _ => fraction,
    }
}
