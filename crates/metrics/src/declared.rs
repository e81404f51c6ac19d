//! What a metric is called and what it means. Each is declared once, as a constant beside the code that counts it.

use std::fmt;

/// A metric, before it is known of which table, request or thread pool: that is in [`crate::Labels`].
///
/// The identity is that of Cassandra's MBeans, `org.apache.cassandra.metrics:type=Table,keyspace=ks,scope=t,name=ReadLatency`, because
/// the names of all exporters and dashboards are functions of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    pub origin: Origin,
    /// `type`: `Table`, `ClientRequest`, `CommitLog`.
    pub group: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    /// One sentence.
    pub help: &'static str,
}

/// Whose name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Cassandra has the same metric.
    Cassandra,
    /// The JVM has the same metric, under Cassandra.
    Java,
    /// Cassandra has nothing like it.
    Halcyon,
}

/// Cassandra's kind of the metric, because the names that exporters make depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows since the start; some of Cassandra's fall too, such as `PendingFlushes`.
    Counter,
    /// A value now.
    Gauge,
    /// Grows since the start, and has a rate.
    Meter,
    /// A distribution of values that are not times.
    Histogram,
    /// A distribution of times, and their rate.
    Timer,
}

/// What values are recorded in. A view converts: Cassandra shows times in microseconds, Prometheus in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests, rows, SSTables: whatever the name says.
    Count,
    Bytes,
    Nanoseconds,
    Milliseconds,
}

impl Metric {
    /// One of Cassandra's.
    pub const fn cassandra(group: &'static str, name: &'static str, help: &'static str) -> Metric {
        let (origin, kind, unit) = (Origin::Cassandra, Kind::Counter, Unit::Count);
        Metric { origin, group, name, kind, unit, help }
    }

    /// One that Cassandra does not have.
    pub const fn own(group: &'static str, name: &'static str, help: &'static str) -> Metric {
        Metric { origin: Origin::Halcyon, ..Metric::cassandra(group, name, help) }
    }

    /// One of the JVM's: a type of MBean in `java.lang`, and an attribute of it.
    pub const fn java(group: &'static str, name: &'static str, help: &'static str) -> Metric {
        Metric { origin: Origin::Java, ..Metric::cassandra(group, name, help) }
    }

    /// Of this kind, not a counter.
    pub const fn of(self, kind: Kind, unit: Unit) -> Metric {
        Metric { kind, unit, ..self }
    }

    /// The metrics of several lists, one after the other; `N` is their number.
    pub const fn join<const N: usize>(lists: &[&[Metric]]) -> [Metric; N] {
        let mut all = [Metric::cassandra("", "", ""); N];
        let (mut list, mut at, mut to) = (0, 0, 0);
        while list < lists.len() {
            if at == lists[list].len() {
                (list, at) = (list + 1, 0);
                continue;
            }
            all[to] = lists[list][at];
            (at, to) = (at + 1, to + 1);
        }
        assert!(to == N, "the lists have another number of metrics");
        all
    }

    /// Whether both have one identity.
    pub fn is_same(&self, other: &Metric) -> bool {
        let identity = |metric: &Metric| (metric.origin, metric.group, metric.name);
        identity(self) == identity(other)
    }
}

impl Origin {
    /// The domain of its MBeans.
    pub const fn domain(self) -> &'static str {
        match self {
            Origin::Cassandra => "org.apache.cassandra.metrics",
            Origin::Java => "java.lang",
            Origin::Halcyon => "halcyon.metrics",
        }
    }
}

/// The identity without labels.
impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:type={},name={}", self.origin.domain(), self.group, self.name)
    }
}
