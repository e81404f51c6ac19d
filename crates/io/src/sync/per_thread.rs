//! Values of which each thread has its own, so that what every I/O touches is in no cache line of another thread.
//!
//! 1. A thread takes the lowest free slot when it first needs one, and gives it back when it ends: a process has few slots in use.
//! 2. A [`PerThread`] holds one value for each slot, made on first use, on cache lines of its own.
//! 3. Beyond [`SLOTS`] threads, slots are shared. Values must therefore be `Sync`; they are only *usually* used by one thread.

use crate::sync::mutex::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// More threads than that are several on one slot.
const SLOTS: usize = 64;

static TAKEN: Mutex<u64> = Mutex::new(0);

struct Slot {
    index: usize,
    owned: bool,
}

impl Slot {
    fn take() -> Slot {
        let mut taken = TAKEN.lock();
        let index = taken.trailing_ones() as usize;
        if index < SLOTS {
            *taken |= 1 << index;
            return Slot { index, owned: true };
        }
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Slot { index: NEXT.fetch_add(1, Relaxed) % SLOTS, owned: false }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.owned {
            *TAKEN.lock() &= !(1 << self.index);
        }
    }
}

thread_local! {
    static SLOT: Slot = Slot::take();
}

/// Two lines: processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

#[derive(Debug)]
pub(crate) struct PerThread<T>(Box<[OnceLock<Box<Padded<T>>>; SLOTS]>);

impl<T> PerThread<T> {
    pub(crate) fn empty() -> PerThread<T> {
        PerThread(Box::new([const { OnceLock::new() }; SLOTS]))
    }

    /// The calling thread's value.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        // A thread that is ending has no slot any more.
        let slot = SLOT.try_with(|slot| slot.index).unwrap_or(0);
        &self.0[slot % SLOTS].get_or_init(|| Box::new(Padded(make()))).0
    }

    /// The values of all threads, also of those that have ended.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(OnceLock::get).map(|padded| &padded.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Proves that threads that run at once have values of their own, and that nothing is lost when they end.
    #[test]
    fn threads_have_values_of_their_own() {
        let counts = PerThread::<AtomicU64>::empty();
        let barrier = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mine = counts.get_or_init(AtomicU64::default);
                    barrier.wait();
                    mine.fetch_add(1, Relaxed);
                    barrier.wait();
                    assert_eq!(mine.load(Relaxed), 1);
                });
            }
        });
        assert_eq!(counts.iter().map(|count| count.load(Relaxed)).sum::<u64>(), 8);
    }
}
