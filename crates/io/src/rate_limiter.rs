//! A ceiling on bytes per second, shared by its holders.
//!
//! Each taker reserves its bytes on a line of time, at once, and then sleeps until its turn; so
//! takers are served in order, no wake-up is wasted, and an idle limiter saves up no more than a
//! short burst.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::runtime::clock::{Clock, nanos};
use crate::sync::mutex::Mutex;

/// Unused time that may be used later.
const BURST: Duration = Duration::from_millis(50);

/// Clones share one ceiling.
#[derive(Debug, Clone)]
pub struct RateLimiter(Arc<Line>);

#[derive(Debug)]
struct Line {
    clock: Clock,
    /// Bytes per second; zero: unlimited.
    rate: AtomicU64,
    /// Up to which nanosecond the line is taken.
    taken_to: Mutex<u64>,
    /// Bytes acquired so far, while there was a rate.
    taken: AtomicU64,
}

impl RateLimiter {
    /// `None`: unlimited.
    pub fn bytes_per_second(clock: Clock, rate: Option<u64>) -> RateLimiter {
        let rate = AtomicU64::new(rate.unwrap_or(0));
        RateLimiter(Arc::new(Line {
            clock,
            rate,
            taken_to: Mutex::new(0),
            taken: AtomicU64::new(0),
        }))
    }

    pub fn unlimited() -> RateLimiter {
        RateLimiter::bytes_per_second(Clock::system(), None)
    }

    pub fn rate(&self) -> Option<u64> {
        Some(self.0.rate.load(Relaxed)).filter(|rate| *rate > 0)
    }

    /// Holds for bytes acquired from now on.
    pub fn set_rate(&self, rate: Option<u64>) {
        self.0.rate.store(rate.unwrap_or(0), Relaxed);
    }

    /// Bytes acquired so far under a rate.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Relaxed)
    }

    /// Waits until `bytes` more may pass.
    pub async fn acquire(&self, bytes: u64) {
        let Some(rate) = self.rate() else { return };
        self.0.taken.fetch_add(bytes, Relaxed);
        let now = self.0.clock.now().as_nanos();
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let turn = {
            let mut taken_to = self.0.taken_to.lock();
            let turn = (*taken_to).max(now.saturating_sub(nanos(BURST)));
            *taken_to = turn.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
            turn
        };
        if turn > now {
            self.0.clock.sleep(Duration::from_nanos(turn - now)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimClock, block_on};

    /// Proves, in simulated time, that the ceiling holds and that none means none.
    #[test]
    fn ceiling() {
        let simulated = SimClock::started();
        simulated.advance(Duration::from_secs(1));
        let clock = simulated.clock();
        let limiter = RateLimiter::bytes_per_second(clock.clone(), Some(1_000_000));
        let started = clock.now();
        block_on(async {
            for _ in 0..100 {
                limiter.acquire(100_000).await;
            }
        });
        let took = clock.now() - started;
        assert!(took > Duration::from_millis(9_800) && took < Duration::from_millis(10_000));
        limiter.set_rate(None);
        let started = clock.now();
        block_on(limiter.acquire(u64::MAX));
        assert_eq!(clock.now(), started);
    }
}
