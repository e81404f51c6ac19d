//! How often groups are written under `batch`.
//!
//! While the device keeps up, a group follows the one before it at once. Each costs the device a few operations, and many devices are
//! shared out by the operation: a rented volume allows a number of them per second, and a write beyond it waits for the next slice, 10 ms
//! and longer, with every read and every write. So:
//!
//! 1. Several writes in a second that take much longer than usual mean that the device is asked for too much. From then on groups
//!    start a *gap* apart: they are fewer and larger. The first gap is a long one, and shrinks to what is needed; one that does not
//!    suffice grows, to [`GAP_MAX`]. So it takes seconds to learn whether gaps help at all: a short one that takes away an eighth of
//!    what is too much shows in nothing.
//! 2. If writes are nearly as slow after it as before, fewer groups do not help (a neighbour, a host that is busy itself): what was
//!    done is undone, and not tried again for some time.
//! 3. A record does not wait for the gap to end if as many wait as ever did at once lately: each client waits for its answer, and no
//!    other record will come.
//! 4. A gap that has helped shrinks at once to what lets a few less groups through than the device did when it was asked for too much: it
//!    was long to show something, and what was slow for a moment may have ended by itself. After some time it shrinks further, in
//!    steps so small that the first one too many costs milliseconds, and less is too much. If that was too early, the next attempt
//!    comes later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::clock::{Instant, nanos};

const GAP_MIN: Duration = Duration::from_micros(250);
/// The first gap: what does not help then does not help at all. A smaller one that suffices is found from above.
const GAP_FIRST: Duration = Duration::from_millis(4);
const GAP_MAX: Duration = Duration::from_millis(8);
const WINDOW: Duration = Duration::from_secs(1);
/// Slow writes in a window, and their total time, from which on the device is overloaded. A single one is a device's garbage collection.
const SLOW_WRITES: u32 = 4;
const SLOW_TIME: Duration = Duration::from_millis(80);
/// The same while a gap is shorter than what was enough.
const SLOW_TIME_BELOW: Duration = Duration::from_millis(15);
/// A write is slow from this multiple of the usual duration on, and from this duration on.
const SLOW_TIMES: u32 = 4;
const SLOW_MIN: Duration = Duration::from_millis(2);
/// Long writes are not slow for their length: bytes that any device moves in a millisecond.
const BYTES_PER_MS: usize = 100_000;
/// What was queued before a gap changed is not its fault.
const GRACE: Duration = Duration::from_millis(200);
/// A gap that helps does so within this time: slow writes take at most so much of what they took. Groups that
/// meet a host's or a neighbour's pauses more rarely take two thirds of it, too.
const TRIAL: Duration = Duration::from_secs(5);
const HELPS: f64 = 0.5;
/// If more than this of the time goes into slow writes, the device is asked for so much too much that less may not show.
const SATURATED: f64 = 0.5;
/// A gap by how far apart the groups were that the device let through, and by one that was too short.
const GROWS: f64 = 1.5;
/// A gap by the one a second before, down to what is enough, and below it.
const SHRINKS: f64 = 0.8;
const SHRINKS_BELOW: f64 = 0.93;
/// How long a decision is kept, at first and at most.
const KEPT_MIN: Duration = Duration::from_secs(30);
const KEPT_MAX: Duration = Duration::from_secs(600);

/// What was seen since a moment.
#[derive(Debug)]
struct Window {
    since: Instant,
    groups: u32,
    slow_writes: u32,
    /// Of slow writes.
    time: Duration,
    /// The shortest write.
    shortest: Option<Duration>,
    /// Records that waited at once, at most.
    waiting: usize,
}

impl Window {
    fn from(since: Instant) -> Window {
        let (groups, slow_writes, time) = (0, 0, Duration::ZERO);
        Window { since, groups, slow_writes, time, shortest: None, waiting: 0 }
    }

    fn is_slow(&self, time: Duration) -> bool {
        self.slow_writes >= SLOW_WRITES && self.time >= time
    }
}

/// What was the case when a gap was made larger.
#[derive(Debug)]
struct Before {
    at: Instant,
    gap: Duration,
    /// The share of the time that went into slow writes.
    slow: f64,
}

/// How far apart the groups of a log start at present; for other threads too.
#[derive(Debug, Clone, Default)]
pub struct GroupGap(Arc<AtomicU64>);

impl GroupGap {
    /// Zero: one after the other.
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }

    fn set(&self, gap: Duration) {
        self.0.store(nanos(gap), Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Pace {
    gap: GroupGap,
    /// When the last group started.
    started: Instant,
    /// What a short write takes; unknown at first.
    usual: Option<Duration>,
    window: Window,
    /// Records that waited at once in the window before, at most.
    waited: usize,
    /// The last growth; it shows in its trial whether it helps.
    before: Option<Before>,
    /// To this the gap shrinks at once, and below it when what was decided is not kept any more.
    enough: Duration,
    /// Until when the gap does not shrink below what is enough, until when it does not grow, and how long the next decision is kept.
    kept_until: Instant,
    grows_from: Instant,
    kept: Duration,
}

impl Pace {
    pub(crate) fn from(now: Instant) -> Pace {
        Pace {
            gap: GroupGap::default(),
            started: now,
            usual: None,
            window: Window::from(now),
            waited: 0,
            before: None,
            enough: Duration::ZERO,
            kept_until: now,
            grows_from: now,
            kept: KEPT_MIN,
        }
    }

    pub(crate) fn gap(&self) -> &GroupGap {
        &self.gap
    }

    /// When the next group may start while `waiting` records wait; `None`: at once.
    pub(crate) fn due(&self, waiting: usize) -> Option<Instant> {
        let (gap, more_may_come) = (self.gap.get(), waiting < self.waited.max(self.window.waiting));
        (!gap.is_zero() && more_may_come).then(|| self.started + gap)
    }

    /// The number of records without an answer.
    pub(crate) fn note_waiting(&mut self, records: usize) {
        self.window.waiting = self.window.waiting.max(records);
    }

    pub(crate) fn note_started(&mut self, now: Instant) {
        self.started = now;
    }

    /// The group that started last is written; it had this many bytes.
    pub(crate) fn note_written(&mut self, len: usize, now: Instant) {
        if self.started < self.window.since {
            return;
        }
        if now - self.window.since >= WINDOW {
            self.end_window(now);
            self.shrink(now);
        }
        let took = now - self.started;
        self.window.groups += 1;
        self.window.shortest = Some(self.window.shortest.map_or(took, |known| known.min(took)));
        let usual = *self.usual.get_or_insert(took);
        let for_length = Duration::from_millis((len / BYTES_PER_MS) as u64);
        if took > (usual * SLOW_TIMES).max(SLOW_MIN) + for_length {
            self.window.slow_writes += 1;
            self.window.time += took;
        }
        let gap = self.gap.get();
        let is_below = !gap.is_zero() && gap < self.enough;
        if self.window.is_slow(if is_below { SLOW_TIME_BELOW } else { SLOW_TIME }) {
            self.change(now);
            self.end_window(now);
            self.window.since = now + GRACE;
        }
    }

    /// Too many writes were slow in this window.
    fn change(&mut self, now: Instant) {
        let (gap, elapsed) = (self.gap.get(), now - self.window.since);
        let slow = self.window.time.as_secs_f64() / elapsed.as_secs_f64();
        let trial = self.before.take().filter(|before| now - before.at < TRIAL);
        match trial {
            Some(before) if slow > before.slow * HELPS && slow < SATURATED => {
                self.gap.set(before.gap);
                self.grows_from = now + self.keep_longer();
            }
            _ if now < self.grows_from => {}
            _ => {
                if !gap.is_zero() && now >= self.kept_until {
                    self.keep_longer();
                }
                self.before = Some(Before { at: now, gap, slow });
                let apart = elapsed / self.window.groups.max(1);
                let larger = if gap.is_zero() { GAP_FIRST } else { gap.mul_f64(GROWS) };
                self.enough = apart.mul_f64(GROWS).min(GAP_MAX);
                self.gap.set(larger.clamp(self.enough, GAP_MAX));
            }
        }
        self.kept_until = now + self.kept;
    }

    /// What was decided last was wrong, or too early: the next decision is kept for longer. Returns for how long this one is.
    fn keep_longer(&mut self) -> Duration {
        let longer = (self.kept * 2).min(KEPT_MAX);
        std::mem::replace(&mut self.kept, longer)
    }

    fn shrink(&mut self, now: Instant) {
        let on_trial = self.before.as_ref().is_some_and(|before| now - before.at < TRIAL);
        let gap = self.gap.get();
        if on_trial || gap.is_zero() {
            return;
        }
        // What was enough for a longer gap that was taken back is longer than this one.
        let enough = self.enough.min(gap);
        let below = if now < self.kept_until { enough } else { enough.mul_f64(SHRINKS_BELOW) };
        match gap.mul_f64(SHRINKS).max(below) {
            smaller if smaller >= GAP_MIN => self.gap.set(smaller),
            _ => {
                self.gap.set(Duration::ZERO);
                self.kept = KEPT_MIN;
            }
        }
    }

    fn end_window(&mut self, now: Instant) {
        let seen = std::mem::replace(&mut self.window, Window::from(now));
        self.waited = seen.waiting;
        if let (Some(usual), Some(shortest)) = (self.usual, seen.shortest) {
            // Slowly up, for another device or another neighbour; at once down.
            self.usual = Some(shortest.min(usual + usual / 16));
        }
    }
}
