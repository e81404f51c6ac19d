//! A histogram that forgets, its counts since the start, and the rate of its values: one thread writes it, any thread reads it.
//!
//! 1. The first value allocates the memory: most tables have most kinds of values never. The summary of such a reservoir allocates
//!    nothing either.
//! 2. Weights double every minute (forward decay, as in Cassandra's reservoirs), so quantiles cover the last minutes. Weights are
//!    rescaled before they overflow.
//! 3. Each bucket also counts its values since the start: a client takes the difference of two readings. The counts are the only count
//!    of values, so they cost a write no more than one counter would.
//! 4. The rate decays with a time constant of five minutes, like the five-minute rate of a meter. The weights of the last minutes give
//!    the rate of about a minute.

use std::array::from_fn;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::buckets::{Bucket, Quantile, at_rank, bucket_of};
use crate::counter::Counter;

/// The number of doublings after which weights are rescaled.
const MINUTES_MAX: u64 = 16;
/// The time after which a value has no weight (`LANDMARK_RESET_INTERVAL_IN_MS`).
const FORGOTTEN_MINUTES: i32 = 30;
const RATE_SECONDS: f64 = 300.0;

/// A time in seconds, of the one clock that all writers and readers of a reservoir use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub u64);

#[derive(Default)]
pub struct Reservoir<const PER_OCTAVE: usize, const BUCKETS: usize>(
    OnceLock<Box<Weights<BUCKETS>>>,
);

struct Weights<const BUCKETS: usize> {
    sum: Counter,
    weights: [AtomicU64; BUCKETS],
    /// Since the start.
    counts: [Counter; BUCKETS],
    /// The minute in which values have weights from 60 to 119.
    landmark: AtomicU64,
    /// Events of the last five minutes, as of `recent_at` (bits of an `f64`, seconds).
    recent: AtomicU64,
    recent_at: AtomicU64,
}

/// The values of one or more reservoirs at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary<const PER_OCTAVE: usize, const BUCKETS: usize> {
    /// Of all values, also the forgotten ones.
    pub count: u64,
    /// Of all values, also the forgotten ones.
    pub sum: u64,
    /// Of the last five minutes.
    pub per_second: f64,
    /// Of about the last minute: its values lose half of their weight each minute.
    pub per_second_of_a_minute: f64,
    /// `None` without values.
    buckets: Option<Box<Filled<BUCKETS>>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Filled<const BUCKETS: usize> {
    weights: [f64; BUCKETS],
    /// Since the start.
    counts: [u64; BUCKETS],
}

impl<const BUCKETS: usize> Default for Filled<BUCKETS> {
    fn default() -> Self {
        Filled { weights: [0.0; BUCKETS], counts: [0; BUCKETS] }
    }
}

impl<const BUCKETS: usize> Weights<BUCKETS> {
    fn at(second: u64) -> Weights<BUCKETS> {
        Weights {
            sum: Counter::default(),
            weights: from_fn(|_| AtomicU64::new(0)),
            counts: from_fn(|_| Counter::default()),
            landmark: AtomicU64::new(second / 60),
            recent: AtomicU64::new(0),
            recent_at: AtomicU64::new(second),
        }
    }

    /// The weight of a value now; linear within a minute.
    fn weight(&self, second: u64) -> u64 {
        let mut minutes = (second / 60).saturating_sub(self.landmark.load(Relaxed));
        if minutes >= MINUTES_MAX {
            for weight in &self.weights {
                weight
                    .store(weight.load(Relaxed).checked_shr(minutes as u32).unwrap_or(0), Relaxed);
            }
            self.landmark.store(second / 60, Relaxed);
            minutes = 0;
        }
        (60 + second % 60) << minutes
    }

    /// Events of the last five minutes before `second`.
    fn recent(&self, second: u64) -> f64 {
        let past = second.saturating_sub(self.recent_at.load(Relaxed));
        f64::from_bits(self.recent.load(Relaxed)) * (-(past as f64) / RATE_SECONDS).exp()
    }

    fn add_recent(&self, second: u64) {
        let recent = match second == self.recent_at.load(Relaxed) {
            true => f64::from_bits(self.recent.load(Relaxed)),
            false => self.recent(second),
        };
        self.recent_at.store(second, Relaxed);
        self.recent.store((recent + 1.0).to_bits(), Relaxed);
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Reservoir<PER_OCTAVE, BUCKETS> {
    pub fn record(&self, value: u64, now: impl Into<Seconds>) {
        let Seconds(second) = now.into();
        let weights = self.0.get_or_init(|| Box::new(Weights::at(second)));
        let weight = weights.weight(second);
        weights.sum.add(value);
        let bucket = bucket_of::<PER_OCTAVE>(value).min(BUCKETS - 1);
        weights.counts[bucket].up();
        let cell = &weights.weights[bucket];
        cell.store(cell.load(Relaxed).wrapping_add(weight), Relaxed);
        weights.add_recent(second);
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Reservoir<PER_OCTAVE, BUCKETS> {
    /// How many values there were since the start.
    pub fn count(&self) -> u64 {
        self.0.get().map_or(0, |weights| weights.counts.iter().map(Counter::get).sum())
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> fmt::Debug for Reservoir<PER_OCTAVE, BUCKETS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservoir of {}", self.count())
    }
}

impl<const PER_OCTAVE: usize, const BUCKETS: usize> Summary<PER_OCTAVE, BUCKETS> {
    pub fn nothing() -> Self {
        Summary { count: 0, sum: 0, per_second: 0.0, per_second_of_a_minute: 0.0, buckets: None }
    }

    pub fn add(&mut self, reservoir: &Reservoir<PER_OCTAVE, BUCKETS>, now: impl Into<Seconds>) {
        let Some(weights) = reservoir.0.get() else { return };
        let Seconds(second) = now.into();
        self.sum = self.sum.wrapping_add(weights.sum.get());
        self.per_second += weights.recent(second) / RATE_SECONDS;
        let minutes = (second / 60).saturating_sub(weights.landmark.load(Relaxed));
        let of_now = (-(minutes as f64)).exp2();
        let buckets = self.buckets.get_or_insert_default();
        let mut total = 0.0;
        for (sum, weight) in buckets.weights.iter_mut().zip(&weights.weights) {
            let weight = weight.load(Relaxed) as f64 * of_now;
            *sum += weight;
            total += weight;
        }
        // A value of now has the weight that `Weights::weight` gives it; the sum of all weights that halve each minute is 60 / ln 2 times
        // the rate.
        self.per_second_of_a_minute +=
            total / (60 + second % 60) as f64 * std::f64::consts::LN_2 / 60.0;
        for (sum, count) in buckets.counts.iter_mut().zip(&weights.counts) {
            let count = count.get();
            *sum += count;
            self.count += count;
        }
    }

    /// Adds the values of other reservoirs at the same time.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.per_second += other.per_second;
        self.per_second_of_a_minute += other.per_second_of_a_minute;
        let Some(of_other) = &other.buckets else { return };
        let buckets = self.buckets.get_or_insert_default();
        for (sum, weight) in buckets.weights.iter_mut().zip(&of_other.weights) {
            *sum += weight;
        }
        for (sum, count) in buckets.counts.iter_mut().zip(&of_other.counts) {
            *sum += count;
        }
    }

    /// The counts of all buckets since the start, in order; none without values.
    pub fn since_start(&self) -> impl Iterator<Item = (Bucket, u64)> + '_ {
        let counts = self.buckets.iter().flat_map(|buckets| buckets.counts.iter().enumerate());
        counts.map(|(at, count)| (Bucket::at::<PER_OCTAVE>(at), *count))
    }

    /// Weights by the index of their bucket, but for forgotten ones.
    fn weights(&self) -> impl DoubleEndedIterator<Item = (usize, f64)> + '_ {
        let least = 60.0 * f64::from(-FORGOTTEN_MINUTES).exp2();
        let weights = self.buckets.as_ref().map_or(&[][..], |buckets| &buckets.weights[..]);
        weights.iter().copied().enumerate().filter(move |(_, weight)| *weight >= least)
    }

    /// The buckets with a weight, in order.
    pub fn filled(&self) -> impl DoubleEndedIterator<Item = (Bucket, f64)> + '_ {
        self.weights().map(|(at, weight)| (Bucket::at::<PER_OCTAVE>(at), weight))
    }

    fn total(&self) -> f64 {
        self.weights().map(|(_, weight)| weight).sum()
    }

    /// The largest value of the bucket with the quantile (0..=1); 0 without values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = self.total() * quantile;
        at_rank::<PER_OCTAVE>(self.weights(), rank).map_or(0, Quantile::largest)
    }

    /// Every value counts as the largest of its bucket; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        let sum: f64 = self.filled().map(|(bucket, weight)| bucket.largest() as f64 * weight).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// The largest value of the last bucket with a weight; 0 without values.
    pub fn max(&self) -> u64 {
        self.filled().next_back().map_or(0, |(bucket, _)| bucket.largest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;

    type Recent = Reservoir<4, { buckets_below(4, 40) }>;
    type Seen = Summary<4, { buckets_below(4, 40) }>;

    fn summary(reservoir: &Recent, second: u64) -> Seen {
        let mut summary = Summary::nothing();
        summary.add(reservoir, Seconds(second));
        summary
    }

    /// Proves that quantiles follow recent values, that the count does not decay, and that values lose all weight in half an hour.
    #[test]
    fn the_past_fades() {
        let mut second = 0;
        let reservoir = Recent::default();
        assert_eq!(summary(&reservoir, second), Summary::nothing());
        for _ in 0..1000 {
            reservoir.record(7, Seconds(second));
        }
        let before = summary(&reservoir, second);
        assert_eq!((before.count, before.quantile(0.5), before.max()), (1000, 7, 7));
        assert_eq!((before.mean(), Seen::nothing().mean()), (Some(7.0), None));
        let mut twice = before.clone();
        twice.merge(&before);
        assert_eq!((before.sum, twice.sum, twice.count), (7000, 14_000, 2000));
        assert!((before.per_second - 1000.0 / 300.0).abs() < 0.01, "{}", before.per_second);
        let minute = before.per_second_of_a_minute;
        assert!((minute - 1000.0 * std::f64::consts::LN_2 / 60.0).abs() < 0.01, "{minute}");
        second += 10 * 60;
        for _ in 0..10 {
            reservoir.record(3, Seconds(second));
        }
        let after = summary(&reservoir, second);
        assert_eq!((after.count, after.quantile(0.5), after.max()), (1010, 3, 7));
        second += 40 * 60;
        let late = summary(&reservoir, second);
        assert_eq!((late.count, late.quantile(0.99), late.max()), (1010, 0, 0));
        assert!(late.per_second < 0.01);
        let counts: Vec<_> = late.since_start().filter(|(_, count)| *count > 0).collect();
        let counted: Vec<_> = counts.iter().map(|(bucket, count)| (bucket.from, *count)).collect();
        assert_eq!(counted, [(3, 10), (7, 1000)]);
        assert_eq!(Seen::nothing().since_start().count(), 0);
    }
}
