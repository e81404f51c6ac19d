//! Which requests are traced although their clients do not ask for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use halcyon_io::{Random, random};

/// The share of requests that are traced although their clients do not ask for it (`nodetool settraceprobability`), or that are sampled for
/// spans.
#[derive(Debug, Default)]
pub(crate) struct TraceProbability {
    probability: AtomicU64,
    /// The seed of the next number: a generator of the system's costs a call of the kernel.
    seed: AtomicU64,
}

impl TraceProbability {
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.probability.load(Relaxed))
    }

    pub(crate) fn set(&self, probability: f64) {
        self.seed.store(random().next_u64(), Relaxed);
        self.probability.store(probability.to_bits(), Relaxed);
    }

    /// Whether this request is one of them.
    pub(crate) fn chooses(&self) -> bool {
        // What nearly every request finds here is zero, which needs no number.
        let probability = self.get();
        let next = || Random::seeded(self.seed.fetch_add(1, Relaxed)).next_u64();
        probability > 0.0 && (next() as f64) < probability * u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that about the wanted share is chosen: none, all, and a hundredth within a fifth.
    #[test]
    fn the_share_is_chosen() {
        let chosen = TraceProbability::default();
        for (probability, least, most) in [(0.0, 0, 0), (1.0, 99_990, 100_000), (0.01, 800, 1_200)]
        {
            chosen.set(probability);
            let count = (0..100_000).filter(|_| chosen.chooses()).count();
            assert!((least..=most).contains(&count), "{probability}: {count}");
        }
    }
}
