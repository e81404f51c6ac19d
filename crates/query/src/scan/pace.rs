//! A long scan yields its thread every `SLICE`, so that the shard serves other requests meanwhile.

use std::time::Duration;

use halcyon_io::clock::{Instant, now};
use halcyon_io::yield_now;

/// The longest time between two yields.
const SLICE: Duration = Duration::from_micros(300);

/// Fragments between two readings of the clock.
const FRAGMENTS_PER_READING: u32 = 32;

pub(super) struct Pace {
    fragments: u32,
    /// The start of the slice; `None` until the clock is read first, which a short scan never does.
    since: Option<Instant>,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace { fragments: 0, since: None }
    }

    /// Counts a fragment. Whether `pause` is due.
    pub(super) fn step(&mut self) -> bool {
        self.fragments += 1;
        self.fragments.is_multiple_of(FRAGMENTS_PER_READING)
    }

    /// Yields if the slice is used up, and returns the time.
    pub(super) async fn pause(&mut self) -> Instant {
        let time = now();
        if time - *self.since.get_or_insert(time) <= SLICE {
            return time;
        }
        yield_now().await;
        let time = now();
        self.since = Some(time);
        time
    }
}
