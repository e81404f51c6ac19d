//! Cassandra's metrics under the names of the endpoint that k8ssandra's management API has (`CassandraMetricNameParser`, and the
//! relabelling of its default-metric-settings.yaml): `org_apache_cassandra_metrics_<type>_<name>` in snake case.
//!
//! | kind | series |
//! |---|---|
//! | gauge, counter | the name |
//! | meter | `…_total` |
//! | histogram | `…{quantile}`, `…_count` |
//! | timer | `…_bucket{le}`, `…_count`, `…_sum`, all in microseconds and since the start |
//!
//! 1. Each series has the node's place in labels: `host`, `instance`, `cluster`, `datacenter`, `rack`.
//! 2. Requests of one consistency have it in their name (`…_client_request_latency_read_local_quorum`), not in a label.
//! 3. A pool is named whole: the exporter cuts `Native-Transport-Requests` to `Native`, and shows two pools as one.

use halcyon_metrics::{Distribution, Kind, Metric, Origin, Sample, Unit, Value};

use super::families::{Families, Pairs, Part, QUANTILES, Type};
use super::names::NodeIdentity;
use super::quantiles::quantiles;
use super::snake::split;

/// Microseconds.
const BOUNDS: [u64; 25] = [
    35, 60, 103, 179, 310, 535, 924, 1597, 2759, 4768, 8239, 14237, 24601, 42510, 73457, 126_934,
    219_342, 379_022, 654_949, 1_131_752, 1_955_666, 3_379_391, 5_839_588, 10_090_808, 17_436_917,
];

/// The labels of the parts of an identity, by its type: keyspace, scope, path.
fn label_names(group: &str) -> [&'static str; 3] {
    match group {
        "Table" => ["keyspace", "table", "path"],
        "ThreadPools" => ["keyspace", "pool_name", "pool_type"],
        "ClientRequest" => ["keyspace", "request_type", "path"],
        "Cache" => ["keyspace", "cache", "path"],
        "DroppedMessage" => ["keyspace", "message_type", "path"],
        _ => ["keyspace", "scope", "path"],
    }
}

pub(super) fn add(families: &mut Families, place: &NodeIdentity, sample: &Sample<'_>) {
    let metric = sample.metric;
    let [keyspace, scope, path] = label_names(metric.group);
    // Such a scope is a part of the name.
    let level =
        sample.labels.scope.filter(|scope| metric.group == "ClientRequest" && scope.contains('-'));
    let labels = [
        ("host", Some(place.host_id.as_str())),
        ("instance", Some(place.address.as_str())),
        ("cluster", Some(place.cluster.as_str())),
        ("datacenter", Some(place.datacenter.as_str())),
        ("rack", Some(place.rack.as_str())),
        (keyspace, sample.labels.keyspace),
        (scope, sample.labels.scope.filter(|_| level.is_none())),
        (path, sample.labels.path),
    ];
    if metric.origin == Origin::Java {
        return of_java(families, place, sample);
    }
    let mut lines = match level {
        Some(level) => families.named(metric, kind(metric), name(metric, Some(level))),
        None => families.lines((metric, Part::Value), kind(metric), || name(metric, None)),
    };
    match sample.value {
        Value::Number(number) => {
            let suffix = if metric.kind == Kind::Meter { "_total" } else { "" };
            lines.add(suffix, &labels, None, number);
        }
        Value::Fraction(fraction) => lines.add("", &labels, None, fraction),
        Value::Distribution(values) if metric.kind == Kind::Timer => {
            buckets(values, |suffix, le, count| match le {
                Some(le) => lines.add(suffix, &labels, Some(("le", le)), count),
                None => lines.add(suffix, &labels, None, count),
            });
        }
        Value::Distribution(values) => {
            let found = quantiles(values, QUANTILES.map(|(quantile, _)| quantile));
            for ((_, label), value) in QUANTILES.iter().zip(found) {
                lines.add("", &labels, Some(("quantile", label.trim_end_matches('0'))), value);
            }
            lines.add("_count", &labels, None, values.count());
        }
    }
}

fn kind(metric: &Metric) -> Type {
    match metric.kind {
        Kind::Counter | Kind::Gauge => Type::Gauge,
        Kind::Meter => Type::Counter,
        Kind::Histogram => Type::Summary,
        Kind::Timer => Type::Histogram,
    }
}

fn name(metric: &Metric, level: Option<&str>) -> String {
    let mut name = "org_apache_cassandra_metrics_".to_owned();
    for part in [Some(metric.group), Some(metric.name), level].into_iter().flatten() {
        if !name.ends_with('_') {
            name.push('_');
        }
        split(part, &mut name);
    }
    name
}

/// How many values are at most each bound, by buckets whose values are taken to be spread evenly; then their count and sum.
fn buckets(values: &dyn Distribution, mut show: impl FnMut(&str, Option<&'static str>, u64)) {
    let mut below = [0.0_f64; BOUNDS.len()];
    values.since_start(&mut |bucket, count| {
        if count == 0 {
            return;
        }
        for (sum, bound) in below.iter_mut().zip(BOUNDS) {
            let bound = bound.saturating_mul(1000).saturating_add(1) as f64;
            let (from, to) = (bucket.from as f64, bucket.below as f64);
            *sum += count as f64 * ((bound - from) / (to - from)).clamp(0.0, 1.0);
        }
    });
    for (count, le) in below.into_iter().zip(BOUND_LABELS) {
        show("_bucket", Some(le), count as u64);
    }
    show("_bucket", Some("+Inf"), values.count());
    show("_count", None, values.count());
    show("_sum", None, values.sum().unwrap_or(0) / 1000);
}

/// [`BOUNDS`] as text.
const BOUND_LABELS: [&str; BOUNDS.len()] = [
    "35", "60", "103", "179", "310", "535", "924", "1597", "2759", "4768", "8239", "14237",
    "24601", "42510", "73457", "126934", "219342", "379022", "654949", "1131752", "1955666",
    "3379391", "5839588", "10090808", "17436917",
];

/// `jvm_memory_used{memory_type="heap"}`, `jvm_gc_g1_young_generation_count`.
fn of_java(families: &mut Families, place: &NodeIdentity, sample: &Sample<'_>) {
    let metric = sample.metric;
    let attribute = sample.labels.path.unwrap_or_default();
    let mut collector = String::new();
    split(sample.labels.scope.unwrap_or_default(), &mut collector);
    let (name, kind) = match metric.name {
        "HeapMemoryUsage" => (format!("jvm_memory_{attribute}"), Some("heap")),
        "NonHeapMemoryUsage" => (format!("jvm_memory_{attribute}"), Some("non_heap")),
        "CollectionCount" => (format!("jvm_gc_{collector}_count"), None),
        "CollectionTime" => (format!("jvm_gc_{collector}_time"), None),
        _ => return,
    };
    let labels: &Pairs<'_> = &[
        ("host", Some(&place.host_id)),
        ("instance", Some(&place.address)),
        ("cluster", Some(&place.cluster)),
        ("datacenter", Some(&place.datacenter)),
        ("rack", Some(&place.rack)),
        ("memory_type", kind),
    ];
    if let (Value::Number(number), Unit::Bytes | Unit::Count | Unit::Milliseconds) =
        (sample.value, metric.unit)
    {
        families.named(metric, Type::Gauge, name).add("", labels, None, number);
    }
}
