//! Locks that do not poison.
//!
//! A panic ends what has panicked, and nothing else (`runtime/panics.rs`). A poisoned lock would end its other users too, one after the
//! other; a state that may be half-changed is its owner's to discard. So `lock` returns the guard, of the standard library's lock.

use std::sync::{self, MutexGuard, PoisonError, WaitTimeoutResult};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets threads wait for a change of what a [`Mutex`] holds.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        self.0.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.0.wait_timeout_while(guard, most, condition).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.0.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a panic under the lock leaves it usable, with what was written before.
    #[test]
    fn a_panic_leaves_the_lock_usable() {
        let mut mutex = Mutex::new(1);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut held = mutex.lock();
            *held = 2;
            panic!("with the lock held");
        }));
        assert!(panicked.is_err());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(*mutex.get_mut(), 2);
    }
}
