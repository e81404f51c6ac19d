//! Keeps the latency of reads near what it is without compaction, with nothing to set.
//!
//! 1. What reads take at rest is learned from all stretches in which compaction takes `PROBE_RATE` or less, most of them between
//!    compactions. Old reads are forgotten, for the reads of an hour ago may have been of another table.
//! 2. The target is `BESIDE_REST` times the p99 of that. A `LatencyController` holds it.
//! 3. A p99 is good for one load: twenty thousand reads a second take longer than two thousand, with or without compaction. When
//!    reads come twice or half as often, or nothing was learned for `AGE_MAX`, compaction steps back to `PROBE_RATE` until enough
//!    reads have passed, a second at most. That is also how slowness of another origin is told from its own: it stays.
//! 4. When nobody has read for a second, compaction has all.

use std::time::Duration;

use super::{LatencyController, LatencyCounts, Sample};

/// A p99 within this is what reads may take beside compaction.
const BESIDE_REST: f64 = 1.25;
/// Bytes per second that no read notices.
const PROBE_RATE: u64 = 8 << 20;
/// Compaction takes whole buffers: in a tenth of a second it may have more than its rate.
const AT_REST: f64 = (2 * PROBE_RATE) as f64;
/// Reads that tell a p99 well enough.
const ENOUGH_READS: u64 = 1000;
const PROBE_MAX: Duration = Duration::from_secs(1);
/// What was begun before the rate fell still goes on.
const PROBE_SETTLES: Duration = Duration::from_millis(100);
const AGE_MAX: Duration = Duration::from_secs(30);
/// Loads that jump do not have compaction probe all the time.
const AGE_MIN: Duration = Duration::from_secs(5);
const GENERATION: Duration = Duration::from_secs(20);
/// So many times as many, or as few, are another load.
const ANOTHER_LOAD: f64 = 2.0;
const LOAD_WINDOW: f64 = 1.0;
const QUIET: Duration = Duration::from_secs(1);

/// The rate of compaction, from sample to sample.
#[derive(Debug, Clone)]
pub struct AutoController {
    controller: LatencyController,
    rest: Rest,
    /// Reads per second, over about `LOAD_WINDOW` seconds.
    load: f64,
    /// How long nobody has read.
    quiet: Duration,
    /// How long compaction has stepped back.
    probe: Option<Duration>,
    /// Compaction is so far behind that reads do not count.
    is_urgent: bool,
}

/// What reads take at rest.
#[derive(Debug, Clone, Default)]
struct Rest {
    /// Of this generation, and of the one before.
    reads: LatencyCounts,
    before: LatencyCounts,
    generation: Duration,
    /// At which they were learned, in reads per second.
    load: f64,
    /// How long these reads were gathered, and how long ago.
    learned_for: Duration,
    age: Duration,
}

impl Rest {
    fn learn(&mut self, sample: &Sample, load: f64) {
        if is_another(load, self.load) {
            *self = Rest::default();
        }
        self.generation += self.age + sample.elapsed;
        if self.generation > GENERATION && self.reads.total() >= ENOUGH_READS {
            self.before = std::mem::take(&mut self.reads);
            self.generation = Duration::ZERO;
        }
        self.reads.add(&sample.reads);
        self.learned_for += sample.elapsed;
        self.load = load;
        self.age = Duration::ZERO;
    }

    fn is_known(&self) -> bool {
        self.before.total() + self.reads.total() >= ENOUGH_READS || self.learned_for >= PROBE_MAX
    }

    fn all(&self) -> LatencyCounts {
        let mut all = self.before.clone();
        all.add(&self.reads);
        all
    }
}

fn is_another(load: f64, known: f64) -> bool {
    load > known * ANOTHER_LOAD || load * ANOTHER_LOAD < known
}

impl AutoController {
    /// Stays under `ceiling` bytes per second if there is one.
    pub fn new(ceiling: Option<u64>) -> AutoController {
        AutoController {
            controller: LatencyController::new(Duration::MAX, ceiling).with_least(PROBE_RATE),
            rest: Rest::default(),
            load: 0.0,
            quiet: QUIET,
            probe: None,
            is_urgent: false,
        }
    }

    /// Begins anew under another ceiling; what was learned stays.
    pub fn set_ceiling(&mut self, ceiling: Option<u64>) {
        self.controller = AutoController::new(ceiling).controller;
        self.probe = None;
    }

    /// As `LatencyController::set_floor`.
    pub fn set_floor(&mut self, part: f64) {
        self.is_urgent = part >= 1.0;
        self.controller.set_floor(part);
    }

    /// Bytes per second that compaction may take.
    pub fn rate(&self) -> u64 {
        match self.probe {
            Some(_) if !self.is_urgent => PROBE_RATE.min(self.controller.rate()),
            _ if self.quiet >= QUIET => self.controller.ceiling(),
            _ => self.controller.rate(),
        }
    }

    /// The p99 of reads at rest under a load like the present one.
    pub fn at_rest(&self) -> Option<Duration> {
        let known = self.quiet < QUIET && self.rest.is_known();
        self.rest.all().quantile_ns(0.99).filter(|_| known).map(Duration::from_nanos)
    }

    /// What compaction may slow reads to.
    pub fn target(&self) -> Option<Duration> {
        self.at_rest().map(|rest| rest.mul_f64(BESIDE_REST))
    }

    /// Takes in what happened while nothing was compacted.
    pub fn rest(&mut self, sample: &Sample) {
        self.look(sample);
        self.probe = None;
        self.rest.learn(sample, self.load);
    }

    /// Takes in what happened beside compaction since the last sample; returns the rate from now on.
    pub fn observe(&mut self, sample: &Sample) -> u64 {
        self.look(sample);
        if self.quiet >= QUIET {
            self.probe = None;
            return self.rate();
        }
        let may_rest = AT_REST * sample.elapsed.as_secs_f64();
        let is_at_rest = sample.taken as f64 <= may_rest;
        if is_at_rest && self.probe.is_none_or(|probed| probed >= PROBE_SETTLES) {
            self.rest.learn(sample, self.load);
        } else {
            self.rest.age += sample.elapsed;
        }
        if let Some(probed) = self.probe {
            let goes_on = probed < PROBE_SETTLES || !self.rest.is_known() && probed < PROBE_MAX;
            self.probe = goes_on.then(|| probed + sample.elapsed);
        } else if self.has_to_probe() {
            self.probe = Some(Duration::ZERO);
        } else if !is_at_rest || self.controller.rate() as f64 <= AT_REST {
            self.decide(sample);
        }
        self.rate()
    }

    fn decide(&mut self, sample: &Sample) {
        let Some(target) = self.target() else { return };
        let rest = self.rest.all();
        let slow = rest.slower_than(target.as_nanos() as u64) / rest.total().max(1) as f64;
        self.controller.aim(target, slow);
        self.controller.observe(sample);
    }

    fn look(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let reads = sample.reads.total() as f64;
        self.quiet = if reads > 0.0 { Duration::ZERO } else { self.quiet + sample.elapsed };
        self.load += (reads / seconds - self.load) * (seconds / LOAD_WINDOW).min(1.0);
    }

    fn has_to_probe(&self) -> bool {
        let age = self.rest.age;
        let is_old = age >= AGE_MAX || age >= AGE_MIN && is_another(self.load, self.rest.load);
        (is_old || !self.rest.is_known()) && !self.is_urgent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::plant::Plant;

    const MIB: u64 = 1 << 20;

    fn run(plant: &mut Plant, auto: &mut AutoController, seconds: u32) -> (u64, u64) {
        plant.run(seconds, auto.rate(), |sample| auto.observe(sample))
    }

    /// Proves, on a simulated device, that the p99 stays within a third above what it is at rest and compaction has more than half
    /// of what any rate could give it: after a rest, from nothing, under steps of the load up and down, and after reads became
    /// slower by themselves, when the target follows them.
    #[test]
    fn finds_what_reads_leave() {
        for learns_at_rest in [true, false] {
            let mut plant = Plant::new(2000);
            plant.wait_ns = 100_000.0;
            let mut auto = AutoController::new(None);
            if learns_at_rest {
                plant.run(5, 0, |sample| {
                    auto.rest(sample);
                    0
                });
            }
            for (reads_per_second, idle_ns) in
                [(2000, 300e3), (20_000, 600e3), (2000, 300e3), (2000, 900e3), (200, 300e3)]
            {
                (plant.reads_per_second, plant.idle_ns) = (reads_per_second, idle_ns);
                let (rest, _) = plant.run(20, 0, |_| 0);
                let best = plant.best(rest * 5 / 4);
                run(&mut plant, &mut auto, 60);
                let (p99, rate) = run(&mut plant, &mut auto, 120);
                let (took, had) = (p99 as f64 / rest as f64, rate as f64 / best as f64);
                eprintln!("{reads_per_second}: {took:.2} x {rest} ns, {had:.2} of {}", best / MIB);
                assert!(took < 1.33, "{reads_per_second}, {idle_ns}: {took} x the p99 at rest");
                assert!(had > 0.5, "{reads_per_second}, {idle_ns}: {had} of {best}");
            }
        }
    }

    /// Proves that compaction has all when nobody reads, steps back when somebody does whose reads are not known, and goes on at
    /// once when they are.
    #[test]
    fn steps_back_only_to_learn() {
        let mut plant = Plant::new(0);
        plant.wait_ns = 100_000.0;
        let mut auto = AutoController::new(Some(200 * MIB));
        assert_eq!(auto.rate(), 200 * MIB);
        assert_eq!(run(&mut plant, &mut auto, 5).1, 200 * MIB);
        plant.reads_per_second = 2000;
        run(&mut plant, &mut auto, 1);
        plant.run(1, 0, |sample| {
            auto.rest(sample);
            0
        });
        assert!(auto.at_rest().is_some());
        assert!(auto.observe(&plant.tenth_of_a_second(64 * MIB)) > 4 * PROBE_RATE);
        let unknown =
            AutoController::new(Some(200 * MIB)).observe(&plant.tenth_of_a_second(200 * MIB));
        assert_eq!(unknown, PROBE_RATE);
    }

    /// Proves that compaction that is far behind has all, however slow reads are and whatever is to be learned.
    #[test]
    fn debt_overrides_it() {
        let mut plant = Plant::new(2000);
        let mut auto = AutoController::new(Some(200 * MIB));
        auto.observe(&plant.tenth_of_a_second(0));
        auto.set_floor(1.0);
        for _ in 0..100 {
            assert_eq!(auto.observe(&plant.tenth_of_a_second(200 * MIB)), 200 * MIB);
        }
    }
}
