//! The rate of compaction.
//!
//! `compaction_throughput` is the ceiling. Under it, `compaction_latency_target` gives compaction the rate that the reads leave; the
//! backlog sets a floor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::backlog::Pressure;
use crate::engine::Engine;
use halcyon_io::clock::{Clock, Instant};
use halcyon_io::pacing::{LatencyController, LatencyCounts, RateLimiter, Sample};

pub(super) struct Pace {
    pub(super) limiter: RateLimiter,
    state: Mutex<Control>,
    /// The 99th percentile of the reads in the last interval, in nanoseconds; 0 without reads.
    read_p99_ns: AtomicU64,
    urgent: AtomicBool,
}

struct Control {
    ceiling: Option<u64>,
    target: Option<Duration>,
    floor: f64,
    /// While compaction runs under a target.
    controller: Option<LatencyController>,
    seen: Option<(Instant, LatencyCounts, u64)>,
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
    pub compactors: usize,
    pub waiting: usize,
    pub urgent: bool,
}

impl Pace {
    pub(super) fn new(clock: Clock, ceiling: Option<u64>, target: Option<Duration>) -> Pace {
        Pace {
            limiter: RateLimiter::bytes_per_second(clock, ceiling),
            state: Mutex::new(Control {
                ceiling,
                target: target.filter(|target| !target.is_zero()),
                floor: 0.0,
                controller: None,
                seen: None,
            }),
            read_p99_ns: AtomicU64::new(0),
            urgent: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn throughput(&self) -> Option<u64> {
        self.lock().ceiling
    }

    pub(super) fn latency_target(&self) -> Option<Duration> {
        self.lock().target
    }

    pub(super) fn is_urgent(&self) -> bool {
        self.urgent.load(Relaxed)
    }

    pub(super) fn set_throughput(&self, ceiling: Option<u64>) {
        let mut state = self.lock();
        state.ceiling = ceiling;
        state.begin_anew(&self.limiter);
    }

    pub(super) fn set_latency_target(&self, target: Option<Duration>) {
        let mut state = self.lock();
        state.target = target.filter(|target| !target.is_zero());
        state.begin_anew(&self.limiter);
    }

    pub(super) fn set_pressure(&self, pressure: Pressure) {
        self.lock().floor = pressure.floor;
        self.urgent.store(pressure.urgent, Relaxed);
    }

    /// Measures the reads since the last call; true if there is a target.
    fn look(&self, now: Instant, reads: impl FnOnce() -> LatencyCounts) -> bool {
        let mut state = self.lock();
        let Some(target) = state.target else { return false };
        let (reads, taken) = (reads(), self.limiter.taken());
        let (ceiling, floor) = (state.ceiling, state.floor);
        let controller =
            state.controller.get_or_insert_with(|| LatencyController::new(target, ceiling));
        controller.set_floor(floor);
        let mut rate = controller.rate();
        let mut p99 = None;
        if let Some((at, before, taken_before)) = &state.seen {
            let sample = Sample {
                reads: reads.since(before),
                taken: taken.saturating_sub(*taken_before),
                elapsed: now - *at,
            };
            p99 = sample.reads.quantile_ns(0.99);
            if let Some(controller) = &mut state.controller {
                rate = controller.observe(&sample);
            }
        }
        self.read_p99_ns.store(p99.unwrap_or(0), Relaxed);
        state.seen = Some((now, reads, taken));
        self.limiter.set_rate(Some(rate));
        true
    }

    /// Resets the controller: without a compaction, the latency of reads carries no information.
    fn rest(&self) {
        self.lock().seen = None;
    }
}

impl Control {
    fn begin_anew(&mut self, limiter: &RateLimiter) {
        self.controller = None;
        let start = self.target.map(|target| LatencyController::new(target, self.ceiling).rate());
        limiter.set_rate(start.or(self.ceiling));
    }
}

impl Engine {
    /// Sets `compaction_throughput`; `None`: unlimited.
    pub fn set_compaction_throughput(&self, rate: Option<u64>) {
        self.compactions.pace.set_throughput(rate);
    }

    /// Sets `compaction_latency_target`; `None`: no target.
    pub fn set_compaction_latency_target(&self, target: Option<Duration>) {
        self.compactions.pace.set_latency_target(target);
        self.compactions.schedule.wake();
    }

    /// Sets `concurrent_compactors`. Running compactions continue.
    pub fn set_concurrent_compactors(&self, count: usize) {
        self.compactions.schedule.set_limit(count);
    }

    pub fn compaction_pace(&self) -> CompactionPace {
        let (pace, schedule) = (&self.compactions.pace, &self.compactions.schedule);
        let p99 = pace.read_p99_ns.load(Relaxed);
        CompactionPace {
            rate: pace.limiter.rate(),
            throughput: pace.throughput(),
            latency_target: pace.latency_target(),
            read_p99: (p99 > 0).then(|| Duration::from_nanos(p99)),
            compactors: schedule.limit(),
            waiting: schedule.waiting(),
            urgent: pace.is_urgent(),
        }
    }

    /// Adjusts the rate; true if there is a target.
    pub(super) fn keep_pace(&self, now: Instant) -> bool {
        let pace = &self.compactions.pace;
        if !self.compactions.schedule.is_working() {
            pace.rest();
            return false;
        }
        pace.look(now, || self.read_latency())
    }

    fn read_latency(&self) -> LatencyCounts {
        let mut all = LatencyCounts::default();
        self.reads.iter().for_each(|shard| all.add(&shard.counts()));
        all
    }
}
