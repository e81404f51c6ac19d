//! How many tasks run at once: as many as fit into the memory that this process may hold.

use halcyon_compaction::{Error, Progress, Result};
use halcyon_io::{Condvar, Mutex};

use crate::exchange::QUIET;
use crate::messages::TaskRequest;

/// Buffers, row index and batches of a task.
const BASE: u64 = 20 << 20;
/// Window, chunk offsets and read-ahead buffers of an input.
const INPUT: u64 = 1 << 20;

pub(crate) struct Admission {
    memory: u64,
    held: Mutex<u64>,
    changed: Condvar,
}

pub(crate) struct Admitted<'a> {
    from: &'a Admission,
    bytes: u64,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        *self.from.held.lock() -= self.bytes;
        self.from.changed.notify_all();
    }
}

impl Admission {
    pub(crate) fn new(memory: u64) -> Admission {
        Admission { memory, held: Mutex::new(0), changed: Condvar::new() }
    }

    /// To be called after a task was cancelled: it may wait here.
    pub(crate) fn look_again(&self) {
        let _held = self.held.lock();
        self.changed.notify_all();
    }

    /// Waits until the task fits. One that never fits runs when no other does. `goes_on` is called now and then meanwhile.
    pub(crate) fn admit(
        &self,
        bytes: u64,
        progress: &Progress,
        goes_on: impl Fn() -> Result<()>,
    ) -> Result<Admitted<'_>> {
        let mut held = self.held.lock();
        while *held > 0 && held.saturating_add(bytes) > self.memory {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let waited;
            (held, waited) = self.changed.wait_timeout(held, QUIET);
            if waited.timed_out() {
                // It talks to the other side, which is not to keep others from giving room back.
                drop(held);
                goes_on()?;
                held = self.held.lock();
            }
        }
        *held = held.saturating_add(bytes);
        drop(held);
        Ok(Admitted { from: self, bytes })
    }
}

/// What a task holds, roughly: buffers, and the Bloom filter with the samples of the index.
pub(crate) fn needed(task: &TaskRequest) -> u64 {
    // Bits per key of a filter with this chance, in bytes; at least the samples.
    let per_key =
        (-task.bloom_filter_fp_chance.ln() / (8.0 * std::f64::consts::LN_2.powi(2))).max(0.3);
    let keys = task.estimated_keys as f64 * per_key;
    BASE.saturating_add(INPUT.saturating_mul(task.inputs.len() as u64)).saturating_add(keys as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a task waits for room, that one too large runs alone, and that a cancelled one gives up.
    #[test]
    fn tasks_wait_for_room() {
        let admission = Admission::new(100);
        let progress = Progress::default();
        let first = admission.admit(1000, &progress, || Ok(())).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| admission.admit(60, &progress, || Ok(())).map(|_| ()));
            drop(first);
            second.join().unwrap().unwrap();
        });
        let first = admission.admit(60, &progress, || Ok(())).unwrap();
        let _fits = admission.admit(40, &progress, || Ok(())).unwrap();
        progress.cancel();
        assert!(matches!(admission.admit(1, &progress, || Ok(())), Err(Error::Cancelled)));
        drop(first);
        admission.admit(1, &progress, || Ok(())).unwrap();
    }
}
