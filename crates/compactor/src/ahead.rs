//! Bounds that came with another: where one partition needs a question, its neighbours often do, and a round trip between two
//! processes costs more than merging a small partition.
//!
//! A question says how many bounds of the partitions behind its own are welcome. If half of those were of use the next asks for twice as
//! many, if not even a quarter was for half as many. So a table of scattered tombstones does not pay for a full one.

use std::cmp::Ordering;
use std::collections::VecDeque;

use halcyon_stream::PartitionKey;

const LEAST: u32 = 4;
const MOST: u32 = 1024;

pub(crate) struct Ahead {
    /// In the order of the partitions.
    known: VecDeque<(PartitionKey, i64)>,
    wanted: u32,
    got: usize,
    used: usize,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { known: VecDeque::new(), wanted: LEAST, got: 0, used: 0 }
    }
}

impl Ahead {
    /// The partition's bound, if it came with another. Keys are asked for in order, so those before it are of no use any more.
    pub(crate) fn take(&mut self, key: &PartitionKey) -> Option<i64> {
        while let Some((known, bound)) = self.known.front() {
            let order = (known.token, &known.bytes).cmp(&(key.token, &key.bytes));
            let bound = *bound;
            if order == Ordering::Greater {
                return None;
            }
            self.known.pop_front();
            if order == Ordering::Equal {
                self.used += 1;
                return Some(bound);
            }
        }
        None
    }

    /// How many the next question asks for.
    pub(crate) fn wanted(&mut self) -> u32 {
        if self.got > 0 {
            if self.used * 2 >= self.got {
                self.wanted = (self.wanted * 2).min(MOST);
            } else if self.used * 4 < self.got {
                self.wanted = (self.wanted / 2).max(LEAST);
            }
        }
        self.wanted
    }

    /// What came with the answer.
    pub(crate) fn put(&mut self, bounds: &[(Vec<u8>, i64)]) {
        self.known = bounds.iter().map(|(key, bound)| (PartitionKey::of(key), *bound)).collect();
        self.got = bounds.len();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(count: u32) -> Vec<Vec<u8>> {
        let mut keys: Vec<PartitionKey> =
            (0..count).map(|n| PartitionKey::of(&n.to_be_bytes())).collect();
        keys.sort_by_key(|key| key.token);
        keys.into_iter().map(|key| key.bytes).collect()
    }

    /// Asks for every nth key; returns the questions that it takes, and how many bounds the last of them wanted.
    fn questions(keys: &[Vec<u8>], every: usize) -> (usize, u32) {
        let mut ahead = Ahead::default();
        let (mut questions, mut wanted) = (0, 0);
        for (at, key) in keys.iter().enumerate().step_by(every) {
            if let Some(bound) = ahead.take(&PartitionKey::of(key)) {
                assert_eq!(bound, at as i64);
                continue;
            }
            questions += 1;
            wanted = ahead.wanted();
            let behind = keys.iter().enumerate().skip(at + 1).take(wanted as usize);
            ahead.put(&behind.map(|(at, key)| (key.clone(), at as i64)).collect::<Vec<_>>());
        }
        (questions, wanted)
    }

    /// Proves that each key gets its own bound, that questions become rare where all keys are asked for, and that scattered keys ask for
    /// few useless bounds.
    #[test]
    fn questions_ask_for_what_is_of_use() {
        let keys = in_order(10_000);
        let (all, wanted) = questions(&keys, 1);
        assert!(all < 25 && wanted == MOST, "{all} {wanted}");
        let (scattered, wanted) = questions(&keys, 100);
        assert_eq!((scattered, wanted), (100, LEAST));
    }

    #[test]
    fn a_key_that_did_not_come_is_asked_for() {
        let keys = in_order(3);
        let mut ahead = Ahead::default();
        ahead.put(&[(keys[0].clone(), 0), (keys[2].clone(), 2)]);
        assert_eq!(ahead.take(&PartitionKey::of(&keys[1])), None);
        assert_eq!(ahead.take(&PartitionKey::of(&keys[2])), Some(2));
    }
}
