//! A decaying histogram and the rate of its values: one thread writes it, any thread reads it.
//!
//! ```text
//!   bucket   0  1 … 7 │ 8–9  10–11  12–13  14–15 │ 16–19  20–23 …        from 8 on, four buckets per octave
//! ```
//! 1. Counting is a plain store, not an atomic addition, because the shard is the only writer. The first value allocates the memory.
//! 2. Weights double every minute (forward decay, as in Cassandra's reservoirs), so quantiles cover the last minutes. Weights are
//!    rescaled before they overflow.
//! 3. The rate decays with a time constant of five minutes, like the five-minute rate of a meter.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::clock::Instant;

/// Up to 2^40: eighteen minutes in nanoseconds.
const BUCKETS: usize = 8 + 4 * 37;
/// The number of doublings after which weights are rescaled.
const MINUTES_MAX: u64 = 16;
/// The time after which a value has no weight (`LANDMARK_RESET_INTERVAL_IN_MS`).
const FORGOTTEN_MINUTES: i32 = 30;
const RATE_SECONDS: f64 = 300.0;

#[derive(Default)]
pub(crate) struct Distribution(OnceLock<Box<Counts>>);

struct Counts {
    count: AtomicU64,
    weights: [AtomicU64; BUCKETS],
    /// The minute in which values have weights from 60 to 119.
    landmark: AtomicU64,
    /// Events of the last five minutes, as of `rate_at` (bits of an `f64`, seconds).
    recent: AtomicU64,
    recent_at: AtomicU64,
}

/// The values of all shards at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub count: u64,
    /// Of the last five minutes.
    pub per_second: f64,
    weights: Vec<f64>,
}

fn bucket(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() as usize;
    let quarter = (value >> (octave - 2)) as usize & 3;
    (8 + 4 * (octave - 3) + quarter).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (octave, quarter) = (3 + (bucket - 8) / 4, (bucket - 8) % 4);
    ((5 + quarter as u64) << (octave - 2)) - 1
}

fn seconds(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000
}

impl Counts {
    fn at(now: Instant) -> Counts {
        Counts {
            count: AtomicU64::new(0),
            weights: std::array::from_fn(|_| AtomicU64::new(0)),
            landmark: AtomicU64::new(seconds(now) / 60),
            recent: AtomicU64::new(0),
            recent_at: AtomicU64::new(seconds(now)),
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

impl Distribution {
    pub(crate) fn record(&self, value: u64, now: Instant) {
        let counts = self.0.get_or_init(|| Box::new(Counts::at(now)));
        let second = seconds(now);
        let weight = counts.weight(second);
        crate::report::counter::add(&counts.count, 1);
        crate::report::counter::add(&counts.weights[bucket(value)], weight);
        counts.add_recent(second);
    }
}

impl fmt::Debug for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Distribution of {}", self.0.get().map_or(0, |counts| counts.count.load(Relaxed)))
    }
}

impl Summary {
    pub(crate) fn nothing() -> Summary {
        Summary { count: 0, per_second: 0.0, weights: vec![0.0; BUCKETS] }
    }

    pub(crate) fn add(&mut self, distribution: &Distribution, now: Instant) {
        let Some(counts) = distribution.0.get() else { return };
        let second = seconds(now);
        self.count += counts.count.load(Relaxed);
        self.per_second += counts.recent(second) / RATE_SECONDS;
        let minutes = (second / 60).saturating_sub(counts.landmark.load(Relaxed));
        let of_now = (-(minutes as f64)).exp2();
        for (sum, weight) in self.weights.iter_mut().zip(&counts.weights) {
            *sum += weight.load(Relaxed) as f64 * of_now;
        }
    }

    /// The buckets with a weight.
    fn weights(&self) -> impl DoubleEndedIterator<Item = (usize, f64)> + '_ {
        let least = 60.0 * f64::from(-FORGOTTEN_MINUTES).exp2();
        self.weights.iter().copied().enumerate().filter(move |(_, weight)| *weight >= least)
    }

    /// The largest value of the bucket with the quantile (0..=1); 0 without values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let total: f64 = self.weights().map(|(_, weight)| weight).sum();
        let mut seen = 0.0;
        for (bucket, weight) in self.weights() {
            seen += weight;
            if seen >= total * quantile {
                return upper(bucket);
            }
        }
        self.max()
    }

    /// Every value counts as the largest of its bucket; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let total: f64 = self.weights().map(|(_, weight)| weight).sum();
        let sum: f64 = self.weights().map(|(bucket, weight)| upper(bucket) as f64 * weight).sum();
        (total > 0.0).then(|| sum / total)
    }

    /// The largest value of the last bucket with a weight.
    pub fn max(&self) -> u64 {
        self.weights().next_back().map_or(0, |(bucket, _)| upper(bucket))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn summary(distribution: &Distribution, now: Instant) -> Summary {
        let mut summary = Summary::nothing();
        summary.add(distribution, now);
        summary
    }

    /// Proves that every value falls into a bucket whose largest value is at most a quarter larger.
    #[test]
    fn buckets_hold_their_values() {
        for value in (0..10_000u64).chain([1 << 20, (1 << 39) + 5, (1 << 40) - 1]) {
            let above = upper(bucket(value));
            assert!(above >= value && above - value <= value / 4, "{value}: {above}");
            assert_eq!(bucket(above), bucket(value));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    /// Proves that quantiles follow recent values, that the count does not decay, and that values lose all weight in half an hour.
    #[test]
    fn the_past_fades() {
        let (disk, _) = halcyon_io::Disk::simulated(1);
        let clock = disk.clock().clone();
        let pass = |time: Duration| halcyon_io::block_on(clock.sleep(time));
        let distribution = Distribution::default();
        assert_eq!(summary(&distribution, clock.now()), Summary::nothing());
        for _ in 0..1000 {
            distribution.record(7, clock.now());
        }
        let before = summary(&distribution, clock.now());
        assert_eq!((before.count, before.quantile(0.5), before.max()), (1000, 7, 7));
        assert_eq!((before.mean(), Summary::nothing().mean()), (Some(7.0), None));
        assert!((before.per_second - 1000.0 / 300.0).abs() < 0.01, "{}", before.per_second);
        pass(Duration::from_secs(10 * 60));
        for _ in 0..10 {
            distribution.record(3, clock.now());
        }
        let after = summary(&distribution, clock.now());
        assert_eq!((after.count, after.quantile(0.5), after.max()), (1010, 3, 7));
        pass(Duration::from_secs(40 * 60));
        let late = summary(&distribution, clock.now());
        assert_eq!((late.count, late.quantile(0.99), late.max()), (1010, 0, 0));
        assert!(late.per_second < 0.01);
    }
}
