//! Latency, bytes and queue depth of every I/O, by purpose.
//!
//! 1. An operation counts itself in when it is submitted and out when it completes.
//! 2. Its latency lands in a bucket of a power of two of nanoseconds: bucket `b` holds latencies in
//!    `[2^b, 2^(b+1))`.
//! 3. Each thread has counters of its own, which are summed when they are asked for: no I/O writes to a cache line of another thread.
//!
//! A read-ahead or write-behind operation may finish while its thread computes. On a ring its end
//! is not seen then, so its latency is unknown; such operations are counted as `overlapped`, not in the
//! buckets: a number made of the thread's own computing would be a lie about the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::mode::Purpose;
use crate::sync::per_thread::PerThread;

pub const BUCKETS: usize = 48;

/// Operations of this bucket, 4 ms, and above stood still: no device that keeps up takes so long for a few KiB.
const STANDSTILL: usize = 22;

/// A copy of the counters of one purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurposeStats {
    pub purpose: Purpose,
    pub operations: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Operations that were done before anyone asked; they are not in `latency`.
    pub overlapped: u64,
    /// `latency[b]` operations took `[2^b, 2^(b+1))` nanoseconds from submission to completion.
    pub latency: [u64; BUCKETS],
    pub queue_depth: u64,
    /// The most that one thread has had in flight.
    pub queue_depth_max: u64,
}

impl PurposeStats {
    /// The upper edge, in nanoseconds, of the bucket in which the quantile (0..=1) falls.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let total: u64 = self.latency.iter().sum();
        if total == 0 {
            return None;
        }
        let rank = ((total as f64 * quantile).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        for (bucket, count) in self.latency.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(1u64 << (bucket + 1));
            }
        }
        None
    }

    /// What stood still longest since an earlier copy was made, by the lower edge of its bucket; zero if nothing did.
    pub fn stood_still_since(&self, earlier: &PurposeStats) -> Duration {
        let longest = (STANDSTILL..BUCKETS).rev().find(|b| self.latency[*b] > earlier.latency[*b]);
        longest.map_or(Duration::ZERO, |bucket| Duration::from_nanos(1 << bucket))
    }
}

#[derive(Debug)]
#[repr(align(128))]
struct Counters {
    operations: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    overlapped: AtomicU64,
    latency: [AtomicU64; BUCKETS],
    depth: AtomicU64,
    depth_max: AtomicU64,
}

/// The counters of all purposes of one thread. An operation keeps those of the thread that submitted it.
#[derive(Debug)]
pub(crate) struct ThreadHistograms {
    purposes: [Counters; Purpose::ALL.len()],
}

/// The counters of one disk.
#[derive(Debug)]
pub(crate) struct Histograms(PerThread<Arc<ThreadHistograms>>);

impl ThreadHistograms {
    fn empty() -> Arc<ThreadHistograms> {
        Arc::new(ThreadHistograms {
            purposes: std::array::from_fn(|_| Counters {
                operations: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                errors: AtomicU64::new(0),
                overlapped: AtomicU64::new(0),
                latency: std::array::from_fn(|_| AtomicU64::new(0)),
                depth: AtomicU64::new(0),
                depth_max: AtomicU64::new(0),
            }),
        })
    }

    pub(crate) fn submitted(&self, purpose: Purpose) {
        let counters = &self.purposes[purpose as usize];
        let depth = counters.depth.fetch_add(1, Relaxed) + 1;
        if depth > counters.depth_max.load(Relaxed) {
            counters.depth_max.fetch_max(depth, Relaxed);
        }
    }

    /// The kernel is done; counted apart from `observed`, because a dropped reader never observes.
    pub(crate) fn completed(&self, purpose: Purpose) {
        self.purposes[purpose as usize].depth.fetch_sub(1, Relaxed);
    }

    pub(crate) fn observed(&self, purpose: Purpose, outcome: Result<usize, ()>, seen: Seen) {
        let counters = &self.purposes[purpose as usize];
        counters.operations.fetch_add(1, Relaxed);
        match outcome {
            Ok(bytes) => counters.bytes.fetch_add(bytes as u64, Relaxed),
            Err(()) => counters.errors.fetch_add(1, Relaxed),
        };
        match seen {
            Seen::Overlapped => counters.overlapped.fetch_add(1, Relaxed),
            Seen::After(ns) => counters.latency[bucket(ns)].fetch_add(1, Relaxed),
        };
    }
}

/// How much some purposes have used a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) operations: u64,
    pub(crate) in_flight: u64,
}

impl Histograms {
    pub(crate) fn empty() -> Histograms {
        Histograms(PerThread::empty())
    }

    pub(crate) fn used_for(&self, purposes: &[Purpose]) -> Used {
        let mut used = Used { operations: 0, in_flight: 0 };
        for thread in self.0.iter() {
            for counters in purposes.iter().map(|purpose| &thread.purposes[*purpose as usize]) {
                used.operations += counters.operations.load(Relaxed);
                used.in_flight += counters.depth.load(Relaxed);
            }
        }
        used
    }

    /// Those of the calling thread.
    pub(crate) fn here(&self) -> &Arc<ThreadHistograms> {
        self.0.get_or_init(ThreadHistograms::empty)
    }

    pub(crate) fn snapshot(&self) -> Vec<PurposeStats> {
        Purpose::ALL.iter().map(|&purpose| self.of(purpose)).collect()
    }

    pub(crate) fn of(&self, purpose: Purpose) -> PurposeStats {
        let threads = || self.0.iter().map(|thread| &thread.purposes[purpose as usize]);
        let sum = |counter: fn(&Counters) -> &AtomicU64| {
            threads().map(|counters| counter(counters).load(Relaxed)).sum()
        };
        PurposeStats {
            purpose,
            operations: sum(|counters| &counters.operations),
            bytes: sum(|counters| &counters.bytes),
            errors: sum(|counters| &counters.errors),
            overlapped: sum(|counters| &counters.overlapped),
            latency: std::array::from_fn(|bucket| {
                threads().map(|counters| counters.latency[bucket].load(Relaxed)).sum()
            }),
            queue_depth: sum(|counters| &counters.depth),
            queue_depth_max: threads()
                .map(|counters| counters.depth_max.load(Relaxed))
                .max()
                .unwrap_or(0),
        }
    }
}

/// When a completion was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    /// Done before anyone looked, at an unknown time.
    Overlapped,
    /// This many nanoseconds after submission.
    After(u64),
}

/// The bucket of a latency: its upper edge is `2^(bucket+1)`.
pub fn bucket(ns: u64) -> usize {
    (63 - ns.max(1).leading_zeros() as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that bucket edges are powers of two and that nothing falls outside the array.
    #[test]
    fn bucket_edges() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(1), 0);
        assert_eq!(bucket(2), 1);
        assert_eq!(bucket(1023), 9);
        assert_eq!(bucket(1024), 10);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Proves that the longest standstill is reported, and neither short operations nor what stood still before.
    #[test]
    fn standstills() {
        let histograms = Histograms::empty();
        let read = |ms: u64| {
            let before = histograms.of(Purpose::UserRead);
            histograms.here().observed(Purpose::UserRead, Ok(10), Seen::After(ms * 1_000_000));
            histograms.of(Purpose::UserRead).stood_still_since(&before).as_nanos()
        };
        assert_eq!([40, 4, 5].map(read), [1 << 25, 0, 1 << 22]);
    }

    /// Proves that a quantile names the upper edge of its bucket.
    #[test]
    fn quantiles() {
        let histograms = Histograms::empty();
        for _ in 0..99 {
            histograms.here().observed(Purpose::UserRead, Ok(10), Seen::After(1000));
        }
        histograms.here().observed(Purpose::UserRead, Ok(10), Seen::After(1_000_000));
        histograms.here().observed(Purpose::UserRead, Ok(10), Seen::Overlapped);
        let stats = &histograms.snapshot()[0];
        assert_eq!((stats.operations, stats.bytes, stats.overlapped), (101, 1010, 1));
        assert_eq!(stats.quantile_ns(0.5), Some(1024));
        assert_eq!(stats.quantile_ns(0.999), Some(1 << 20));
        assert_eq!(histograms.snapshot()[1].quantile_ns(0.5), None);
    }
}
