//! Holds the latency of reads while compaction takes what is left.
//!
//! 1. A moment is a tenth of a second, or as long as it takes for a hundred reads, a second at most. It is slow if more than one read in a
//!    hundred takes longer than the target: then its p99 is above the target.
//! 2. At the target itself about every third moment is slow by chance. So what counts is whether slow moments are too frequent
//!    (`evidence.rs`). Then the rate falls to a part of what compaction really took (`climb.rs`).
//! 3. Else it grows after each moment that was not slow and in which compaction took what it may: a rate that was not tried says nothing.
//!    It stays under the ceiling (`compaction_throughput`), and above a floor, which rises when compaction is behind. Without reads,
//!    nothing limits compaction.
//! 4. A host gives a virtual machine, and a control group a container, a quota of its processors in each slice of time. With its quota
//!    used up, it stands still for the rest of the slice with all threads, 20 ms and more for every read that comes meanwhile. Reads show
//!    that too late; the kernel says what was withheld. Compaction takes part in the quota even where it runs only when nothing else
//!    does. A rented volume does the same with its bytes and operations, and a read that stands still at the device shows it.
//!
//! Which reads, and from when to when, is the caller's to choose: what a client waits for is not the device alone. On a machine of
//! few cores compaction takes the processor and its caches too, and its bytes are the measure of all of that.

use std::time::Duration;

use halcyon_metrics::nanos;

use crate::LatencyCounts;
use crate::climb::Climb;
use crate::evidence::Evidence;

/// Of a moment with a p99.
const ENOUGH_READS: u64 = 100;
/// What a moment, and a look at what was withheld, lasts at most.
const SECOND: Duration = Duration::from_secs(1);
const FLOOR: f64 = (1 << 20) as f64;
/// Where no ceiling is set.
const CEILING: f64 = (8u64 << 30) as f64;
/// More than most machines compact.
const FULL: f64 = (1u64 << 30) as f64;
const START: f64 = (64 << 20) as f64;
/// Of the moments, beside those that are slow at rest, that may be slow, and that are too many: with the first a p99 at the target stands.
const SLOW_MOMENTS: (f64, f64) = (0.2, 0.6);
/// Moments of rest, and the share of them that is slow: assumed before any is seen.
const SLOW_AT_REST: (f64, f64) = (20.0, 0.1);
/// A second. Each costs reads a slice, and one in half a minute is less than one read in a thousand.
const WITHHELD_MOMENTS: (f64, f64) = (1.0 / 30.0, 8.0 / 30.0);
/// Seconds of rest without any: assumed before any is seen.
const WITHHELD_AT_REST: (f64, f64) = (20.0, 0.0);
/// Of each core's time, within a second, or of reads. The kernel counts what a host withholds in steps of 10 ms of one core.
const MUCH_WITHHELD: Duration = Duration::from_millis(10);
/// Slow reads above this multiple of the forgiven number are many: the moment counts more, and the rate falls further.
const MUCH: f64 = 4.0;
const MUCH_COUNTS: f64 = 1.5;
/// The part of a rate that remains after it was too much, and after it was much too much.
const PART: f64 = 0.7;
const PART_OF_MUCH: f64 = 0.5;
/// How long the share at rest is remembered.
const REST_SECONDS: f64 = 5.0;
/// Seconds until the rate is back where it was too much.
const RETURNS: f64 = 4.0;
const RETURNS_AFTER_WITHHELD: f64 = 20.0;
/// Operations that started before the rate fell are still running.
pub(super) const SETTLES: Duration = Duration::from_millis(100);

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
    climb: Climb,
    /// The moment so far.
    gathered: Sample,
    slow: Evidence,
    withheld: Withheld,
    /// Since the rate fell.
    settles: Duration,
    /// The rate fell since `fell` was called last.
    fell: bool,
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

    fn is_complete(&self) -> bool {
        let reads = self.reads.total();
        reads == 0 || reads >= ENOUGH_READS || self.elapsed >= SECOND
    }
}

/// What was withheld: of late, and at rest.
#[derive(Debug, Clone)]
struct Withheld {
    of_late: Duration,
    elapsed: Duration,
    /// The share of time at rest.
    at_rest: f64,
    /// Several moments in a row at rest count once, or a rush that ended would pardon compaction for minutes.
    much_at_rest: bool,
    moments: Evidence,
}

impl Withheld {
    fn unknown() -> Withheld {
        Withheld {
            of_late: Duration::ZERO,
            elapsed: Duration::ZERO,
            at_rest: 0.0,
            much_at_rest: false,
            moments: Evidence::new(WITHHELD_MOMENTS, WITHHELD_AT_REST),
        }
    }

    /// Whether it is much more than at rest. What was much is not counted again.
    fn is_much(&mut self, sample: &Sample) -> bool {
        self.of_late += sample.withheld;
        self.elapsed += sample.elapsed;
        let is_much = self.of_late > MUCH_WITHHELD + self.elapsed.mul_f64(2.0 * self.at_rest);
        if is_much {
            (self.of_late, self.elapsed) = Default::default();
        } else if self.elapsed >= SECOND {
            (self.of_late, self.elapsed) = (self.of_late / 2, self.elapsed / 2);
        }
        is_much
    }

    fn rest(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds > 0.0 {
            let was_much = self.is_much(sample);
            let goes_on = std::mem::replace(&mut self.much_at_rest, was_much);
            self.moments.learn(seconds, f64::from(u8::from(was_much && !goes_on)));
            let share = sample.withheld.as_secs_f64() / seconds;
            self.at_rest += (share - self.at_rest) * (seconds / REST_SECONDS).min(1.0);
        }
    }

    fn observe(&mut self, sample: &Sample) -> bool {
        let events = f64::from(u8::from(self.is_much(sample)));
        self.moments.observe(sample.elapsed.as_secs_f64(), events)
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
            climb: Climb::from(START.min(ceiling)),
            gathered: Sample::default(),
            slow: Evidence::new(SLOW_MOMENTS, SLOW_AT_REST),
            withheld: Withheld::unknown(),
            settles: Duration::ZERO,
            fell: false,
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

    /// Restarts under another ceiling; what was learned at rest stays.
    pub(super) fn set_ceiling(&mut self, ceiling: Option<u64>) {
        let fresh = LatencyController::new(Duration::from_nanos(self.target_ns), ceiling);
        (self.ceiling, self.climb) = (fresh.ceiling, fresh.climb);
        self.limit();
    }

    pub fn ceiling(&self) -> u64 {
        self.ceiling as u64
    }

    /// Bytes per second that compaction may take.
    pub fn rate(&self) -> u64 {
        self.climb.rate() as u64
    }

    /// Compaction gets so much whatever the reads do: at 0 the least, from 1 on all. In between it is this part of what it starts with; or,
    /// where that is more, each step of `part` is as many times as much, for a debt that grows in spite of it needs more than a little.
    pub fn set_floor(&mut self, part: f64) {
        let full = self.ceiling.min(FULL);
        let part = part.clamp(0.0, 1.0);
        let between = (START * part).max(self.least * (full / self.least).powf(part));
        self.floor = if part >= 1.0 { self.ceiling } else { between };
        self.limit();
    }

    fn limit(&mut self) {
        self.climb.limit(self.floor.min(self.ceiling), self.ceiling);
    }

    /// Whether the rate fell since this was asked last.
    pub(super) fn fell(&mut self) -> bool {
        std::mem::take(&mut self.fell)
    }

    /// Compaction was not to blame: the rate is as if it had not fallen.
    pub(super) fn acquit(&mut self) {
        self.climb.forget_the_wall();
        self.limit();
    }

    /// How many of the reads are slow, and how many may be.
    fn slow(&self, reads: &LatencyCounts) -> (f64, f64) {
        let forgiven = (reads.total() as f64 / 100.0).max(1.0);
        (reads.larger_than(self.target_ns), forgiven)
    }

    /// Takes in what happened without compaction.
    pub(super) fn rest(&mut self, sample: &Sample) {
        self.withheld.rest(sample);
    }

    /// Takes in reads of a moment without compaction.
    pub(super) fn learn(&mut self, reads: &LatencyCounts) {
        let (slow, forgiven) = self.slow(reads);
        self.slow.learn(1.0, weight(slow, forgiven));
    }

    /// Takes in what happened since the last sample; returns the rate from now on.
    pub fn observe(&mut self, sample: &Sample) -> u64 {
        let settles = self.settles.saturating_sub(sample.elapsed);
        let was_settling = !std::mem::replace(&mut self.settles, settles).is_zero();
        if was_settling {
            return self.rate();
        }
        let much_withheld = self.withheld.observe(sample);
        self.gathered.add(sample);
        if !self.gathered.is_complete() && !much_withheld {
            return self.rate();
        }
        let moment = std::mem::take(&mut self.gathered);
        let (slow, forgiven) = self.slow(&moment.reads);
        let weight = weight(slow, forgiven);
        let seconds = moment.elapsed.as_secs_f64();
        let taken = if seconds > 0.0 { moment.taken as f64 / seconds } else { 0.0 };
        if moment.reads.total() == 0 && !much_withheld {
            self.climb.forget_the_wall();
        }
        let rate = self.climb.rate();
        if self.slow.observe(1.0, weight) || much_withheld {
            // What was not used did not slow the reads; but an idle compaction keeps what it may begin with.
            let used = if taken > FLOOR { taken.min(rate) } else { rate };
            let seconds = if much_withheld { RETURNS_AFTER_WITHHELD } else { RETURNS };
            self.climb.fall(used, if weight > 1.0 { PART_OF_MUCH } else { PART }, seconds);
            (self.settles, self.fell) = (SETTLES, true);
        } else if weight == 0.0 && taken >= rate / 2.0 {
            self.climb.grow(seconds);
        }
        self.limit();
        self.rate()
    }
}

/// Of a moment, among slow ones; 0 if it is not slow.
fn weight(slow: f64, forgiven: f64) -> f64 {
    match slow {
        few if few <= forgiven => 0.0,
        many if many > MUCH * forgiven => MUCH_COUNTS,
        _ => 1.0,
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
                &[((1000, 0, 64), 80), ((1000, 5, 80), 100), ((0, 0, 100), 125)],
            ),
            (
                "one slow moment, or two, are chance",
                Some(200),
                &[((1000, 11, 64), 64), ((1000, 11, 64), 64), ((1000, 0, 64), 80)],
            ),
            (
                "falls from what was taken when slow moments are many, then returns",
                Some(200),
                &[
                    ((1000, 11, 60), 64),
                    ((1000, 11, 60), 64),
                    ((1000, 11, 60), 64),
                    ((1000, 11, 60), 64),
                    ((1000, 11, 60), 42),
                    // What was under way when the rate fell does not count.
                    ((1000, 0, 42), 42),
                    ((1000, 0, 42), 52),
                    ((1000, 0, 52), 57),
                    ((1000, 0, 57), 59),
                    ((1000, 0, 59), 60),
                    ((1000, 0, 60), 60),
                    ((1000, 0, 60), 62),
                ],
            ),
            (
                "falls by half, and at once, when many reads are slow",
                Some(200),
                &[((1000, 50, 60), 64), ((1000, 50, 60), 64), ((1000, 50, 60), 30)],
            ),
            ("does not grow unused", Some(200), &[((1000, 0, 10), 64), ((1000, 0, 0), 64)]),
            ("stays under the ceiling", Some(66), &[((1000, 0, 64), 66), ((1000, 0, 66), 66)]),
            ("never below the floor", Some(2), &[((0, 500, 2), 2), ((0, 500, 2), 2)]),
            (
                "few reads are gathered, and one slow one is forgiven",
                None,
                &[((30, 1, 64), 80), ((30, 0, 80), 100), ((200, 0, 100), 125)],
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
