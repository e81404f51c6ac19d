//! Charts, from symptom to cause.

use super::panel::{Kind, LOOK, Panel, Unit};

const LATENCY: &str = "Latency";
const READS: &str = "What a read meets";
const COMPACTION: &str = "Compaction";
const DEVICE: &str = "Device";
const MEMORY: &str = "Caches and memory";

/// Three quantiles of the requests of a scope.
macro_rules! quantiles {
    ($scope:literal) => {
        &[
            ("p50", quantiles!("0.5", $scope)),
            ("p99", quantiles!("0.99", $scope)),
            ("p99.9", quantiles!("0.999", $scope)),
        ]
    };
    ($at:literal, $scope:literal) => {
        concat!(
            "histogram_quantile(",
            $at,
            ", sum by (le) (rate(halcyon_client_request_latency_seconds_bucket{instance=~\"$instance\", scope=\"",
            $scope,
            "\"}[$__rate_interval])))",
        )
    };
}

pub(super) const ALL: [Panel; 14] = [
    Panel {
        name: "read_latency",
        section: LATENCY,
        title: "Latency of reads",
        question: "How long do statements that read one partition take, from their admission to their rows?",
        unit: Unit::Nanoseconds,
        kind: Kind::Quantiles,
        query: "SELECT JSON below_ns AS below, requests AS count FROM halcyon_views.request_latency WHERE operation = 'Read'",
        expressions: quantiles!("Read"),
        every: LOOK,
    },
    Panel {
        name: "write_latency",
        section: LATENCY,
        title: "Latency of writes",
        question: "How long do writes take until they are durable and visible?",
        unit: Unit::Nanoseconds,
        kind: Kind::Quantiles,
        query: "SELECT JSON below_ns AS below, requests AS count FROM halcyon_views.request_latency WHERE operation = 'Write'",
        expressions: quantiles!("Write"),
        every: LOOK,
    },
    Panel {
        name: "requests",
        section: LATENCY,
        title: "Requests per second",
        question: "How many statements of each kind end?",
        unit: Unit::Count,
        kind: Kind::Rates,
        query: "SELECT JSON operation, sum(requests) AS requests FROM halcyon_views.request_latency GROUP BY operation",
        expressions: &[(
            "{{scope}}",
            "sum by (scope) (rate(halcyon_client_request_latency_seconds_count{instance=~\"$instance\", scope=~\"Read|Write|RangeSlice|CASRead|CASWrite\"}[$__rate_interval]))",
        )],
        every: LOOK,
    },
    Panel {
        name: "background",
        section: LATENCY,
        title: "Compactions, flushes and log groups",
        question: "What does the node write beside the requests?",
        unit: Unit::Count,
        kind: Kind::Backdrop,
        query: "SELECT JSON purpose, operations FROM halcyon_views.io_operations",
        expressions: &[(
            "{{scope}}",
            "sum by (scope) (rate(halcyon_io_operations_total{instance=~\"$instance\", scope=~\"compaction_write|flush|commitlog\"}[$__rate_interval]))",
        )],
        every: LOOK,
    },
    Panel {
        name: "sstables_per_read",
        section: READS,
        title: "SSTables per read (p99)",
        question: "How many SSTables have the partition of a read? More than a few mean that compaction is behind, or that the strategy does not fit the table.",
        unit: Unit::Count,
        kind: Kind::Lines,
        query: "SELECT JSON keyspace_name, table_name, p99th FROM halcyon_views.sstables_per_read",
        expressions: &[(
            "{{keyspace}}.{{table}}",
            "topk(8, cassandra_table_sstablesperreadhistogram{instance=~\"$instance\", quantile=\"0.99\"})",
        )],
        every: LOOK,
    },
    Panel {
        name: "tombstones_per_read",
        section: READS,
        title: "Tombstones per read (p99)",
        question: "How many deleted cells, rows and markers does a read skip? Thousands are a fault of the data model.",
        unit: Unit::Count,
        kind: Kind::Lines,
        query: "SELECT JSON keyspace_name, table_name, p99th FROM system_views.tombstones_per_read",
        expressions: &[(
            "{{keyspace}}.{{table}}",
            "topk(8, cassandra_table_tombstonescannedhistogram{instance=~\"$instance\", quantile=\"0.99\"})",
        )],
        every: LOOK,
    },
    Panel {
        name: "compaction_backlog",
        section: COMPACTION,
        title: "Compactions that are due",
        question: "Does compaction keep up with the writes? A backlog that grows for hours does not go away by itself.",
        unit: Unit::Count,
        kind: Kind::Lines,
        query: "SELECT JSON keyspace_name, table_name, pending_tasks FROM halcyon_views.compaction_backlog",
        expressions: &[(
            "{{keyspace}}.{{table}}",
            "topk(8, cassandra_table_pendingcompactions{instance=~\"$instance\"})",
        )],
        every: LOOK,
    },
    Panel {
        name: "compaction_pace",
        section: COMPACTION,
        title: "What the latency target leaves to compaction",
        question: "How many bytes per second may all compactions read? Without a line, as many as the device gives.",
        unit: Unit::BytesPerSecond,
        kind: Kind::Lines,
        query: "SELECT JSON name, value FROM halcyon_views.compaction_pace WHERE name = 'bytes_per_second'",
        expressions: &[(
            "bytes_per_second",
            "halcyon_compaction_bytes_per_second{instance=~\"$instance\"}",
        )],
        every: LOOK,
    },
    Panel {
        name: "compaction_target",
        section: COMPACTION,
        title: "Why: the p99 of reads and its target",
        question: "Is the p99 of reads above the target? Then compaction slows down; below it, compaction speeds up.",
        unit: Unit::Microseconds,
        kind: Kind::Lines,
        query: "SELECT JSON name, value FROM halcyon_views.compaction_pace WHERE name IN ('read_p99_us', 'read_p99_at_rest_us', 'compaction_latency_target_us')",
        expressions: &[
            (
                "read_p99_us",
                "1e6 * halcyon_compaction_read_latency_seconds{instance=~\"$instance\"}",
            ),
            (
                "read_p99_at_rest_us",
                "1e6 * halcyon_compaction_read_latency_at_rest_seconds{instance=~\"$instance\"}",
            ),
            (
                "compaction_latency_target_us",
                "1e6 * halcyon_compaction_latency_target_seconds{instance=~\"$instance\"}",
            ),
        ],
        every: LOOK,
    },
    Panel {
        name: "io_latency",
        section: DEVICE,
        title: "Latency of I/O",
        question: "Is the device slow, and for which purpose? Each column is a moment, each row a latency; the darker, the more operations.",
        unit: Unit::Nanoseconds,
        kind: Kind::Heat,
        query: "SELECT JSON purpose, below_ns AS below, operations AS count FROM halcyon_views.io_latency",
        expressions: &[(
            "{{le}}",
            "sum by (le) (increase(halcyon_io_latency_seconds_bucket{instance=~\"$instance\", scope=~\"$purpose\"}[$__rate_interval]))",
        )],
        every: LOOK,
    },
    Panel {
        name: "io_bytes",
        section: DEVICE,
        title: "Bytes of I/O per second",
        question: "What is the device busy with?",
        unit: Unit::BytesPerSecond,
        kind: Kind::Rates,
        query: "SELECT JSON purpose, bytes FROM halcyon_views.io_operations",
        expressions: &[(
            "{{scope}}",
            "sum by (scope) (rate(halcyon_io_bytes_total{instance=~\"$instance\"}[$__rate_interval]))",
        )],
        every: LOOK,
    },
    Panel {
        name: "cache_hits",
        section: MEMORY,
        title: "Hit ratio of caches since the start",
        question: "Which share of lookups finds what it looks for?",
        unit: Unit::Ratio,
        kind: Kind::Lines,
        query: "SELECT JSON name, hit_ratio FROM system_views.caches",
        expressions: &[("{{cache}}", "cassandra_cache_hitrate{instance=~\"$instance\"}")],
        every: LOOK,
    },
    Panel {
        name: "cache_size",
        section: MEMORY,
        title: "Memory of caches",
        question: "Are the caches full?",
        unit: Unit::Bytes,
        kind: Kind::Lines,
        query: "SELECT JSON name, size_bytes FROM system_views.caches",
        expressions: &[("{{cache}}", "cassandra_cache_size{instance=~\"$instance\"}")],
        every: LOOK,
    },
    Panel {
        name: "memory",
        section: MEMORY,
        title: "Memory of the process",
        question: "Does the process come near what the machine or its control group has?",
        unit: Unit::Bytes,
        kind: Kind::Lines,
        query: "SELECT JSON memory, memory_max FROM halcyon_views.node",
        expressions: &[
            ("memory", "sum(jvm_memory_usage_used_bytes{instance=~\"$instance\"})"),
            ("memory_max", "jvm_physical_memory_size{instance=~\"$instance\"}"),
        ],
        every: LOOK,
    },
];
