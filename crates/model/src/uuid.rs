//! UUIDs: their text, the time in those of version 1, and a generator that never repeats.
//!
//! ```text
//!  xxxxxxxx-xxxx-Mxxx-Nxxx-xxxxxxxxxxxx        M version, N variant (two bits)
//!  time low-mid -time high; clock sequence and node
//! ```
//!
//! UUIDs are their 16 bytes everywhere, as values, keys and identifiers of tables; this module has no type for them. The `uuid` crate is
//! not used: what it has beyond these lines is its text, and Cassandra's ticks overflow into the version (`with_ticks`), which it
//! refuses.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// 100 ns ticks from 1582-10-15, where the time of UUIDs begins, to 1970-01-01.
pub const UNIX_EPOCH_TICKS: u64 = 0x01b2_1dd2_1381_4000;

const TICKS_PER_MICRO: u64 = 10;

/// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in lower case.
pub fn text(uuid: &[u8; 16]) -> String {
    let digits = crate::hex::encode(uuid);
    let part = |range| digits.get(range).unwrap_or_default();
    let (a, b, c) = (part(0..8), part(8..12), part(12..16));
    format!("{a}-{b}-{c}-{}-{}", part(16..20), part(20..32))
}

/// The inverse of `text`; digits of both cases.
pub fn parse(text: &str) -> Option<[u8; 16]> {
    let groups = [8, 4, 4, 4, 12];
    let is_grouped = text.split('-').map(str::len).eq(groups);
    if is_grouped { parse_digits(&text.replace('-', "")) } else { None }
}

/// Of 32 hexadecimal digits: how names of folders have the identifiers of tables.
pub fn parse_digits(text: &str) -> Option<[u8; 16]> {
    crate::hex::decode(text)?.try_into().ok()
}

/// Whether it has a time.
pub fn is_time_based(uuid: &[u8; 16]) -> bool {
    let [.., version, _, _, _, _, _, _, _, _, _] = uuid;
    version >> 4 == 1
}

/// The half of version 1 that has the time. Ticks of more than 60 bits, from the year 5236 on, run into the version, as in
/// Cassandra (`TimeUUID.rawTimestampToMsb`).
pub fn most_significant(ticks: u64) -> u64 {
    ticks << 32 | (ticks >> 32 & 0xffff) << 16 | 0x1000 | ticks >> 48
}

/// The 60 bits of time in the most significant half of a version 1.
pub fn ticks(most_significant: u64) -> u64 {
    (most_significant & 0x0fff) << 48
        | (most_significant >> 16 & 0xffff) << 32
        | most_significant >> 32
}

/// The half of version 1 that has no time, of random bits: the variant, and the multicast bit, which says that the node is not a
/// hardware address.
pub fn random_node(random: u64) -> u64 {
    random >> 2 | 1 << 63 | 1 << 40
}

pub fn join(most_significant: u64, least_significant: u64) -> [u8; 16] {
    (u128::from(most_significant) << 64 | u128::from(least_significant)).to_be_bytes()
}

/// The most and the least significant half.
pub fn split(uuid: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*uuid);
    ((both >> 64) as u64, both as u64)
}

/// Version 4, of random bits.
pub fn random(high: u64, low: u64) -> [u8; 16] {
    join(high & !0xf000 | 0x4000, low >> 2 | 1 << 63)
}

/// The ticks of a time in microseconds since 1970.
pub fn ticks_at(unix_micros: i64) -> u64 {
    unix_micros.cast_unsigned().wrapping_mul(TICKS_PER_MICRO).wrapping_add(UNIX_EPOCH_TICKS)
}

/// The time of a version 1, in microseconds since 1970.
pub fn unix_micros(uuid: &[u8; 16]) -> i64 {
    let since = ticks(split(uuid).0).wrapping_sub(UNIX_EPOCH_TICKS).cast_signed();
    since.div_euclid(TICKS_PER_MICRO.cast_signed())
}

/// Makes UUIDs for a shard: each time UUID is later than all that it and its forks have made, whatever the clock does. Its time is
/// given to it, and its seed. Not for secrets.
#[derive(Debug)]
pub struct Generator {
    /// Of the random bits.
    state: Cell<u128>,
    times: Arc<Times>,
}

/// What a generator has in common with its forks. One atomic word each: forks move between threads, but only few statements make a
/// time UUID on another one than their shard's.
#[derive(Debug)]
struct Times {
    last: AtomicU64,
    /// Ticks of the last path that was put in front of a list.
    first_path: AtomicU64,
}

impl Generator {
    pub fn seeded(seed: u128) -> Generator {
        let times = Times { last: AtomicU64::new(0), first_path: AtomicU64::new(u64::MAX) };
        Generator { state: Cell::new(seed), times: Arc::new(times) }
    }

    /// A generator for one execution, which may then move to another thread.
    pub fn fork(&self) -> Generator {
        let seed = u128::from(self.next_u64()) << 64 | u128::from(self.next_u64());
        Generator { state: Cell::new(seed), times: self.times.clone() }
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

    /// Version 4.
    pub fn random(&self) -> [u8; 16] {
        random(self.next_u64(), self.next_u64())
    }

    /// Version 1 at this time (µs since 1970), or one tick after the last one if that is not earlier.
    pub fn time_based(&self, unix_micros: i64) -> [u8; 16] {
        let now = ticks_at(unix_micros);
        let next = |last: u64| now.max(last.wrapping_add(1));
        let last = self.times.last.fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
        self.with_ticks(next(last.unwrap_or_default()))
    }

    /// Version 1 with just these ticks.
    pub fn with_ticks(&self, ticks: u64) -> [u8; 16] {
        join(most_significant(ticks), random_node(self.next_u64()))
    }

    /// Paths of elements that are put in front of a list at this time (µs since 1970), in their order: time runs backwards from
    /// 2010-01-01, so that what comes later stands further in front (`Lists.PrecisionTime`).
    pub fn paths_in_front(&self, unix_micros: i64, count: usize) -> Vec<[u8; 16]> {
        const REFERENCE: i64 = 1_262_304_000_000_000;
        let mirrored = ticks_at(REFERENCE.wrapping_sub(unix_micros.wrapping_sub(REFERENCE)));
        let count = count as u64;
        // The first of these paths, behind which the others follow tick by tick.
        let first = |before: u64| mirrored.min(before).saturating_sub(count);
        let before = self.times.first_path.fetch_update(Relaxed, Relaxed, |b| Some(first(b)));
        let first = first(before.unwrap_or(u64::MAX));
        (1..=count).map(|step| self.with_ticks(first.wrapping_add(step))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves version, variant and time of the UUIDs, and both directions of their text.
    #[test]
    fn forms() {
        let generator = Generator::seeded(7);
        let random = generator.random();
        assert_eq!((random[6] >> 4, random[8] >> 6), (4, 2));
        assert_ne!(random, generator.random());
        let first = generator.time_based(0);
        assert_eq!((first[6] >> 4, first[8] >> 6), (1, 2));
        assert_eq!(first[..8], [0x13, 0x81, 0x40, 0, 0x1d, 0xd2, 0x11, 0xb2]);
        assert_eq!((ticks(split(&first).0), is_time_based(&first)), (UNIX_EPOCH_TICKS, true));
        assert_eq!((unix_micros(&first), unix_micros(&generator.time_based(-7))), (0, 0));
        assert!(text(&first).starts_with("13814000-1dd2-11b2-"));
        assert_eq!(parse(&text(&random).to_uppercase()), Some(random));
        assert_eq!(parse("13814000-1dd211b2-8000-000000000000"), None);
        assert!(!is_time_based(&random));
    }

    /// Proves that time UUIDs of a generator and of its forks increase, in the same microsecond and when the clock goes back.
    #[test]
    fn time_increases() {
        let generator = Generator::seeded(7);
        let (one, other) = (generator.fork(), generator.fork());
        let made = [
            one.time_based(5),
            generator.time_based(5),
            other.time_based(5),
            one.time_based(3),
            generator.fork().time_based(0),
            other.time_based(9),
        ];
        let times: Vec<u64> = made.iter().map(|uuid| ticks(split(uuid).0)).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }

    /// Proves that what is put in front of a list later comes earlier, in one microsecond too, and that elements put there together keep
    /// their order.
    #[test]
    fn paths_run_backwards() {
        let generator = Generator::seeded(7);
        let now = 1_700_000_000_000_000;
        let mut paths = generator.fork().paths_in_front(now + 1, 2);
        for micros in [now, now + 5] {
            paths.splice(0..0, generator.paths_in_front(micros, 3));
        }
        let times: Vec<u64> = paths.iter().map(|uuid| ticks(split(uuid).0)).collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
}
