//! The rate of compaction that the machine sustains.
//!
//! A host gives a virtual machine, and a control group a container, so much time of its processors in a slice of time. Who has used it up
//! stands still for the rest of the slice, with all threads: 20 ms and more for every read that comes meanwhile. A rate that grows until
//! reads are slow would find that limit once a second; but the kernel says what was withheld. A rented volume does the same with its bytes
//! and operations; a read that stands still at the device shows it.
//!
//! 1. When much more is withheld than at rest, compaction stays below `BACK` of what it took. It takes part in the processors' quota even
//!    where it runs only when nothing else does.
//! 2. Each attempt to take more may cost reads another slice. So it is made after `PATIENCE`, by `MORE`: a slice in half a minute is less
//!    than one read in a thousand. Above the rate at which that happened last, the machine has changed: each step is twice the one before
//!    (as CUBIC leaves its last maximum, RFC 9438), or compaction would take minutes to notice that a neighbour has gone.
//! 3. What is withheld at rest is not compaction's fault, and less compaction would not end it: that and as much again is let pass, and
//!    so are as many larger moments as come at rest.

use std::time::Duration;

use crate::latency::Sample;
use crate::noise::Noise;

const BACK: f64 = 0.7;
/// By this part of the rate.
const MORE: f64 = 0.1;
const MORE_MOST: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(10);
/// Of each core's time, within a second, or of reads. The kernel counts what a host withholds in steps of 10 ms of one core.
const MUCH: Duration = Duration::from_millis(10);
/// As many as at rest, and half as many again, are pardoned: each that is blamed takes half a minute of steps to make good, so chance alone
/// must not do.
const PARDONED: f64 = 1.5;
const WINDOW: Duration = Duration::from_secs(1);
/// Operations that started before the rate fell are still running.
const SETTLES: Duration = Duration::from_millis(300);
/// How long a rest is remembered.
const REST: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) struct Sustained {
    /// Bytes per second, once it is known.
    rate: Option<f64>,
    /// At which it was too much last.
    wall: f64,
    more: f64,
    /// Since the rate was changed.
    held: Duration,
    /// It fell, and that does not show yet.
    settles: Duration,
    of_late: OfLate,
    /// The share of time that is withheld at rest.
    at_rest: f64,
    /// Several moments in a row at rest count once, or a rush that ended would pardon compaction for minutes.
    much_at_rest: bool,
    noise: Noise,
    /// It is not lower.
    least: f64,
}

/// What was withheld in about a second.
#[derive(Debug, Clone, Copy, Default)]
struct OfLate {
    withheld: Duration,
    elapsed: Duration,
}

impl OfLate {
    /// Takes in what happened; whether it is much more than this share of the time. What was much is not counted again.
    fn is_much(&mut self, sample: &Sample, at_rest: f64) -> bool {
        self.withheld += sample.withheld;
        self.elapsed += sample.elapsed;
        let is_much = self.withheld > MUCH + self.elapsed.mul_f64(2.0 * at_rest);
        if is_much {
            *self = OfLate::default();
        } else if self.elapsed >= WINDOW {
            *self = OfLate { withheld: self.withheld / 2, elapsed: self.elapsed / 2 };
        }
        is_much
    }
}

impl Sustained {
    pub(super) fn unknown(least: u64) -> Sustained {
        Sustained {
            rate: None,
            wall: 0.0,
            more: MORE,
            held: Duration::ZERO,
            settles: Duration::ZERO,
            of_late: OfLate::default(),
            at_rest: 0.0,
            much_at_rest: false,
            noise: Noise::unknown(PARDONED, PATIENCE),
            least: least as f64,
        }
    }

    /// Under another load.
    pub(super) fn forget(&mut self) {
        self.rate = None;
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Takes in what happened without compaction.
    pub(super) fn rest(&mut self, sample: &Sample) {
        let seconds = sample.elapsed.as_secs_f64();
        if seconds > 0.0 {
            let was_much = self.of_late.is_much(sample, self.at_rest);
            let goes_on = std::mem::replace(&mut self.much_at_rest, was_much);
            self.noise.learn(sample.elapsed, was_much && !goes_on);
            let share = sample.withheld.as_secs_f64() / seconds;
            self.at_rest += (share - self.at_rest) * (seconds / REST.as_secs_f64()).min(1.0);
        }
    }

    /// Takes in what happened while compaction took `used` bytes per second.
    pub(super) fn observe(&mut self, sample: &Sample, used: f64) {
        self.held += sample.elapsed;
        if !self.settles.is_zero() {
            self.settles = self.settles.saturating_sub(sample.elapsed);
            return;
        }
        let was_much = self.of_late.is_much(sample, self.at_rest);
        if self.noise.blames(sample.elapsed, was_much) {
            let below = self.rate.map_or(used, |rate| rate.min(used));
            (self.wall, self.more) = (below, MORE);
            self.change(below * BACK);
            self.settles = SETTLES;
        } else if self.held >= PATIENCE
            && let Some(rate) = self.rate
        {
            if rate > self.wall {
                self.more = (self.more * 2.0).min(MORE_MOST);
            }
            self.change(rate * (1.0 + self.more));
        }
    }

    fn change(&mut self, rate: f64) {
        self.rate = Some(rate.max(self.least));
        self.held = Duration::ZERO;
    }
}
