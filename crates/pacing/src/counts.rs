//! Latencies in buckets that are fine enough to hold a target by: eight to each power of two.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Eight for each of 44 powers of two: five hours are in the last.
const BUCKETS: usize = 8 * 44;

/// One thread records, any reads.
#[derive(Debug)]
pub struct LatencyHistogram(Box<[AtomicU64]>);

/// A copy of the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyCounts(Box<[u64]>);

/// The bucket of `ns`: the power of two, then the next three bits.
fn bucket(ns: u64) -> usize {
    if ns < 8 {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros() as usize;
    (8 * (power - 2) + (ns >> (power - 3) & 7) as usize).min(BUCKETS - 1)
}

/// First latency of a bucket.
fn start(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let power = bucket / 8 + 2;
    (8 + (bucket % 8) as u64) << (power - 3)
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl LatencyHistogram {
    #[inline]
    pub fn record(&self, ns: u64) {
        let counter = &self.0[bucket(ns)];
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub fn counts(&self) -> LatencyCounts {
        LatencyCounts(self.0.iter().map(|counter| counter.load(Relaxed)).collect())
    }
}

impl Default for LatencyCounts {
    fn default() -> LatencyCounts {
        LatencyCounts(vec![0; BUCKETS].into_boxed_slice())
    }
}

impl LatencyCounts {
    pub fn record(&mut self, ns: u64) {
        self.0[bucket(ns)] += 1;
    }

    pub fn add(&mut self, other: &LatencyCounts) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    /// What has come since an earlier copy was made.
    pub fn since(&self, earlier: &LatencyCounts) -> LatencyCounts {
        let pairs = self.0.iter().zip(&earlier.0);
        LatencyCounts(pairs.map(|(now, before)| now.saturating_sub(*before)).collect())
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// How many took longer; inside a bucket they are taken to be spread evenly.
    pub fn slower_than(&self, ns: u64) -> f64 {
        let at = bucket(ns);
        let (from, to) = (start(at) as f64, start(at + 1) as f64);
        let share = ((to - ns as f64) / (to - from)).clamp(0.0, 1.0);
        let above: u64 = self.0[at + 1..].iter().sum();
        above as f64 + self.0[at] as f64 * share
    }

    /// The latency that the share `quantile` of all stays below; inside a bucket they are taken to be spread evenly.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let total = self.total();
        let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        for (at, count) in self.0.iter().enumerate() {
            if seen + count >= rank {
                let (from, to) = (start(at), start(at + 1));
                let share = (rank - seen) as f64 / *count as f64;
                return Some(from + ((to - from) as f64 * share) as u64);
            }
            seen += count;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that buckets follow each other without a gap and are an eighth of their power of two wide.
    #[test]
    fn buckets() {
        for at in 0..BUCKETS - 1 {
            let (from, to) = (start(at), start(at + 1));
            assert_eq!((bucket(from), bucket(to - 1), bucket(to)), (at, at, at + 1));
            assert!(to - from <= (from / 8).max(1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Proves quantiles and shares, and that only what came since an earlier copy is counted.
    #[test]
    fn counts() {
        let histogram = LatencyHistogram::default();
        histogram.record(9_000_000);
        let before = histogram.counts();
        (0..99).for_each(|_| histogram.record(1_000_000));
        histogram.record(4_000_000);
        let counts = histogram.counts().since(&before);
        assert_eq!(counts.total(), 100);
        assert_eq!((counts.slower_than(2_000_000), counts.slower_than(5_000_000)), (1.0, 0.0));
        let p99 = counts.quantile_ns(0.99).expect("not empty");
        assert!((1_000_000..1_130_000).contains(&p99), "{p99}");
        assert!(counts.quantile_ns(1.0).expect("not empty") > 4_000_000);
        assert_eq!(LatencyCounts::default().quantile_ns(0.5), None);
    }
}
