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
    path: &'a mut String,
}

/// The path of the last metric: the next one of the table differs in its end only.
#[derive(Default)]
pub(super) struct Paths {
    /// Keyspace, path, scope.
    of: Option<(Origin, &'static str, [Option<String>; 3])>,
    stem: usize,
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
        ];
        self.lines.add("", &labels, Some(("name", self.path)), value);
        self.path.truncate(stem);
    }
}

pub(super) fn add(
    families: &mut Families,
    paths: &mut Paths,
    place: &NodeIdentity,
    sample: &Sample<'_>,
) {
    let (metric, labels) = (sample.metric, sample.labels);
    let keyspace = labels.keyspace.unwrap_or_default();
    let is_cas = metric.name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("cas"))
        && metric.name.ends_with("Latency");
    if keyspace.starts_with("system") || is_cas {
        return;
    }
    let lines = families.lines((metric, Part::Value), Type::Gauge, || "cassandra_stats".to_owned());
    let table = labels.scope.filter(|_| metric.group == "Table").unwrap_or_default();
    let (stem, path) = paths.path(sample);
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
    {
        stats.path.truncate(stem);
        stats.path.push_str("estimatedpartitionsizehistogram");
        stats.add(":max", largest as f64);
    }
}

impl Paths {
    /// The identity in lower case, its parts between colons, without an attribute; and where its name begins.
    fn path(&mut self, sample: &Sample<'_>) -> (usize, &mut String) {
        let (metric, labels) = (sample.metric, sample.labels);
        let is_java = metric.origin == Origin::Java;
        let parts = [labels.keyspace, labels.path.filter(|_| !is_java), labels.scope];
        let is_same = self.of.as_ref().is_some_and(|(origin, group, known)| {
            (*origin, *group) == (metric.origin, metric.group)
                && known.iter().zip(parts).all(|(known, part)| known.as_deref() == part)
        });
        if !is_same {
            self.path.clear();
            for text in [metric.origin.domain(), metric.group]
                .into_iter()
                .chain(parts.into_iter().flatten())
            {
                push_lower(text, &mut self.path);
                self.path.push(':');
            }
            self.stem = self.path.len();
            self.of =
                Some((metric.origin, metric.group, parts.map(|part| part.map(str::to_owned))));
        }
        self.path.truncate(self.stem);
        push_lower(metric.name, &mut self.path);
        // The attribute of an attribute.
        if let Some(attribute) = labels.path.filter(|_| is_java) {
            self.path.push(':');
            self.path.push_str(attribute);
        }
        (self.stem, &mut self.path)
    }
}

fn push_lower(text: &str, to: &mut String) {
    to.extend(text.chars().map(|letter| match letter {
        '.' => ':',
        ' ' => '_',
        other => other.to_ascii_lowercase(),
    }));
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
