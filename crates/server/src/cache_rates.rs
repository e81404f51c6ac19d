//! Requests and hits per second of the caches, for `system_views.caches`.
//!
//! Shards only count. A task samples the counts every few seconds and moves exponentially weighted averages with time constants of one,
//! five and fifteen minutes, as Cassandra's meters do.

use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use halcyon_engine::{Engine, Shard};
use halcyon_io::Mutex;
use halcyon_io::clock::{self, Instant, now};

/// How often the counts are sampled, as meters do.
const TICK: Duration = Duration::from_secs(5);
/// Seconds.
const TIME_CONSTANTS: [f64; 3] = [60.0, 300.0, 900.0];

/// Requests and hits of each cache.
type PerSecond = [(f64, f64); 4];

/// The caches, in the order of [`Caches`].
pub(crate) const NAMES: [&str; 4] = ["chunks", "counters", "keys", "rows"];
const CHUNKS: usize = 0;
const KEYS: usize = 2;
const ROWS: usize = 3;

/// Metrics of one cache, over all shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cache {
    pub(crate) capacity: u64,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

pub(crate) type Caches = [Cache; 4];

fn of_shard(shard: &Shard) -> Caches {
    let (stats, rows) = (shard.cache_stats(), shard.row_cache_stats());
    let mut caches = Caches::default();
    caches[CHUNKS] = Cache {
        capacity: stats.chunk_capacity,
        entries: stats.chunk_entries,
        bytes: stats.chunk_bytes,
        hits: stats.chunk_hits,
        misses: stats.chunk_misses,
    };
    caches[KEYS] = Cache {
        capacity: stats.key_capacity,
        entries: stats.key_entries,
        bytes: stats.key_bytes,
        hits: stats.key_hits,
        misses: stats.key_misses,
    };
    caches[ROWS] = Cache {
        capacity: rows.capacity,
        entries: rows.entries,
        bytes: rows.bytes,
        hits: rows.hits,
        misses: rows.misses,
    };
    caches
}

/// The caches of all shards. A shard that has stopped counts as empty.
pub(crate) async fn of_node(engine: &Engine) -> Caches {
    let mut all = Caches::default();
    let job = |shard: Rc<Shard>| async move { of_shard(&shard) };
    for caches in engine.tables().mesh().on_each(job).await {
        for (sum, one) in all.iter_mut().zip(caches.unwrap_or_default()) {
            sum.capacity += one.capacity;
            sum.entries += one.entries;
            sum.bytes += one.bytes;
            sum.hits += one.hits;
            sum.misses += one.misses;
        }
    }
    all
}

/// Requests and hits in a second, of each cache.
#[derive(Debug, Default)]
pub(crate) struct CacheRates(Mutex<Option<Rates>>);

#[derive(Debug, Clone, Copy)]
struct Rates {
    seen: Caches,
    at: Instant,
    /// By time constant.
    per_second: [PerSecond; TIME_CONSTANTS.len()],
}

impl CacheRates {
    /// Of fifteen minutes.
    pub(crate) fn per_second(&self) -> PerSecond {
        let [_, _, rates] = self.0.lock().map(|rates| rates.per_second).unwrap_or_default();
        rates
    }

    /// Hits for each request, of one, five and fifteen minutes; not a number without requests, as in Cassandra.
    pub(crate) fn hit_rates(&self) -> [[f64; TIME_CONSTANTS.len()]; 4] {
        let rates = self.0.lock().map(|rates| rates.per_second).unwrap_or_default();
        std::array::from_fn(|cache| {
            rates.map(|of| of.get(cache).map_or(f64::NAN, |(requests, hits)| hits / requests))
        })
    }

    /// The caches as they were sampled last, a few seconds ago.
    pub(crate) fn seen(&self) -> Caches {
        self.0.lock().map(|rates| rates.seen).unwrap_or_default()
    }

    fn note(&self, caches: Caches, at: Instant) {
        let mut rates = self.0.lock();
        let Some(rates) = rates.as_mut() else {
            *rates = Some(Rates { seen: caches, at, per_second: Default::default() });
            return;
        };
        let elapsed = (at - rates.at).as_secs_f64().max(1e-3);
        for (averages, constant) in rates.per_second.iter_mut().zip(TIME_CONSTANTS) {
            let share = 1.0 - (-elapsed / constant).exp();
            let pairs = caches.iter().zip(&rates.seen);
            for ((requests, hits), (new, old)) in averages.iter_mut().zip(pairs) {
                let hit = new.hits.saturating_sub(old.hits) as f64;
                let missed = new.misses.saturating_sub(old.misses) as f64;
                *requests += share * ((hit + missed) / elapsed - *requests);
                *hits += share * (hit / elapsed - *hits);
            }
        }
        (rates.seen, rates.at) = (caches, at);
    }
}

/// Samples the counts until the engine is dropped.
pub(crate) async fn watch_rates(engine: Weak<Engine>, rates: Arc<CacheRates>) {
    while let Some(engine) = engine.upgrade() {
        rates.note(of_node(&engine).await, now());
        drop(engine);
        clock::sleep(TICK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that rates follow the counts, and fade without requests.
    #[test]
    fn rates_follow_counts() {
        let rates = CacheRates::default();
        let mut caches = Caches::default();
        let mut at = now();
        rates.note(caches, at);
        let mut pass = |hits: u64, misses: u64| {
            for _ in 0..900 {
                at = at + TICK;
                caches[KEYS].hits += hits;
                caches[KEYS].misses += misses;
                rates.note(caches, at);
            }
            rates.per_second()[KEYS]
        };
        let (requests, hits) = pass(50, 450);
        assert!((requests - 100.0).abs() < 1.0 && (hits - 10.0).abs() < 0.1, "{requests} {hits}");
        let of_keys = rates.hit_rates()[KEYS];
        assert!(of_keys.iter().all(|rate| (rate - 0.1).abs() < 0.01), "{of_keys:?}");
        assert!(rates.hit_rates()[ROWS].iter().all(|rate| rate.is_nan()));
        let (requests, hits) = pass(0, 0);
        assert!(requests < 1.0 && hits < 0.1, "{requests} {hits}");
    }
}
