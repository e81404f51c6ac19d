//! Time enters the program here and nowhere else.
//!
//! A [`Clock`] is a handle: the system's, or a simulated one, which moves when all tasks of its [`crate::SimRuntime`] wait, or by
//! hand. Where
//! no simulated runtime runs, a simulated sleep moves the clock instead of waiting. The free functions ask the clock that the thread
//! has entered, by default the system's.

use std::{
    cell::RefCell,
    ops::{Add, Sub},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use crate::sim::executor;

/// A point of a monotonic clock, in nanoseconds since an origin of that clock's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// Zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(duration)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_since(earlier)
    }
}

/// The system's clock, or a simulated one.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    simulated: Option<SimClock>,
}

impl Clock {
    pub fn system() -> Clock {
        Clock::default()
    }

    pub fn now(&self) -> Instant {
        match &self.simulated {
            None => Instant(system_nanos()),
            Some(clock) => Instant(clock.0.monotonic_ns.load(SeqCst)),
        }
    }

    /// Microseconds since 1970: Cassandra's write time.
    pub fn unix_micros(&self) -> i64 {
        match &self.simulated {
            None => i64::try_from(system_unix().as_micros()).unwrap_or(i64::MAX),
            Some(clock) => (clock.unix_ns() / 1_000) as i64,
        }
    }

    /// Seconds since 1970: Cassandra's local deletion time.
    pub fn unix_seconds(&self) -> i64 {
        self.unix_micros().div_euclid(1_000_000)
    }

    /// Waits; on a simulated clock, moves it.
    pub async fn sleep(&self, duration: Duration) {
        match &self.simulated {
            None => compio::runtime::time::sleep(duration).await,
            Some(clock) => match executor::entered().filter(|runtime| runtime.clock().is(clock)) {
                Some(runtime) => executor::Sleep::until(runtime, self.now() + duration).await,
                None => {
                    clock.advance(duration);
                    // A sleep lets others run.
                    super::task::yield_now().await;
                }
            },
        }
    }

    /// Makes this the clock of the thread's free functions until the guard is dropped.
    pub fn enter(&self) -> EnteredClock {
        let before = THREAD_CLOCK.with(|current| current.replace(self.clone()));
        EnteredClock { before, not_send: std::marker::PhantomData }
    }
}

/// Restores the thread's clock when dropped.
#[derive(Debug)]
pub struct EnteredClock {
    before: Clock,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Drop for EnteredClock {
    fn drop(&mut self) {
        THREAD_CLOCK.with(|current| current.replace(std::mem::take(&mut self.before)));
    }
}

thread_local! {
    static THREAD_CLOCK: RefCell<Clock> = RefCell::new(Clock::system());
}

pub fn now() -> Instant {
    THREAD_CLOCK.with(|clock| clock.borrow().now())
}

pub fn unix_micros() -> i64 {
    THREAD_CLOCK.with(|clock| clock.borrow().unix_micros())
}

pub fn unix_seconds() -> i64 {
    THREAD_CLOCK.with(|clock| clock.borrow().unix_seconds())
}

/// Waits, on the thread's clock.
pub async fn sleep(duration: Duration) {
    let clock = THREAD_CLOCK.with(|clock| clock.borrow().clone());
    clock.sleep(duration).await;
}

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

    pub fn clock(&self) -> Clock {
        Clock { simulated: Some(self.clone()) }
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

    fn unix_ns(&self) -> u64 {
        self.0.unix_base_ns.load(SeqCst).saturating_add(self.0.monotonic_ns.load(SeqCst))
    }
}

/// At most what fits: 584 years.
pub const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

fn system_nanos() -> u64 {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    nanos(ORIGIN.get_or_init(std::time::Instant::now).elapsed())
}

fn system_unix() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// User and system time of the whole process so far, worker threads included: what measurements divide by.
pub fn process_cpu_time() -> Duration {
    // SAFETY: rusage is plain numbers, for which zeroes are valid; it is a live, writable local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.max(0) as u64, (time.tv_usec.max(0) as u32) * 1000)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that free functions follow the entered clock and go back to the system's after it.
    #[test]
    fn entered_clock() {
        let simulated = SimClock::started();
        {
            let _entered = simulated.clock().enter();
            assert_eq!(unix_seconds(), 1_600_000_000);
            let before = now();
            simulated.advance(Duration::from_secs(3600));
            assert_eq!(now() - before, Duration::from_secs(3600));
            assert_eq!(unix_micros(), 1_600_003_600_000_000);
        }
        assert!(unix_seconds() > 1_700_000_000);
    }
}
