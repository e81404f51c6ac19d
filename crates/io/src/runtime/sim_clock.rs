//! The time of a simulation: it stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use halcyon_metrics::nanos;

use super::time::Instant;

/// A clock that moves only when told. Starts at 2020-09-13T12:26:40Z.
#[derive(Debug, Clone)]
pub struct SimClock(Arc<SimTime>);

#[derive(Debug)]
struct SimTime {
    monotonic_ns: AtomicU64,
    unix_base_ns: AtomicU64,
}

impl SimClock {
    pub fn started() -> SimClock {
        SimClock(Arc::new(SimTime {
            monotonic_ns: AtomicU64::new(1),
            unix_base_ns: AtomicU64::new(1_600_000_000_000_000_000),
        }))
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.0.monotonic_ns.load(SeqCst))
    }

    pub(crate) fn is(&self, other: &SimClock) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn advance(&self, duration: Duration) {
        self.0.monotonic_ns.fetch_add(nanos(duration), SeqCst);
    }

    /// Sets the calendar clock forward or back, as an operator or NTP does; timers do not notice.
    pub fn step_calendar(&self, micros: i64) {
        let ns = micros.unsigned_abs().saturating_mul(1000);
        match micros < 0 {
            true => self.0.unix_base_ns.fetch_sub(ns, SeqCst),
            false => self.0.unix_base_ns.fetch_add(ns, SeqCst),
        };
    }

    pub(super) fn unix_ns(&self) -> u64 {
        self.0.unix_base_ns.load(SeqCst).saturating_add(self.0.monotonic_ns.load(SeqCst))
    }
}
