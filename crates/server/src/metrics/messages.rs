//! What Cassandra counts between nodes. A node alone sends and drops nothing: dashboards and alert rules ask for these, and zero is true.

use halcyon_metrics::{Kind, Labels, Metric, Sample, Unit, Value};

const DROPPED: Metric =
    Metric::cassandra("DroppedMessage", "Dropped", "Always 0: the node has no peers.")
        .of(Kind::Meter, Unit::Count);

/// What a node drops under load, by the names that `nodetool tpstats` shows.
const DROPPABLE: [&str; 12] = [
    "COUNTER_MUTATION_REQ",
    "HINT_REQ",
    "MUTATION_REQ",
    "PAXOS_COMMIT_REQ",
    "PAXOS_PREPARE_REQ",
    "PAXOS_PROPOSE_REQ",
    "RANGE_REQ",
    "READ_REPAIR_REQ",
    "READ_REQ",
    "REQUEST_RSP",
    "TRUNCATE_REQ",
    "_TRACE",
];

const fn counter(group: &'static str, name: &'static str, unit: Unit) -> Metric {
    Metric::cassandra(group, name, "Always 0: the node has no peers.").of(Kind::Counter, unit)
}

const COUNTERS: [Metric; 4] = [
    counter("Storage", "TotalHints", Unit::Count),
    counter("Storage", "TotalHintsInProgress", Unit::Count),
    counter("Streaming", "TotalIncomingBytes", Unit::Bytes),
    counter("Streaming", "TotalOutgoingBytes", Unit::Bytes),
];

pub(super) const DECLARED: [Metric; 1 + COUNTERS.len()] = Metric::join(&[&[DROPPED], &COUNTERS]);

pub(super) fn walk(show: &mut dyn FnMut(Sample<'_>)) {
    let value = Value::Number(0);
    for scope in DROPPABLE {
        let labels = Labels { scope: Some(scope), ..Labels::default() };
        show(Sample { metric: &DROPPED, labels, value });
    }
    for metric in &COUNTERS {
        show(Sample { metric, labels: Labels::default(), value });
    }
}
