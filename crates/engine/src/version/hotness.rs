//! How often an SSTable is read (`RestorableMeter`): the two-hour rate by which size-tiered compaction prefers hot SSTables.
//!
//! Shards sample: a counter that each read increments would be a cache line that all of them share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;

/// A shard counts one in this number of reads, as that many.
pub(crate) const SAMPLE: u32 = 64;
const PERIOD_SECONDS: f64 = 7200.0;

#[derive(Debug, Default)]
pub(crate) struct Hotness {
    reads: AtomicU64,
    rate: Mutex<Rate>,
}

#[derive(Debug, Default)]
struct Rate {
    at: Option<Instant>,
    reads: u64,
    per_second: f64,
}

impl Hotness {
    pub(crate) fn sampled(&self) {
        self.reads.fetch_add(u64::from(SAMPLE), Relaxed);
    }

    /// Reads per second: an average of the last two hours or so, exponentially weighted.
    pub(crate) fn rate(&self, now: Instant) -> f64 {
        let mut rate = self.rate.lock();
        let reads = self.reads.load(Relaxed);
        let seconds = rate.at.map_or(0.0, |at| now.saturating_since(at).as_secs_f64());
        if seconds >= 1.0 {
            let recent = reads.saturating_sub(rate.reads) as f64 / seconds;
            let weight = 1.0 - (-seconds / PERIOD_SECONDS).exp();
            rate.per_second += weight * (recent - rate.per_second);
        }
        if rate.at.is_none() || seconds >= 1.0 {
            (rate.at, rate.reads) = (Some(now), reads);
        }
        rate.per_second
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Proves that a steady rate is approached, and that it is forgotten when reads end.
    #[test]
    fn follows_the_reads() {
        let (disk, simulated) = halcyon_io::Disk::simulated(1);
        let hotness = Hotness::default();
        assert_eq!(hotness.rate(disk.clock().now()), 0.0);
        for _ in 0..100 {
            (0..10).for_each(|_| hotness.sampled());
            simulated.clock().advance(Duration::from_secs(640));
            assert!(hotness.rate(disk.clock().now()) <= 1.0);
        }
        assert!(hotness.rate(disk.clock().now()) > 0.99);
        simulated.clock().advance(Duration::from_secs(36_000));
        assert!(hotness.rate(disk.clock().now()) < 0.01);
    }
}
