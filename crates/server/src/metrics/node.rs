//! What a node has besides tables and clients, for its registry: thread pools, caches, the load.

use std::sync::Arc;

use halcyon_engine::Engine;
use halcyon_metrics::{Kind, Labels, Metric, Sample, Source, Unit, Value};

use super::pools::pools;
use crate::cache_rates::CacheRates;
use crate::shard::Shared;

pub(crate) struct OfNode {
    pub(crate) engine: Arc<Engine>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) caches: Arc<CacheRates>,
}

const fn pool(name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra("ThreadPools", name, help).of(Kind::Gauge, Unit::Count)
}

const POOLS: [Metric; 5] = [
    pool("ActiveTasks", "Tasks that run."),
    pool("PendingTasks", "Tasks that wait."),
    pool("CompletedTasks", "Tasks that have ended."),
    Metric::cassandra("ThreadPools", "CurrentlyBlockedTasks", "Always 0: no queue is full."),
    Metric::cassandra("ThreadPools", "TotalBlockedTasks", "Always 0: no queue is full."),
];

const fn cache(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Cache", name, help).of(kind, unit)
}

const CACHES: [Metric; 6] = [
    cache("Hits", Kind::Meter, Unit::Count, "Lookups that found what they looked for."),
    cache("Requests", Kind::Meter, Unit::Count, "Lookups."),
    cache("HitRate", Kind::Gauge, Unit::Count, "Hits for each request since the start."),
    cache("Size", Kind::Gauge, Unit::Bytes, "Memory in use."),
    cache("Capacity", Kind::Gauge, Unit::Bytes, "Memory that may be used."),
    cache("Entries", Kind::Gauge, Unit::Count, "Entries."),
];

/// Cassandra's names, in the order of `cache_rates::NAMES`.
const CACHE_SCOPES: [&str; 4] = ["ChunkCache", "CounterCache", "KeyCache", "RowCache"];

const fn storage(name: &'static str, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Storage", name, help).of(Kind::Counter, unit)
}

const fn gauge(group: &'static str, name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra(group, name, help).of(Kind::Gauge, Unit::Count)
}

/// In the order of `OfNode::alone`.
const ALONE: [Metric; 6] = [
    storage("Load", Unit::Bytes, "Bytes of all live SSTables."),
    storage("TotalHints", Unit::Count, "Always 0: the node has no peers to keep hints for."),
    storage("TotalHintsInProgress", Unit::Count, "Always 0, as TotalHints."),
    gauge("Compaction", "PendingTasks", "Compactions that are due."),
    gauge("FailureDetector", "UpEndpointCount", "Always 1: the node itself."),
    gauge("FailureDetector", "DownEndpointCount", "Always 0: the node has no peers."),
];

const DECLARED: [Metric; POOLS.len() + CACHES.len() + ALONE.len()] = {
    let [a, b, c, d, e] = POOLS;
    let [f, g, h, i, j, k] = CACHES;
    let [l, m, n, o, p, q] = ALONE;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q]
};

impl OfNode {
    fn alone(&self) -> [u64; ALONE.len()] {
        let stats = self.engine.tables().stats();
        let load = stats.iter().map(|table| table.disk_space).sum();
        let backlog = self.engine.compactor().backlog();
        let pending = backlog.iter().map(|of| of.debt.tasks as u64).sum();
        [load, 0, 0, pending, 1, 0]
    }
}

impl Source for OfNode {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        for pool in pools(&self.engine, &self.shared.metrics) {
            let labels = Labels { scope: Some(pool.name), path: Some(pool.path), keyspace: None };
            let values = [pool.active, pool.pending, pool.completed, 0, 0];
            for (metric, value) in POOLS.iter().zip(values) {
                show(Sample { metric, labels, value: Value::Number(value) });
            }
        }
        for (scope, of) in CACHE_SCOPES.iter().zip(self.caches.seen()) {
            let labels = Labels { scope: Some(scope), ..Labels::default() };
            let requests = of.hits + of.misses;
            let rate = if requests == 0 { 0.0 } else { of.hits as f64 / requests as f64 };
            let values = [
                Value::Number(of.hits),
                Value::Number(requests),
                Value::Fraction(rate),
                Value::Number(of.bytes),
                Value::Number(of.capacity),
                Value::Number(of.entries as u64),
            ];
            for (metric, value) in CACHES.iter().zip(values) {
                show(Sample { metric, labels, value });
            }
        }
        for (metric, value) in ALONE.iter().zip(self.alone()) {
            show(Sample { metric, labels: Labels::default(), value: Value::Number(value) });
        }
    }
}
