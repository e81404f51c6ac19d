//! What never repeats: random UUIDs, and time UUIDs of which each is later than the one before.

use std::cell::Cell;

/// A generator that whoever executes seeds. Not for secrets.
#[derive(Debug)]
pub struct Entropy {
    state: Cell<u128>,
    last_ticks: Cell<u64>,
}

/// 100 ns ticks from 1582-10-15 to 1970-01-01.
const GREGORIAN_OFFSET: u64 = 0x01b2_1dd2_1381_4000;

impl Entropy {
    pub fn seeded(seed: u128) -> Entropy {
        Entropy { state: Cell::new(seed), last_ticks: Cell::new(0) }
    }

    /// A generator for one execution, which may then move to another thread.
    pub fn fork(&self) -> Entropy {
        let seed = u128::from(self.next_u64()) << 64 | u128::from(self.next_u64());
        Entropy { state: Cell::new(seed), last_ticks: self.last_ticks.clone() }
    }

    /// SplitMix64 over both halves of the state.
    pub fn next_u64(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.state.set(state);
        let mut z = (state >> 64) as u64 ^ (state as u64).rotate_left(29);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A version 4 UUID.
    pub fn random_uuid(&self) -> [u8; 16] {
        let high = self.next_u64() & !0xf000 | 0x4000;
        let low = self.next_u64() >> 2 | 1 << 63;
        join(high, low)
    }

    /// A version 1 UUID at this time (µs), later than all that this generator has made.
    pub fn time_uuid(&self, micros: i64) -> [u8; 16] {
        let ticks = (micros as u64).wrapping_mul(10).wrapping_add(GREGORIAN_OFFSET);
        let ticks = ticks.max(self.last_ticks.get().wrapping_add(1));
        self.last_ticks.set(ticks);
        self.uuid_at(ticks)
    }

    fn uuid_at(&self, ticks: u64) -> [u8; 16] {
        let high = (ticks & 0xffff_ffff) << 32
            | (ticks >> 32 & 0xffff) << 16
            | 0x1000
            | (ticks >> 48 & 0x0fff);
        // The multicast bit says that the node is no hardware address.
        let low = self.next_u64() >> 2 | 1 << 63 | 1 << 40;
        join(high, low)
    }

    /// Paths of elements that are put in front of a list at this time (µs): time runs backwards from 2010-01-01, so what
    /// comes later stands further in front.
    pub fn prepend_paths(&self, micros: i64, count: usize) -> Vec<[u8; 16]> {
        const REFERENCE: i64 = 1_262_304_000_000_000;
        let mirrored = REFERENCE.wrapping_sub(micros.wrapping_sub(REFERENCE));
        let last = (mirrored as u64).wrapping_mul(10).wrapping_add(GREGORIAN_OFFSET);
        (0..count as u64).rev().map(|before| self.uuid_at(last.wrapping_sub(before))).collect()
    }
}

fn join(high: u64, low: u64) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves version, variant, time and order of the UUIDs.
    #[test]
    fn uuids() {
        let entropy = Entropy::seeded(7);
        let random = entropy.random_uuid();
        assert_eq!((random[6] >> 4, random[8] >> 6), (4, 2));
        assert_ne!(random, entropy.random_uuid());
        let first = entropy.time_uuid(0);
        assert_eq!((first[6] >> 4, first[8] >> 6), (1, 2));
        assert_eq!(first[..8], [0x13, 0x81, 0x40, 0, 0x1d, 0xd2, 0x11, 0xb2]);
        assert_eq!(entropy.time_uuid(0)[3], 1);
    }
}
