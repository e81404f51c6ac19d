//! Randomness enters the program here and nowhere else: a seeded generator, or one that the kernel
//! seeds. Not for secrets.

/// xoshiro256++ (Blackman and Vigna), seeded through SplitMix64.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    pub fn seeded(seed: u64) -> Random {
        let mut mix = seed;
        let state = std::array::from_fn(|_| {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Random { state }
    }

    /// Seeded by the kernel.
    pub(crate) fn from_system() -> Random {
        let mut seed = [0u8; 8];
        // SAFETY: the pointer and length are those of a live local array.
        let got = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
        if got != seed.len() as isize {
            let fallback = super::time::system_unix().as_micros() as u64;
            return Random::seeded(fallback ^ u64::from(std::process::id()));
        }
        Random::seeded(u64::from_ne_bytes(seed))
    }

    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let t = b << 17;
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ t, d.rotate_left(45)];
        result
    }

    /// Even over `0..bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a seed gives one sequence, that two seeds differ, and that bounds hold.
    #[test]
    fn seeds() {
        let take = |seed| {
            let mut random = Random::seeded(seed);
            (0..4).map(|_| random.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
        let mut random = Random::from_system();
        assert!((0..1000).all(|_| random.below(10) < 10));
        assert_eq!(random.below(0), 0);
    }
}
