//! Latency, bytes and queue depth of every I/O, by purpose.
//!
//! 1. An operation counts itself in when it is submitted and out when it completes.
//! 2. Its latency lands in a bucket of a power of two of nanoseconds.
//! 3. Each thread has counters of its own, which are summed when they are asked for: no I/O writes to a cache line of another thread.
//!
//! A read-ahead or write-behind operation may finish while its thread computes. On a ring its end
//! is not seen then, so its latency is unknown; such operations are counted as `overlapped`, not in the
//! buckets: a number made of the thread's own computing would be a lie about the device.

use std::sync::Arc;
use std::time::Duration;

use halcyon_metrics::{
    Counter, Counts, Gauge, Histogram, Kind, Labels, Metric, Sample, Unit, Value, buckets_below,
};

use crate::mode::Purpose;
use crate::spent;
use crate::sync::per_thread::PerThread;

/// Powers of two of nanoseconds; the last one holds a day and a half.
const BUCKETS: usize = buckets_below(1, 48);

/// Latencies of operations.
pub type IoLatency = Counts<1, BUCKETS>;

/// Operations of the bucket from 4 ms on, and above, stood still: no device that keeps up takes so long for a few KiB.
const STANDSTILL_NS: u64 = 1 << 22;

/// A copy of the counters of one purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurposeStats {
    pub purpose: Purpose,
    pub operations: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Operations that were done before anyone asked; they are not in `latency`.
    pub overlapped: u64,
    /// In nanoseconds, from submission to completion; at least one.
    pub latency: IoLatency,
    pub queue_depth: u64,
    /// The most that one thread has had in flight.
    pub queue_depth_max: u64,
}

impl PurposeStats {
    /// The upper edge, in nanoseconds, of the bucket in which the quantile (0..=1) falls.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        self.latency.quantile(quantile).map(|quantile| quantile.below())
    }

    /// What stood still longest since an earlier copy was made, by the lower edge of its bucket; zero if nothing did.
    pub fn stood_still_since(&self, earlier: &PurposeStats) -> Duration {
        let since = self.latency.since(&earlier.latency);
        let longest = since.filled().next_back().map_or(0, |(bucket, _)| bucket.from);
        if longest < STANDSTILL_NS { Duration::ZERO } else { Duration::from_nanos(longest) }
    }

    /// Shows all of them, with the purpose as scope.
    pub(crate) fn walk(&self, show: &mut dyn FnMut(Sample<'_>)) {
        let scope = self.purpose.to_string();
        let labels = Labels { scope: Some(&scope), ..Labels::default() };
        let values = [
            Value::Number(self.operations),
            Value::Number(self.bytes),
            Value::Number(self.errors),
            Value::Number(self.overlapped),
            Value::Number(self.queue_depth),
            Value::Number(self.queue_depth_max),
            Value::Distribution(&self.latency),
        ];
        for (metric, value) in DECLARED.iter().zip(values) {
            show(Sample { metric, labels, value });
        }
    }
}

/// In the order of [`PurposeStats::walk`]. Cassandra does not count its I/O.
pub(crate) const DECLARED: [Metric; 7] = [
    Metric::own("IO", "Operations", "Operations that have completed."),
    Metric::own("IO", "Bytes", "Bytes of operations that have succeeded.")
        .of(Kind::Counter, Unit::Bytes),
    Metric::own("IO", "Errors", "Operations that have failed."),
    Metric::own("IO", "Overlapped", "Operations that were done before their task waited for them."),
    Metric::own("IO", "QueueDepth", "Operations that the kernel has.").of(Kind::Gauge, Unit::Count),
    Metric::own("IO", "QueueDepthMax", "The most operations that the kernel had of one thread.")
        .of(Kind::Gauge, Unit::Count),
    Metric::own("IO", "Latency", "Time from submission to completion.")
        .of(Kind::Timer, Unit::Nanoseconds),
];

/// Written by atomic additions: beyond 64 threads several share one, and an operation may complete on another thread.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PurposeMetrics {
    operations: Counter,
    bytes: Counter,
    errors: Counter,
    overlapped: Counter,
    latency: Histogram<1, BUCKETS>,
    depth: Gauge,
    depth_max: Gauge,
}

/// The counters of all purposes of one thread. An operation keeps those of the thread that submitted it.
#[derive(Debug)]
pub(crate) struct ThreadMetrics {
    purposes: [PurposeMetrics; Purpose::ALL.len()],
}

/// The counters of one disk.
#[derive(Debug)]
pub(crate) struct DiskMetrics(PerThread<Arc<ThreadMetrics>>);

impl ThreadMetrics {
    fn empty() -> Arc<ThreadMetrics> {
        Arc::new(ThreadMetrics { purposes: Default::default() })
    }

    pub(crate) fn submitted(&self, purpose: Purpose) {
        let metrics = &self.purposes[purpose as usize];
        metrics.depth_max.raise_shared(metrics.depth.up_shared());
    }

    /// The kernel is done; counted apart from `observed`, because a dropped reader never observes.
    pub(crate) fn completed(&self, purpose: Purpose) {
        self.purposes[purpose as usize].depth.down_shared();
    }

    pub(crate) fn observed(&self, purpose: Purpose, outcome: Result<usize, ()>, seen: Seen) {
        let metrics = &self.purposes[purpose as usize];
        metrics.operations.add_shared(1);
        match outcome {
            Ok(bytes) => metrics.bytes.add_shared(bytes as u64),
            Err(()) => metrics.errors.add_shared(1),
        }
        let ns = match seen {
            Seen::Overlapped => {
                metrics.overlapped.add_shared(1);
                0
            }
            Seen::After(ns) => {
                metrics.latency.record_shared(ns.max(1));
                ns
            }
        };
        if purpose == Purpose::UserRead {
            spent::device(Duration::from_nanos(ns));
        }
    }
}

/// How much some purposes have used a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) operations: u64,
    pub(crate) in_flight: u64,
}

impl DiskMetrics {
    pub(crate) fn empty() -> DiskMetrics {
        DiskMetrics(PerThread::empty())
    }

    pub(crate) fn used_for(&self, purposes: &[Purpose]) -> Used {
        let mut used = Used { operations: 0, in_flight: 0 };
        for thread in self.0.iter() {
            for metrics in purposes.iter().map(|purpose| &thread.purposes[*purpose as usize]) {
                used.operations += metrics.operations.get();
                used.in_flight += metrics.depth.get();
            }
        }
        used
    }

    /// Those of the calling thread.
    pub(crate) fn here(&self) -> &Arc<ThreadMetrics> {
        self.0.get_or_init(ThreadMetrics::empty)
    }

    pub(crate) fn snapshot(&self) -> Vec<PurposeStats> {
        Purpose::ALL.iter().map(|&purpose| self.of(purpose)).collect()
    }

    pub(crate) fn of(&self, purpose: Purpose) -> PurposeStats {
        let threads = || self.0.iter().map(|thread| &thread.purposes[purpose as usize]);
        let sum = |of: fn(&PurposeMetrics) -> u64| threads().map(of).sum();
        let mut latency = IoLatency::default();
        threads().for_each(|metrics| latency.add_histogram(&metrics.latency));
        PurposeStats {
            purpose,
            operations: sum(|metrics| metrics.operations.get()),
            bytes: sum(|metrics| metrics.bytes.get()),
            errors: sum(|metrics| metrics.errors.get()),
            overlapped: sum(|metrics| metrics.overlapped.get()),
            latency,
            queue_depth: sum(|metrics| metrics.depth.get()),
            queue_depth_max: threads().map(|metrics| metrics.depth_max.get()).max().unwrap_or(0),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the longest standstill is reported, and neither short operations nor what stood still before.
    #[test]
    fn standstills() {
        let metrics = DiskMetrics::empty();
        let read = |ms: u64| {
            let before = metrics.of(Purpose::UserRead);
            metrics.here().observed(Purpose::UserRead, Ok(10), Seen::After(ms * 1_000_000));
            metrics.of(Purpose::UserRead).stood_still_since(&before).as_nanos()
        };
        assert_eq!([40, 4, 5].map(read), [1 << 25, 0, 1 << 22]);
    }

    /// Proves that a quantile names the upper edge of its bucket.
    #[test]
    fn quantiles() {
        let metrics = DiskMetrics::empty();
        for _ in 0..99 {
            metrics.here().observed(Purpose::UserRead, Ok(10), Seen::After(1000));
        }
        metrics.here().observed(Purpose::UserRead, Ok(10), Seen::After(1_000_000));
        metrics.here().observed(Purpose::UserRead, Ok(10), Seen::Overlapped);
        let stats = &metrics.snapshot()[0];
        assert_eq!((stats.operations, stats.bytes, stats.overlapped), (101, 1010, 1));
        assert_eq!(stats.quantile_ns(0.5), Some(1024));
        assert_eq!(stats.quantile_ns(0.999), Some(1 << 20));
        assert_eq!(metrics.snapshot()[1].quantile_ns(0.5), None);
    }
}
