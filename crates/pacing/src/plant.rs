//! A simulated device for the tests of the controllers.

use std::time::Duration;

use halcyon_io::Random;

use crate::latency::{Sample, p99_ns};

const MIB: u64 = 1 << 20;
const CAPACITY: f64 = (400 * MIB) as f64;

/// Reads while compaction takes `rate` of a device that does `CAPACITY`: an idle latency, and now and then a wait behind
/// compaction that is longer the busier the device is.
pub(super) struct Plant {
    random: Random,
    pub(super) reads_per_second: u64,
    /// Before any wait.
    pub(super) idle_ns: f64,
    /// Behind compaction, on an idle device, in the mean.
    pub(super) wait_ns: f64,
    /// Bytes per second; beyond them a quarter of the processors' time is withheld.
    pub(super) sustains: u64,
    /// What is withheld of each tenth of a second anyway.
    pub(super) withheld: Duration,
    /// In this share of the tenths of a second 30 ms more are withheld.
    pub(super) withholds: f64,
    /// In this share of them all reads stand still for a while, whatever compaction does.
    pub(super) stalls: f64,
    /// In the mean.
    pub(super) stall_ns: f64,
}

impl Plant {
    pub(super) fn new(reads_per_second: u64) -> Plant {
        Plant {
            random: Random::seeded(7),
            reads_per_second,
            idle_ns: 300_000.0,
            wait_ns: 500_000.0,
            sustains: u64::MAX,
            withheld: Duration::ZERO,
            withholds: 0.0,
            stalls: 0.0,
            stall_ns: 0.0,
        }
    }

    /// In 0..1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.uniform() < share
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    pub(super) fn tenth_of_a_second(&mut self, rate: u64) -> Sample {
        let busy = (rate as f64 / CAPACITY).min(0.98);
        let elapsed = Duration::from_millis(100);
        let mut withheld = if rate > self.sustains { elapsed / 4 } else { Duration::ZERO };
        if self.happens(self.withholds) {
            withheld += Duration::from_millis(30);
        }
        let mut sample = Sample {
            taken: rate.min(CAPACITY as u64) / 10,
            withheld: withheld + self.withheld,
            elapsed,
            ..Sample::default()
        };
        let (mut stall, mut goes_on) = (f64::MAX, f64::MAX);
        if self.happens(self.stalls) {
            stall = self.uniform() * elapsed.as_nanos() as f64;
            goes_on = stall + self.exponential(self.stall_ns);
        }
        for number in 0..self.reads_per_second / 10 {
            let due = number as f64 / self.reads_per_second as f64 * 1e9;
            let mut latency = self.idle_ns + self.exponential(self.idle_ns / 3.0);
            if self.exponential(1.0) > -busy.ln() {
                latency += self.exponential(self.wait_ns / (1.0 - busy));
            }
            if (stall..goes_on).contains(&due) {
                latency += goes_on - due;
            }
            sample.reads.record(latency as u64);
        }
        sample
    }

    /// The p99 and the mean rate of `seconds` that begin at `rate`.
    pub(super) fn run(
        &mut self,
        seconds: u32,
        mut rate: u64,
        mut observe: impl FnMut(&Sample) -> u64,
    ) -> (u64, u64) {
        let mut all = Sample::default();
        for _ in 0..seconds * 10 {
            let sample = self.tenth_of_a_second(rate);
            rate = observe(&sample);
            all.add(&sample);
        }
        (p99_ns(&all.reads).unwrap_or(0), all.taken / u64::from(seconds))
    }

    /// What a constant rate could be without exceeding the target.
    pub(super) fn best(&mut self, target: u64) -> u64 {
        let rates = (1..400).step_by(8).map(|mib| mib * MIB);
        rates.filter(|rate| self.run(10, *rate, |_| *rate).0 <= target).max().unwrap_or(MIB)
    }
}
