//! Caches of a running server: full ones with many misses, and disabled ones.

use crate::doctor::facts::{BLOCK, Cache, Facts, SMALL};
use crate::doctor::finding::{Finding, Severity};
use halcyon_model::units;

/// Fewer requests are not significant.
const ENOUGH: u64 = 1000;
const POOR: f64 = 0.8;
const FULL: f64 = 0.9;

/// Cache, and its setting in cassandra.yaml.
const KNOWN: [(&str, &str); 2] = [("chunks", "file_cache_size"), ("keys", "key_cache_size")];

pub(super) fn examine(facts: &Facts) -> Vec<Finding> {
    let Some(live) = &facts.live else { return Vec::new() };
    let found = live.caches.iter().filter_map(|cache| {
        let (_, setting) = KNOWN.iter().find(|(name, _)| *name == cache.name)?;
        of_cache(facts, cache, setting)
    });
    found.collect()
}

fn of_cache(facts: &Facts, cache: &Cache, setting: &str) -> Option<Finding> {
    let hit_ratio = cache.hits as f64 / cache.requests.max(1) as f64;
    let is_off = cache.capacity == 0;
    let is_full = cache.size as f64 >= FULL * cache.capacity as f64;
    if !is_off && (cache.requests < ENOUGH || hit_ratio >= POOR) {
        return None;
    }
    let miss = match cache.name.as_str() {
        "chunks" => facts.largest().map_or(BLOCK as f64, |table| table.device_bytes_of_a_chunk()),
        _ => BLOCK as f64,
    };
    let data: u64 = facts.tables.iter().map(|table| table.data_bytes).sum();
    let mut evidence = vec![format!(
        "{} of {} used, {} hits of {} requests (system_views.caches)",
        units::bytes(cache.size),
        units::bytes(cache.capacity),
        units::count(cache.hits),
        units::count(cache.requests)
    )];
    if data > 0 {
        evidence.push(format!("all tables looked at have {} uncompressed", units::bytes(data)));
    }
    let what = match (is_off, is_full) {
        (true, _) => "the cache is off".to_owned(),
        (_, true) => format!(
            "full, and {:.0} % of what is asked for is not in it",
            100.0 * (1.0 - hit_ratio)
        ),
        (_, false) => format!(
            "not full, and {:.0} % of what is asked for is not in it: it is cold, or what is asked for is new each time",
            100.0 * (1.0 - hit_ratio)
        ),
    };
    let cure = match is_off || is_full {
        true => format!("{setting}: {}   # cassandra.yaml, then a restart", larger(cache.capacity)),
        false => "# nothing, if the server was started a short while ago".to_owned(),
    };
    // The data fits into the page cache.
    let is_small = facts.machine.is_some() && data < SMALL;
    let in_vain = if is_off { miss } else { (1.0 - hit_ratio) * miss };
    Some(Finding {
        severity: if (is_full || is_off) && !is_small { Severity::Warning } else { Severity::Note },
        kind: "caches",
        of: format!("cache of {}", cache.name),
        what,
        evidence,
        bytes_per_query: Some(in_vain as u64),
        cost: format!(
            "{} for each miss, from the page cache or the device",
            units::bytes(miss as u64)
        ),
        cure: vec![cure],
    })
}

fn larger(capacity: u64) -> String {
    let mib = (2 * capacity).div_ceil(1 << 20).max(64);
    format!("{mib}MiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::facts::Server;

    fn found(cache: Cache) -> Option<Finding> {
        let live = Server { caches: vec![cache], ..Server::default() };
        examine(&Facts { live: Some(live), ..Facts::default() }).pop()
    }

    /// Proves when a cache is too small, when it is cold, and when there is no finding.
    #[test]
    fn caches_that_are_missed() {
        let mib = 1 << 20;
        let full = Cache {
            name: "chunks".into(),
            capacity: 100 * mib,
            size: 99 * mib,
            requests: 10_000,
            hits: 2000,
        };
        let of_full = found(full.clone()).expect("a finding");
        assert_eq!(of_full.severity, Severity::Warning);
        assert!(of_full.cure[0].starts_with("file_cache_size: 200MiB"), "{:?}", of_full.cure);
        assert_eq!(of_full.bytes_per_query, Some(3276), "four of five queries read a block");
        let cold = found(Cache { size: mib, ..full.clone() }).expect("a finding");
        assert_eq!(cold.severity, Severity::Note);
        assert!(found(Cache { hits: 9000, ..full.clone() }).is_none());
        assert!(found(Cache { requests: 10, hits: 0, ..full.clone() }).is_none());
        assert!(
            found(Cache { name: "rows".into(), capacity: 0, ..full.clone() }).is_none(),
            "off by default"
        );
        assert!(found(Cache { name: "keys".into(), capacity: 0, ..full }).is_some());
    }
}
