//! What a node has besides clients, for its registry: tables, thread pools, caches, the load, what stands for the JVM.
//!
//! A walk sums the numbers of all tables once; the engine, the pools and the load share them.

use std::sync::Arc;

use halcyon_engine::{DECLARED as OF_ENGINE, Engine, TableStats};
use halcyon_io::Disk;
use halcyon_metrics::{Kind, Labels, Metric, Registry, Sample, Source, Unit, Value};

use super::jvm::{self, CpuLoad};
use super::messages;
use super::pools::pools;
use crate::cache_rates::CacheRates;
use crate::shard::Shared;

pub(crate) struct OfNode {
    engine: Arc<Engine>,
    shared: Arc<Shared>,
    caches: Arc<CacheRates>,
    cpu: CpuLoad,
}

const fn pool(name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra("ThreadPools", name, help).of(Kind::Gauge, Unit::Count)
}

const POOLS: [Metric; 6] = [
    pool("MaxPoolSize", "Tasks that can run at once."),
    pool("ActiveTasks", "Tasks that run."),
    pool("PendingTasks", "Tasks that wait."),
    pool("CompletedTasks", "Tasks that have ended."),
    Metric::cassandra("ThreadPools", "CurrentlyBlockedTasks", "Always 0: no queue is full."),
    Metric::cassandra("ThreadPools", "TotalBlockedTasks", "Always 0: no queue is full."),
];

const fn cache(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Metric {
    Metric::cassandra("Cache", name, help).of(kind, unit)
}

const CACHES: [Metric; 10] = [
    cache("Hits", Kind::Meter, Unit::Count, "Lookups that found what they looked for."),
    cache("Misses", Kind::Meter, Unit::Count, "Lookups that did not."),
    cache("Requests", Kind::Meter, Unit::Count, "Lookups."),
    cache("HitRate", Kind::Gauge, Unit::Count, "Hits for each request since the start."),
    cache("OneMinuteHitRate", Kind::Gauge, Unit::Count, "Hits for each request."),
    cache("FiveMinuteHitRate", Kind::Gauge, Unit::Count, "Hits for each request."),
    cache("FifteenMinuteHitRate", Kind::Gauge, Unit::Count, "Hits for each request."),
    cache("Size", Kind::Gauge, Unit::Bytes, "Memory in use."),
    cache("Capacity", Kind::Gauge, Unit::Bytes, "Memory that may be used."),
    cache("Entries", Kind::Gauge, Unit::Count, "Entries."),
];

/// Cassandra's names, in the order of `cache_rates::NAMES`.
const CACHE_SCOPES: [&str; 4] = ["ChunkCache", "CounterCache", "KeyCache", "RowCache"];

const fn gauge(group: &'static str, name: &'static str, help: &'static str) -> Metric {
    Metric::cassandra(group, name, help).of(Kind::Gauge, Unit::Count)
}

/// In the order of `OfNode::alone`.
const ALONE: [Metric; 4] = [
    Metric::cassandra("Storage", "Load", "Bytes of all live SSTables.")
        .of(Kind::Counter, Unit::Bytes),
    Metric::cassandra("Storage", "Exceptions", "Internal errors: each is in the log."),
    gauge("FailureDetector", "UpEndpointCount", "Always 1: the node itself."),
    gauge("FailureDetector", "DownEndpointCount", "Always 0: the node has no peers."),
];

const COUNT: usize = OF_ENGINE.len()
    + POOLS.len()
    + CACHES.len()
    + ALONE.len()
    + messages::DECLARED.len()
    + jvm::DECLARED.len();

const DECLARED: [Metric; COUNT] =
    Metric::join(&[&OF_ENGINE, &POOLS, &CACHES, &ALONE, &messages::DECLARED, &jvm::DECLARED]);

impl OfNode {
    pub(crate) fn new(engine: Arc<Engine>, shared: Arc<Shared>, caches: Arc<CacheRates>) -> OfNode {
        OfNode { engine, shared, caches, cpu: CpuLoad::default() }
    }

    /// All metrics of the node.
    pub(crate) fn registered(self, disk: &Disk) -> Registry {
        let shared = self.shared.clone();
        let mut registry = Registry::default();
        registry.register(shared.requests.clone());
        registry.register(shared);
        registry.register(Arc::new(self));
        registry.register(Arc::new(disk.clone()));
        registry
    }

    /// Memory that settings govern: in use, and at most.
    fn governed(&self, stats: &[TableStats]) -> (u64, u64) {
        let tables: u64 = stats.iter().map(|of| of.memtable_bytes + of.open_memory()).sum();
        let caches: u64 = self.caches.seen().iter().map(|cache| cache.bytes).sum();
        let (requests, options) = (self.shared.admission.memory(), self.engine.options());
        let most = options.memtable_space
            + options.chunk_cache_size
            + options.key_cache_size
            + options.row_cache_size
            + options.index_summary_capacity
            + requests.limit();
        (tables + caches + requests.held(), most)
    }

    fn show_caches(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let recent = self.caches.hit_rates();
        for ((scope, of), recent) in CACHE_SCOPES.iter().zip(self.caches.seen()).zip(recent) {
            let labels = Labels { scope: Some(scope), ..Labels::default() };
            let requests = of.hits + of.misses;
            let [one, five, fifteen] = recent.map(Value::Fraction);
            let values = [
                Value::Number(of.hits),
                Value::Number(of.misses),
                Value::Number(requests),
                // Not a number without requests, as in Cassandra.
                Value::Fraction(of.hits as f64 / requests as f64),
                one,
                five,
                fifteen,
                Value::Number(of.bytes),
                Value::Number(of.capacity),
                Value::Number(of.entries as u64),
            ];
            for (metric, value) in CACHES.iter().zip(values) {
                show(Sample { metric, labels, value });
            }
        }
    }
}

impl Source for OfNode {
    fn declared(&self) -> &'static [Metric] {
        &DECLARED
    }

    fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let stats = self.engine.table_stats();
        self.engine.walk_of(&stats, show);
        for pool in pools(&self.engine, &stats, &self.shared.metrics) {
            let labels = Labels { scope: Some(pool.name), path: Some(pool.path), keyspace: None };
            // As a signed 32-bit number, which a pool without a bound has in Cassandra too.
            let limit = u64::try_from(i32::try_from(pool.limit).unwrap_or(i32::MAX)).unwrap_or(0);
            let values = [limit, pool.active, pool.pending, pool.completed, 0, 0];
            for (metric, value) in POOLS.iter().zip(values) {
                show(Sample { metric, labels, value: Value::Number(value) });
            }
        }
        self.show_caches(show);
        let load = stats.iter().map(|table| table.disk_space).sum();
        for (metric, value) in ALONE.iter().zip([load, self.shared.log.panics(), 1, 0]) {
            show(Sample { metric, labels: Labels::default(), value: Value::Number(value) });
        }
        messages::walk(show);
        jvm::walk(&self.cpu, self.governed(&stats), show);
    }
}
