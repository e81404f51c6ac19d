//! Aligned buffers from a pool with a fixed budget.
//!
//! 1. An [`AlignedBuf`] starts on a 4 KiB boundary and is a multiple of 4 KiB long: the type is the
//!    proof that direct I/O may use it. Its bytes are always initialised.
//! 2. Dropped, it returns to its pool, from any thread; no allocation per I/O.
//! 3. `held + free <= budget`, always. Free buffers of other sizes are given up first.
//! 4. Each thread has a share: a few free buffers for its random reads, which count as held. Taking and giving back one of those
//!    touches nothing of other threads. What the share lacks comes from the pool's own list, behind one lock for all threads.
//! 5. Before anyone is refused or waits, all shares are taken back, and nothing is put into one until no one waits any more.
//! 6. Short-lived buffers (a random read) may use the whole budget; streams, which hold theirs for
//!    long, at most three quarters: so a user's read always gets a turn, however much compacts. Of
//!    the streams' share, what a stream can do without (reading further ahead) may use half.
//! 7. A request that finds no room waits in line, each kind in its own. If nothing is released for the pool's patience, the waiter
//!    fails with an error that names the budget: the holders may be waiting for one another, or be the waiter itself, and
//!    nothing else could break the ring.
//!
//! Not an allocator: nothing here is for bytes that do not touch a device.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    collections::{BTreeMap, VecDeque},
    fmt,
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    pin::pin,
    ptr::NonNull,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::error::{Error, Result};
use crate::sync::mutex::Mutex;
use crate::sync::per_thread::PerThread;

/// Address and length granularity of every buffer: no device in use asks for more.
pub const BUFFER_ALIGNMENT: usize = 4096;

/// How long a buffer will be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenure {
    /// One operation and the reading of its result.
    Short,
    /// As long as a stream is open.
    Stream,
}

/// A buffer that a direct read or write may use. Dereferences to all its bytes.
pub struct AlignedBuf {
    memory: ManuallyDrop<Memory>,
    tenure: Tenure,
    /// The share of the thread that took it: a pointer to the pool itself would be counted in a cache line of all threads.
    home: Arc<Share>,
}

/// An owned, aligned, initialised allocation.
struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: `Memory` owns its allocation alone, as a `Box<[u8]>` does.
unsafe impl Send for Memory {}
// SAFETY: shared access only reads.
unsafe impl Sync for Memory {}

impl Memory {
    fn zeroed(len: usize) -> Memory {
        let layout = Memory::layout(len);
        // SAFETY: the layout's size is not zero: `len` is a positive multiple of the alignment.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Memory { start, len },
            None => handle_alloc_error(layout),
        }
    }

    #[expect(clippy::expect_used, reason = "a length is bounded by the budget of the pool")]
    fn layout(len: usize) -> Layout {
        assert!(len > 0 && len.is_multiple_of(BUFFER_ALIGNMENT));
        Layout::from_size_align(len, BUFFER_ALIGNMENT).expect("a length within the budget")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this same layout and is freed only here.
        unsafe { dealloc(self.start.as_ptr(), Memory::layout(self.len)) }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is `len` initialised bytes, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.start.as_ptr(), self.memory.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.len) }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.memory.len)
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: taken once, here, and never used again: `self` is being dropped.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        self.home.give_back(memory, self.tenure);
    }
}

/// The pool of one disk; clones share it.
#[derive(Clone)]
pub struct BufferPool(Arc<Shared>);

struct Shared {
    central: Arc<Central>,
    shares: PerThread<Arc<Share>>,
}

/// What all threads share.
struct Central {
    budget: usize,
    patience: Patience,
    /// Someone waits in line: nothing may go into a share. Written with `state` locked.
    waiting: AtomicBool,
    state: Mutex<PoolState>,
}

/// A thread's own free buffers. The lock is for `reclaim`, and for a buffer that another thread drops.
struct Share {
    central: Arc<Central>,
    free: Mutex<FreeList>,
}

#[derive(Default)]
struct FreeList {
    bytes: usize,
    buffers: Vec<Memory>,
}

/// A share holds at most this, and at most this part of the budget.
const SHARE_MAX: usize = 512 << 10;
const SHARE_PART: usize = 64;

/// How a waiter measures that nothing moves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    Time(Duration),
    /// For simulations: turns of the executor.
    Turns(u32),
}

#[derive(Default)]
struct PoolState {
    /// Handed out, or in a share.
    held: usize,
    held_by_streams: usize,
    free_bytes: usize,
    free: BTreeMap<usize, Vec<Memory>>,
    releases: u64,
    /// How often the lock was taken.
    locked: u64,
    next_ticket: u64,
    short_line: VecDeque<(u64, Waker)>,
    stream_line: VecDeque<(u64, Waker)>,
}

impl PoolState {
    fn line(&mut self, tenure: Tenure) -> &mut VecDeque<(u64, Waker)> {
        match tenure {
            Tenure::Short => &mut self.short_line,
            Tenure::Stream => &mut self.stream_line,
        }
    }

    fn wake_first(&self) {
        for line in [&self.short_line, &self.stream_line] {
            if let Some((_, waker)) = line.front() {
                waker.wake_by_ref();
            }
        }
    }
}

impl BufferPool {
    pub(crate) fn with_budget(budget: usize, patience: Patience) -> BufferPool {
        let budget = (budget / BUFFER_ALIGNMENT).max(1) * BUFFER_ALIGNMENT;
        let state = Mutex::default();
        let central =
            Arc::new(Central { budget, patience, waiting: AtomicBool::new(false), state });
        BufferPool(Arc::new(Shared { central, shares: PerThread::empty() }))
    }

    /// A pool without a ceiling, for an owner that bounds what it takes by itself and may never wait.
    pub fn unbounded() -> BufferPool {
        BufferPool::with_budget(isize::MAX as usize, Patience::Turns(0))
    }

    /// A buffer of at least `len` bytes if there is room now; what it holds is of any earlier use.
    pub fn try_take(&self, len: usize) -> Option<AlignedBuf> {
        self.take_if_free(len, Tenure::Short)
    }

    pub fn budget(&self) -> usize {
        self.0.central.budget
    }

    /// Bytes that are handed out now.
    pub fn held(&self) -> usize {
        let state = self.lock();
        let in_shares: usize = self.0.shares.iter().map(|share| share.free.lock().bytes).sum();
        state.held.saturating_sub(in_shares)
    }

    /// How often the lock of all threads was taken: a read whose buffer is in its thread's share does not.
    pub fn times_locked(&self) -> u64 {
        self.lock().locked - 1
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.central.lock()
    }

    fn share(&self) -> &Arc<Share> {
        let make = || Arc::new(Share { central: self.0.central.clone(), free: Mutex::default() });
        self.0.shares.get_or_init(make)
    }

    fn limit(&self, tenure: Tenure) -> usize {
        match tenure {
            Tenure::Short => self.budget(),
            Tenure::Stream => (self.budget() / 4 * 3).max(BUFFER_ALIGNMENT),
        }
    }

    /// A buffer of at least `len` bytes if there is room and no one waits for it.
    pub(crate) fn take_if_free(&self, len: usize, tenure: Tenure) -> Option<AlignedBuf> {
        let capacity = capacity_for(len, tenure)?;
        if tenure == Tenure::Short
            && let Some(memory) = self.share().take(capacity)
        {
            return Some(self.handed_out(memory, tenure));
        }
        let mut state = self.lock();
        if !state.line(tenure).is_empty() {
            return None;
        }
        self.take(&mut state, capacity, tenure)
    }

    fn handed_out(&self, memory: Memory, tenure: Tenure) -> AlignedBuf {
        AlignedBuf { memory: ManuallyDrop::new(memory), tenure, home: self.share().clone() }
    }

    /// A stream's further buffer, which it can do without: `None` once half of the streams' share is
    /// held, so that those who come later get their first.
    pub(crate) fn take_further(&self, len: usize) -> Option<AlignedBuf> {
        let capacity = capacity_for(len, Tenure::Stream)?;
        let mut state = self.lock();
        let half = self.limit(Tenure::Stream) / 2;
        if !state.stream_line.is_empty() || state.held_by_streams + capacity > half {
            return None;
        }
        self.take(&mut state, capacity, Tenure::Stream)
    }

    /// Whether a stream waits for a buffer.
    pub(crate) fn streams_wait(&self) -> bool {
        !self.lock().stream_line.is_empty()
    }

    /// A buffer of at least `len` bytes, waiting for room if need be.
    pub(crate) async fn take_or_wait(&self, len: usize, tenure: Tenure) -> Result<AlignedBuf> {
        let capacity = match capacity_for(len, tenure) {
            Some(capacity) if capacity <= self.limit(tenure) => capacity,
            _ => {
                return Err(self.refusal(len, "and one request may not be larger than its share"));
            }
        };
        if let Some(buffer) = self.take_if_free(len, tenure) {
            return Ok(buffer);
        }
        let mut place = Ticket { pool: self, tenure, ticket: None };
        loop {
            let releases = self.lock().releases;
            match self.wait_once(&mut place, capacity).await {
                Some(buffer) => return Ok(buffer),
                None if self.lock().releases == releases => {
                    let why = "and none was given back in time: their holders may be waiting too";
                    return Err(self.refusal(len, why));
                }
                None => {}
            }
        }
    }

    /// Waits until there is a buffer (`Some`) or the pool's patience ends (`None`).
    async fn wait_once(&self, place: &mut Ticket<'_>, capacity: usize) -> Option<AlignedBuf> {
        match self.0.central.patience {
            Patience::Time(duration) => {
                let mut timer = pin!(compio::runtime::time::sleep(duration));
                poll_fn(|cx| match place.poll_take(cx, capacity) {
                    Poll::Ready(buffer) => Poll::Ready(Some(buffer)),
                    Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
                })
                .await
            }
            Patience::Turns(turns) => {
                let mut left = turns;
                poll_fn(|cx| match place.poll_take(cx, capacity) {
                    Poll::Ready(buffer) => Poll::Ready(Some(buffer)),
                    Poll::Pending if left == 0 => Poll::Ready(None),
                    Poll::Pending => {
                        left -= 1;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                })
                .await
            }
        }
    }

    fn fits(&self, state: &PoolState, capacity: usize, tenure: Tenure) -> bool {
        state.held + capacity <= self.budget()
            && (tenure == Tenure::Short
                || state.held_by_streams + capacity <= self.limit(Tenure::Stream))
    }

    fn take(&self, state: &mut PoolState, capacity: usize, tenure: Tenure) -> Option<AlignedBuf> {
        if !self.fits(state, capacity, tenure) {
            self.reclaim(state);
            if !self.fits(state, capacity, tenure) {
                return None;
            }
        }
        let memory = match state.free.get_mut(&capacity).and_then(Vec::pop) {
            Some(memory) => {
                state.free_bytes -= capacity;
                memory
            }
            None => {
                self.give_up_free(state, self.budget() - state.held - capacity);
                Memory::zeroed(capacity)
            }
        };
        state.held += capacity;
        if tenure == Tenure::Stream {
            state.held_by_streams += capacity;
        }
        assert!(state.held + state.free_bytes <= self.budget());
        Some(self.handed_out(memory, tenure))
    }

    /// Takes the free buffers of all threads' shares back.
    fn reclaim(&self, state: &mut PoolState) {
        for share in self.0.shares.iter() {
            let list = std::mem::take(&mut *share.free.lock());
            state.held -= list.bytes;
            state.free_bytes += list.bytes;
            for memory in list.buffers {
                state.free.entry(memory.len).or_default().push(memory);
            }
        }
    }

    /// Frees cached buffers, largest first, until at most `allowed` bytes of them remain.
    fn give_up_free(&self, state: &mut PoolState, allowed: usize) {
        while state.free_bytes > allowed {
            let Some(mut largest) = state.free.last_entry() else { return };
            let size = *largest.key();
            if largest.get_mut().pop().is_some() {
                state.free_bytes -= size;
            } else {
                largest.remove();
            }
        }
    }

    fn refusal(&self, asked: usize, why: &str) -> Error {
        Error::BufferBudget {
            asked: asked as u64,
            held: self.held() as u64,
            budget: self.budget() as u64,
            why: why.to_owned(),
        }
    }
}

impl Central {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        let mut state = self.state.lock();
        state.locked += 1;
        state
    }

    fn give_back(&self, memory: Memory, tenure: Tenure) {
        let mut state = self.lock();
        let capacity = memory.len;
        state.held -= capacity;
        if tenure == Tenure::Stream {
            state.held_by_streams -= capacity;
        }
        state.free_bytes += capacity;
        state.free.entry(capacity).or_default().push(memory);
        state.releases += 1;
        state.wake_first();
    }

    /// Shares may be filled again once no one waits in line.
    fn note_waiting(&self, state: &PoolState) {
        let waiting = !state.short_line.is_empty() || !state.stream_line.is_empty();
        self.waiting.store(waiting, Relaxed);
    }
}

impl Share {
    fn take(&self, capacity: usize) -> Option<Memory> {
        // Those in line come first.
        if self.central.waiting.load(Relaxed) {
            return None;
        }
        let mut list = self.free.lock();
        let at = list.buffers.iter().rposition(|memory| memory.len == capacity)?;
        list.bytes -= capacity;
        Some(list.buffers.swap_remove(at))
    }

    fn give_back(&self, memory: Memory, tenure: Tenure) {
        let capacity = memory.len;
        if tenure == Tenure::Short {
            let mut list = self.free.lock();
            let most = SHARE_MAX.min(self.central.budget / SHARE_PART);
            // A waiter sets the flag before it takes the shares back: it is seen here, or the waiter finds the buffer.
            if list.bytes + capacity <= most && !self.central.waiting.load(Relaxed) {
                list.bytes += capacity;
                list.buffers.push(memory);
                return;
            }
        }
        self.central.give_back(memory, tenure);
    }
}

/// A waiter's ticket; leaving the line, served or not, lets the next one look.
struct Ticket<'a> {
    pool: &'a BufferPool,
    tenure: Tenure,
    ticket: Option<u64>,
}

impl Ticket<'_> {
    fn poll_take(&mut self, cx: &mut Context<'_>, capacity: usize) -> Poll<AlignedBuf> {
        let central = &self.pool.0.central;
        let mut state = central.lock();
        let first = state.line(self.tenure).front().map(|(ticket, _)| *ticket);
        central.waiting.store(true, Relaxed);
        if (first.is_none() || first == self.ticket)
            && let Some(buffer) = self.pool.take(&mut state, capacity, self.tenure)
        {
            central.note_waiting(&state);
            return Poll::Ready(buffer);
        }
        match self.ticket {
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.line(self.tenure).push_back((ticket, cx.waker().clone()));
                self.ticket = Some(ticket);
            }
            Some(mine) => {
                for (ticket, waker) in state.line(self.tenure).iter_mut() {
                    if *ticket == mine {
                        waker.clone_from(cx.waker());
                    }
                }
            }
        }
        Poll::Pending
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(mine) = self.ticket else { return };
        let mut state = self.pool.lock();
        state.line(self.tenure).retain(|(ticket, _)| *ticket != mine);
        self.pool.0.central.note_waiting(&state);
        state.wake_first();
    }
}

/// Streams take exact sizes, which all streams of a kind share; single reads come in every size
/// and take the next power of two, so that they can share too.
fn capacity_for(len: usize, tenure: Tenure) -> Option<usize> {
    let len = len.max(1);
    match tenure {
        Tenure::Stream => len.checked_next_multiple_of(BUFFER_ALIGNMENT),
        Tenure::Short => len.max(BUFFER_ALIGNMENT).checked_next_power_of_two(),
    }
    .filter(|capacity| isize::try_from(*capacity).is_ok())
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferPool({} of {} bytes held)", self.held(), self.budget())
    }
}

#[cfg(test)]
mod tests;
