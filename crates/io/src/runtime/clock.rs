//! Time enters the program here and nowhere else.
//!
//! A [`Clock`] is a handle: the system's, or a simulated one, which moves when all tasks of its [`crate::SimRuntime`] wait, or by
//! hand. Where no simulated runtime runs, a simulated sleep moves the clock instead of waiting. The free functions ask the clock that the
//! thread has entered, by default the system's.

use std::{cell::RefCell, time::Duration};

use super::{entered::entered, time, yield_now::yield_now};

pub use super::sim_clock::SimClock;
pub use super::time::Instant;
pub use halcyon_metrics::nanos;

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
            None => time::system_now(),
            Some(clock) => clock.now(),
        }
    }

    /// Microseconds since 1970: Cassandra's write time.
    pub fn unix_micros(&self) -> i64 {
        match &self.simulated {
            None => i64::try_from(time::system_unix().as_micros()).unwrap_or(i64::MAX),
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
            Some(clock) => match entered().filter(|runtime| runtime.clock().is(clock)) {
                Some(runtime) => runtime.sleep_until(self.now() + duration).await,
                None => {
                    clock.advance(duration);
                    // A sleep lets others run.
                    yield_now().await;
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

impl SimClock {
    /// The handle that shows this clock.
    pub fn clock(&self) -> Clock {
        Clock { simulated: Some(self.clone()) }
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
