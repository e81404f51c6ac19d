//! What Cassandra does not have, as Prometheus wants it: `halcyon_<group>_<name>_<unit>`, times in seconds, counters with `_total`,
//! distributions with buckets since the start, from which a server of metrics computes any quantile over any time.

use halcyon_metrics::{Distribution, Kind, Metric, Sample, Unit, Value};

use super::families::{Families, Pairs, Part, Type};
use super::snake::snake;

/// The bounds of buckets of times lie between these (ns): a microsecond and about a minute.
const TIMES: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 36;

pub(super) fn add(families: &mut Families, sample: &Sample<'_>) {
    let metric = sample.metric;
    let labels = [
        ("scope", sample.labels.scope),
        ("keyspace", sample.labels.keyspace),
        ("path", sample.labels.path),
    ];
    match sample.value {
        Value::Number(number) => {
            let (of, suffix) = match metric.kind {
                Kind::Gauge => (Type::Gauge, ""),
                _ => (Type::Counter, "_total"),
            };
            let mut lines = families.lines((metric, Part::Value), of, || name(metric));
            lines.add(suffix, &labels, None, shown(metric, number));
        }
        Value::Fraction(fraction) => {
            let mut lines = families.lines((metric, Part::Value), Type::Gauge, || name(metric));
            lines.add("", &labels, None, in_seconds(metric, fraction));
        }
        Value::Distribution(values) => distribution(families, metric, &labels, values),
    }
}

fn distribution(
    families: &mut Families,
    metric: &Metric,
    labels: &Pairs<'_>,
    values: &dyn Distribution,
) {
    let is_time = metric.unit == Unit::Nanoseconds;
    let (mut below, mut bounds) = (0, Vec::new());
    values.since_start(&mut |bucket, count| {
        below += count;
        if !is_time || TIMES.contains(&bucket.below) {
            bounds.push((bucket, below));
        }
    });
    let count = values.count();
    let mut lines = families.lines((metric, Part::Buckets), Type::Histogram, || name(metric));
    for (bucket, below) in bounds {
        // A time is hardly ever a bucket's bound exactly; other values are whole numbers.
        let bound = if is_time { bucket.below } else { bucket.largest() };
        lines.add("_bucket", labels, Some(("le", &shown(metric, bound).to_string())), below);
    }
    lines.add("_bucket", labels, Some(("le", "+Inf")), count);
    lines.add("_count", labels, None, count);
}

fn shown(metric: &Metric, value: u64) -> f64 {
    in_seconds(metric, value as f64)
}

/// Times are in seconds; other values as they are.
fn in_seconds(metric: &Metric, value: f64) -> f64 {
    match metric.unit {
        Unit::Nanoseconds => value / 1e9,
        Unit::Milliseconds => value / 1e3,
        Unit::Count | Unit::Bytes => value,
    }
}

/// In snake case, with the unit.
fn name(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Nanoseconds | Unit::Milliseconds => "_seconds",
        Unit::Bytes if !metric.name.ends_with("Bytes") => "_bytes",
        Unit::Bytes | Unit::Count => "",
    };
    format!("halcyon_{}_{}{unit}", snake(metric.group), snake(metric.name))
}
