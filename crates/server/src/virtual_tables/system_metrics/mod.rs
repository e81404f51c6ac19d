//! `system_metrics`: all of Cassandra's metrics as rows, as Cassandra 6.0 has them (CASSANDRA-14572), from the node's registry.
//!
//! 1. A table for each group of metrics (`groups.rs`), and one for each type (`types.rs`). A group without metrics here has no rows.
//! 2. A metric is called as in Cassandra's registry: `org.apache.cassandra.metrics.Table.ReadLatency.ks.t`. Times are in microseconds.
//! 3. A walk of many tables takes milliseconds, so it is done on a thread for computations.

pub(super) mod groups;
pub(super) mod types;

use std::sync::Arc;

use halcyon_io::compute;
use halcyon_metrics::{Distribution, Kind, Metric, Origin, Registry, Sample, Unit, Value};

use super::rows::Rows;
use super::table::{Filled, Node};

/// A metric of one table, pool or request.
struct Found {
    name: String,
    scope: String,
    kind: Kind,
    unit: Unit,
    value: Shown,
}

/// What is shown of a value.
enum Shown {
    Number(u64),
    Fraction(f64),
    Distribution(Box<Measured>),
}

struct Measured {
    count: u64,
    min: u64,
    mean: f64,
    max: u64,
    /// The 75th, 95th, 98th, 99th and 99.9th percentile.
    percentiles: [u64; 5],
    one_minute: Option<f64>,
    five_minutes: Option<f64>,
}

const PERCENTILES: [f64; 5] = [0.75, 0.95, 0.98, 0.99, 0.999];

impl Measured {
    fn of(values: &dyn Distribution) -> Measured {
        Measured {
            count: values.count(),
            min: values.quantile(0.0),
            mean: values.mean().unwrap_or(0.0),
            max: values.quantile(1.0),
            percentiles: PERCENTILES.map(|at| values.quantile(at)),
            one_minute: values.per_second_of_a_minute(),
            five_minutes: values.per_second(),
        }
    }
}

impl Found {
    fn new(sample: &Sample<'_>) -> Found {
        let labels = sample.labels;
        let parts: Vec<&str> =
            [labels.keyspace, labels.path, labels.scope].into_iter().flatten().collect();
        let scope = parts.join(".");
        let mut name = format!("{}.{}", sample.metric.origin.domain(), group(sample.metric));
        for part in [sample.metric.name, &scope].into_iter().filter(|part| !part.is_empty()) {
            name.push('.');
            name.push_str(part);
        }
        let value = match sample.value {
            Value::Number(number) => Shown::Number(number),
            Value::Fraction(fraction) => Shown::Fraction(fraction),
            Value::Distribution(values) => Shown::Distribution(Box::new(Measured::of(values))),
        };
        let scope = if scope.is_empty() { "undefined".to_owned() } else { scope };
        Found { name, scope, kind: sample.metric.kind, unit: sample.metric.unit, value }
    }

    /// As a gauge shows it; of the others, how many there were.
    fn text(&self) -> String {
        match &self.value {
            Shown::Number(number) => number.to_string(),
            // As Java writes a double.
            Shown::Fraction(fraction) => format!("{fraction:?}"),
            Shown::Distribution(values) => values.count.to_string(),
        }
    }

    /// A time in microseconds; other values as they are.
    fn shown(&self, value: f64) -> f64 {
        if self.unit == Unit::Nanoseconds { value / 1e3 } else { value }
    }
}

/// Cassandra calls this one in small letters.
fn group(metric: &Metric) -> &'static str {
    if metric.group == "Keyspace" { "keyspace" } else { metric.group }
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Meter => "meter",
        Kind::Histogram => "histogram",
        Kind::Timer => "timer",
    }
}

/// The metrics that are wanted, on a thread for computations. Before the node has joined its ring there are none.
async fn found(node: &Node, is_wanted: impl Fn(&Metric) -> bool + Send + 'static) -> Vec<Found> {
    let Some(registry) = node.facts.registry.get().cloned() else { return Vec::new() };
    let walk = move |registry: &Arc<Registry>| {
        let mut found = Vec::new();
        registry.walk(&mut |sample| {
            if sample.metric.origin == Origin::Cassandra && is_wanted(sample.metric) {
                found.push(Found::new(&sample));
            }
        });
        found
    };
    compute(move || walk(&registry)).await.unwrap_or_default()
}
