//! The server's metrics, for the registry of its node: sums over all shards.

use halcyon_metrics::{Kind, Labels, Metric, Sample, Source, Unit, Value};

use super::{ClientMetrics, Waits};
use crate::shard::Shared;

/// In the order of [`Shared::walk`].
const DECLARED: [Metric; 15] = [
    Metric::cassandra("Client", "ConnectedNativeClients", "Connections of clients.")
        .of(Kind::Gauge, Unit::Count),
    Metric::own("Client", "Requests", "Requests that were read."),
    Metric::own("Client", "RequestsInFlight", "Requests that are being answered.")
        .of(Kind::Gauge, Unit::Count),
    meter("AuthSuccess", "Logins."),
    meter("AuthFailure", "Refused logins."),
    meter("RequestDiscarded", "Requests that were refused because the node was overloaded."),
    Metric::cassandra("Client", "PausedConnections", "Connections that wait for admission.")
        .of(Kind::Gauge, Unit::Count),
    meter("ConnectionPaused", "Connections that began to wait for admission."),
    Metric::cassandra("CQL", "PreparedStatementsRatio", "Share of prepared executions.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("CQL", "PreparedStatementsExecuted", "Executions of prepared statements."),
    Metric::cassandra("CQL", "RegularStatementsExecuted", "Executions of other statements."),
    Metric::cassandra("Client", "ProtocolException", "Requests that broke the protocol.")
        .of(Kind::Meter, Unit::Count),
    Metric::cassandra("CQL", "PreparedStatementsCount", "Prepared statements that are kept.")
        .of(Kind::Gauge, Unit::Count),
    Metric::cassandra("CQL", "PreparedStatementsEvicted", "Prepared statements that were evicted."),
    Metric::own("Client", "RequestWait", "Time from the socket to the start of the statement.")
        .of(Kind::Timer, Unit::Nanoseconds),
];

const fn meter(name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra("Client", name, help).of(Kind::Meter, Unit::Count)
}

impl Source for Shared {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let shards = &self.metrics;
        let sum = |of: fn(&ClientMetrics) -> u64| Value::Number(shards.iter().map(of).sum());
        let prepared = self.prepared.metrics();
        let mut waits = Waits::default();
        shards.iter().for_each(|shard| waits.add_histogram(&shard.waits));
        let total = |of: fn(&ClientMetrics) -> u64| shards.iter().map(of).sum::<u64>() as f64;
        let executed = total(|shard| shard.prepared_executed.get());
        let regular = total(|shard| shard.regular_executed.get());
        let values = [
            sum(|shard| shard.connections.get()),
            sum(|shard| shard.requests.get()),
            sum(|shard| shard.in_flight.get()),
            sum(|shard| shard.logins.get()),
            sum(|shard| shard.refused_logins.get()),
            sum(|shard| shard.discarded.get()),
            sum(|shard| shard.paused.get()),
            sum(|shard| shard.pauses.get()),
            // Not a number before the first statement, as in Cassandra.
            Value::Fraction(executed / (executed + regular)),
            sum(|shard| shard.prepared_executed.get()),
            sum(|shard| shard.regular_executed.get()),
            sum(|shard| shard.protocol_errors.get()),
            Value::Number(prepared.count as u64),
            Value::Number(prepared.evictions),
            Value::Distribution(&waits),
        ];
        for (metric, value) in DECLARED.iter().zip(values) {
            show(Sample { metric, labels: Labels::default(), value });
        }
    }
}
