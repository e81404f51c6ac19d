//! The rate of compaction that the machine sustains.
//!
//! A host gives a virtual machine, and a control group a container, so much time of its processors in a slice of time. Who has used it up
//! stands still for the rest of the slice, with all threads: 20 ms and more for every read that comes meanwhile. The node's own clock of
//! a read starts when a shard takes it off the socket, so it does not see that wait; but the kernel says what was withheld.
//!
//! 1. When much more is withheld than at rest, compaction stays below `BACK` of what it took. It takes part in the quota even where it
//!    runs only when nothing else does.
//! 2. Each attempt to take more may cost reads another slice. So it is made after `PATIENCE`, by `MORE`: a slice in half a minute is less
//!    than one read in a thousand. Above the rate at which that happened last, the machine has changed: each step is twice the one before
//!    (as CUBIC leaves its last maximum, RFC 9438), or compaction would take minutes to notice that a neighbour has gone.
//! 3. What is withheld at rest is not compaction's fault, and less compaction would not end it: that and as much again is let pass.

use std::time::Duration;

use super::Sample;

const BACK: f64 = 0.7;
/// By this part of the rate.
const MORE: f64 = 0.1;
const MORE_MOST: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(10);
/// Of each core's time, within a second. The kernel counts what a host withholds in steps of 10 ms of one core.
const MUCH: Duration = Duration::from_millis(10);
const WINDOW: Duration = Duration::from_secs(1);
/// What was begun before the rate fell still goes on.
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
    /// Withheld of late, and in what time.
    withheld: Duration,
    elapsed: Duration,
    /// The share of time that is withheld at rest.
    at_rest: f64,
    /// It is not lower.
    least: f64,
}

impl Sustained {
    pub(super) fn unknown(least: u64) -> Sustained {
        Sustained {
            rate: None,
            wall: 0.0,
            more: MORE,
            held: Duration::ZERO,
            settles: Duration::ZERO,
            withheld: Duration::ZERO,
            elapsed: Duration::ZERO,
            at_rest: 0.0,
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
        self.withheld += sample.withheld;
        self.elapsed += sample.elapsed;
        if self.withheld > MUCH + self.elapsed.mul_f64(2.0 * self.at_rest) {
            let below = self.rate.map_or(used, |rate| rate.min(used));
            (self.wall, self.more) = (below, MORE);
            self.change(below * BACK);
            self.settles = SETTLES;
            (self.withheld, self.elapsed) = Default::default();
        } else if self.held >= PATIENCE
            && let Some(rate) = self.rate
        {
            if rate > self.wall {
                self.more = (self.more * 2.0).min(MORE_MOST);
            }
            self.change(rate * (1.0 + self.more));
        }
        if self.elapsed >= WINDOW {
            (self.withheld, self.elapsed) = (self.withheld / 2, self.elapsed / 2);
        }
    }

    fn change(&mut self, rate: f64) {
        self.rate = Some(rate.max(self.least));
        self.held = Duration::ZERO;
    }
}
