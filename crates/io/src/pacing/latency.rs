//! Holds the latency of user reads while compaction takes what the device has left.
//!
//! 1. Every tenth of a second the reads since then are looked at: how many took longer than the target? More than one in a
//!    hundred, and the p99 is above the target.
//! 2. Then compaction's rate falls to seven tenths of what it really took; else it grows by a fixed step, as TCP's window
//!    does (additive increase, multiplicative decrease). So it settles where reads just stand it, and follows when that
//!    changes.
//! 3. It does not grow while compaction takes less than it may: a rate that nobody tried says nothing. It stays under the
//!    ceiling (`compaction_throughput`), and above a floor, so that compaction always ends.
//! 4. Few reads are gathered over up to ten samples, and one slow read among them is forgiven. Where nobody reads, nobody
//!    is hurt.
//!
//! The decision is a function of samples; [`LatencyKeeper`] takes them from a disk's histograms.

use std::time::Duration;

use crate::{
    disk::Disk,
    histogram::{BUCKETS, PurposeStats},
    mode::Purpose,
    pacing::RateLimiter,
};

/// How often reads are looked at.
const EVERY: Duration = Duration::from_millis(100);
/// Reads from which one slow one is no accident.
const ENOUGH_READS: u64 = 100;
/// After so many samples a decision is made whatever there is.
const SAMPLES_MAX: u32 = 10;
/// Compaction ends, however busy the device.
const FLOOR: f64 = (1 << 20) as f64;
/// Where no ceiling is set.
const CEILING: f64 = (8u64 << 30) as f64;
const START: f64 = (64 << 20) as f64;
const STEP_MIN: f64 = (4 << 20) as f64;
const DECREASE: f64 = 0.7;

/// What happened in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// `reads[b]` user reads took `[2^b, 2^(b+1))` nanoseconds.
    pub reads: [u64; BUCKETS],
    /// Bytes that compaction took of its rate.
    pub taken: u64,
    pub elapsed: Duration,
}

/// The rate of compaction, from sample to sample.
#[derive(Debug, Clone)]
pub struct LatencyController {
    target_ns: u64,
    ceiling: f64,
    step: f64,
    rate: f64,
    gathered: Sample,
    samples: u32,
}

impl Sample {
    const NOTHING: Sample = Sample { reads: [0; BUCKETS], taken: 0, elapsed: Duration::ZERO };

    fn add(&mut self, other: &Sample) {
        for (sum, reads) in self.reads.iter_mut().zip(other.reads) {
            *sum += reads;
        }
        self.taken += other.taken;
        self.elapsed += other.elapsed;
    }

    fn count(&self) -> u64 {
        self.reads.iter().sum()
    }

    /// How many reads took longer; inside the bucket they are taken to be spread evenly.
    fn slower_than(&self, target_ns: u64) -> f64 {
        let of_bucket = |(bucket, reads): (usize, &u64)| {
            let (from, to) = ((1u64 << bucket) as f64, (1u64 << (bucket + 1)) as f64);
            let share = ((to - target_ns as f64) / (to - from)).clamp(0.0, 1.0);
            *reads as f64 * share
        };
        self.reads.iter().enumerate().map(of_bucket).sum()
    }
}

impl LatencyController {
    /// Holds the p99 of reads at `target`, under `ceiling` bytes per second if there is one.
    pub fn new(target: Duration, ceiling: Option<u64>) -> LatencyController {
        let ceiling = ceiling.map_or(CEILING, |bytes| (bytes as f64).max(FLOOR));
        LatencyController {
            target_ns: u64::try_from(target.as_nanos()).unwrap_or(u64::MAX),
            ceiling,
            step: (ceiling / 200.0).clamp(STEP_MIN, START),
            rate: START.min(ceiling),
            gathered: Sample::NOTHING,
            samples: 0,
        }
    }

    /// Bytes per second that compaction may take.
    pub fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// Takes in what happened since the last sample; returns the rate from now on.
    pub fn observe(&mut self, sample: &Sample) -> u64 {
        self.gathered.add(sample);
        self.samples += 1;
        let reads = self.gathered.count();
        if reads > 0 && reads < ENOUGH_READS && self.samples < SAMPLES_MAX {
            return self.rate();
        }
        let gathered = std::mem::replace(&mut self.gathered, Sample::NOTHING);
        self.samples = 0;
        let seconds = gathered.elapsed.as_secs_f64();
        let taken = if seconds > 0.0 { gathered.taken as f64 / seconds } else { 0.0 };
        let forgiven = (reads as f64 / 100.0).max(1.0);
        if gathered.slower_than(self.target_ns) > forgiven {
            // What was not used did not slow the reads; but an idle compaction keeps what it may begin with.
            let used = if taken > FLOOR { taken.min(self.rate) } else { self.rate };
            self.rate = (used * DECREASE).max(FLOOR);
        } else if taken >= self.rate / 2.0 {
            self.rate = (self.rate + self.step).min(self.ceiling);
        }
        self.rate()
    }
}

/// Feeds a controller from a disk, and a limiter from the controller.
#[derive(Debug)]
pub struct LatencyKeeper {
    disk: Disk,
    limiter: RateLimiter,
    controller: LatencyController,
    seen: Seen,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    reads: [u64; BUCKETS],
    taken: u64,
    at: crate::clock::Instant,
}

impl Seen {
    fn now(disk: &Disk, limiter: &RateLimiter) -> Seen {
        let of_reads = |stats: &PurposeStats| stats.purpose == Purpose::UserRead;
        let stats = disk.histograms();
        let reads = stats.iter().find(|s| of_reads(s)).map_or([0; BUCKETS], |s| s.latency);
        Seen { reads, taken: limiter.taken(), at: disk.clock().now() }
    }
}

impl LatencyKeeper {
    /// Sets the limiter's rate from now on.
    pub fn new(disk: Disk, limiter: RateLimiter, controller: LatencyController) -> LatencyKeeper {
        limiter.set_rate(Some(controller.rate()));
        let seen = Seen::now(&disk, &limiter);
        LatencyKeeper { disk, limiter, controller, seen }
    }

    /// Looks once. Called by `run`, or by whoever keeps the time.
    pub fn look(&mut self) {
        let now = Seen::now(&self.disk, &self.limiter);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let sample = Sample {
            reads: std::array::from_fn(|b| since(now.reads[b], self.seen.reads[b])),
            taken: since(now.taken, self.seen.taken),
            elapsed: now.at - self.seen.at,
        };
        self.seen = now;
        self.limiter.set_rate(Some(self.controller.observe(&sample)));
    }

    /// Looks again and again, for as long as it is polled.
    pub async fn run(mut self) {
        loop {
            self.disk.clock().clone().sleep(EVERY).await;
            self.look();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A second in which so many reads took about 1 ms and so many about 8 ms, and compaction took so many MiB.
    fn sample(fast: u64, slow: u64, taken_mib: u64) -> Sample {
        let mut reads = [0; BUCKETS];
        reads[19] = fast;
        reads[22] = slow;
        Sample { reads, taken: taken_mib * MIB, elapsed: Duration::from_secs(1) }
    }

    /// Proves each rule: lists of samples, and the rate in MiB/s after each.
    #[test]
    fn rules() {
        type Case = (&'static str, Option<u64>, &'static [((u64, u64, u64), u64)]);
        let cases: [Case; 7] = [
            (
                "grows while it is used and reads are fast",
                Some(200),
                &[((1000, 0, 64), 68), ((1000, 10, 68), 72), ((0, 0, 72), 76)],
            ),
            (
                "falls from what was taken when one read in a hundred is slow",
                Some(200),
                &[((1000, 11, 60), 42), ((1000, 11, 40), 28), ((1000, 0, 28), 32)],
            ),
            ("does not grow unused", Some(200), &[((1000, 0, 10), 64), ((1000, 0, 0), 64)]),
            (
                "keeps its rate when it is idle and others slow the reads",
                Some(200),
                &[((1000, 500, 0), 44)],
            ),
            ("stays under the ceiling", Some(66), &[((1000, 0, 64), 66), ((1000, 0, 66), 66)]),
            ("never below the floor", Some(2), &[((0, 500, 2), 1), ((0, 500, 1), 1)]),
            (
                "few reads are gathered, and one slow one is forgiven",
                None,
                &[
                    ((30, 1, 64), 64),
                    ((30, 0, 64), 64),
                    ((50, 0, 64), 104),
                    ((0, 1, 104), 104),
                    ((0, 200, 104), 72),
                ],
            ),
        ];
        for (name, ceiling, samples) in cases {
            let ceiling = ceiling.map(|mib| mib * MIB);
            let mut controller = LatencyController::new(Duration::from_millis(2), ceiling);
            for ((fast, slow, taken), expected) in samples {
                let rate = controller.observe(&sample(*fast, *slow, *taken));
                assert_eq!(rate / MIB, *expected, "{name}: {fast} {slow} {taken}");
            }
        }
    }

    /// Proves that it settles: a device on which reads are slow as soon as compaction takes more than 120 MiB/s is
    /// given between half and all of that, most of the time.
    #[test]
    fn settles() {
        let mut controller = LatencyController::new(Duration::from_millis(2), Some(1000 * MIB));
        let mut held = 0;
        for second in 0..1000 {
            let rate = controller.rate() / MIB;
            let slow = if rate > 120 { 30 } else { 2 };
            controller.observe(&sample(1000, slow, rate));
            held += u64::from(second >= 100 && (60..=125).contains(&rate));
        }
        assert!(held > 850, "{held}");
    }

    /// Proves that a keeper reads the disk's histogram and sets the limiter.
    #[test]
    fn keeper() {
        let (disk, simulated) = Disk::simulated(1);
        let limiter = RateLimiter::bytes_per_second(disk.clock().clone(), None);
        let controller = LatencyController::new(Duration::from_millis(2), Some(100 * MIB));
        let mut keeper = LatencyKeeper::new(disk.clone(), limiter.clone(), controller);
        assert_eq!(limiter.rate(), Some(64 * MIB));
        for _ in 0..1000 {
            let seen = crate::histogram::Seen::After(50_000_000);
            disk.counters().observed(Purpose::UserRead, Ok(1), seen);
        }
        simulated.clock().advance(Duration::from_secs(1));
        keeper.look();
        assert!(limiter.rate() < Some(64 * MIB));
    }
}
