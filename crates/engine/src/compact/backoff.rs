//! The pause after failed compactions of a table: one minute, doubled by each further failure, at most an hour.

use std::time::Duration;

use halcyon_io::Mutex;
use halcyon_io::clock::Instant;

const BACKOFF: Duration = Duration::from_secs(60);
const BACKOFF_MAX: Duration = Duration::from_secs(3600);

/// The pause after a table's failed compactions, doubled by each consecutive failure.
#[derive(Debug, Default)]
pub(crate) struct Backoff(Mutex<Option<(u32, Instant)>>);

impl Backoff {
    pub(crate) fn is_active(&self, now: Instant) -> bool {
        let backoff = self.0.lock();
        backoff.is_some_and(|(_, until)| now < until)
    }

    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    /// Starts the next pause and returns its length.
    pub(super) fn begin(&self, now: Instant) -> Duration {
        let mut backoff = self.0.lock();
        let failures = backoff.map_or(0, |(failures, _)| failures);
        let long = BACKOFF.saturating_mul(1 << failures.min(10)).min(BACKOFF_MAX);
        *backoff = Some((failures.saturating_add(1), now + long));
        long
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::SimClock;

    use super::*;

    /// Proves that the back-off doubles up to an hour and that a success resets it.
    #[test]
    fn backoff_grows() {
        let (disk, simulated) = halcyon_io::Disk::simulated(1);
        let clock: &SimClock = simulated.clock();
        let backoff = Backoff::default();
        for expected in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            let now = disk.clock().now();
            assert!(!backoff.is_active(now));
            assert_eq!(backoff.begin(now).as_secs(), expected);
            assert!(backoff.is_active(now));
            clock.advance(Duration::from_secs(expected));
        }
        backoff.end();
        assert_eq!(backoff.begin(disk.clock().now()).as_secs(), 60);
    }
}
