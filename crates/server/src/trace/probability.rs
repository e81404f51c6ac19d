//! Which requests are traced although their clients do not ask for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::random;

/// The share of requests that are traced although their clients do not ask for it (`nodetool settraceprobability`).
#[derive(Debug, Default)]
pub(crate) struct TraceProbability(AtomicU64);

impl TraceProbability {
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    pub(crate) fn set(&self, probability: f64) {
        self.0.store(probability.to_bits(), Relaxed);
    }

    /// Whether this request is one of them.
    pub(crate) fn chooses(&self) -> bool {
        // What nearly every request finds here is zero, which needs no number.
        let probability = self.get();
        probability > 0.0 && (random().next_u64() as f64) < probability * u64::MAX as f64
    }
}
