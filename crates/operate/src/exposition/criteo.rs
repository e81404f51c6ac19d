//! Cassandra's metrics as Criteo's cassandra_exporter shows them: one family, `cassandra_stats`, with the path of each attribute in the
//! label `name`.
//!
//! ```text
//!   org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=ReadLatency    the MBean
//!   org:apache:cassandra:metrics:table:ks:t:readlatency:99thpercentile              the label
//! ```
//! 1. The exporter's own configuration leaves out system keyspaces, latencies of conditional writes, and some attributes; so does this.
//! 2. The rate of a minute is known of distributions. Of a meter it is shown while nothing has happened, and then it is 0.
//! 3. The largest partition of a table is the largest value of `EstimatedPartitionSizeHistogram`, and is shown as that too.

use std::fmt::Write;

use halcyon_metrics::{Distribution, Kind, Metric, Origin, Sample, Unit, Value};

use super::families::{Families, Lines, Part, Type};
use super::names::NodeIdentity;
use super::quantiles::quantiles;

const PERCENTILES: [(f64, &str); 5] = [
    (0.5, ":50thpercentile"),
    (0.75, ":75thpercentile"),
    (0.98, ":98thpercentile"),
    (0.99, ":99thpercentile"),
    (1.0, ":max"),
];

/// A series is written as soon as its attribute is known.
struct Stats<'a> {
    lines: Lines<'a>,
    place: &'a NodeIdentity,
    keyspace: &'a str,
    table: &'a str,
    path: String,
}

impl Stats<'_> {
    fn add(&mut self, attribute: &str, value: f64) {
        let stem = self.path.len();
        self.path.push_str(attribute);
        let labels = [
            ("cluster", Some(self.place.cluster.as_str())),
            ("datacenter", Some(self.place.datacenter.as_str())),
            ("keyspace", Some(self.keyspace)),
            ("table", Some(self.table)),
            ("name", Some(self.path.as_str())),
        ];
        self.lines.add("", &labels, None, value);
        self.path.truncate(stem);
    }
}

pub(super) fn add(families: &mut Families, place: &NodeIdentity, sample: &Sample<'_>) {
    let (metric, labels) = (sample.metric, sample.labels);
    let keyspace = labels.keyspace.unwrap_or_default();
    let name = metric.name.to_ascii_lowercase();
    let is_cas = name.starts_with("cas") && name.ends_with("latency");
    if keyspace.starts_with("system") || is_cas {
        return;
    }
    let lines = families.lines((metric, Part::Value), Type::Gauge, || "cassandra_stats".to_owned());
    let table = labels.scope.filter(|_| metric.group == "Table").unwrap_or_default();
    let path = path(sample, &name);
    let mut stats = Stats { lines, place, keyspace, table, path };
    match sample.value {
        Value::Number(number) => {
            let value = number as f64;
            match (metric.origin, metric.kind) {
                (Origin::Java, _) => stats.add("", value),
                (_, Kind::Gauge) => stats.add(":value", value),
                _ => stats.add(":count", value),
            }
            if metric.kind == Kind::Meter && number == 0 {
                stats.add(":oneminuterate", 0.0);
            }
        }
        Value::Fraction(fraction) if metric.origin == Origin::Java => stats.add("", fraction),
        Value::Fraction(fraction) => stats.add(":value", fraction),
        Value::Distribution(values) => distribution(&mut stats, metric, values),
    }
    if (metric.group, metric.name) == ("Table", "MaxPartitionSize")
        && let Value::Number(largest) = sample.value
        && let Some(stem) = stats.path.strip_suffix(&name)
    {
        stats.path = format!("{stem}estimatedpartitionsizehistogram");
        stats.add(":max", largest as f64);
    }
}

/// The identity in lower case, its parts between colons, without an attribute.
fn path(sample: &Sample<'_>, name: &str) -> String {
    let labels = sample.labels;
    let mut path = String::with_capacity(96);
    let mut part = |text: &str| {
        if !path.is_empty() {
            path.push(':');
        }
        let separated = |letter: char| match letter {
            '.' => ':',
            ' ' => '_',
            other => other.to_ascii_lowercase(),
        };
        path.extend(text.chars().map(separated));
    };
    part(sample.metric.origin.domain());
    part(sample.metric.group);
    let is_java = sample.metric.origin == Origin::Java;
    for text in
        [labels.keyspace, labels.path.filter(|_| !is_java), labels.scope].into_iter().flatten()
    {
        part(text);
    }
    part(name);
    // The attribute of an attribute.
    if let Some(attribute) = labels.path.filter(|_| is_java) {
        // Writing to a string cannot fail.
        let _ = write!(path, ":{attribute}");
    }
    path
}

fn distribution(stats: &mut Stats<'_>, metric: &Metric, values: &dyn Distribution) {
    // As the MBeans have them: microseconds.
    let shown = |value: u64| match metric.unit {
        Unit::Nanoseconds => value as f64 / 1e3,
        _ => value as f64,
    };
    stats.add(":count", values.count() as f64);
    let found = quantiles(values, PERCENTILES.map(|(quantile, _)| quantile));
    for ((_, attribute), value) in PERCENTILES.iter().zip(found) {
        stats.add(attribute, shown(value));
    }
    if let Some(rate) = values.per_second_of_a_minute().filter(|_| metric.kind == Kind::Timer) {
        stats.add(":oneminuterate", rate);
    }
}
