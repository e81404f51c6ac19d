//! Cassandra's metrics under the names that Prometheus' jmx_exporter gives them with its own example for Cassandra
//! (`examples/cassandra.yml`, since 2017): `cassandra_<type>_<name>` in lower case, a label named like the type with the scope, and the
//! keyspace.
//!
//! | attribute of the MBean | series |
//! |---|---|
//! | `Value` | `cassandra_type_name` |
//! | `Count` | `…_count`; of a latency `…_seconds_count` |
//! | `50thPercentile` … `999thPercentile` | `cassandra_type_name{quantile="0.50"}` …; of a latency `…_seconds`, in seconds |
//! | the `Count` of a total latency | `…_seconds_sum` |
//!
//! Times that are not called a latency are in microseconds, as the MBeans have them. Grafana's own dashboards for Cassandra ask for two
//! names more: the mean of a latency (`…_seconds_average`), and how many nodes are up and down; and for the JVM in names of their own
//! (`jvm_memory_usage_used_bytes{area}`, `jvm_process_cpu_load`).

use halcyon_metrics::{Distribution, Kind, Metric, Origin, Sample, Unit, Value};

use super::families::{Families, Part, QUANTILES, Type};
use super::quantiles::quantiles;

pub(super) fn add(families: &mut Families, sample: &Sample<'_>) {
    let metric = sample.metric;
    if metric.origin == Origin::Java {
        return of_java(families, sample);
    }
    let group = metric.group.to_ascii_lowercase();
    let labels = [
        (group.as_str(), sample.labels.scope),
        ("keyspace", sample.labels.keyspace),
        ("path", sample.labels.path),
    ];
    match sample.value {
        Value::Number(number) => {
            let (part, of, suffix) = match metric.kind {
                Kind::Gauge => (Part::Value, Type::Gauge, ""),
                _ => (Part::Count, Type::Untyped, "_count"),
            };
            let name = || format!("{}{suffix}", name(metric));
            families.lines((metric, part), of, name).add("", &labels, None, number);
        }
        Value::Fraction(fraction) => {
            let mut lines = families.lines((metric, Part::Value), Type::Gauge, || name(metric));
            lines.add("", &labels, None, fraction);
        }
        Value::Distribution(values) => distribution(families, metric, &labels, values),
    }
}

/// As the rules beside Grafana's dashboards name them.
fn of_java(families: &mut Families, sample: &Sample<'_>) {
    let (metric, attribute) = (sample.metric, sample.labels.path.unwrap_or_default());
    let area = metric.name.strip_suffix("MemoryUsage");
    let name = match metric.name {
        "ProcessCpuLoad" => "jvm_process_cpu_load".to_owned(),
        "TotalPhysicalMemorySize" => "jvm_physical_memory_size".to_owned(),
        "CollectionCount" => "jvm_gc_collection_count".to_owned(),
        "CollectionTime" => "jvm_gc_collection_time".to_owned(),
        "LastGcInfo" => "jvm_gc_duration_seconds".to_owned(),
        _ => format!("jvm_memory_usage_{attribute}_bytes"),
    };
    let labels = [("area", area), ("name", sample.labels.scope)];
    let mut lines = families.named(metric, Type::Gauge, name);
    match sample.value {
        Value::Number(number) => lines.add("", &labels, None, number),
        Value::Fraction(fraction) => lines.add("", &labels, None, fraction),
        Value::Distribution(_) => {}
    }
}

fn name(metric: &Metric) -> String {
    match (metric.group, metric.name) {
        ("FailureDetector", "UpEndpointCount") => return "cassandra_up_endpoint_count".to_owned(),
        ("FailureDetector", "DownEndpointCount") => {
            return "cassandra_down_endpoint_count".to_owned();
        }
        _ => {}
    }
    format!("cassandra_{}_{}", metric.group, metric.name).to_ascii_lowercase()
}

fn distribution(
    families: &mut Families,
    metric: &Metric,
    labels: &super::families::Pairs<'_>,
    values: &dyn Distribution,
) {
    let is_latency = metric.name.ends_with("Latency");
    let seconds = if is_latency { "_seconds" } else { "" };
    let named = |suffix: &str| format!("{}{seconds}{suffix}", name(metric));
    let shown = |value: u64| match (metric.unit, is_latency) {
        (Unit::Nanoseconds, true) => value as f64 / 1e9,
        (Unit::Nanoseconds, false) => value as f64 / 1e3,
        _ => value as f64,
    };
    let mut lines = families.lines((metric, Part::Quantiles), Type::Gauge, || named(""));
    let found = quantiles(values, QUANTILES.map(|(quantile, _)| quantile));
    for ((_, label), value) in QUANTILES.iter().zip(found) {
        lines.add("", labels, Some(("quantile", label)), shown(value));
    }
    let count = values.count();
    families
        .lines((metric, Part::Count), Type::Untyped, || named("_count"))
        .add("", labels, None, count);
    if let Some(mean) = values.mean().filter(|_| is_latency) {
        let mut lines = families.lines((metric, Part::Mean), Type::Gauge, || named("_average"));
        lines.add("", labels, None, mean / 1e9);
    }
    if let Some(sum) = values.sum().filter(|_| is_latency) {
        let mut lines = families.lines((metric, Part::Sum), Type::Untyped, || named("_sum"));
        lines.add("", labels, None, shown(sum));
    }
}
