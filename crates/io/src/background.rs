//! How much of the device's queue background I/O may take.
//!
//! A device works through what it was given in its own order: a read of 4 KiB waits for the megabytes before it too. Streams
//! (flush, compaction, scans, log segments made ready) share a window, which is narrow as long as reads of rows or the commit log use the
//! device too.
//!
//! 1. Before an operation is queued, [`Background::admit`] counts its bytes, in all threads of the disk, against the window.
//! 2. A thread that has nothing in flight is always admitted: it would have no completion to wait for. So what is in flight is at most the
//!    window and one operation for each thread.
//! 3. One that is not admitted waits for a completion of its own thread, and tries again. It waits for no other thread's: an idle thread
//!    that computes sees its completions late, and would keep others waiting.
//! 4. The completion gives the bytes back, even if the operation's future was dropped.
//!
//! Two streams of 256 KiB each get four fifths of what a fast device can do; with megabytes in flight a read of 4 KiB takes twenty times as
//! long (figures: docs/internals/io.md).

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::metrics::{DiskMetrics, Used};
use crate::mode::Purpose;
use crate::runtime::clock::{Clock, nanos};
use crate::sync::mutex::Mutex;
use crate::sync::per_thread::PerThread;
use crate::trickle::Trickle;

/// Bytes in flight while a foreground operation waits for the device, and otherwise: a new one waits for these, once.
const NARROW: u64 = 512 << 10;
const WIDE: u64 = 8 << 20;
/// What one operation of a stream moves at most: a device that is given more at once keeps others waiting.
pub(crate) const OPERATION: usize = 256 << 10;
/// After this long without a foreground operation none is expected to come.
const CALM: Duration = Duration::from_millis(250);
/// The counters of all threads are summed this often at most.
const LOOK: Duration = Duration::from_millis(5);

/// Shared by all threads that use a disk.
#[derive(Debug)]
pub(crate) struct Background {
    clock: Clock,
    in_flight: AtomicU64,
    pub(crate) trickle: Trickle,
    threads: PerThread<Arc<InFlightHere>>,
    /// When the foreground operations were counted last, and how many there were. Times are nanoseconds of the clock.
    looked: AtomicU64,
    counted: AtomicU64,
    /// When there were more of them than before; 0: never.
    busy: AtomicU64,
}

/// What one thread has in flight, and which of its tasks wait for less.
#[derive(Debug, Default)]
struct InFlightHere {
    operations: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// An admitted operation; dropped when the kernel is done with it.
#[derive(Debug)]
pub(crate) struct Admitted {
    background: Arc<Background>,
    thread: Arc<InFlightHere>,
    bytes: u64,
}

impl Background {
    pub(crate) fn on(clock: Clock) -> Arc<Background> {
        Arc::new(Background {
            clock,
            in_flight: AtomicU64::new(0),
            trickle: Trickle::default(),
            threads: PerThread::empty(),
            looked: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        })
    }

    /// Waits until an operation of `bytes` may be queued.
    pub(crate) async fn admit(
        self: &Arc<Background>,
        bytes: u64,
        metrics: &DiskMetrics,
    ) -> Admitted {
        poll_fn(|context| {
            let thread = self.threads.get_or_init(Arc::default);
            if let Some(admitted) = self.try_admit(thread, bytes, metrics) {
                return Poll::Ready(admitted);
            }
            thread.waiting.lock().push(context.waker().clone());
            // The last completion may have come before there was a waker to wake.
            match self.try_admit(thread, bytes, metrics) {
                Some(admitted) => Poll::Ready(admitted),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn try_admit(
        self: &Arc<Background>,
        thread: &Arc<InFlightHere>,
        bytes: u64,
        metrics: &DiskMetrics,
    ) -> Option<Admitted> {
        let is_first = thread.operations.load(SeqCst) == 0;
        let together = self.in_flight.load(Relaxed) + bytes;
        let fits = together <= NARROW || together <= WIDE && !self.is_narrow(metrics);
        if !is_first && !fits {
            return None;
        }
        self.in_flight.fetch_add(bytes, Relaxed);
        thread.operations.fetch_add(1, SeqCst);
        Some(Admitted { background: self.clone(), thread: thread.clone(), bytes })
    }

    /// Whether a stream's write is to flush the device: without a foreground operation, a flush would only slow the stream.
    pub(crate) fn is_flush_due(&self, bytes: u64, metrics: &DiskMetrics) -> bool {
        self.trickle.is_due(bytes, self.clock.now(), || self.is_narrow(metrics))
    }

    /// Whether the device has had foreground operations lately.
    fn is_narrow(&self, metrics: &DiskMetrics) -> bool {
        let now = self.clock.now().as_nanos();
        let looked = self.looked.load(Relaxed);
        if now.saturating_sub(looked) >= nanos(LOOK) {
            self.looked.store(now, Relaxed);
            let Used { operations, in_flight } = metrics.used_for(&FOREGROUND);
            if self.counted.swap(operations, Relaxed) != operations || in_flight > 0 {
                self.busy.store(now.max(1), Relaxed);
            }
        }
        let busy = self.busy.load(Relaxed);
        busy > 0 && now.saturating_sub(busy) < nanos(CALM)
    }
}

/// Foreground: a client waits for a row, or for its write to be durable.
const FOREGROUND: [Purpose; 2] = [Purpose::UserRead, Purpose::CommitLog];

impl Drop for Admitted {
    fn drop(&mut self) {
        self.background.in_flight.fetch_sub(self.bytes, Relaxed);
        self.thread.operations.fetch_sub(1, SeqCst);
        let waiting = std::mem::take(&mut *self.thread.waiting.lock());
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;
    use crate::metrics::Seen;
    use crate::runtime::clock::SimClock;

    const PIECE: u64 = OPERATION as u64;

    struct Device {
        time: SimClock,
        background: Arc<Background>,
        metrics: DiskMetrics,
    }

    impl Device {
        fn at_rest() -> Device {
            let time = SimClock::started();
            time.advance(Duration::from_secs(1));
            let background = Background::on(time.clock());
            Device { time, background, metrics: DiskMetrics::empty() }
        }

        fn try_admit(&self, bytes: u64) -> Option<Admitted> {
            let mut admission = pin!(self.background.admit(bytes, &self.metrics));
            match admission.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(admitted) => Some(admitted),
                Poll::Pending => None,
            }
        }

        /// As many as are admitted.
        fn fill(&self) -> Vec<Admitted> {
            std::iter::from_fn(|| self.try_admit(PIECE)).collect()
        }

        fn foreground(&self, purpose: Purpose) {
            self.metrics.here().observed(purpose, Ok(4096), Seen::After(1));
            self.time.advance(LOOK);
        }
    }

    /// Proves that the window is narrow from a foreground operation on until none has come for a while, and that scans are not foreground.
    #[test]
    fn narrow_while_somebody_waits() {
        let device = Device::at_rest();
        assert_eq!(device.fill().len() as u64, WIDE / PIECE);
        for purpose in FOREGROUND {
            device.foreground(purpose);
            assert_eq!(device.fill().len() as u64, NARROW / PIECE);
            device.time.advance(CALM);
            assert_eq!(device.fill().len() as u64, WIDE / PIECE);
        }
        device.foreground(Purpose::Scan);
        assert_eq!(device.fill().len() as u64, WIDE / PIECE);
    }

    /// Proves that one foreground operation that takes long keeps the window narrow.
    #[test]
    fn narrow_while_one_is_under_way() {
        let device = Device::at_rest();
        device.metrics.here().submitted(Purpose::UserRead);
        for _ in 0..10 {
            device.time.advance(CALM);
            assert_eq!(device.fill().len() as u64, NARROW / PIECE);
        }
        device.metrics.here().completed(Purpose::UserRead);
        device.time.advance(CALM);
        assert_eq!(device.fill().len() as u64, WIDE / PIECE);
    }

    /// Proves that a thread with nothing in flight never waits, whatever others have, and that an operation larger than the window is
    /// admitted alone.
    #[test]
    fn each_thread_has_one() {
        let device = Device::at_rest();
        device.foreground(Purpose::CommitLog);
        let others = device.fill();
        let mine = std::thread::scope(|scope| {
            scope.spawn(|| (device.try_admit(4 * WIDE), device.try_admit(PIECE).is_none())).join()
        });
        let (first, refused) = mine.expect("the thread did not panic");
        assert!(first.is_some() && refused);
        assert!(device.try_admit(PIECE).is_none());
        drop((others, first));
        assert_eq!(device.background.in_flight.load(Relaxed), 0);
    }

    /// Proves that a completion wakes all that wait on its thread.
    #[test]
    fn a_completion_wakes() {
        let device = Device::at_rest();
        device.foreground(Purpose::UserRead);
        let mut admitted = device.fill();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut waiting = pin!(device.background.admit(PIECE, &device.metrics));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Relaxed), 0);
        admitted.pop();
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }

    #[derive(Default)]
    struct Woken(AtomicU64);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Woken>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
