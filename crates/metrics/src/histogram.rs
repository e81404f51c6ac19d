//! Counts of values since the start.

use std::array::from_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::buckets::{Bucket, Quantile, at_rank, bucket_of};
use crate::nanos;

/// One thread's counts. `BUCKETS` comes from [`crate::buckets_below`].
#[derive(Debug)]
pub struct Histogram<const PER_OCTAVE: usize, const BUCKETS: usize>([AtomicU64; BUCKETS]);

/// The counts of one or more histograms at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts<const PER_OCTAVE: usize, const BUCKETS: usize>(Box<[u64; BUCKETS]>);

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Default for Histogram<PER_OCTAVE, BUCKETS> {
    fn default() -> Self {
        Histogram(from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Histogram<PER_OCTAVE, BUCKETS> {
    #[inline]
    fn cell(&self, value: u64) -> &AtomicU64 {
        &self.0[bucket_of::<PER_OCTAVE>(value).min(BUCKETS - 1)]
    }

    #[inline]
    pub fn record(&self, value: u64) {
        let cell = self.cell(value);
        cell.store(cell.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// In nanoseconds. A time of zero counts as one: the clock has ticked less.
    #[inline]
    pub fn record_time(&self, time: Duration) {
        self.record(nanos(time).max(1));
    }

    #[inline]
    pub fn record_shared(&self, value: u64) {
        self.cell(value).fetch_add(1, Relaxed);
    }

    pub fn counts(&self) -> Counts<PER_OCTAVE, BUCKETS> {
        let mut counts = Counts::default();
        counts.add_histogram(self);
        counts
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Default for Counts<PER_OCTAVE, BUCKETS> {
    fn default() -> Self {
        Counts(Box::new([0; BUCKETS]))
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Counts<PER_OCTAVE, BUCKETS> {
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    pub fn record_many(&mut self, value: u64, count: u64) {
        self.0[bucket_of::<PER_OCTAVE>(value).min(BUCKETS - 1)] += count;
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0.iter()) {
            *sum += count;
        }
    }

    /// Another thread's.
    pub fn add_histogram(&mut self, histogram: &Histogram<PER_OCTAVE, BUCKETS>) {
        for (sum, cell) in self.0.iter_mut().zip(&histogram.0) {
            *sum += cell.load(Relaxed);
        }
    }

    /// What has come since an earlier copy was made.
    pub fn since(&self, earlier: &Self) -> Self {
        Counts(Box::new(from_fn(|at| self.0[at].saturating_sub(earlier.0[at]))))
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// All buckets, in order.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (Bucket, u64)> + '_ {
        self.0.iter().enumerate().map(|(at, count)| (Bucket::at::<PER_OCTAVE>(at), *count))
    }

    /// The buckets that are not empty, in order.
    pub fn filled(&self) -> impl DoubleEndedIterator<Item = (Bucket, u64)> + '_ {
        self.buckets().filter(|(_, count)| *count > 0)
    }

    /// How many were larger; inside a bucket they are taken to be spread evenly.
    pub fn larger_than(&self, value: u64) -> f64 {
        let at = bucket_of::<PER_OCTAVE>(value).min(BUCKETS - 1);
        let Bucket { from, below } = Bucket::at::<PER_OCTAVE>(at);
        let share = ((below as f64 - value as f64) / (below - from) as f64).clamp(0.0, 1.0);
        let above: u64 = self.0[at + 1..].iter().sum();
        above as f64 + self.0[at] as f64 * share
    }

    /// Where the value lies that the share `quantile` (0..=1) of all does not exceed; `None` without values.
    pub fn quantile(&self, quantile: f64) -> Option<Quantile> {
        self.at_rank((self.total() as f64 * quantile).ceil().max(1.0))
    }

    /// Where the value of a rank lies, which may be between two values; the first one has rank 1.
    pub fn at_rank(&self, rank: f64) -> Option<Quantile> {
        let weights = self.0.iter().map(|count| *count as f64).enumerate();
        at_rank::<PER_OCTAVE>(weights, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;

    type Fine = Histogram<8, { buckets_below(8, 46) }>;
    type Coarse = Counts<1, { buckets_below(1, 48) }>;

    /// Proves quantiles and shares, and that only what came since an earlier copy is counted.
    #[test]
    fn copies_are_compared() {
        let histogram = Fine::default();
        histogram.record(9_000_000);
        let before = histogram.counts();
        (0..99).for_each(|_| histogram.record(1_000_000));
        histogram.record_shared(4_000_000);
        let counts = histogram.counts().since(&before);
        assert_eq!(counts.total(), 100);
        assert_eq!((counts.larger_than(2_000_000), counts.larger_than(5_000_000)), (1.0, 0.0));
        let p99 = counts.quantile(0.99).unwrap().spread();
        assert!((1_000_000.0..1_130_000.0).contains(&p99), "{p99}");
        assert!(counts.quantile(1.0).unwrap().spread() > 4_000_000.0);
        assert_eq!(before.quantile(0.0).unwrap().bucket.from, 8_388_608);
    }

    /// Proves that a quantile names its bucket, that values are counted by it, and that nothing falls outside.
    #[test]
    fn values_have_buckets() {
        let mut counts = Coarse::default();
        assert_eq!(counts.quantile(0.5), None);
        counts.record_many(1000, 99);
        counts.record(1_000_000);
        let below = |at: f64| counts.quantile(at).map(Quantile::below);
        assert_eq!(
            (below(0.5), below(0.99), below(0.999)),
            (Some(1024), Some(1024), Some(1 << 20))
        );
        let filled: Vec<(u64, u64)> = counts.filled().map(|(b, count)| (b.below, count)).collect();
        assert_eq!(filled, [(1024, 99), (1 << 20, 1)]);
        counts.record(u64::MAX);
        assert_eq!(
            counts.buckets().next_back().unwrap(),
            (Bucket { from: 1 << 47, below: 1 << 48 }, 1)
        );
        assert_eq!(counts.larger_than(u64::MAX), 0.0);
    }
}
