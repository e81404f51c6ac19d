//! Counters and gauges.
//!
//! A write is a plain load and store, because one thread writes: an atomic addition would cost that thread some 20 cycles each time.
//! `_shared` methods are atomic additions, for what several threads write.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Grows only.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub fn up(&self) {
        self.add(1);
    }

    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Relaxed);
    }

    #[inline]
    pub fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Rises and falls; never below zero.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    #[inline]
    pub fn up(&self) {
        self.add(1);
    }

    #[inline]
    pub fn down(&self) {
        self.subtract(1);
    }

    #[inline]
    pub fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    #[inline]
    pub fn subtract(&self, n: u64) {
        self.set(self.get().saturating_sub(n));
    }

    #[inline]
    pub fn set(&self, to: u64) {
        self.0.store(to, Relaxed);
    }

    /// Returns the new value.
    #[inline]
    pub fn up_shared(&self) -> u64 {
        self.0.fetch_add(1, Relaxed).wrapping_add(1)
    }

    /// The caller has raised it before.
    #[inline]
    pub fn down_shared(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    /// Raises a maximum. Mostly it is high enough already, and then this only reads.
    #[inline]
    pub fn raise_shared(&self, to: u64) {
        if to > self.get() {
            self.0.fetch_max(to, Relaxed);
        }
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a gauge stays at zero when more is taken than was added, and that a maximum does not fall.
    #[test]
    fn gauges_rise_and_fall() {
        let gauge = Gauge::default();
        gauge.add(5);
        gauge.down();
        assert_eq!(gauge.get(), 4);
        gauge.subtract(9);
        assert_eq!((gauge.get(), gauge.up_shared()), (0, 1));
        gauge.raise_shared(7);
        gauge.raise_shared(3);
        assert_eq!(gauge.get(), 7);
        let counter = Counter::default();
        counter.up();
        counter.add_shared(2);
        assert_eq!(counter.get(), 3);
    }
}
