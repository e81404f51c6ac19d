//! The gap between groups, on models of devices.

use halcyon_io::clock::{Instant, SimClock};

use super::*;
use crate::pace::Pace;

const WRITE: Duration = Duration::from_micros(200);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A log's writer with its clients, in simulated time.
struct Run<D> {
    pace: Pace,
    now: Instant,
    device: D,
    writes: u32,
}

impl<D: FnMut(Instant) -> Duration> Run<D> {
    /// A device that says how long a write takes when it starts.
    fn on(device: D) -> Run<D> {
        let now = SimClock::started().clock().now();
        Run { pace: Pace::from(now), now, device, writes: 0 }
    }

    fn write(&mut self, records: usize) {
        self.pace.note_started(self.now);
        self.now = self.now + (self.device)(self.now);
        self.pace.note_written(records * 256, self.now);
        self.writes += 1;
    }

    /// Sends records at a fixed rate, whether those before are answered or not; returns how long the slowest waited.
    fn open_loop(&mut self, a_second: u32, during: Duration) -> Duration {
        let apart = Duration::from_secs(1) / a_second;
        let until = self.now + during;
        let (mut next, mut slowest) = (self.now, Duration::ZERO);
        let mut waiting = Vec::new();
        while self.now < until {
            while next <= self.now {
                waiting.push(next);
                next = next + apart;
                self.pace.note_waiting(waiting.len());
            }
            match self.pace.due(waiting.len()) {
                _ if waiting.is_empty() => self.now = next,
                Some(due) if due > self.now => self.now = due.min(next),
                _ => {
                    let group = std::mem::take(&mut waiting);
                    self.write(group.len());
                    slowest = slowest.max(self.now - group[0]);
                }
            }
        }
        slowest
    }

    /// Runs clients that each wait for their answer; returns how many answers they got.
    fn closed_loop(&mut self, clients: usize, during: Duration) -> usize {
        let until = self.now + during;
        let mut answers = 0;
        while self.now < until {
            self.pace.note_waiting(clients);
            if let Some(due) = self.pace.due(clients) {
                self.now = self.now.max(due);
            }
            self.write(clients);
            answers += clients;
        }
        answers
    }
}

/// A device with a quota of operations per tenth of a second; the next one waits for the next tenth.
fn limited(a_tenth: u32) -> impl FnMut(Instant) -> Duration {
    let (mut tenth, mut left) = (0, a_tenth);
    move |now| {
        let slice = now.as_nanos() / 100_000_000;
        if slice > tenth {
            (tenth, left) = (slice, a_tenth);
        }
        if left == 0 {
            (tenth, left) = (tenth + 1, a_tenth);
        }
        left -= 1;
        Duration::from_nanos((tenth * 100_000_000).saturating_sub(now.as_nanos())) + WRITE
    }
}

/// Proves that on a device with a quota of operations, inserts stop running into the quota.
#[test]
fn a_limited_device() {
    for a_tenth in [40, 100, 200] {
        let mut run = Run::on(limited(a_tenth));
        assert!(run.open_loop(5_000, ms(500)) > ms(30), "the limit is reached");
        run.open_loop(5_000, ms(1_500));
        let slowest = run.open_loop(5_000, ms(25_000));
        assert!(slowest < ms(5), "{a_tenth} operations in a tenth: {slowest:?}");
    }
}

/// Proves that it is not tried again and again whether the limit is still there.
#[test]
fn a_limit_is_remembered() {
    let mut run = Run::on(limited(100));
    run.open_loop(5_000, ms(600_000));
    let reached = (0..600).filter(|_| run.open_loop(5_000, ms(1_000)) > ms(10)).count();
    assert!(reached <= 8, "in {reached} of 600 seconds");
}

/// Proves that the search for a limit, which never ends while the limit exists, keeps no record waiting for long.
#[test]
fn a_limit_is_looked_for_gently() {
    for a_tenth in [40, 100, 200] {
        let mut run = Run::on(limited(a_tenth));
        run.open_loop(5_000, ms(27_000));
        let slowest = run.open_loop(5_000, ms(600_000));
        assert!(slowest < ms(10), "{a_tenth} operations in a tenth: {slowest:?}");
    }
}

/// Proves that the first gap, which is long to show whether gaps help, shrinks to what is needed: here, a millisecond.
#[test]
fn a_gap_is_no_longer_than_needed() {
    let mut run = Run::on(limited(100));
    run.open_loop(5_000, ms(500));
    assert_eq!(run.pace.gap().get(), ms(4));
    run.open_loop(5_000, ms(60_000));
    let gap = run.pace.gap().get();
    assert!((ms(1)..ms(2)).contains(&gap), "{gap:?}");
}

/// Proves that a device that keeps up is not spared, though it has a long pause now and then and long writes take long.
#[test]
fn a_device_that_keeps_up() {
    let mut pause = 0;
    let mut run = Run::on(|now: Instant| {
        let half_seconds = now.as_nanos() / 500_000_000;
        let is_due = std::mem::replace(&mut pause, half_seconds) < half_seconds;
        if is_due { ms(120) } else { WRITE }
    });
    run.open_loop(20_000, ms(10_000));
    assert_eq!(run.pace.due(0), None);
    // Nearly one after the other.
    assert!(run.writes > 30_000, "{}", run.writes);
}

/// Proves that a device whose host or neighbour took it away for some moments of a second does not keep records waiting for long.
#[test]
fn a_bad_second() {
    let (mut writes, is_bad) = (0, std::cell::Cell::new(false));
    let mut run = Run::on(|_| {
        writes += 1;
        if is_bad.get() && writes % 100 == 0 { ms(25) } else { WRITE }
    });
    run.open_loop(5_000, ms(2_000));
    is_bad.set(true);
    run.open_loop(5_000, ms(200));
    is_bad.set(false);
    assert_eq!(run.pace.gap().get(), ms(4));
    run.open_loop(5_000, ms(15_000));
    assert!(run.pace.gap().get() < ms(1), "{:?}", run.pace.gap());
    run.open_loop(5_000, ms(30_000));
    assert_eq!(run.pace.gap().get(), Duration::ZERO);
}

/// Proves that a gap is given up that does not help, and not tried all the time.
#[test]
fn a_neighbour() {
    let mut run = Run::on(|now: Instant| {
        let of_tenth = now.as_nanos() % 100_000_000;
        Duration::from_nanos(15_000_000_u64.saturating_sub(of_tenth)) + WRITE
    });
    let with_gap = (0..600).filter(|_| {
        run.open_loop(5_000, ms(1_000));
        run.pace.due(0).is_some()
    });
    let seconds = with_gap.count();
    assert!((1..=20).contains(&seconds), "{seconds} of 600 seconds");
}

/// Proves that a gap that is in force is what it was after a longer one did not help.
#[test]
fn a_neighbour_of_a_limited_device() {
    let has_neighbour = std::cell::Cell::new(false);
    let mut limited = limited(100);
    let mut run = Run::on(|now: Instant| {
        let of_tenth = now.as_nanos() % 100_000_000;
        let taken = 15_000_000_u64.saturating_sub(of_tenth);
        limited(now) + Duration::from_nanos(if has_neighbour.get() { taken } else { 0 })
    });
    run.open_loop(5_000, ms(20_000));
    let gap = run.pace.gap().get();
    assert!(gap > Duration::ZERO);
    has_neighbour.set(true);
    run.open_loop(5_000, ms(10_000));
    assert_eq!(run.pace.gap().get(), gap);
    has_neighbour.set(false);
    run.open_loop(5_000, ms(3_000));
    assert_eq!(run.pace.gap().get(), gap);
}

/// Proves that clients that wait for their answers do not wait for the gap, and that the gap goes when it is not needed any more.
#[test]
fn clients_that_wait() {
    let is_slow = std::cell::Cell::new(true);
    let mut slow = limited(100);
    let mut run = Run::on(|now| if is_slow.get() { slow(now) } else { WRITE });
    run.open_loop(5_000, ms(3_000));
    is_slow.set(false);
    // What waited at once before is forgotten after two seconds.
    run.closed_loop(50, ms(2_500));
    assert!(run.pace.due(1).is_some());
    let answers = run.closed_loop(50, ms(10_000));
    assert!(answers > 50 * 45_000, "{answers}");
    run.open_loop(5_000, ms(90_000));
    assert_eq!(run.pace.due(0), None);
}
