//! The one operation that moves bytes: a read or a write of a region of a file, on either backend.
//!
//! 1. On a ring it is one submission entry, with `rw_flags` (`RWF_DONTCACHE`, `RWF_DSYNC`) that compio's own
//!    operations do not offer; on the pool it is one `preadv2` or `pwritev2`.
//! 2. The operation owns its file and its buffer until the kernel is done with both, whatever
//!    happens to the future that waits for it.
//! 3. An [`InFlight`] that is dropped early is not cancelled: the operation runs to its end in the
//!    background, and then its buffer goes back to the pool.

use std::{
    future::poll_fn,
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use compio::{
    BufResult,
    driver::{Decision, Extra, IourOpCode, OpEntry, PollOpCode},
    runtime::Submit,
};

use crate::{
    background::Admitted,
    buffer::AlignedBuf,
    metrics::{Seen, ThreadMetrics},
    mode::Purpose,
    runtime::backend::{self, Backend},
    runtime::clock::{self, Clock, Instant, nanos},
    runtime::task::{Task, spawn},
};

/// Which bytes of the buffer meet which bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) offset: u64,
    /// First byte in the buffer.
    pub(crate) start: usize,
    pub(crate) len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    /// With `RWF_DSYNC`: durable when it completes.
    DurableWrite,
}

/// One operation moves at most this much; longer regions come back short, and the caller continues them.
const OPERATION_BYTES_MAX: usize = 1 << 30;

/// Taking in a completion that is already there costs less than this.
const SEEN_AT_ONCE: Duration = Duration::from_micros(10);

/// Where an operation is counted.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    pub(crate) metrics: Arc<ThreadMetrics>,
    pub(crate) purpose: Purpose,
}

/// What is to be done with which bytes of a file.
pub(crate) struct Work {
    pub(crate) file: Arc<OwnedFd>,
    pub(crate) direction: Direction,
    /// `RWF_…`
    pub(crate) flags: i32,
    pub(crate) region: Region,
}

struct RegionIo {
    work: Work,
    buffer: Option<AlignedBuf>,
    completed: Option<Instant>,
    counted: Counted,
}

/// Counts an operation in; counts it out exactly once.
struct Counted {
    meter: Meter,
    in_kernel: Arc<AtomicUsize>,
    /// Of a stream.
    admitted: Option<Admitted>,
    inside: bool,
}

impl Counted {
    fn enter(meter: Meter, in_kernel: Arc<AtomicUsize>, admitted: Option<Admitted>) -> Counted {
        in_kernel.fetch_add(1, SeqCst);
        meter.metrics.submitted(meter.purpose);
        Counted { meter, in_kernel, admitted, inside: true }
    }

    fn leave(&mut self) {
        if mem::take(&mut self.inside) {
            self.meter.metrics.completed(self.meter.purpose);
            self.in_kernel.fetch_sub(1, SeqCst);
            self.admitted = None;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.leave();
    }
}

impl RegionIo {
    /// The bytes of the buffer that take part. Bounds are checked when the operation is made.
    fn bytes(&mut self) -> (*mut u8, u32) {
        let Region { start, len, .. } = self.work.region;
        match &mut self.buffer {
            Some(buffer) => {
                let len = len.min(OPERATION_BYTES_MAX);
                (buffer[start..start + len].as_mut_ptr(), len as u32)
            }
            None => (std::ptr::null_mut(), 0),
        }
    }

    fn call(&mut self) -> io::Result<usize> {
        let (base, len) = self.bytes();
        let vector = libc::iovec { iov_base: base.cast(), iov_len: len as usize };
        let Work { file, direction, flags, region } = &self.work;
        let (fd, offset) = (file.as_raw_fd(), region.offset as libc::off_t);
        let done = loop {
            // SAFETY: the vector names `len` bytes of a buffer that `self` owns exclusively, and
            // the descriptor is open for as long as `work.file` lives.
            let done = unsafe {
                match direction {
                    Direction::Read => libc::preadv2(fd, &vector, 1, offset, *flags),
                    Direction::Write | Direction::DurableWrite => {
                        libc::pwritev2(fd, &vector, 1, offset, *flags)
                    }
                }
            };
            if done >= 0 {
                break Ok(done as usize);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                break Err(error);
            }
        };
        self.completed = Some(Clock::system().now());
        done
    }

    fn complete(&mut self) {
        self.completed.get_or_insert_with(|| Clock::system().now());
        self.counted.leave();
    }
}

// SAFETY: the entry's pointer is into a heap allocation that `self.buffer` owns and does not move;
// compio keeps `self` until the operation has completed.
unsafe impl IourOpCode for RegionIo {
    type Control = ();

    fn create_entry(&mut self, (): &mut ()) -> OpEntry {
        let (base, len) = self.bytes();
        let Work { file, direction, flags, region } = &self.work;
        let fd = io_uring::types::Fd(file.as_raw_fd());
        let (offset, flags) = (region.offset, *flags);
        match direction {
            Direction::Read => {
                io_uring::opcode::Read::new(fd, base, len).offset(offset).rw_flags(flags).build()
            }
            Direction::Write | Direction::DurableWrite => {
                io_uring::opcode::Write::new(fd, base, len).offset(offset).rw_flags(flags).build()
            }
        }
        .into()
    }

    fn call_blocking(&mut self, (): &mut ()) -> io::Result<usize> {
        self.call()
    }

    unsafe fn set_result(&mut self, (): &mut (), _: &io::Result<usize>, _: &Extra) {
        self.complete();
    }
}

// SAFETY: `pre_submit` never waits for a descriptor, so no `op_type` has to agree.
unsafe impl PollOpCode for RegionIo {
    type Control = ();

    fn pre_submit(&mut self, (): &mut ()) -> io::Result<Decision> {
        Ok(Decision::Blocking)
    }

    fn operate(&mut self, (): &mut ()) -> Poll<io::Result<usize>> {
        Poll::Ready(self.call())
    }

    unsafe fn set_result(&mut self, (): &mut (), _: &io::Result<usize>, _: &Extra) {
        self.complete();
    }
}

/// A finished operation: how many bytes, and the buffer back.
pub(crate) type Finished = (io::Result<usize>, AlignedBuf);

/// An operation that the kernel has. Dropping it lets the operation run to its end.
pub(crate) struct InFlight {
    state: IoState,
    meter: Meter,
    submitted: Instant,
    /// Once it is finished; not more exact than its thread looks for completions.
    took: Duration,
}

enum IoState {
    Ring { waiting: Submit<RegionIo>, backend: Backend },
    Simulated(Task<Finished>),
    Done(Finished, Seen),
    Taken,
}

impl InFlight {
    /// Queues an operation on this thread's runtime. It starts when the thread next waits, or at
    /// [`backend::enter_ring`].
    ///
    /// # Panics
    /// Outside `block_on`, and if the region is outside the buffer.
    pub(crate) fn queue(
        work: Work,
        buffer: AlignedBuf,
        meter: Meter,
        admitted: Option<Admitted>,
    ) -> InFlight {
        assert!(work.region.start + work.region.len <= buffer.len());
        let submitted = Clock::system().now();
        let queued = backend::with_entered(|entered| {
            let operation = RegionIo {
                work,
                buffer: Some(buffer),
                completed: None,
                counted: Counted::enter(meter.clone(), entered.in_kernel.clone(), admitted),
            };
            (entered.runtime().submit(operation), entered.backend)
        });
        let Some((waiting, backend)) = queued else {
            panic!("an I/O future was polled outside halcyon_io::block_on");
        };
        let state = IoState::Ring { waiting, backend };
        let mut this = InFlight { state, meter, submitted, took: Duration::ZERO };
        // compio submits at the first poll; the waker is replaced when someone waits.
        let _ = this.poll_finished(&mut Context::from_waker(Waker::noop()));
        this
    }

    /// An operation that a simulated disk has already done.
    pub(crate) fn done(finished: Finished, meter: Meter) -> InFlight {
        meter.metrics.submitted(meter.purpose);
        meter.metrics.completed(meter.purpose);
        let submitted = Clock::system().now();
        let state = IoState::Done(finished, Seen::After(1));
        InFlight { state, meter, submitted, took: Duration::ZERO }
    }

    /// An operation of a simulated disk that takes time; it runs to its end like the others.
    pub(crate) fn simulated(
        meter: Meter,
        operation: impl Future<Output = Finished> + 'static,
    ) -> InFlight {
        meter.metrics.submitted(meter.purpose);
        let counted = meter.clone();
        let task = spawn(async move {
            let finished = operation.await;
            counted.metrics.completed(counted.purpose);
            finished
        });
        let state = IoState::Simulated(task);
        InFlight { state, meter, submitted: clock::now(), took: Duration::ZERO }
    }

    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    /// Waits for an operation that was queued just now: its latency is the device's. Dropped, it
    /// can be called again.
    pub(crate) async fn finish(&mut self) -> Finished {
        poll_fn(|cx| self.poll_finished(cx)).await;
        self.take_finished()
    }

    /// Waits for an operation that ran while the thread did other things. On a ring, one whose end
    /// is seen as soon as it is asked for ended at an unknown time before.
    pub(crate) async fn finish_overlapped(&mut self) -> Finished {
        let on_ring = matches!(self.state, IoState::Ring { backend: Backend::Uring, .. });
        let asked = Clock::system().now();
        poll_fn(|cx| self.poll_finished(cx)).await;
        if let IoState::Done(_, seen @ Seen::After(_)) = &mut self.state
            && let Seen::After(nanos) = *seen
            && on_ring
            && self.submitted + Duration::from_nanos(nanos) - asked < SEEN_AT_ONCE
        {
            *seen = Seen::Overlapped;
        }
        self.take_finished()
    }

    #[expect(clippy::expect_used, reason = "an operation keeps its buffer to its end")]
    fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let IoState::Simulated(task) = &mut self.state {
            let Poll::Ready(finished) = Pin::new(task).poll(cx) else { return Poll::Pending };
            let finished = finished.expect("a simulated operation does not panic");
            self.took = clock::now() - self.submitted;
            self.state = IoState::Done(finished, Seen::After(nanos(self.took)));
        }
        let IoState::Ring { waiting, .. } = &mut self.state else { return Poll::Ready(()) };
        let Poll::Ready(BufResult(outcome, mut operation)) = Pin::new(waiting).poll(cx) else {
            return Poll::Pending;
        };
        operation.complete();
        let completed = operation.completed.unwrap_or(self.submitted);
        self.took = completed - self.submitted;
        let buffer = operation.buffer.take().expect("the buffer of an operation");
        self.state = IoState::Done((outcome, buffer), Seen::After(nanos(self.took)));
        Poll::Ready(())
    }

    fn take_finished(&mut self) -> Finished {
        match mem::replace(&mut self.state, IoState::Taken) {
            IoState::Done(finished, seen) => {
                let outcome = finished.0.as_ref().map(|done| *done).map_err(|_| ());
                self.meter.metrics.observed(self.meter.purpose, outcome, seen);
                finished
            }
            _ => unreachable!("taken once, after it was polled to its end"),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let IoState::Ring { waiting, .. } = mem::replace(&mut self.state, IoState::Taken) {
            // Outside `block_on` nothing is in the kernel: it drained before it returned.
            backend::with_entered(|entered| entered.runtime().spawn(waiting).detach());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a queued operation can be handed to another thread of the pool.
    #[test]
    fn operations_may_cross_threads() {
        fn is_send<T: Send>() {}
        is_send::<RegionIo>();
    }
}
