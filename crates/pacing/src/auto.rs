//! Keeps the latency of reads near what it is without compaction, with nothing to set.
//!
//! 1. What reads take at rest is learned while nothing is compacted, or no more than `PROBE_RATE`. The p99 of each tenth of a second, or of
//!    as long as it takes for a hundred reads, is taken; a look is the median of `LOOK` of these, and what counts is the least of the
//!    last looks. A stall of some milliseconds has many causes: it would be in the p99 of all these reads, but not in the median.
//! 2. The target is `BESIDE_REST` times that. A `LatencyController` holds it.
//! 3. A p99 is good for one load: twenty thousand reads a second take longer than two thousand, with or without compaction. When
//!    reads come twice or half as often, when the rate fell, and each `AGE_MAX`, compaction steps back to `PROBE_RATE` for a look, a
//!    second at most. Slowness of another origin stays in that look: then the target is higher, and the rate is what it was.
//! 4. Without a read for a second, or below `FEW` reads a second, compaction has all: there is no p99.

use std::collections::VecDeque;
use std::time::Duration;

use crate::LatencyCounts;
use crate::latency::{LatencyController, SETTLES, Sample, p99_ns};

/// A p99 within this is what reads may take beside compaction.
const BESIDE_REST: f64 = 1.25;
/// Bytes per second that no read notices.
const PROBE_RATE: u64 = 8 << 20;
/// What has a p99.
const GATHERED_READS: u64 = 100;
const GATHERED_FOR: Duration = Duration::from_secs(1);
/// P99s of a look.
const LOOK: usize = 5;
/// Looks that count.
const LOOKS: usize = 2;
const PROBE_MAX: Duration = Duration::from_secs(1);
const AGE_MAX: Duration = Duration::from_secs(30);
/// Until the first look, if one is due, after what was learned at rest; each look doubles it. Loads that jump and rates that fall
/// do not have compaction probe all the time.
const AGE_MIN: Duration = Duration::from_secs(2);
/// A change of the rate of reads by this factor, up or down, is another load.
const ANOTHER_LOAD: f64 = 2.0;
const LOAD_WINDOW: f64 = 0.5;
/// A compaction that ends and one that begins take nothing for a moment, and are not slower for that.
const USE_WINDOW: f64 = 0.5;
const QUIET: Duration = Duration::from_secs(1);
const FEW: f64 = 10.0;

/// The rate of compaction, from sample to sample.
#[derive(Debug, Clone)]
pub struct AutoController {
    controller: LatencyController,
    rest: Rest,
    /// Reads per second, over about `LOAD_WINDOW` seconds.
    load: f64,
    /// Bytes per second that compaction took, over about `USE_WINDOW` seconds.
    used: f64,
    /// The time since the last read.
    quiet: Duration,
    /// How long compaction has stepped back.
    probe: Option<Duration>,
    /// Compaction is so far behind that reads do not count.
    is_urgent: bool,
}

/// What reads take at rest.
#[derive(Debug, Clone)]
struct Rest {
    gathered: LatencyCounts,
    gathered_for: Duration,
    /// Of a look that is not complete, in nanoseconds.
    p99s: Vec<u64>,
    looks: VecDeque<u64>,
    /// At which they were made, in reads per second.
    load: f64,
    /// Of the last.
    age: Duration,
    /// At which the next may be made.
    age_min: Duration,
    /// The rate fell since then.
    is_doubted: bool,
}

impl Rest {
    fn under(load: f64) -> Rest {
        Rest {
            gathered: LatencyCounts::default(),
            gathered_for: Duration::ZERO,
            p99s: Vec::new(),
            looks: VecDeque::new(),
            load,
            age: Duration::ZERO,
            age_min: AGE_MIN,
            is_doubted: false,
        }
    }

    fn learn(&mut self, sample: &Sample, load: f64, controller: &mut LatencyController) {
        self.load = load;
        self.gathered.add(&sample.reads);
        self.gathered_for += sample.elapsed;
        if self.gathered.total() >= GATHERED_READS || self.gathered_for >= GATHERED_FOR {
            if let Some(target) = self.target() {
                controller.aim(target);
                controller.learn(&self.gathered);
            }
            self.take();
        }
        if self.p99s.len() == LOOK {
            self.complete();
        }
    }

    /// The p99 of what was gathered.
    fn take(&mut self) {
        self.p99s.extend(p99_ns(&self.gathered));
        self.gathered = LatencyCounts::default();
        self.gathered_for = Duration::ZERO;
    }

    /// A look, of what there is.
    fn complete(&mut self) {
        if self.p99s.is_empty() {
            self.take();
        }
        self.p99s.sort_unstable();
        self.looks.extend(self.p99s.get(self.p99s.len() / 2));
        self.looks.drain(..self.looks.len().saturating_sub(LOOKS));
        self.p99s.clear();
        self.age = Duration::ZERO;
    }

    fn p99(&self) -> Option<Duration> {
        self.looks.iter().min().copied().map(Duration::from_nanos)
    }

    fn target(&self) -> Option<Duration> {
        self.p99().map(|rest| rest.mul_f64(BESIDE_REST))
    }

    fn is_due(&self, load: f64) -> bool {
        let is_in_doubt = self.is_doubted || is_another(load, self.load);
        self.looks.is_empty() || self.age >= if is_in_doubt { self.age_min } else { AGE_MAX }
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
            rest: Rest::under(0.0),
            load: 0.0,
            used: 0.0,
            quiet: QUIET,
            probe: None,
            is_urgent: false,
        }
    }

    /// Restarts under another ceiling; what was learned stays.
    pub fn set_ceiling(&mut self, ceiling: Option<u64>) {
        self.controller.set_ceiling(ceiling);
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
            _ if self.is_quiet() => self.controller.ceiling(),
            _ => self.controller.rate(),
        }
    }

    /// No reads, or hardly any.
    pub fn is_quiet(&self) -> bool {
        self.quiet >= QUIET || self.load < FEW
    }

    /// The p99 of reads at rest under a load like the present one.
    pub fn at_rest(&self) -> Option<Duration> {
        self.rest.p99().filter(|_| !self.is_quiet())
    }

    /// What compaction may slow reads to.
    pub fn target(&self) -> Option<Duration> {
        self.rest.target().filter(|_| !self.is_quiet())
    }

    /// Takes in what happened while nothing was compacted.
    pub fn rest(&mut self, sample: &Sample) {
        self.look(sample);
        self.probe = None;
        self.learn(sample);
    }

    /// Takes in what happened beside compaction since the last sample; returns the rate from now on.
    pub fn observe(&mut self, sample: &Sample) -> u64 {
        self.look(sample);
        if self.is_quiet() {
            self.probe = None;
            return self.rate();
        }
        self.rest.age += sample.elapsed;
        match self.probe {
            Some(probed) => self.go_on_probing(sample, probed),
            None if self.rest.is_due(self.load) && !self.is_urgent => {
                self.rest.take();
                self.rest.p99s.clear();
                self.probe = Some(Duration::ZERO);
            }
            None => {
                if self.controller.rate() <= PROBE_RATE {
                    self.learn(sample);
                }
                self.decide(sample);
            }
        }
        self.rate()
    }

    fn learn(&mut self, sample: &Sample) {
        if is_another(self.load, self.rest.load) {
            self.rest = Rest::under(self.load);
            self.controller.acquit();
        }
        self.controller.rest(sample);
        self.rest.learn(sample, self.load, &mut self.controller);
    }

    fn go_on_probing(&mut self, sample: &Sample, probed: Duration) {
        let before = self.rest.target();
        if probed >= SETTLES {
            self.learn(sample);
        }
        let probed = probed + sample.elapsed;
        let has_looked = self.rest.age < sample.elapsed;
        if !has_looked && probed < PROBE_MAX {
            self.probe = Some(probed);
            return;
        }
        if !has_looked {
            self.rest.complete();
        }
        if self.rest.is_doubted && self.rest.target() > before {
            self.controller.acquit();
        }
        self.rest.is_doubted = false;
        self.rest.age_min = (self.rest.age_min * 2).min(AGE_MAX);
        self.probe = None;
    }

    fn decide(&mut self, sample: &Sample) {
        let Some(target) = self.target() else { return };
        self.controller.aim(target);
        // What began just now is not in the mean yet.
        let used = (self.used * sample.elapsed.as_secs_f64()) as u64;
        self.controller.observe(&Sample { taken: sample.taken.max(used), ..sample.clone() });
        self.rest.is_doubted |= self.controller.fell();
    }

    fn look(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let reads = sample.reads.total() as f64;
        self.quiet = if reads > 0.0 { Duration::ZERO } else { self.quiet + sample.elapsed };
        self.load += (reads / seconds - self.load) * (seconds / LOAD_WINDOW).min(1.0);
        let taken = sample.taken as f64;
        self.used += (taken / seconds - self.used) * (seconds / USE_WINDOW).min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::Plant;

    const MIB: u64 = 1 << 20;

    fn run(plant: &mut Plant, auto: &mut AutoController, seconds: u32) -> (u64, u64) {
        plant.run(seconds, auto.rate(), |sample| auto.observe(sample))
    }

    /// Proves, on a simulated device, that the p99 stays within a third above what it is at rest and compaction has a good part of what any
    /// rate could give it: after a rest, from nothing, under steps of the load up and down, and after reads became slower by
    /// themselves, when the target follows them. Of few reads little is known, and compaction has less.
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
                let least = if reads_per_second < 1000 { 0.2 } else { 0.4 };
                assert!(had > least, "{reads_per_second}, {idle_ns}: {had} of {best}");
            }
        }
    }

    /// Proves that reads that stand still now and then by themselves do not starve compaction. Blamed for each of these moments, it had as
    /// little as 15 MiB/s.
    #[test]
    fn reads_are_slow_without_it_too() {
        for (reads_per_second, stalls) in [(2000, 0.05), (2000, 0.2), (2000, 0.3), (20_000, 0.2)] {
            let mut plant = Plant::new(reads_per_second);
            (plant.wait_ns, plant.stalls, plant.stall_ns) = (100_000.0, stalls, 10e6);
            let (rest, _) = plant.run(300, 0, |_| 0);
            let mut auto = AutoController::new(None);
            run(&mut plant, &mut auto, 60);
            let (p99, rate) = run(&mut plant, &mut auto, 300);
            let took = p99 as f64 / rest as f64;
            eprintln!("{reads_per_second}, {stalls}: {took:.2} x {rest} ns, {} MiB/s", rate / MIB);
            assert!(took < 1.33, "{stalls}: {took} x the p99 at rest");
            assert!(rate > 40 * MIB, "{stalls}: {rate}");
        }
    }

    /// Proves that compaction has all without reads, steps back when reads come that are not known, and resumes at
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

    /// Proves that a look is made of as many reads as come while compaction steps back, and that hardly any reads do not slow it.
    #[test]
    fn few_reads() {
        let mut plant = Plant::new(50);
        let mut auto = AutoController::new(Some(200 * MIB));
        run(&mut plant, &mut auto, 3);
        assert!(auto.at_rest().is_some());
        let (_, rate) = run(&mut plant, &mut auto, 20);
        assert!(rate > 2 * PROBE_RATE, "{rate}");
        auto.load = 0.0;
        let mut sample = plant.tenth_of_a_second(200 * MIB);
        sample.elapsed = Duration::from_secs(1);
        assert_eq!((sample.reads.total(), auto.observe(&sample)), (5, 200 * MIB));
    }

    /// Proves that compaction stays below the rate at which the host withholds processors, which no read's clock shows, tries more only
    /// now and then, and resumes when there is more.
    #[test]
    fn the_machine_sustains_so_much() {
        let mut plant = Plant::new(2000);
        (plant.wait_ns, plant.sustains) = (10_000.0, 100 * MIB);
        let mut auto = AutoController::new(None);
        run(&mut plant, &mut auto, 60);
        let mut stalls = 0;
        let (_, rate) = plant.run(120, auto.rate(), |sample| {
            stalls += u32::from(!sample.withheld.is_zero());
            auto.observe(sample)
        });
        assert!(stalls <= 6, "{stalls}");
        assert!((60 * MIB..100 * MIB).contains(&rate), "{rate}");
        plant.sustains = u64::MAX;
        run(&mut plant, &mut auto, 90);
        assert!(auto.rate() > 250 * MIB, "{}", auto.rate());
    }

    /// Proves that a rush that ended before the compaction began does not pardon it.
    #[test]
    fn a_rush_is_no_noise() {
        let mut plant = Plant::new(2000);
        (plant.wait_ns, plant.withholds) = (10_000.0, 1.0);
        let mut auto = AutoController::new(None);
        let rest = |plant: &mut Plant, auto: &mut AutoController, seconds| {
            plant.run(seconds, 0, |sample| {
                auto.rest(sample);
                0
            });
        };
        rest(&mut plant, &mut auto, 8);
        (plant.withholds, plant.sustains) = (0.0, 100 * MIB);
        rest(&mut plant, &mut auto, 15);
        let mut stalls = 0;
        plant.run(60, auto.rate(), |sample| {
            stalls += u32::from(!sample.withheld.is_zero());
            auto.observe(sample)
        });
        assert!(stalls <= 15, "{stalls}");
    }

    /// Proves that compaction is not held back for what is withheld without it: a little all the time, or much now and then (blamed for
    /// that, it had 8 MiB/s).
    #[test]
    fn others_withhold_too() {
        for (withheld, withholds, least) in
            [(10, 0.0, 200), (0, 0.1, 200), (0, 0.02, 200), (0, 0.01, 100), (0, 0.003, 100)]
        {
            let mut plant = Plant::new(2000);
            (plant.wait_ns, plant.withholds) = (10_000.0, withholds);
            plant.withheld = Duration::from_millis(withheld);
            let mut auto = AutoController::new(None);
            plant.run(20, 0, |sample| {
                auto.rest(sample);
                0
            });
            run(&mut plant, &mut auto, 60);
            if withholds == 0.0 {
                assert!(auto.rate() > 200 * MIB, "{withheld} ms: {}", auto.rate());
            }
            let (_, rate) = run(&mut plant, &mut auto, 300);
            eprintln!("{withheld} ms, and {withholds}: {} MiB/s", rate / MIB);
            assert!(rate > least * MIB, "{withheld} ms, and {withholds}: {rate}");
        }
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
