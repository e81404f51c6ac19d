//! The rate of compaction.
//!
//! `compaction_throughput` is the ceiling. Under it, `compaction_latency_target` gives compaction the rate that the reads leave; the
//! backlog sets a floor. `halcyon_pacing` finds the rate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::{Clock, Instant};
use halcyon_io::{Disk, Purpose, PurposeStats, RateLimiter};
use halcyon_pacing::{AutoController, LatencyController, LatencyCounts, Sample, p99_ns};

use super::pressure::Pressure;
use super::schedule::Schedule;
use crate::options::LatencyTarget;

pub(super) struct Pace {
    pub(super) limiter: RateLimiter,
    state: Mutex<Control>,
    /// The 99th percentile of the reads in the last interval, in nanoseconds; 0 without reads.
    read_p99_ns: AtomicU64,
    urgent: AtomicBool,
}

struct Control {
    ceiling: Option<u64>,
    rule: Rule,
    seen: Option<Seen>,
}

/// Counters at some moment.
struct Seen {
    at: Instant,
    reads: LatencyCounts,
    at_device: PurposeStats,
    taken: u64,
    withheld: Duration,
}

/// `compaction_latency_target`, and what it has come to.
enum Rule {
    Off,
    Auto(Box<AutoController>),
    Fixed(Duration, Box<LatencyController>),
}

/// The values of `halcyon_views.compaction_pace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionPace {
    /// Bytes per second for all compactions together; `None`: unlimited.
    pub rate: Option<u64>,
    pub throughput: Option<u64>,
    pub latency_target: Option<Duration>,
    /// Of recent reads of single partitions.
    pub read_p99: Option<Duration>,
    /// Of those that were read while compaction rested, if the target comes from that.
    pub read_p99_at_rest: Option<Duration>,
    pub compactors: usize,
    pub waiting: usize,
    pub urgent: bool,
}

impl Pace {
    pub(super) fn new(clock: Clock, ceiling: Option<u64>, target: LatencyTarget) -> Pace {
        let state = Control { ceiling, rule: Rule::new(target, ceiling), seen: None };
        Pace {
            limiter: RateLimiter::bytes_per_second(clock, state.rate()),
            state: Mutex::new(state),
            read_p99_ns: AtomicU64::new(0),
            urgent: AtomicBool::new(false),
        }
    }

    fn throughput(&self) -> Option<u64> {
        self.state.lock().ceiling
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent.load(Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Control)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.limiter.set_rate(state.rate());
    }

    pub(super) fn set_throughput(&self, ceiling: Option<u64>) {
        self.change(|state| {
            state.ceiling = ceiling;
            match &mut state.rule {
                Rule::Off => {}
                Rule::Auto(auto) => auto.set_ceiling(ceiling),
                Rule::Fixed(target, controller) => {
                    **controller = LatencyController::new(*target, ceiling);
                }
            }
        });
    }

    pub(super) fn set_latency_target(&self, target: LatencyTarget) {
        self.change(|state| state.rule = Rule::new(target, state.ceiling));
    }

    pub(super) fn set_pressure(&self, pressure: Pressure) {
        self.change(|state| state.rule.set_floor(pressure.floor));
        self.urgent.store(pressure.urgent, Relaxed);
    }

    pub(super) fn shown(&self, schedule: &Schedule) -> CompactionPace {
        let p99 = self.read_p99_ns.load(Relaxed);
        let (latency_target, read_p99_at_rest) = self.state.lock().rule.target();
        CompactionPace {
            rate: self.limiter.rate(),
            throughput: self.throughput(),
            latency_target,
            read_p99_at_rest,
            read_p99: (p99 > 0).then(|| Duration::from_nanos(p99)),
            compactors: schedule.limit(),
            waiting: schedule.waiting(),
            urgent: self.is_urgent(),
        }
    }

    /// Adjusts the rate to what reads have taken since the last call; true if it follows them now.
    pub(super) fn keep(
        &self,
        (is_working, now): (bool, Instant),
        disk: &Disk,
        reads: impl FnOnce() -> LatencyCounts,
    ) -> bool {
        self.look(is_working, || Seen {
            at: now,
            reads: reads(),
            at_device: disk.histogram(Purpose::UserRead),
            taken: self.limiter.taken(),
            withheld: withheld(disk),
        })
    }

    /// Measures the reads since the last call; true if the rate follows them.
    fn look(&self, is_working: bool, see: impl FnOnce() -> Seen) -> bool {
        let mut state = self.state.lock();
        if matches!(state.rule, Rule::Off) {
            state.seen = None;
            return false;
        }
        let seen = see();
        let sample = state.seen.as_ref().map(|before| Sample {
            reads: seen.reads.since(&before.reads),
            taken: seen.taken.saturating_sub(before.taken),
            withheld: seen.withheld.saturating_sub(before.withheld)
                + seen.at_device.stood_still_since(&before.at_device),
            elapsed: seen.at - before.at,
        });
        state.seen = Some(seen);
        if let Some(sample) = sample {
            self.read_p99_ns.store(p99_ns(&sample.reads).unwrap_or(0), Relaxed);
            match &mut state.rule {
                Rule::Auto(auto) if is_working => {
                    auto.observe(&sample);
                }
                Rule::Auto(auto) => auto.rest(&sample),
                Rule::Fixed(_, controller) if is_working => {
                    controller.observe(&sample);
                }
                // Without a compaction, the latency of reads does not say what rate they stand.
                Rule::Fixed(..) | Rule::Off => {}
            }
        }
        self.limiter.set_rate(state.rate());
        is_working || state.rule.learns()
    }
}

impl Control {
    fn rate(&self) -> Option<u64> {
        match &self.rule {
            Rule::Off => self.ceiling,
            Rule::Auto(auto) => Some(auto.rate()),
            Rule::Fixed(_, controller) => Some(controller.rate()),
        }
    }
}

impl Rule {
    fn new(target: LatencyTarget, ceiling: Option<u64>) -> Rule {
        match target {
            LatencyTarget::Off => Rule::Off,
            LatencyTarget::Auto => Rule::Auto(Box::new(AutoController::new(ceiling))),
            LatencyTarget::Fixed(target) => {
                Rule::Fixed(target, Box::new(LatencyController::new(target, ceiling)))
            }
        }
    }

    fn set_floor(&mut self, part: f64) {
        match self {
            Rule::Off => {}
            Rule::Auto(auto) => auto.set_floor(part),
            Rule::Fixed(_, controller) => controller.set_floor(part),
        }
    }

    /// Whether what reads take is of interest while nothing is compacted.
    fn learns(&self) -> bool {
        matches!(self, Rule::Auto(auto) if !auto.is_quiet())
    }

    /// What reads may take, and what they take at rest.
    fn target(&self) -> (Option<Duration>, Option<Duration>) {
        match self {
            Rule::Off => (None, None),
            Rule::Auto(auto) => (auto.target(), auto.at_rest()),
            Rule::Fixed(target, _) => (Some(*target), None),
        }
    }
}

/// What was withheld of each processor, in the mean.
fn withheld(disk: &Disk) -> Duration {
    let cores = u32::try_from(disk.runtime().core_count()).unwrap_or(u32::MAX);
    disk.runtime().processors_withheld() / cores
}
