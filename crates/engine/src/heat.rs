//! Which partitions and rows of a table were read lately by their keys: what a compaction or flush carries over into the caches.
//!
//! 1. Three bits of a word stand for all rows with the same hash, so some are hot that were not read; with one bit there were more of them
//!    than of those that were. A partition has bits that say that something of it is hot, and others that say that all of it is.
//! 2. There are two generations of bits: the current one, and one that ends with the next. So what was not read for
//!    [`GENERATION`] and as long again is not hot.
//! 3. Only reads that were answered from memory count. What is read once after the other from the device, by however many readers, would
//!    take the room of what is hot.
//! 4. A read whose bits are set already writes nothing: a bit that each read writes would be a cache line that all shards write.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use halcyon_model::BoundKind;
use halcyon_sstable::Heat as PartitionHeat;
use halcyon_stream::{Layout, PartitionKey, Slice, Slices};

/// How long reads set the bits of one generation.
pub(crate) const GENERATION: Duration = Duration::from_secs(300);

/// Of all tables together.
pub(crate) const BYTES_MAX: u64 = 32 << 20;

/// Of one generation: 1 MiB tells 100,000 partitions from others with an error of a thousandth, 1,000,000 with one of some per cent.
const BITS_MAX: u64 = 1 << 23;
const BITS_MIN: u64 = 1 << 13;
/// A table has about a bit for so many stored bytes.
const BYTES_PER_BIT: u64 = 128;

type Bits = Box<[AtomicU64]>;

#[derive(Default)]
pub(crate) struct Heat {
    recent: ArcSwapOption<Bits>,
    before: ArcSwapOption<Bits>,
    /// There were reads while there were no bits.
    is_wanted: AtomicBool,
}

/// What was hot at one time.
pub(crate) struct Hot {
    generations: [Option<Arc<Bits>>; 2],
}

/// A read of more rows by their names is one of the whole partition.
const ROWS_MAX: usize = 16;

/// Of a partition of which something is hot.
fn some_of(key: &PartitionKey) -> u64 {
    key.hashes.1.cast_unsigned()
}

fn all_of(key: &PartitionKey) -> u64 {
    key.hashes.0.cast_unsigned()
}

fn row_of(key: &PartitionKey, clustering: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(some_of(key));
    hasher.write(clustering);
    hasher.finish()
}

/// The word of a hash, and the bits in it.
fn place(bits: &Bits, hash: u64) -> (usize, u64) {
    let bit = |at: u32| 1 << (hash >> at & 63);
    ((hash >> 18) as usize & (bits.len() - 1), bit(0) | bit(6) | bit(12))
}

fn set(bits: &Bits, hash: u64) {
    let (word, all) = place(bits, hash);
    if let Some(word) = bits.get(word)
        && word.load(Relaxed) & all != all
    {
        word.fetch_or(all, Relaxed);
    }
}

/// The clusterings of rows that are selected by their names.
fn named(slices: &Slices, clusterings: usize) -> Option<impl Iterator<Item = &[u8]>> {
    let is_row = |slice: &Slice| match (&slice.start, &slice.end) {
        (Some(start), Some(end)) => {
            start.count == clusterings
                && start.kind == BoundKind::InclStart
                && end.kind == BoundKind::InclEnd
                && start.serialized == end.serialized
        }
        _ => false,
    };
    let are_rows = slices.slices.len() <= ROWS_MAX && slices.slices.iter().all(is_row);
    let starts = slices.slices.iter().filter_map(|slice| slice.start.as_ref());
    are_rows.then(|| starts.map(|start| start.serialized.as_slice()))
}

impl Heat {
    /// A read of a partition, from memory.
    pub(crate) fn note(&self, key: &PartitionKey, slices: &Slices, layout: &Layout) {
        let recent = self.recent.load();
        let Some(bits) = recent.as_deref() else {
            if !self.is_wanted.load(Relaxed) {
                self.is_wanted.store(true, Relaxed);
            }
            return;
        };
        set(bits, some_of(key));
        match named(slices, layout.clusterings.len()) {
            Some(rows) => rows.for_each(|row| set(bits, row_of(key, row))),
            None => set(bits, all_of(key)),
        }
    }

    pub(crate) fn hot(&self) -> Hot {
        Hot { generations: [self.recent.load_full(), self.before.load_full()] }
    }

    /// Begins the first generation where there were reads, and with `ends` the next one, of a table of so many stored bytes, if there
    /// is room for it. The bytes that it takes then.
    pub(crate) fn advance(&self, ends: bool, stored: impl FnOnce() -> u64, room: u64) -> u64 {
        let begins = self.recent.load().is_none() && self.is_wanted.load(Relaxed);
        if ends || begins {
            self.next_generation(stored(), room);
        }
        let bytes = |bits: &ArcSwapOption<Bits>| {
            bits.load().as_deref().map_or(0, |bits| bits.len() as u64 * 8)
        };
        bytes(&self.recent) + bytes(&self.before)
    }

    fn next_generation(&self, stored: u64, room: u64) {
        let bits = (stored / BYTES_PER_BIT).next_power_of_two().clamp(BITS_MIN, BITS_MAX);
        let before = self.recent.load_full();
        let was_read =
            before.as_deref().is_some_and(|bits| bits.iter().any(|w| w.load(Relaxed) != 0));
        // A read that finds no bits while these are made wants them after it: they are there then.
        let is_wanted = self.is_wanted.swap(false, Relaxed);
        let begins = (was_read || is_wanted) && bits / 8 * 2 <= room;
        let fresh = || Arc::new((0..bits / 64).map(|_| AtomicU64::new(0)).collect::<Bits>());
        self.recent.store(begins.then(fresh));
        self.before.store(before.filter(|_| was_read));
    }
}

impl Hot {
    fn has(&self, hash: u64) -> bool {
        self.generations.iter().flatten().any(|bits| {
            let (word, all) = place(bits, hash);
            bits.get(word).is_some_and(|word| word.load(Relaxed) & all == all)
        })
    }

    pub(crate) fn of(&self, key: &PartitionKey) -> PartitionHeat {
        match (self.has(some_of(key)), self.has(all_of(key))) {
            (false, _) => PartitionHeat::Cold,
            (true, false) => PartitionHeat::Rows,
            (true, true) => PartitionHeat::Whole,
        }
    }

    pub(crate) fn has_row(&self, key: &PartitionKey, clustering: &[u8]) -> bool {
        self.has(row_of(key, clustering))
    }

    /// Whether nothing can be.
    pub(crate) fn is_empty(&self) -> bool {
        self.generations.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::Random;

    use super::*;

    /// Proves that what was read is hot, and how little of a large table is beside it.
    #[test]
    fn few_are_taken_for_hot() {
        let mut random = Random::seeded(1);
        for (read, of_others) in [(100_000, 0.002), (1_000_000, 0.06)] {
            let heat = Heat::default();
            heat.is_wanted.store(true, Relaxed);
            heat.advance(false, || u64::MAX >> 8, BYTES_MAX);
            let mut hash = || (random.below(1 << 32)) << 32 | random.below(1 << 32);
            let hot: Vec<u64> = (0..read).map(|_| hash()).collect();
            let bits = heat.recent.load_full().expect("begun");
            hot.iter().for_each(|hash| set(&bits, *hash));
            let found = heat.hot();
            assert!(hot.iter().all(|hash| found.has(*hash)));
            let wrong = (0..100_000).filter(|_| found.has(hash())).count();
            assert!((wrong as f64) < 100_000.0 * of_others, "{wrong} of 100,000 beside {read}");
        }
    }

    /// Proves that a generation goes on until it ends, although a read came while its bits were made and found none.
    #[test]
    fn a_generation_lasts() {
        let heat = Heat::default();
        let advance = |ends| heat.advance(ends, || 1 << 20, BYTES_MAX);
        let bits = || heat.recent.load_full().map(|bits| Arc::as_ptr(&bits));
        assert_eq!((advance(false), bits()), (0, None), "nobody reads");
        heat.is_wanted.store(true, Relaxed);
        assert!(advance(false) > 0);
        let first = bits();
        heat.is_wanted.store(true, Relaxed);
        if let Some(bits) = heat.recent.load().as_deref() {
            set(bits, 1);
        }
        for _ in 0..3 {
            advance(false);
            assert_eq!(bits(), first);
        }
        advance(true);
        assert_ne!(bits(), first);
        assert!(heat.hot().has(1));
    }
}
