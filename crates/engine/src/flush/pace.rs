//! Spreads a flush over the time until the next one is due.
//!
//! ```text
//!   memtable that is flushed   ▒▒▒▒▒▒▒▒▒▒▒▒░░░░░░░░░░   written
//!   space of the next one      ▒▒▒▒▒▒░░░░░░░░░░░░░░░░   filled since the flush began; what is written keeps LEAD times ahead of it
//! ```
//! 1. Written as fast as possible, a flush has a core and the device for a second, in which reads wait for both, and leaves
//!    them alone for the twenty that follow. It only has to be written before the space is wanted that it frees.
//! 2. So a flush ends when half of the space is filled that is left to its successors, sooner where others wait for the thread that
//!    writes it.
//! 3. Under few writes, [`RATE_MIN`] bounds the time.
//! 4. A flush with a waiter is written at once: `nodetool flush`, a drain, a commit log that is short of space, writes that find no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use halcyon_io::Clock;
use halcyon_io::clock::Instant;

/// How many times faster a flush is than what fills the space.
const LEAD: f64 = 2.0;
/// Bytes of a memtable that are written a second, at least.
const RATE_MIN: f64 = 16e6;
/// Between two looks; what is written between them takes about a tenth of it.
const PAUSE: Duration = Duration::from_millis(5);

/// Bytes of a shard's memtables that take writes. Its flushes read it on other threads.
#[derive(Debug, Default)]
pub(crate) struct Filling(AtomicUsize);

impl Filling {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Only its shard calls this.
    pub(crate) fn set(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }
}

/// Who waits for flushes, of any shard: one thread may write them all.
#[derive(Debug, Default)]
pub(crate) struct Waits(AtomicUsize);

/// A caller waits until this is dropped.
pub(crate) struct Hurry(Arc<Waits>);

impl Waits {
    pub(crate) fn hurry(self: &Arc<Waits>) -> Hurry {
        self.0.fetch_add(1, Relaxed);
        Hurry(self.clone())
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Of one flush.
pub(crate) struct FlushPace {
    clock: Clock,
    waits: Arc<Waits>,
    filling: Arc<Filling>,
    began: Instant,
    /// Bytes of the memtable.
    bytes: usize,
    /// Bytes of its successors when it began, and when they are to be frozen.
    from: usize,
    until: usize,
}

impl FlushPace {
    /// Of a memtable of `bytes`.
    pub(crate) fn begin(
        clock: &Clock,
        waits: &Arc<Waits>,
        filling: Arc<Filling>,
        (bytes, until): (usize, usize),
    ) -> FlushPace {
        let (clock, waits) = (clock.clone(), waits.clone());
        let (began, from) = (clock.now(), filling.bytes());
        FlushPace { clock, waits, filling, began, bytes, from, until }
    }

    /// Waits while more than what is due is written: a share of the memtable. `queued` flushes wait for the thread.
    pub(crate) async fn keep(&self, written: f64, queued: impl Fn() -> usize) {
        while written > self.due(queued()) {
            self.clock.sleep(PAUSE).await;
        }
    }

    fn due(&self, queued: usize) -> f64 {
        let left = self.until.saturating_sub(self.from);
        if self.waits.0.load(Relaxed) > 0 || left == 0 {
            return 1.0;
        }
        let filled = self.filling.bytes().saturating_sub(self.from) as f64 / left as f64;
        let elapsed = (self.clock.now() - self.began).as_secs_f64();
        let least = elapsed * RATE_MIN / self.bytes.max(1) as f64;
        f64::max(filled * LEAD * (1 + queued) as f64, least)
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::SimClock;

    use super::*;

    const MIB: usize = 1 << 20;

    /// Of 160 MiB, whose successors had so much when it began and may have 120 MiB.
    fn flush(from: usize) -> (SimClock, FlushPace) {
        let time = SimClock::started();
        let (clock, filling) = (time.clock(), Arc::<Filling>::default());
        filling.set(from);
        let (began, bytes, until) = (clock.now(), 160 * MIB, 120 * MIB);
        (time, FlushPace { clock, waits: Arc::default(), filling, began, bytes, from, until })
    }

    /// Proves that what is due is ahead of what is filled, and more so while others wait for the thread.
    #[test]
    fn keeps_ahead_of_the_writes() {
        let (_time, pace) = flush(20 * MIB);
        let filling = &pace.filling;
        assert_eq!(pace.due(0), 0.0);
        filling.set(45 * MIB);
        assert_eq!((pace.due(0), pace.due(1)), (0.5, 1.0));
        filling.set(70 * MIB);
        assert_eq!(pace.due(0), 1.0);
        // A truncation has emptied the successors.
        filling.set(0);
        assert_eq!(pace.due(0), 0.0);
    }

    /// Proves that a flush ends without writes too.
    #[test]
    fn time_bounds_it() {
        let (time, pace) = flush(20 * MIB);
        time.advance(Duration::from_secs(5));
        assert!((0.4..0.6).contains(&pace.due(0)));
        time.advance(Duration::from_secs(6));
        assert!(pace.due(0) > 1.0);
    }

    /// Proves that a flush with a waiter is not held back, nor one with no space left to fill.
    #[test]
    fn hurries_while_somebody_waits() {
        let (_time, pace) = flush(20 * MIB);
        let (one, other) = (pace.waits.hurry(), pace.waits.hurry());
        assert_eq!(pace.due(0), 1.0);
        drop(one);
        assert_eq!(pace.due(0), 1.0);
        drop(other);
        assert_eq!(pace.due(0), 0.0);
        let (_time, late) = flush(130 * MIB);
        assert_eq!(late.due(0), 1.0);
    }
}
