//! Aligned buffers from a pool with a fixed budget.
//!
//! 1. An [`AlignedBuf`] starts on a 4 KiB boundary and is a multiple of 4 KiB long: the type is the
//!    proof that direct I/O may use it. Its bytes are always initialised.
//! 2. Dropped, it returns to its pool's free list, from any thread; no allocation per I/O.
//! 3. `held + free <= budget`, always. Free buffers of other sizes are given up first.
//! 4. Short-lived buffers (a random read) may use the whole budget; streams, which hold theirs for
//!    long, at most three quarters: so a user's read always gets a turn, however much compacts. Of
//!    the streams' share, what a stream can do without (reading further ahead) may use half.
//! 5. Who finds no room waits in line, each kind in its own. A waiter whose pool sees no release for
//!    the pool's patience fails with an error that names the budget: the holders may be waiting for
//!    one another, or be the waiter itself, and nobody else could break the ring.
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
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::error::{Error, Result};

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
    pool: BufferPool,
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

    fn layout(len: usize) -> Layout {
        assert!(len > 0 && len.is_multiple_of(BUFFER_ALIGNMENT));
        Layout::from_size_align(len, BUFFER_ALIGNMENT).expect("a length within the pool's budget")
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
        self.pool.give_back(memory, self.tenure);
    }
}

/// The pool of one disk; clones share it.
#[derive(Clone)]
pub struct BufferPool(Arc<Shared>);

struct Shared {
    budget: usize,
    patience: Patience,
    state: Mutex<State>,
}

/// How a waiter measures that nothing moves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    Time(Duration),
    /// For simulations: so many turns of the executor.
    Turns(u32),
}

#[derive(Default)]
struct State {
    held: usize,
    held_by_streams: usize,
    free_bytes: usize,
    free: BTreeMap<usize, Vec<Memory>>,
    releases: u64,
    next_ticket: u64,
    short_line: VecDeque<(u64, Waker)>,
    stream_line: VecDeque<(u64, Waker)>,
}

impl State {
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
        BufferPool(Arc::new(Shared { budget, patience, state: Mutex::default() }))
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
        self.0.budget
    }

    /// Bytes that are handed out now.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is only counters and lists, changed without a panic in between.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self, tenure: Tenure) -> usize {
        match tenure {
            Tenure::Short => self.0.budget,
            Tenure::Stream => (self.0.budget / 4 * 3).max(BUFFER_ALIGNMENT),
        }
    }

    /// A buffer of at least `len` bytes if there is room and nobody waits for it.
    pub(crate) fn take_if_free(&self, len: usize, tenure: Tenure) -> Option<AlignedBuf> {
        let mut state = self.lock();
        if !state.line(tenure).is_empty() {
            return None;
        }
        self.take(&mut state, capacity_for(len, tenure)?, tenure)
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
        let mut place = PlaceInLine { pool: self, tenure, ticket: None };
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
    async fn wait_once(&self, place: &mut PlaceInLine<'_>, capacity: usize) -> Option<AlignedBuf> {
        match self.0.patience {
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

    fn take(&self, state: &mut State, capacity: usize, tenure: Tenure) -> Option<AlignedBuf> {
        let fits = state.held + capacity <= self.0.budget
            && (tenure == Tenure::Short
                || state.held_by_streams + capacity <= self.limit(Tenure::Stream));
        if !fits {
            return None;
        }
        let memory = match state.free.get_mut(&capacity).and_then(Vec::pop) {
            Some(memory) => {
                state.free_bytes -= capacity;
                memory
            }
            None => {
                self.give_up_free(state, self.0.budget - state.held - capacity);
                Memory::zeroed(capacity)
            }
        };
        state.held += capacity;
        if tenure == Tenure::Stream {
            state.held_by_streams += capacity;
        }
        assert!(state.held + state.free_bytes <= self.0.budget);
        Some(AlignedBuf { memory: ManuallyDrop::new(memory), tenure, pool: self.clone() })
    }

    /// Frees cached buffers, largest first, until at most `allowed` bytes of them remain.
    fn give_up_free(&self, state: &mut State, allowed: usize) {
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

    fn refusal(&self, asked: usize, why: &str) -> Error {
        Error::BufferBudget {
            asked: asked as u64,
            held: self.held() as u64,
            budget: self.0.budget as u64,
            why: why.to_owned(),
        }
    }
}

/// A waiter's ticket; leaving the line, served or not, lets the next one look.
struct PlaceInLine<'a> {
    pool: &'a BufferPool,
    tenure: Tenure,
    ticket: Option<u64>,
}

impl PlaceInLine<'_> {
    fn poll_take(&mut self, cx: &mut Context<'_>, capacity: usize) -> Poll<AlignedBuf> {
        let mut state = self.pool.lock();
        let first = state.line(self.tenure).front().map(|(ticket, _)| *ticket);
        if (first.is_none() || first == self.ticket)
            && let Some(buffer) = self.pool.take(&mut state, capacity, self.tenure)
        {
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

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        let Some(mine) = self.ticket else { return };
        let mut state = self.pool.lock();
        state.line(self.tenure).retain(|(ticket, _)| *ticket != mine);
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
