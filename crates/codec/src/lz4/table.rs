//! Where bytes were last, by their hash.

/// The lower half of each position. A block longer than 64 KiB takes it for the last position that ends so: a match is compared anyway,
/// and farther ones are out of reach.
pub(super) struct Table<const SLOTS: usize>([u16; SLOTS]);

impl<const SLOTS: usize> Table<SLOTS> {
    /// Every slot names the first position.
    pub(super) fn new() -> Table<SLOTS> {
        Table([0; SLOTS])
    }

    /// Puts a position into the slot of the first `BYTES` of eight bytes, and returns the one that was there.
    #[inline(always)]
    pub(super) fn put<const BYTES: u32>(&mut self, bytes: u64, at: usize) -> u16 {
        // Odd, and near 2^64 divided by the golden ratio.
        const FACTOR: u64 = 0x9E37_79B1_85EB_CA87;
        let hash = (bytes << (64 - 8 * BYTES)).wrapping_mul(FACTOR);
        let slot = self.0.get_mut((hash >> (64 - SLOTS.trailing_zeros())) as usize);
        slot.map_or(0, |slot| std::mem::replace(slot, at as u16))
    }
}
