//! Which partitions and rows of a table were read lately by their keys: what a compaction or flush carries over into the caches.
//!
//! 1. Four bits of a cache line stand for all rows with the same hash, so some are hot that were not read (a Bloom filter in blocks: Putze
//!    et al., "Cache-, hash- and space-efficient Bloom filters", 2007). A partition has bits that say that something of it is hot, and
//!    others that say that all of it is.
//! 2. There are two generations of bits: the current one, and one that ends with the next. So what was not read for
//!    [`GENERATION`] and as long again is not hot.
//! 3. Bits that are crowded get others beside them, more, at once. How many are needed follows from what is read, not from what is
//!    stored: a table that grew from nothing to 10 GiB in one generation had a tenth of its chunks in the caches, since a chunk has many
//!    rows, and one that is wrongly hot is enough.
//! 4. Only reads that were answered from memory count. What is read once after the other from the device, by however many readers, would
//!    take the room of what is hot.
//! 5. A read whose bits are set already writes nothing: a bit that each read writes would be a cache line that all shards write.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use halcyon_model::BoundKind;
use halcyon_sstable::Heat as PartitionHeat;
use halcyon_stream::{Layout, PartitionKey, Slice, Slices};

/// How long reads set the bits of one generation.
pub(crate) const GENERATION: Duration = Duration::from_secs(300);

/// Of all tables together.
pub(crate) const BYTES_MAX: u64 = 32 << 20;

/// Of one generation: 8 MiB tell 1,000,000 partitions from others with an error below a thousandth.
const BITS_MAX: u64 = 1 << 26;
const BITS_MIN: u64 = 1 << 13;
/// Before the need is known, a table has about one bit for this many stored bytes.
const BYTES_PER_BIT: u64 = 128;
const FIRST_MAX: u64 = 1 << 20;

/// If a larger part of the bits is set, one row of 30,000 is wrongly hot: it is time for more of them.
const CROWDED: f64 = 1.0 / 16.0;
/// If a larger part is set, one of 200 is: that is not worth keeping.
const BLURRED: f64 = 1.0 / 4.0;
/// The bits of a new generation, for each that was set in the last.
const SPARE: f64 = 32.0;

const LINE: u64 = 512;

type Bits = Box<[AtomicU64]>;

/// Nothing of them is set any more.
#[derive(Default, Clone)]
struct Older {
    /// Of the current generation: they were crowded.
    same: Vec<Arc<Bits>>,
    last: Vec<Arc<Bits>>,
}

#[derive(Default)]
pub(crate) struct Heat {
    recent: ArcSwapOption<Bits>,
    older: ArcSwap<Older>,
    /// There were reads while there were no bits.
    is_wanted: AtomicBool,
}

/// What was hot at one time.
pub(crate) struct Hot {
    bits: Vec<Arc<Bits>>,
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

/// Four words, all in a line, and a bit of each.
fn places(bits: &Bits, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
    let line = (hash >> 36) & (count(bits) / LINE - 1);
    (0..4).filter_map(move |which| {
        let at = line * LINE + (hash >> (9 * which) & (LINE - 1));
        Some((bits.get(at as usize / 64)?, 1 << (at % 64)))
    })
}

/// `bits`, capped by what fits into `room` bytes.
fn fitting(bits: u64, room: u64) -> Option<u64> {
    let most = 1 << room.saturating_mul(8).checked_ilog2()?;
    Some(bits.clamp(BITS_MIN, BITS_MAX).min(most)).filter(|bits| *bits >= BITS_MIN)
}

fn zeros(bits: u64) -> Arc<Bits> {
    Arc::new((0..bits / 64).map(|_| AtomicU64::new(0)).collect())
}

fn count(bits: &Bits) -> u64 {
    bits.len() as u64 * 64
}

/// The part that is set, of the first ones: hashes make all alike.
fn part_set(bits: &Bits) -> f64 {
    const LOOKED_AT: usize = 1 << 12;
    let looked_at = bits.len().min(LOOKED_AT);
    let set: u32 = bits.iter().take(looked_at).map(|word| word.load(Relaxed).count_ones()).sum();
    f64::from(set) / (looked_at * 64) as f64
}

fn has_any(bits: &Bits) -> bool {
    bits.iter().any(|word| word.load(Relaxed) != 0)
}

/// The bits that a table needs of whose `count` bits `part` is set. Where hashes meet at one bit, there were more than the bits show.
fn bits_for(count: u64, part: f64) -> u64 {
    let all = -(1.0 - part.min(0.999)).ln() * count as f64;
    ((all * SPARE) as u64).next_power_of_two()
}

fn set(bits: &Bits, hash: u64) {
    for (word, bit) in places(bits, hash) {
        if word.load(Relaxed) & bit == 0 {
            word.fetch_or(bit, Relaxed);
        }
    }
}

fn bytes<'a>(all: impl IntoIterator<Item = &'a Arc<Bits>>) -> u64 {
    all.into_iter().map(|bits| count(bits) / 8).sum()
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
        let (recent, older) = (self.recent.load_full(), self.older.load());
        Hot {
            bits: recent.into_iter().chain(older.same.iter().chain(&older.last).cloned()).collect(),
        }
    }

    /// Begins the first generation where there were reads, of a table of `stored` bytes, and with `ends` the next one; gives more
    /// room to one that is crowded. Two generations may take `room` bytes; what they take is returned.
    pub(crate) fn advance(&self, ends: bool, stored: impl FnOnce() -> u64, room: u64) -> u64 {
        match self.recent.load_full() {
            None if self.is_wanted.load(Relaxed) || ends => {
                let bits = (stored() / BYTES_PER_BIT).next_power_of_two();
                self.next_generation(Vec::new(), bits.min(FIRST_MAX), room / 2);
            }
            None => {}
            Some(recent) if ends => {
                let mut ended = self.older.load().same.clone();
                ended.extend(has_any(&recent).then_some(recent));
                let needed = ended.iter().map(|bits| bits_for(count(bits), part_set(bits))).max();
                self.next_generation(ended, needed.unwrap_or(BITS_MIN), room / 2);
            }
            Some(recent) if part_set(&recent) > CROWDED => {
                self.add_to_generation(recent, room / 2);
            }
            Some(_) => {}
        }
        bytes(&self.hot().bits)
    }

    /// After one that has ended.
    fn next_generation(&self, ended: Vec<Arc<Bits>>, bits: u64, room: u64) {
        // A read that finds no bits while these are made wants them after it: they are there then.
        let is_wanted = self.is_wanted.swap(false, Relaxed);
        let bits = fitting(bits, room).filter(|_| !ended.is_empty() || is_wanted);
        self.older.store(Arc::new(Older { same: Vec::new(), last: ended }));
        self.recent.store(bits.map(zeros));
    }

    fn add_to_generation(&self, recent: Arc<Bits>, room: u64) {
        let mut older = Older::clone(&self.older.load());
        let (now, part) = (count(&recent), part_set(&recent));
        older.same.extend((part <= BLURRED).then_some(recent));
        // Where there is no room for more, nothing is made: this is looked at every second.
        let more = fitting(bits_for(now, part), room.saturating_sub(bytes(&older.same)));
        if let Some(more) = more.filter(|more| *more > now) {
            self.older.store(Arc::new(older));
            self.recent.store(Some(zeros(more)));
        }
    }
}

impl Hot {
    fn has(&self, hash: u64) -> bool {
        let is_set = |(word, bit): (&AtomicU64, u64)| word.load(Relaxed) & bit != 0;
        self.bits.iter().any(|bits| places(bits, hash).all(is_set))
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
        self.bits.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use halcyon_io::Random;

    use super::*;

    /// Proves that what was read is hot, and how little of a large table is beside it, however small the table was when it was read first.
    #[test]
    fn few_are_taken_for_hot() {
        let mut random = Random::seeded(1);
        for (read, stored) in [(100_000, 0), (100_000, u64::MAX >> 8), (1_000_000, 1 << 30)] {
            let heat = Heat::default();
            heat.is_wanted.store(true, Relaxed);
            heat.advance(false, || stored, BYTES_MAX);
            let mut hash = || (random.below(1 << 32)) << 32 | random.below(1 << 32);
            let hot: Vec<u64> = (0..read).map(|_| hash()).collect();
            for _ in 0..3 {
                for hashes in hot.chunks(10_000) {
                    let bits = heat.recent.load_full().expect("begun");
                    hashes.iter().for_each(|hash| set(&bits, *hash));
                    assert!(heat.advance(false, || 0, BYTES_MAX) <= BYTES_MAX);
                }
            }
            let found = heat.hot();
            assert!(hot.iter().all(|hash| found.has(*hash)));
            let wrong = (0..100_000).filter(|_| found.has(hash())).count();
            assert!(wrong < 20, "{wrong} of 100,000 beside {read}");
        }
    }

    /// Proves that more bits know what fewer knew, that a new generation has as many as the last one needed, and that room is an end.
    #[test]
    fn bits_are_as_many_as_needed() {
        let heat = Heat::default();
        let mut random = Random::seeded(2);
        heat.is_wanted.store(true, Relaxed);
        let bits_of = |heat: &Heat| heat.recent.load_full().expect("begun");
        heat.advance(false, || 1 << 27, BYTES_MAX);
        let few = count(&bits_of(&heat));
        let hot: Vec<u64> = (0..few as usize / 30).map(|_| random.next_u64()).collect();
        hot.iter().for_each(|hash| set(&bits_of(&heat), *hash));
        heat.advance(false, || 0, BYTES_MAX);
        let more = count(&bits_of(&heat));
        assert!(more > few && hot.iter().all(|hash| heat.hot().has(*hash)));
        heat.advance(true, || 0, BYTES_MAX);
        hot.iter().take(10).for_each(|hash| set(&bits_of(&heat), *hash));
        assert_eq!(count(&bits_of(&heat)), more);
        heat.advance(true, || 0, BYTES_MAX);
        assert_eq!(count(&bits_of(&heat)), BITS_MIN);
        hot.iter().for_each(|hash| set(&bits_of(&heat), *hash));
        assert!(heat.advance(false, || 0, BITS_MIN / 4) > 0);
        assert_eq!(count(&bits_of(&heat)), BITS_MIN, "no room for more");
        heat.advance(true, || 0, 0);
        assert!(heat.recent.load().is_none());
        heat.advance(true, || 0, BYTES_MAX);
        assert!(heat.hot().is_empty(), "without reads");
    }

    /// Proves that a generation lasts until it ends, although a read came while its bits were made and found none.
    #[test]
    fn a_generation_lasts() {
        let heat = Heat::default();
        let advance = |ends| heat.advance(ends, || 1 << 20, BYTES_MAX);
        let bits = || heat.recent.load_full().map(|bits| Arc::as_ptr(&bits));
        assert_eq!((advance(false), bits()), (0, None), "without reads");
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
