//! What a shard counts of addresses (`CIDRAuthorizerMetrics`): accesses by group, and how long checks, lookups and reloads take.

use std::collections::BTreeMap;
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;
use halcyon_metrics::{Counter, Reservoir, Summary, buckets_below, nanos};

const BUCKETS: usize = buckets_below(4, 40);

/// Nanoseconds.
type Times = Reservoir<4, BUCKETS>;
pub type CidrSummary = Summary<4, BUCKETS>;

/// Of an address that belongs to no group.
const UNDEFINED: &str = "Undefined";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accesses {
    pub accepted: u64,
    pub rejected: u64,
}

/// Of one shard, which alone writes it.
#[derive(Debug, Default)]
pub struct CidrMetrics {
    /// By group. Only a reader of all shards ever waits for it.
    accesses: Mutex<BTreeMap<String, Accesses>>,
    pub reloads: Counter,
    pub checks: Times,
    pub lookups: Times,
    pub reload_times: Times,
}

impl CidrMetrics {
    pub fn checked(&self, groups: &[String], is_accepted: bool) {
        let mut accesses = self.accesses.lock();
        let mut count = |group: &str| {
            let counts = match accesses.get_mut(group) {
                Some(counts) => counts,
                None => accesses.entry(group.to_owned()).or_default(),
            };
            let count = if is_accepted { &mut counts.accepted } else { &mut counts.rejected };
            *count += 1;
        };
        match groups.is_empty() {
            true => count(UNDEFINED),
            false => groups.iter().for_each(|group| count(group)),
        }
    }

    pub fn reloaded(&self, took: Duration, now: Instant) {
        self.reloads.up();
        self.reload_times.record(nanos(took), now);
    }

    /// Adds its counts to those of other shards.
    pub fn add_to(&self, all: &mut BTreeMap<String, Accesses>) {
        for (group, counts) in self.accesses.lock().iter() {
            let sum = all.entry(group.clone()).or_default();
            sum.accepted += counts.accepted;
            sum.rejected += counts.rejected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that each group of an address is counted, an address without one too, and that shards are summed.
    #[test]
    fn accesses_are_counted_by_group() {
        let (one, other) = (CidrMetrics::default(), CidrMetrics::default());
        one.checked(&["a".to_owned(), "b".to_owned()], true);
        one.checked(&[], false);
        other.checked(&["a".to_owned()], false);
        let mut all = BTreeMap::new();
        [one, other].iter().for_each(|metrics| metrics.add_to(&mut all));
        let counts: Vec<(&str, u64, u64)> =
            all.iter().map(|(group, of)| (group.as_str(), of.accepted, of.rejected)).collect();
        assert_eq!(counts, [("Undefined", 0, 1), ("a", 1, 1), ("b", 1, 0)]);
    }
}
