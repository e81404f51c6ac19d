//! `system_views.caches`: the caches of all shards together, and how often they were asked lately.
//!
//! Shards only count. Every few seconds the counts are looked at, and what came since moves an average that forgets with a time constant
//! of fifteen minutes, as a meter's fifteen-minute rate.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use halcyon_engine::{Engine, Shard};
use halcyon_io::clock::{self, Instant, now};

use super::Views;
use super::rows::Rows;

/// How often counts are looked at, as meters do.
const TICK: Duration = Duration::from_secs(5);
const FORGETS_IN: f64 = 900.0;

/// Names in the order of [`Figures`].
const NAMES: [&str; 4] = ["chunks", "counters", "keys", "rows"];
const CHUNKS: usize = 0;
const KEYS: usize = 2;
const ROWS: usize = 3;

/// Figures of one cache, over all shards. Counters have no cache here: the memtable has what is hot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cache {
    capacity: u64,
    entries: usize,
    bytes: u64,
    hits: u64,
    misses: u64,
}

type Figures = [Cache; 4];

fn of_shard(shard: &Shard) -> Figures {
    let (stats, rows) = (shard.cache_stats(), shard.row_cache_stats());
    let mut figures = Figures::default();
    figures[CHUNKS] = Cache {
        capacity: stats.chunk_capacity,
        entries: stats.chunk_entries,
        bytes: stats.chunk_bytes,
        hits: stats.chunk_hits,
        misses: stats.chunk_misses,
    };
    figures[KEYS] = Cache {
        capacity: stats.key_capacity,
        entries: stats.key_entries,
        bytes: stats.key_bytes,
        hits: stats.key_hits,
        misses: stats.key_misses,
    };
    figures[ROWS] = Cache {
        capacity: rows.capacity,
        entries: rows.entries,
        bytes: rows.bytes,
        hits: rows.hits,
        misses: rows.misses,
    };
    figures
}

/// Those of all shards, `here` being the one of this thread; a shard that has stopped tells nothing any more.
async fn of_all(engine: &Engine, here: Option<&Shard>) -> Figures {
    let mut all = Figures::default();
    for index in 0..engine.shard_count() {
        let job = |shard: Rc<Shard>| async move { of_shard(&shard) };
        let figures = match here.filter(|here| here.index() == index) {
            Some(here) => of_shard(here),
            None => engine.mesh().on(index, job).await.unwrap_or_default(),
        };
        for (sum, one) in all.iter_mut().zip(figures) {
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
    seen: Figures,
    at: Instant,
    per_second: [(f64, f64); 4],
}

impl CacheRates {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Rates>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, figures: Figures, at: Instant) {
        let mut rates = self.lock();
        let Some(rates) = rates.as_mut() else {
            *rates = Some(Rates { seen: figures, at, per_second: Default::default() });
            return;
        };
        let elapsed = (at - rates.at).as_secs_f64().max(1e-3);
        let share = 1.0 - (-elapsed / FORGETS_IN).exp();
        let pairs = figures.iter().zip(&rates.seen);
        for ((requests, hits), (new, old)) in rates.per_second.iter_mut().zip(pairs) {
            let hit = new.hits.saturating_sub(old.hits) as f64;
            let missed = new.misses.saturating_sub(old.misses) as f64;
            *requests += share * ((hit + missed) / elapsed - *requests);
            *hits += share * (hit / elapsed - *hits);
        }
        (rates.seen, rates.at) = (figures, at);
    }
}

/// Looks at the counts for as long as the engine is there.
pub(crate) async fn watch_rates(engine: Arc<Engine>, rates: Arc<CacheRates>) {
    let engine = Arc::downgrade(&engine);
    while let Some(engine) = engine.upgrade() {
        rates.note(of_all(&engine, None).await, now());
        drop(engine);
        clock::sleep(TICK).await;
    }
}

impl Views {
    pub(super) async fn caches(&self, rows: &mut Rows<'_>) {
        let figures = of_all(&self.engine, Some(&self.shard)).await;
        let per_second = self.shared.cache_rates.lock().map(|rates| rates.per_second);
        let per_second = per_second.unwrap_or_default();
        for ((name, cache), (requests, hits)) in NAMES.iter().zip(figures).zip(per_second) {
            let asked = cache.hits + cache.misses;
            rows.row()
                .set("name", *name)
                .set("capacity_bytes", cache.capacity)
                .set("entry_count", i32::try_from(cache.entries).unwrap_or(i32::MAX))
                .set("size_bytes", cache.bytes)
                .set("hit_count", cache.hits)
                .set("hit_ratio", cache.hits as f64 / asked as f64)
                .set("request_count", asked)
                .set("recent_hit_rate_per_second", hits as u64)
                .set("recent_request_rate_per_second", requests as u64)
                .done();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that rates follow the counts, and fade when nothing comes.
    #[test]
    fn rates_follow_counts() {
        let rates = CacheRates::default();
        let mut figures = Figures::default();
        let mut at = now();
        rates.note(figures, at);
        let mut pass = |hits: u64, misses: u64| {
            for _ in 0..900 {
                at = at + TICK;
                figures[KEYS].hits += hits;
                figures[KEYS].misses += misses;
                rates.note(figures, at);
            }
            rates.lock().expect("noted").per_second[KEYS]
        };
        let (requests, hits) = pass(50, 450);
        assert!((requests - 100.0).abs() < 1.0 && (hits - 10.0).abs() < 0.1, "{requests} {hits}");
        let (requests, hits) = pass(0, 0);
        assert!(requests < 1.0 && hits < 0.1, "{requests} {hits}");
    }
}
