//! Flushes the device now and then while streams write.
//!
//! Most devices have a cache (a host's page cache behind a virtual disk, an SSD's own memory), and a flush empties it: a flush
//! waits for all bytes since the last one, of all writers, and some devices do nothing else meanwhile. After half a minute
//! of compaction one record of the commit log stopped a disk for 145 ms (1 ms for each MiB that its host had not written yet). So streams
//! flush what they write in small parts (Cassandra's `trickle_fsync` does it for the kernel's page cache).
//!
//! 1. It is done by a write that is durable on its own (`RWF_DSYNC`), when streams have written an interval since the last flush. The
//!    commit log's flushes count too: where many writes are durable, streams need none of their own.
//! 2. The interval follows what a flush costs: it takes `LONG` at most, where parts can be that small.
//! 3. A device whose flush takes long however little there is to do would do nothing else. So it rests for `REST` times as long; but even
//!    so no more than `MOST` waits for a flush.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::runtime::clock::Instant;

/// A read that comes meanwhile waits so long at most. Smaller parts take longer together.
const LONG: Duration = Duration::from_millis(4);
const LEAST: u64 = 1 << 20;
const MOST: u64 = 16 << 20;
const REST: u32 = 8;

/// Shared by all threads that use a disk.
#[derive(Debug)]
pub(crate) struct Trickle {
    /// Bytes that streams have written since the last flush.
    unflushed: AtomicU64,
    interval: AtomicU64,
    /// In nanoseconds of the clock.
    rests_until: AtomicU64,
}

impl Default for Trickle {
    fn default() -> Trickle {
        Trickle {
            unflushed: AtomicU64::new(0),
            interval: AtomicU64::new(LEAST),
            rests_until: AtomicU64::new(0),
        }
    }
}

impl Trickle {
    /// A stream is about to write `bytes`: whether with a flush, if that is wanted at all.
    pub(crate) fn is_due(
        &self,
        bytes: u64,
        now: Instant,
        is_wanted: impl FnOnce() -> bool,
    ) -> bool {
        let unflushed = self.unflushed.fetch_add(bytes, Relaxed) + bytes;
        let rests = || unflushed < MOST && now.as_nanos() < self.rests_until.load(Relaxed);
        let is_due = unflushed >= self.interval.load(Relaxed) && !rests() && is_wanted();
        // Of several streams one flushes.
        is_due && self.unflushed.compare_exchange(unflushed, 0, Relaxed, Relaxed).is_ok()
    }

    /// The file system knows no write that is durable on its own.
    pub(crate) fn give_up(&self) {
        self.interval.store(u64::MAX, Relaxed);
    }

    /// Another writer has flushed the device.
    pub(crate) fn others_flushed(&self) {
        // Others do it thousands of times a second: the line stays shared while there is nothing to change.
        if self.unflushed.load(Relaxed) != 0 {
            self.unflushed.store(0, Relaxed);
        }
    }

    /// A write with a flush has taken so long.
    pub(crate) fn took(&self, time: Duration, now: Instant) {
        let interval = self.interval.load(Relaxed);
        let next = if time > LONG {
            interval / 2
        } else if time < LONG / 2 {
            interval * 2
        } else {
            interval
        };
        self.interval.store(next.clamp(LEAST, MOST), Relaxed);
        self.rests_until.store((now + time * REST).as_nanos(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock::SimClock;

    const PIECE: u64 = 256 << 10;
    const MIB: u64 = 1 << 20;

    /// Bytes between flushes, in the mean, and the share of time that flushes take, of ten seconds at a rate on a device.
    fn run(rate: u64, flush: impl Fn(u64) -> Duration) -> (u64, f64) {
        let (time, trickle) = (SimClock::started(), Trickle::default());
        let (mut written, mut since, mut flushes, mut flushing) = (0, 0, 0, Duration::ZERO);
        while written < 10 * rate {
            written += PIECE;
            since += PIECE;
            time.advance(Duration::from_secs_f64(PIECE as f64 / rate as f64));
            if trickle.is_due(PIECE, time.clock().now(), || true) {
                let took = flush(since);
                time.advance(took);
                trickle.took(took, time.clock().now());
                flushing += took;
                (since, flushes) = (0, flushes + 1);
            }
        }
        (written / flushes.max(1), flushing.as_secs_f64() / 10.0)
    }

    /// Proves that flushes are short where that takes small parts, rare where they cost the same however little there is, and that a device
    /// which hardly keeps up still has an end of what waits.
    #[test]
    fn follows_the_device() {
        let by_size = |bytes: u64| Duration::from_nanos(bytes);
        let (part, share) = run(64 * MIB, by_size);
        assert!((MIB..=5 * MIB).contains(&part), "{part}");
        assert!(share < 0.1, "{share}");
        let (part, _) = run(900 * MIB, by_size);
        assert!((MOST * 3 / 4..=MOST).contains(&part), "{part}");
        let (part, _) = run(64 * MIB, |_| Duration::from_micros(50));
        assert!((MOST * 3 / 4..=MOST).contains(&part), "{part}");
        let (_, share) = run(500 * MIB, |_| Duration::from_millis(5));
        assert!(share < 0.2, "{share}");
    }

    /// Proves that flushed bytes are not flushed again.
    #[test]
    fn others_flush_too() {
        let (time, trickle) = (SimClock::started(), Trickle::default());
        for _ in 0..1000 {
            assert!(!trickle.is_due(PIECE, time.clock().now(), || true));
            trickle.others_flushed();
        }
    }
}
