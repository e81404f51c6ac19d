//! All metrics of a node, to be walked by whatever shows them.
//!
//! A crate implements [`Source`] beside its counters and registers it at the start. A walk sums the counters of all threads and shows
//! each value once, without copying a label or a distribution, so a view of thousands of tables allocates nothing for each.

use std::fmt;
use std::sync::Arc;

use crate::buckets::Bucket;
use crate::declared::Metric;
use crate::histogram::Counts;
use crate::reservoir::Summary;

/// Shows the values of some metrics. Any thread calls it.
pub trait Source: Send + Sync {
    /// All that [`Source::walk`] may show.
    fn declared(&self) -> &'static [Metric];

    /// Calls `show` with each value as it is now. A metric of tables is shown once for each table.
    fn walk(&self, show: &mut dyn FnMut(Sample<'_>));
}

/// A value of a metric.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    pub metric: &'a Metric,
    pub labels: Labels<'a>,
    pub value: Value<'a>,
}

/// The parts of an identity that are not declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labels<'a> {
    pub keyspace: Option<&'a str>,
    /// The table's name, the kind of a request, the purpose of an I/O.
    pub scope: Option<&'a str>,
    /// What a thread pool belongs to: `request`, `internal`, `transport`.
    pub path: Option<&'a str>,
}

#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// Of a counter or a gauge, in the metric's unit.
    Number(u64),
    /// Of a gauge.
    Fraction(f64),
    /// Of a histogram or a timer.
    Distribution(&'a dyn Distribution),
}

/// Values in buckets.
pub trait Distribution {
    /// Since the start.
    fn count(&self) -> u64;

    /// The sum of all values since the start, where it is known; it starts from zero again beyond 2^64.
    fn sum(&self) -> Option<u64>;

    /// Of the last minutes, in the metric's unit, if there were values.
    fn mean(&self) -> Option<f64>;

    /// Events per second of the last five minutes, where they are known.
    fn per_second(&self) -> Option<f64>;

    /// Events per second of about the last minute, where they are known.
    fn per_second_of_a_minute(&self) -> Option<f64>;

    /// The largest value of the bucket with the quantile (0..=1); 0 without values.
    fn quantile(&self, quantile: f64) -> u64;

    /// The weights of all buckets that are not empty, in order: counts since the start, or less where they have faded.
    fn buckets(&self, show: &mut dyn FnMut(Bucket, f64));

    /// The counts of all buckets since the start, in order; shows none of a distribution that has had no values.
    fn since_start(&self, show: &mut dyn FnMut(Bucket, u64));
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Distribution for Counts<PER_OCTAVE, BUCKETS> {
    fn count(&self) -> u64 {
        self.total()
    }

    fn sum(&self) -> Option<u64> {
        None
    }

    fn mean(&self) -> Option<f64> {
        None
    }

    fn per_second(&self) -> Option<f64> {
        None
    }

    fn per_second_of_a_minute(&self) -> Option<f64> {
        None
    }

    fn quantile(&self, quantile: f64) -> u64 {
        self.quantile(quantile).map_or(0, |quantile| quantile.largest())
    }

    fn buckets(&self, show: &mut dyn FnMut(Bucket, f64)) {
        self.filled().for_each(|(bucket, count)| show(bucket, count as f64));
    }

    fn since_start(&self, show: &mut dyn FnMut(Bucket, u64)) {
        Counts::buckets(self).for_each(|(bucket, count)| show(bucket, count));
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Distribution for Summary<PER_OCTAVE, BUCKETS> {
    fn count(&self) -> u64 {
        self.count
    }

    fn sum(&self) -> Option<u64> {
        Some(self.sum)
    }

    fn mean(&self) -> Option<f64> {
        Summary::mean(self)
    }

    fn per_second(&self) -> Option<f64> {
        Some(self.per_second)
    }

    fn per_second_of_a_minute(&self) -> Option<f64> {
        Some(self.per_second_of_a_minute)
    }

    fn quantile(&self, quantile: f64) -> u64 {
        self.quantile(quantile)
    }

    fn buckets(&self, show: &mut dyn FnMut(Bucket, f64)) {
        self.filled().for_each(|(bucket, weight)| show(bucket, weight));
    }

    fn since_start(&self, show: &mut dyn FnMut(Bucket, u64)) {
        Summary::since_start(self).for_each(|(bucket, count)| show(bucket, count));
    }
}

/// The identity with its labels, as Cassandra's MBean is called.
impl fmt::Display for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:type={}", self.metric.origin.domain(), self.metric.group)?;
        if let Some(keyspace) = self.labels.keyspace {
            write!(f, ",keyspace={keyspace}")?;
        }
        if let Some(path) = self.labels.path {
            write!(f, ",path={path}")?;
        }
        if let Some(scope) = self.labels.scope {
            write!(f, ",scope={scope}")?;
        }
        write!(f, ",name={}", self.metric.name)
    }
}

/// All sources of a node.
#[derive(Default)]
pub struct Registry {
    sources: Vec<Arc<dyn Source>>,
}

impl Registry {
    /// # Panics
    /// If a source declares a metric that another one, or itself, has declared before.
    pub fn register(&mut self, source: Arc<dyn Source>) {
        let declared = source.declared();
        for (at, metric) in declared.iter().enumerate() {
            let mut before = self.declared().chain(&declared[..at]);
            assert!(!before.any(|other| other.is_same(metric)), "{metric} is declared twice");
        }
        self.sources.push(source);
    }

    /// Every metric, whether it has a value now or not.
    pub fn declared(&self) -> impl Iterator<Item = &'static Metric> + '_ {
        self.sources.iter().flat_map(|source| source.declared())
    }

    /// Shows all values as they are now, source by source.
    pub fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        self.sources.iter().for_each(|source| source.walk(show));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Kind, Reservoir, Seconds, Unit, buckets_below};

    const FLUSHES: Metric =
        Metric::cassandra("Table", "MemtableSwitchCount", "Flushes of the table.");
    const READS: Metric = Metric::cassandra("Table", "ReadLatency", "Local reads.")
        .of(Kind::Timer, Unit::Nanoseconds);
    const REQUESTS: Metric = Metric::own("Client", "Requests", "Requests.");

    const BUCKETS: usize = buckets_below(4, 40);

    #[derive(Default)]
    struct Tables {
        flushes: Counter,
        reads: Reservoir<4, BUCKETS>,
    }

    impl Source for Tables {
        fn declared(&self) -> &'static [Metric] {
            &[FLUSHES, READS]
        }

        fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
            let labels = Labels { keyspace: Some("ks"), scope: Some("t"), path: None };
            let value = Value::Number(self.flushes.get());
            show(Sample { metric: &FLUSHES, labels, value });
            let mut reads = Summary::nothing();
            reads.add(&self.reads, Seconds(60));
            show(Sample { metric: &READS, labels, value: Value::Distribution(&reads) });
        }
    }

    struct Requests(Counts<1, 49>);

    impl Source for Requests {
        fn declared(&self) -> &'static [Metric] {
            &[REQUESTS]
        }

        fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
            let labels = Labels { scope: Some("Shards"), ..Labels::default() };
            let value = Value::Distribution(&self.0);
            show(Sample { metric: &REQUESTS, labels, value });
        }
    }

    /// A text view, as an exporter would make one.
    fn lines(registry: &Registry) -> Vec<String> {
        let mut lines = Vec::new();
        registry.walk(&mut |sample| {
            let value = match sample.value {
                Value::Number(number) => number.to_string(),
                Value::Fraction(fraction) => fraction.to_string(),
                Value::Distribution(of) => {
                    let mut buckets = Vec::new();
                    of.buckets(&mut |bucket, weight| buckets.push((bucket.below, weight)));
                    format!("{} {:?} {buckets:?}", of.count(), of.quantile(0.5))
                }
            };
            lines.push(format!("{sample} {value}"));
        });
        lines
    }

    /// Proves that a walk shows every source's values of now under Cassandra's names.
    #[test]
    fn a_walk_shows_values_of_now() {
        let tables = Arc::new(Tables::default());
        let mut registry = Registry::default();
        registry.register(tables.clone());
        let mut requests = Counts::default();
        requests.record_many(5, 2);
        registry.register(Arc::new(Requests(requests)));
        assert_eq!(registry.declared().count(), 3);
        tables.flushes.add(3);
        tables.reads.record(9, Seconds(60));
        let shown = [
            "org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=MemtableSwitchCount 3",
            "org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=ReadLatency 1 9 [(10, 60.0)]",
            "halcyon.metrics:type=Client,scope=Shards,name=Requests 2 7 [(8, 2.0)]",
        ];
        assert_eq!(lines(&registry), shown);
    }

    /// Proves that a metric has one home.
    #[test]
    #[should_panic(expected = "name=Requests is declared twice")]
    fn a_metric_is_declared_once() {
        let mut registry = Registry::default();
        registry.register(Arc::new(Requests(Counts::default())));
        registry.register(Arc::new(Requests(Counts::default())));
    }
}
