//! Bytes that several holders may have together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Budget {
    pub fn of(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget(AtomicU64::new(bytes)))
    }

    /// Takes `bytes` if they are left; whether they were.
    pub fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    pub fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }

    pub fn has(&self, bytes: u64) -> bool {
        self.0.load(Relaxed) >= bytes
    }
}
