//! Cassandra's metrics under the names of OpenTelemetry's rules for JMX, as Prometheus gets them from a collector: dots become
//! underscores, a unit becomes a suffix, a counter ends with `_total`.
//!
//! 1. The agent's own rules cover requests, compactions and storage; those that its users add cover tables, pools, caches and the commit
//!    log (easy-db-lab's). The latter have latencies in microseconds, as `nodetool` prints them.
//! 2. A percentile is a gauge of its own: `cassandra_client_request_latency_p99_microseconds{cassandra_operation="read"}`.

use halcyon_metrics::{Distribution, Labels, Metric, Origin, Sample, Unit, Value};

use super::families::{Families, Pairs, Part, Type};
use super::quantiles::quantiles;
use super::recall::Recall;

/// Type and name in Cassandra, the name here with its unit, and whether it is a counter.
pub(super) type Known = (&'static str, &'static str, &'static str, Type);

const KNOWN: [Known; 35] = [
    ("Compaction", "CompletedTasks", "compaction_tasks_completed", Type::Counter),
    ("Compaction", "PendingTasks", "compaction_tasks_pending", Type::Gauge),
    ("Storage", "Load", "storage_load_bytes", Type::Gauge),
    ("Storage", "TotalHints", "storage_hints_count", Type::Counter),
    ("Storage", "TotalHintsInProgress", "storage_hints_in_progress", Type::Gauge),
    ("Table", "LiveDiskSpaceUsed", "table_disk_space_live_bytes", Type::Gauge),
    ("Table", "TotalDiskSpaceUsed", "table_disk_space_total_bytes", Type::Gauge),
    ("Table", "LiveSSTableCount", "table_sstable_count_live", Type::Gauge),
    ("Table", "PendingCompactions", "table_compaction_pending", Type::Gauge),
    ("Table", "ReadLatency", "table_read_latency", Type::Gauge),
    ("Table", "WriteLatency", "table_write_latency", Type::Gauge),
    ("Table", "SSTablesPerReadHistogram", "table_sstables_per_read", Type::Gauge),
    ("Table", "TombstoneScannedHistogram", "table_tombstones_scanned", Type::Gauge),
    ("Table", "BloomFilterFalseRatio", "table_bloom_filter_false_ratio", Type::Gauge),
    ("Table", "BloomFilterFalsePositives", "table_bloom_filter_false_positives", Type::Gauge),
    ("Table", "MemtableOnHeapSize", "table_memtable_heap_size_bytes", Type::Gauge),
    ("Table", "MemtableOffHeapSize", "table_memtable_offheap_size_bytes", Type::Gauge),
    ("Table", "MemtableLiveDataSize", "table_memtable_live_data_size_bytes", Type::Gauge),
    ("Table", "MemtableSwitchCount", "table_memtable_switches", Type::Counter),
    ("Table", "SpeculativeRetries", "table_speculative_retries", Type::Counter),
    ("ThreadPools", "ActiveTasks", "thread_pool_tasks_active", Type::Gauge),
    ("ThreadPools", "PendingTasks", "thread_pool_tasks_pending", Type::Gauge),
    ("ThreadPools", "TotalBlockedTasks", "thread_pool_tasks_blocked", Type::Counter),
    ("DroppedMessage", "Dropped", "messages_dropped", Type::Counter),
    ("Cache", "HitRate", "cache_hit_ratio", Type::Gauge),
    ("Cache", "Hits", "cache_hits", Type::Counter),
    ("Cache", "Requests", "cache_requests", Type::Counter),
    ("Cache", "Size", "cache_size_bytes", Type::Gauge),
    ("Cache", "Entries", "cache_entries", Type::Gauge),
    ("CommitLog", "PendingTasks", "commitlog_tasks_pending", Type::Gauge),
    ("CommitLog", "TotalCommitLogSize", "commitlog_size_bytes", Type::Gauge),
    ("CommitLog", "WaitingOnCommit", "commitlog_waiting_on_commit", Type::Gauge),
    (
        "CommitLog",
        "WaitingOnSegmentAllocation",
        "commitlog_waiting_on_segment_allocation",
        Type::Gauge,
    ),
    ("Streaming", "TotalIncomingBytes", "streaming_incoming_bytes", Type::Counter),
    ("Streaming", "TotalOutgoingBytes", "streaming_outgoing_bytes", Type::Counter),
];

const PERCENTILES: [(f64, &str, Part); 4] = [
    (0.5, "p50", Part::Median),
    (0.99, "p99", Part::Percentile99),
    (0.999, "p999", Part::Percentile999),
    (1.0, "max", Part::Max),
];

pub(super) type Recalled = Recall<(), Option<&'static Known>>;

pub(super) fn add(families: &mut Families, recall: &mut Recalled, sample: &Sample<'_>) {
    let metric = sample.metric;
    if metric.origin != Origin::Cassandra {
        return;
    }
    if metric.group == "ClientRequest" {
        return of_requests(families, sample);
    }
    let is_it = |known: &&Known| (known.0, known.1) == (metric.group, metric.name);
    let known = recall.of(metric, (), || KNOWN.iter().find(is_it));
    let Some((_, _, here, kind)) = known else { return };
    let Labels { keyspace, scope, path } = sample.labels;
    let scoped = |group: &str| scope.filter(|_| metric.group == group);
    let labels = [
        ("keyspace", keyspace),
        ("table", scoped("Table")),
        ("pool", scoped("ThreadPools")),
        ("pool_path", path),
        ("message_type", scoped("DroppedMessage")),
        ("cache", scoped("Cache")),
    ];
    let name = || format!("cassandra_{here}");
    let suffix = if *kind == Type::Counter { "_total" } else { "" };
    match sample.value {
        Value::Number(number) => {
            families.lines((metric, Part::Value), *kind, name).add(suffix, &labels, None, number);
        }
        Value::Fraction(fraction) => {
            families.lines((metric, Part::Value), *kind, name).add("", &labels, None, fraction);
        }
        Value::Distribution(values) => percentiles(families, metric, here, &labels, values),
    }
}

fn percentiles(
    families: &mut Families,
    metric: &Metric,
    here: &str,
    labels: &Pairs<'_>,
    values: &dyn Distribution,
) {
    let is_time = metric.unit == Unit::Nanoseconds;
    let unit = if is_time { "_microseconds" } else { "" };
    let found = quantiles(values, PERCENTILES.map(|(quantile, ..)| quantile));
    for ((_, label, part), value) in PERCENTILES.iter().zip(found) {
        let name = || format!("cassandra_{here}_{label}{unit}");
        let value = value as f64 / if is_time { 1e3 } else { 1.0 };
        families.lines((metric, *part), Type::Gauge, name).add("", labels, None, value);
    }
}

/// Only the sums of all consistencies, of three operations.
fn of_requests(families: &mut Families, sample: &Sample<'_>) {
    let metric = sample.metric;
    let operation = match sample.labels.scope {
        Some("Read") => "read",
        Some("Write") => "write",
        Some("RangeSlice") => "rangeslice",
        _ => return,
    };
    let operation = ("cassandra_operation", Some(operation));
    match (metric.name, sample.value) {
        ("Latency", Value::Distribution(values)) => {
            percentiles(families, metric, "client_request_latency", &[operation], values);
            let name = || "cassandra_client_request_count".to_owned();
            let mut lines = families.lines((metric, Part::Count), Type::Counter, name);
            lines.add("_total", &[operation], None, values.count());
        }
        ("Unavailables" | "Timeouts" | "Failures", Value::Number(number)) => {
            let status = match metric.name {
                "Unavailables" => "unavailable",
                "Timeouts" => "timeout",
                _ => "failure",
            };
            let name = || "cassandra_client_request_error".to_owned();
            let mut lines = families.lines((metric, Part::Count), Type::Counter, name);
            lines.add("_total", &[operation, ("cassandra_status", Some(status))], None, number);
        }
        _ => {}
    }
}
