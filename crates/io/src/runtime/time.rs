//! Points of time, and the system's own clocks. [`super::clock`] is the way to them.

use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::time::Duration;

use halcyon_metrics::{Seconds, nanos};

/// A point of a monotonic clock, in nanoseconds since an origin of that clock's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    pub(super) fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// Zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Instant> for Seconds {
    fn from(instant: Instant) -> Seconds {
        Seconds(instant.0 / 1_000_000_000)
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

/// Since the first call in this process.
pub(super) fn system_now() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    Instant(nanos(ORIGIN.get_or_init(std::time::Instant::now).elapsed()))
}

/// Since 1970.
pub(super) fn system_unix() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}
