//! What occurs most often, and what is largest, of a stream of samples, in bounded memory.
//!
//! 1. [`Frequent`] is Space-Saving (Metwally et al., "Efficient computation of frequent and top-k elements in data streams", 2005): a key
//!    without a counter takes that of the rarest one, and its count as the possible error. So what occurs often is never missed, and
//!    counted at most `error` too high.
//! 2. [`Largest`] keeps the largest samples; one key may be among them several times.
//!
//! Neither keeps more than `capacity` keys. A sample takes the logarithm of that.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A key that occurred, or its largest value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    pub key: Arc<[u8]>,
    pub count: u64,
    /// `count` is too high by this at most.
    pub error: u64,
}

#[derive(Debug)]
pub struct Frequent {
    capacity: usize,
    counters: HashMap<Arc<[u8]>, (u64, u64)>,
    /// By count; the rarest is first.
    order: BTreeSet<(u64, Arc<[u8]>)>,
}

impl Frequent {
    /// At least one key is kept.
    pub fn of(capacity: usize) -> Frequent {
        let capacity = capacity.max(1);
        Frequent { capacity, counters: HashMap::new(), order: BTreeSet::new() }
    }

    pub fn add(&mut self, key: &[u8], count: u64) {
        let (key, before, error) = match self.counters.get_key_value(key) {
            Some((key, (before, error))) => (key.clone(), *before, *error),
            None => {
                let rarest = match self.counters.len() < self.capacity {
                    true => None,
                    false => self.order.pop_first(),
                };
                let least = rarest.as_ref().map_or(0, |(least, _)| *least);
                if let Some((_, rarest)) = rarest {
                    self.counters.remove(&rarest);
                }
                (key.into(), least, least)
            }
        };
        let now = before.saturating_add(count);
        self.order.remove(&(before, key.clone()));
        self.order.insert((now, key.clone()));
        self.counters.insert(key, (now, error));
    }

    /// The most frequent first.
    pub fn top(self, most: usize) -> Vec<Top> {
        let keys = self.order.into_iter().rev().take(most);
        let top = |(count, key): (u64, Arc<[u8]>)| {
            let error = self.counters.get(&key).map_or(0, |(_, error)| *error);
            Top { key, count, error }
        };
        keys.map(top).collect()
    }
}

#[derive(Debug)]
pub struct Largest {
    capacity: usize,
    /// By value, and of equal values the later one first.
    samples: BTreeSet<(u64, u64, Arc<[u8]>)>,
    earlier: u64,
}

impl Largest {
    /// At least one sample is kept.
    pub fn of(capacity: usize) -> Largest {
        Largest { capacity: capacity.max(1), samples: BTreeSet::new(), earlier: u64::MAX }
    }

    /// Whether a sample of this value would be kept.
    pub fn wants(&self, value: u64) -> bool {
        let least = self.samples.first().map_or(0, |(least, ..)| *least);
        value > 0 && (self.samples.len() < self.capacity || value > least)
    }

    pub fn add(&mut self, key: &[u8], value: u64) {
        if !self.wants(value) {
            return;
        }
        if self.samples.len() >= self.capacity {
            self.samples.pop_first();
        }
        self.earlier = self.earlier.saturating_sub(1);
        self.samples.insert((value, self.earlier, key.into()));
    }

    /// The largest first.
    pub fn top(self, most: usize) -> Vec<Top> {
        let samples = self.samples.into_iter().rev().take(most);
        samples.map(|(count, _, key)| Top { key, count, error: 0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(top: Vec<Top>) -> Vec<(String, u64, u64)> {
        let text =
            |top: Top| (String::from_utf8_lossy(&top.key).into_owned(), top.count, top.error);
        top.into_iter().map(text).collect()
    }

    /// Proves that frequent keys are exact while there is room, and that a new one then takes over the rarest one's count as its error.
    #[test]
    fn the_rarest_key_is_replaced() {
        let mut frequent = Frequent::of(2);
        for key in [b"a", b"b", b"a", b"a"] {
            frequent.add(key, 1);
        }
        frequent.add(b"c", 1);
        assert_eq!(shown(frequent.top(9)), [("a".to_owned(), 3, 0), ("c".to_owned(), 2, 1)]);
        assert!(Frequent::of(0).top(3).is_empty());
    }

    /// Proves the guarantee of Space-Saving: among many rare keys, one that has more than a share of 1/capacity is kept, its count is not
    /// too low, and without the error not too high.
    #[test]
    fn a_frequent_key_is_never_missed() {
        let mut frequent = Frequent::of(16);
        for number in 0..10_000_u32 {
            frequent.add(&number.to_be_bytes(), 1);
            if number % 8 == 0 {
                frequent.add(b"often", 1);
            }
        }
        assert_eq!(frequent.counters.len(), 16);
        let found = frequent.top(1).remove(0);
        assert_eq!(&*found.key, b"often");
        assert!(found.count >= 1_250 && found.count - found.error <= 1_250, "{found:?}");
    }

    /// Proves that the largest samples are kept, the first of equal ones before the later, and nothing of zero.
    #[test]
    fn the_largest_samples_are_kept() {
        let mut largest = Largest::of(3);
        for (key, value) in [(b"a", 5), (b"b", 0), (b"c", 7), (b"d", 5), (b"e", 5), (b"f", 6)] {
            largest.add(key, value);
        }
        let expected = [("c".to_owned(), 7, 0), ("f".to_owned(), 6, 0), ("a".to_owned(), 5, 0)];
        assert_eq!(shown(largest.top(3)), expected);
    }
}
