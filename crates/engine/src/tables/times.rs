//! The time of what the node writes of its own accord: rows of its system tables, truncations, logged batches.
//!
//! Each time is later than all before it, those of earlier processes too, whatever the clock does. Otherwise, after it was set back, a new
//! row would lose against the one that it replaces (of equal times the deletion wins), and a truncation would seem to be older than the
//! batches that it has removed.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use halcyon_io::Clock;
use halcyon_model::NO_TIMESTAMP;
use halcyon_schema::rows::WriteTime;

/// The latest time that was given, in µs since 1970.
#[derive(Debug)]
pub(crate) struct WriteTimes(AtomicI64);

impl Default for WriteTimes {
    fn default() -> WriteTimes {
        WriteTimes(AtomicI64::new(NO_TIMESTAMP))
    }
}

impl WriteTimes {
    /// What comes is later than this.
    pub(crate) fn note(&self, micros: i64) {
        self.0.fetch_max(micros, Relaxed);
    }

    /// The time for one write.
    pub(crate) fn of(&self, clock: &Clock) -> WriteTime {
        let seconds = u32::try_from(clock.unix_seconds()).unwrap_or(0);
        WriteTime { micros: self.next(clock.unix_micros()), seconds }
    }

    fn next(&self, now: i64) -> i64 {
        let next = |last: i64| now.max(last.saturating_add(1));
        let last = self.0.fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        next(last.unwrap_or(NO_TIMESTAMP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_later_than_all_before() {
        let times = WriteTimes::default();
        assert_eq!([times.next(100), times.next(100), times.next(50)], [100, 101, 102]);
        times.note(7);
        times.note(2_000);
        assert_eq!([times.next(110), times.next(3_000)], [2_001, 3_000]);
        times.note(i64::MAX);
        assert_eq!(times.next(0), i64::MAX);
    }
}
