//! Holds the latency of reads while compaction takes what is left.
//!
//! 1. Every tenth of a second the reads since then are looked at: how many took longer than the target? More than one in a
//!    hundred, and the p99 is above the target.
//! 2. Then compaction's rate falls to a part of what it really took, by more the worse it is. If half of that many are slow it
//!    stays. Else it grows, slowly (additive increase, multiplicative decrease, as TCP's window). So it settles where reads just
//!    stand it, and follows when that changes.
//! 3. It does not grow while compaction takes less than it may: a rate that was not tried says nothing. It stays under the
//!    ceiling (`compaction_throughput`), and above a floor, which rises when compaction is behind.
//! 4. Few reads are gathered over up to ten samples, and one slow read among them is forgiven. Without reads, nothing limits
//!    compaction.
//! 5. Where it is known how often a look is slow without compaction, as many are not its fault (`noise.rs`).
//!
//! Which reads, and from when to when, is the caller's to choose: what a client waits for is not the device alone. On a machine of
//! few cores compaction takes the processor and its caches too, and its bytes are the measure of all of that.

use std::time::Duration;

use halcyon_metrics::nanos;

use crate::LatencyCounts;
use crate::noise::Noise;

/// From this number of reads on, one slow read is not an accident.
const ENOUGH_READS: u64 = 100;
/// After this number of samples a decision is made even with few reads.
const SAMPLES_MAX: u32 = 10;
const FLOOR: f64 = (1 << 20) as f64;
/// Where no ceiling is set.
const CEILING: f64 = (8u64 << 30) as f64;
/// More than most machines compact.
const FULL: f64 = (1u64 << 30) as f64;
const START: f64 = (64 << 20) as f64;
const STEP_MIN: f64 = (2 << 20) as f64;
/// The step's part of the rate.
const GROWTH: f64 = 1.0 / 16.0;
/// For reads that are a little, and much too slow.
const DECREASE: f64 = 0.8;
const DECREASE_MUCH: f64 = 0.5;
/// Slow reads above this multiple of the forgiven number are many, and the rate falls further.
const MUCH: f64 = 4.0;

/// What happened in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    pub reads: LatencyCounts,
    /// Bytes that compaction took of its rate.
    pub taken: u64,
    /// By the host, or by a limit: of each processor's time, in the mean, and how long a read stood still at the device.
    pub withheld: Duration,
    pub elapsed: Duration,
}

/// The rate of compaction, from sample to sample.
#[derive(Debug, Clone)]
pub struct LatencyController {
    target_ns: u64,
    ceiling: f64,
    /// Compaction ends, however busy the device.
    least: f64,
    floor: f64,
    /// It stays below this, but not below the floor.
    cap: f64,
    rate: f64,
    gathered: Sample,
    samples: u32,
    /// Looks that would be slow without compaction too, where that is known.
    pub(super) noise: Noise,
}

/// In nanoseconds, if the reads of a bucket are spread evenly.
pub fn p99_ns(reads: &LatencyCounts) -> Option<u64> {
    reads.quantile(0.99).map(|p99| p99.spread() as u64)
}

impl Sample {
    pub(super) fn add(&mut self, other: &Sample) {
        self.reads.add(&other.reads);
        self.taken += other.taken;
        self.withheld += other.withheld;
        self.elapsed += other.elapsed;
    }
}

impl LatencyController {
    /// Holds the p99 of reads at `target`, under `ceiling` bytes per second if there is one.
    pub fn new(target: Duration, ceiling: Option<u64>) -> LatencyController {
        let ceiling = ceiling.map_or(CEILING, |bytes| bytes as f64);
        LatencyController {
            target_ns: nanos(target),
            ceiling,
            least: FLOOR,
            floor: FLOOR,
            cap: ceiling,
            rate: START.min(ceiling),
            gathered: Sample::default(),
            samples: 0,
            noise: Noise::unknown(1.0, Duration::ZERO),
        }
    }

    /// Compaction gets `least` bytes per second, or the ceiling if that is less.
    pub fn with_least(mut self, least: u64) -> LatencyController {
        self.least = least as f64;
        self.set_floor(0.0);
        self
    }

    /// Holds another target from now on.
    pub fn aim(&mut self, target: Duration) {
        self.target_ns = nanos(target);
    }

    /// Limits the rate to `cap` bytes per second from now on, if the floor lets it.
    pub(super) fn set_cap(&mut self, cap: Option<f64>) {
        self.cap = cap.unwrap_or(self.ceiling);
        self.set(self.rate);
    }

    pub fn ceiling(&self) -> u64 {
        self.ceiling as u64
    }

    /// Bytes per second that compaction may take.
    pub fn rate(&self) -> u64 {
        self.rate as u64
    }

    /// Compaction gets so much whatever the reads do: at 0 the least, from 1 on all. In between it is this part of what it starts with; or,
    /// where that is more, each step of `part` is as many times as much, for a debt that grows in spite of it needs more than a little.
    pub fn set_floor(&mut self, part: f64) {
        let full = self.ceiling.min(FULL);
        let part = part.clamp(0.0, 1.0);
        let between = (START * part).max(self.least * (full / self.least).powf(part));
        self.floor = if part >= 1.0 { self.ceiling } else { between };
        self.set(self.rate);
    }

    fn set(&mut self, rate: f64) {
        self.rate = rate.min(self.cap).max(self.floor).min(self.ceiling);
    }

    /// Takes in what happened since the last sample; returns the rate from now on.
    pub fn observe(&mut self, sample: &Sample) -> u64 {
        self.gathered.add(sample);
        self.samples += 1;
        let reads = self.gathered.reads.total();
        if reads > 0 && reads < ENOUGH_READS && self.samples < SAMPLES_MAX {
            return self.rate();
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.samples = 0;
        let seconds = gathered.elapsed.as_secs_f64();
        let taken = if seconds > 0.0 { gathered.taken as f64 / seconds } else { 0.0 };
        let forgiven = (reads as f64 / 100.0).max(1.0);
        let slow = gathered.reads.larger_than(self.target_ns);
        let is_slow = slow > forgiven;
        if self.noise.blames(gathered.elapsed, is_slow) {
            // What was not used did not slow the reads; but an idle compaction keeps what it may begin with.
            let used = if taken > FLOOR { taken.min(self.rate) } else { self.rate };
            let part = if slow > MUCH * forgiven { DECREASE_MUCH } else { DECREASE };
            self.set(used * part);
        } else if slow <= forgiven / 2.0 && taken >= self.rate / 2.0 {
            self.set(self.rate + (self.rate * GROWTH).max(STEP_MIN));
        }
        self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::Plant;

    const MIB: u64 = 1 << 20;

    /// A second with reads of 1 ms and reads of 8 ms, in which compaction took this many MiB.
    fn sample(fast: u64, slow: u64, taken_mib: u64) -> Sample {
        let mut reads = LatencyCounts::default();
        (0..fast).for_each(|_| reads.record(1_000_000));
        (0..slow).for_each(|_| reads.record(8_000_000));
        let elapsed = Duration::from_secs(1);
        Sample { reads, taken: taken_mib * MIB, elapsed, ..Sample::default() }
    }

    /// Proves each rule: lists of samples, and the rate in MiB/s after each.
    #[test]
    fn rules() {
        type Case = (&'static str, Option<u64>, &'static [((u64, u64, u64), u64)]);
        let cases: [Case; 8] = [
            (
                "grows while it is used and reads are fast",
                Some(200),
                &[((1000, 0, 64), 68), ((1000, 5, 68), 72), ((0, 0, 72), 76)],
            ),
            ("stays where half of what is forgiven is slow", Some(200), &[((1000, 6, 64), 64)]),
            (
                "falls from what was taken when one read in a hundred is slow",
                Some(200),
                &[((1000, 11, 60), 48), ((1000, 50, 40), 20), ((1000, 0, 20), 22)],
            ),
            ("does not grow unused", Some(200), &[((1000, 0, 10), 64), ((1000, 0, 0), 64)]),
            (
                "keeps half its rate when it is idle and others slow the reads",
                Some(200),
                &[((1000, 500, 0), 32)],
            ),
            ("stays under the ceiling", Some(66), &[((1000, 0, 64), 66), ((1000, 0, 66), 66)]),
            ("never below the floor", Some(2), &[((0, 500, 2), 1), ((0, 500, 1), 1)]),
            (
                "few reads are gathered, and one slow one is forgiven",
                None,
                &[((30, 1, 64), 64), ((30, 0, 64), 64), ((50, 0, 64), 64), ((200, 0, 64), 68)],
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

    /// Proves that a backlog is a floor, and that a large one switches the controller off.
    #[test]
    fn floor() {
        let mut controller = LatencyController::new(Duration::from_millis(2), Some(200 * MIB));
        controller.set_floor(0.5);
        for _ in 0..10 {
            controller.observe(&sample(0, 500, 64));
        }
        assert_eq!(controller.rate(), 32 * MIB);
        controller.set_floor(1.0);
        assert_eq!(controller.rate(), 200 * MIB);
    }

    /// The p99 and the mean rate of `seconds`.
    fn run(plant: &mut Plant, controller: &mut LatencyController, seconds: u32) -> (u64, u64) {
        plant.run(seconds, controller.rate(), |sample| controller.observe(sample))
    }

    /// Proves, on a simulated device, for targets of 1, 2 and 5 ms above the idle p99: the p99 of all reads stays within a fifth above
    /// the target, compaction gets more than half of what any rate could give it, and when the reads end it gets everything soon.
    #[test]
    fn holds_the_target_and_takes_what_is_left() {
        let mut plant = Plant::new(2000);
        let (idle, _) = plant.run(10, 0, |_| 0);
        for above in [1, 2, 5] {
            let target = idle + above * 1_000_000;
            let mut controller = LatencyController::new(Duration::from_nanos(target), None);
            run(&mut plant, &mut controller, 20);
            let (p99, rate) = run(&mut plant, &mut controller, 100);
            let best = plant.best(target);
            eprintln!("{target} ns: p99 {p99}, {} of {} MiB/s", rate / MIB, best / MIB);
            assert!(p99 <= target + target / 5, "{p99} at a target of {target}");
            assert!(rate >= best / 2, "{rate} of {best}");
            for _ in 0..50 {
                let taken = controller.rate() / 10;
                let elapsed = Duration::from_millis(100);
                controller.observe(&Sample { taken, elapsed, ..Sample::default() });
            }
            assert!(controller.rate() > 5 * rate);
        }
    }
}
