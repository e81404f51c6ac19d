//! Filter.db: a Bloom filter of partition keys.
//!
//! ```text
//! i32 K │ i32 words │ words × 8 bytes          bit i: byte i/8, mask 1 << i%8
//!                                              before `na` each word is big-endian: its 8 bytes are reversed
//! ```
//!
//! A key's two Murmur3 halves (h1, h2) choose K bits: `|h2 + i·h1| mod bits` for i in 0…K−1, in wrapping signed
//! 64-bit arithmetic.  A file of zero bytes is like a missing one: any key may be present.
//!
//! The size follows the writer's *estimate* of the number of keys, so equal data may have filters of different sizes.

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeResult};

use super::version::Version;

/// `(false-positive chance, K, bits per key)`, falling: what `BloomCalculations` chooses for at least that chance.
const SPECIFICATIONS: [(f64, u32, u64); 64] = [
    (0.393, 2, 1),
    (0.283, 1, 3),
    (0.237, 2, 3),
    (0.221, 1, 4),
    (0.155, 2, 4),
    (0.147, 3, 4),
    (0.109, 2, 5),
    (0.092, 3, 5),
    (0.0804, 2, 6),
    (0.0609, 3, 6),
    (0.0561, 4, 6),
    (0.0423, 3, 7),
    (0.0359, 4, 7),
    (0.0347, 5, 7),
    (0.0306, 3, 8),
    (0.024, 4, 8),
    (0.0217, 5, 8),
    (0.0216, 6, 8),
    (0.0166, 4, 9),
    (0.0141, 5, 9),
    (0.0133, 6, 9),
    (0.0118, 4, 10),
    (0.00943, 5, 10),
    (0.00844, 6, 10),
    (0.00819, 7, 10),
    (0.0065, 5, 11),
    (0.00552, 6, 11),
    (0.00513, 7, 11),
    (0.00509, 8, 11),
    (0.00459, 5, 12),
    (0.00371, 6, 12),
    (0.00329, 7, 12),
    (0.00314, 8, 12),
    (0.00255, 6, 13),
    (0.00217, 7, 13),
    (0.00199, 8, 13),
    (0.00194, 9, 13),
    (0.00179, 6, 14),
    (0.00146, 7, 14),
    (0.00129, 8, 14),
    (0.00121, 9, 14),
    (0.0012, 10, 14),
    (0.001, 7, 15),
    (0.000852, 8, 15),
    (0.000775, 9, 15),
    (0.000744, 10, 15),
    (0.000702, 7, 16),
    (0.000574, 8, 16),
    (0.000505, 9, 16),
    (0.00047, 10, 16),
    (0.000459, 11, 16),
    (3.94e-4, 8, 17),
    (3.35e-4, 9, 17),
    (3.02e-4, 10, 17),
    (2.87e-4, 11, 17),
    (2.84e-4, 12, 17),
    (2.75e-4, 8, 18),
    (2.26e-4, 9, 18),
    (1.98e-4, 10, 18),
    (1.83e-4, 11, 18),
    (1.76e-4, 12, 18),
    (1.55e-4, 9, 19),
    (1.32e-4, 10, 19),
    (1.18e-4, 11, 19),
];

/// The rest of the table, below 1.18e-4.
const FINEST_SPECIFICATIONS: [(f64, u32, u64); 8] = [
    (1.11e-4, 12, 19),
    (1.09e-4, 13, 19),
    (1.08e-4, 9, 20),
    (8.89e-5, 10, 20),
    (7.77e-5, 11, 20),
    (7.12e-5, 12, 20),
    (6.79e-5, 13, 20),
    (6.71e-5, 14, 20),
];

/// More hashes than this is corruption: the writer's table ends at 14.
const MAX_HASHES: i32 = 64;
/// Bits that Cassandra adds to every filter.
const EXCESS_BITS: u64 = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    hashes: u32,
    /// Bit i: word i/64, mask 1 << i%64. Empty: any key may be present.
    words: Vec<u64>,
}

impl Filter {
    pub const ALWAYS_PRESENT: Filter = Filter { hashes: 0, words: Vec::new() };

    /// An empty filter for about `expected_keys`; none for a chance of 1.0, which disables the filter.
    pub fn for_keys(expected_keys: u64, fp_chance: f64) -> Result<Option<Filter>, String> {
        if fp_chance >= 1.0 {
            return Ok(None);
        }
        let mut table = SPECIFICATIONS.iter().chain(&FINEST_SPECIFICATIONS);
        let (_, hashes, bits_per_key) =
            table.find(|(chance, ..)| *chance <= fp_chance).ok_or_else(|| {
                format!("bloom_filter_fp_chance must be from 6.71e-5 to 1.0, not {fp_chance}")
            })?;
        let words = expected_keys
            .checked_mul(*bits_per_key)
            .map(|bits| bits.saturating_add(EXCESS_BITS).div_ceil(64))
            .filter(|words| *words <= i32::MAX as u64)
            .ok_or_else(|| format!("a Bloom filter for {expected_keys} keys is too large"))?;
        Ok(Some(Filter { hashes: *hashes, words: vec![0; words as usize] }))
    }

    /// Adds keys by both halves of their Murmur3 hashes. Each bit is a cache miss in a large filter: those of many keys wait for memory
    /// together.
    pub fn add_all(&mut self, keys: &[(i64, i64)]) {
        let capacity = self.words.len() as u64 * 64;
        let mut bits = Vec::with_capacity(keys.len() * self.hashes as usize);
        for &(h1, h2) in keys {
            let mut at = h2;
            bits.extend((0..self.hashes).map(|_| {
                let bit = at.unsigned_abs() % capacity;
                at = at.wrapping_add(h1);
                bit
            }));
        }
        for bit in bits {
            if let Some(word) = self.words.get_mut((bit / 64) as usize) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    #[inline]
    pub fn may_contain(&self, (h1, h2): (i64, i64)) -> bool {
        let capacity = self.words.len() as u64 * 64;
        if capacity == 0 {
            return true;
        }
        let mut at = h2;
        for _ in 0..self.hashes {
            let bit = at.unsigned_abs() % capacity;
            if self.words.get((bit / 64) as usize).is_none_or(|word| word >> (bit % 64) & 1 == 0) {
                return false;
            }
            at = at.wrapping_add(h1);
        }
        true
    }

    /// A filter of the same size without keys.
    #[cfg(test)]
    pub(super) fn cleared(&self) -> Filter {
        Filter { hashes: self.hashes, words: vec![0; self.words.len()] }
    }

    /// Number of bits that a key sets, "K".
    pub fn hash_count(&self) -> u32 {
        self.hashes
    }

    /// Bytes of memory held, and, but for 8, of the file.
    pub fn memory(&self) -> usize {
        8 * self.words.len()
    }

    /// The cursor holds the whole file.
    pub fn decode(cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<Filter> {
        if cursor.remaining() == 0 {
            return Ok(Filter::ALWAYS_PRESENT);
        }
        let hashes = cursor.i32()?;
        if !(1..=MAX_HASHES).contains(&hashes) {
            return Err(cursor.error(format!("1 to {MAX_HASHES} hashes expected, found {hashes}")));
        }
        cursor.note(|| format!("{hashes} hashes"));
        let n = cursor.i32()?;
        let left = cursor.remaining();
        if n <= 0 || u64::from(n.unsigned_abs()) * 8 != left as u64 {
            return Err(cursor.error(format!("{n} words of bits announced, {left} bytes follow")));
        }
        cursor.note(|| format!("{n} words of bits"));
        let word =
            if version.has_old_bloom_format() { u64::from_be_bytes } else { u64::from_le_bytes };
        let bytes = cursor.take(left)?.chunks_exact(8);
        let words = bytes.map(|b| word(b.first_chunk().copied().unwrap_or_default())).collect();
        cursor.note(|| "bits".into());
        Ok(Filter { hashes: hashes as u32, words })
    }

    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        out.reserve(8 + self.memory());
        self.encode_in_parts(version, |part| out.put(part));
    }

    /// `encode` without a second copy of the filter in memory.
    pub fn encode_in_parts(&self, version: Version, mut put: impl FnMut(&[u8])) {
        if self.words.is_empty() {
            return;
        }
        put(&self.hashes.to_be_bytes());
        put(&(self.words.len() as u32).to_be_bytes());
        let word = if version.has_old_bloom_format() { u64::to_be_bytes } else { u64::to_le_bytes };
        let mut part = Vec::with_capacity(1 << 16);
        for words in self.words.chunks(1 << 13) {
            part.clear();
            words.iter().for_each(|w| part.put(&word(*w)));
            put(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use halcyon_model::token::murmur3_hash;

    use super::*;
    use crate::format::testing::{check_bytes, hex, survives_corruption};

    /// The filter of five int keys 0…4 that Cassandra wrote; with `ma` its words are reversed.
    #[test]
    fn golden() {
        let mut filter = Filter::for_keys(4, 0.01).expect("chance").expect("filter");
        assert_eq!((filter.hashes, filter.words.len()), (5, 1));
        filter.add_all(&[0, 1, 2, 3, 4i32].map(|key| murmur3_hash(&key.to_be_bytes())));
        for (version, bytes) in [
            (Version::OA, hex("00000005 00000001 162086c840322221")),
            (Version::ME, hex("00000005 00000001 21223240c8862016")),
        ] {
            let mut out = Vec::new();
            filter.encode(version, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(check_bytes(&bytes, |c| Filter::decode(c, version)), filter);
            survives_corruption(&bytes, |c| Filter::decode(c, version));
        }
    }

    #[test]
    fn no_false_negatives_few_false_positives() {
        let mut filter = Filter::for_keys(10_000, 0.01).expect("chance").expect("filter");
        let hash = |key: u32| murmur3_hash(&key.to_be_bytes());
        filter.add_all(&(0..10_000).map(hash).collect::<Vec<_>>());
        assert!((0..10_000).all(|key| filter.may_contain(hash(key))));
        let wrong = (10_000..110_000).filter(|key| filter.may_contain(hash(*key))).count();
        assert!(wrong < 1_300, "{wrong} of 100000");
        let mut whole = Vec::new();
        filter.encode(Version::NB, &mut whole);
        assert_eq!(check_bytes(&whole, |c| Filter::decode(c, Version::NB)), filter);
    }

    #[test]
    fn chances() {
        for (chance, hashes, bits) in [
            (0.5, 2, 1),
            (0.1, 3, 5),
            (0.01, 5, 10),
            (0.001, 7, 15),
            (1e-4, 10, 20),
            (6.71e-5, 14, 20),
        ] {
            let filter = Filter::for_keys(6400, chance).expect("chance").expect("filter");
            assert_eq!((filter.hashes, filter.words.len()), (hashes, 100 * bits + 1), "{chance}");
        }
        assert_eq!(Filter::for_keys(1, 1.0), Ok(None));
        for bad in [0.0, 6e-5, f64::NAN, -1.0] {
            assert!(Filter::for_keys(1, bad).is_err(), "{bad}");
        }
        assert!(Filter::for_keys(u64::MAX, 0.1).is_err());
        assert!(Filter::ALWAYS_PRESENT.may_contain((1, 2)));
        assert_eq!(check_bytes(&[], |c| Filter::decode(c, Version::NB)), Filter::ALWAYS_PRESENT);
    }
}
