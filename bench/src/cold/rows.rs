//! Which rows are read.
//!
//! ```text
//!   rows of an SSTable, in the order of tokens
//!   b . . . . . . . m . . . . . . . b . . . . . . . m . . .      b: read before    m: may be measured
//!   └─ half of `apart`, and more than a chunk has ─┘
//! ```
//! 1. A block of an index has more rows than lie between two that are read before: so no block, of whatever kind of index, is left out.
//! 2. No two of all these rows are in one chunk: a row that is measured is in no chunk that was read, so no cache can have it.
//! 3. Both are read in a random order.

use std::sync::Arc;

use halcyon_model::token::murmur3_token;

use crate::dataset::{DataSet, KEYSPACE, Shape};
use crate::load::Random;
use crate::paced::Requests;

pub(super) struct Rows {
    pub(super) before: Vec<u64>,
    pub(super) measured: Vec<u64>,
}

impl Rows {
    pub(super) fn of(set: &DataSet, apart: u64) -> Rows {
        // Each row in one SSTable: in that of its number.
        let groups = if set.kind.shape == Shape::Single { u64::from(set.sstables()) } else { 1 };
        let chunk = set.kind.codec.chunk() as f64;
        let row = set.data_bytes() as f64 / set.partitions().max(1) as f64;
        // Some are shorter than the others.
        let in_a_chunk = (1.25 * chunk / row).ceil() as u64 + 2;
        Rows::choose(set.keys(), groups.max(1), (apart / 2).max(in_a_chunk))
    }

    fn choose(keys: u64, groups: u64, half: u64) -> Rows {
        let place = |key: &u64| (key % groups, murmur3_token(&key.to_be_bytes()));
        let mut ordered: Vec<u64> = (0..keys).collect();
        ordered.sort_by_cached_key(place);
        let every = |from: u64| {
            let chosen = ordered.iter().skip(from as usize).step_by(2 * half as usize);
            chosen.copied().collect()
        };
        Rows { before: every(0), measured: every(half) }
    }
}

/// Rows by their numbers, in a random order, from the beginning again after the last one.
pub(super) struct Reads {
    statement: String,
    keys: Arc<[u64]>,
    number: usize,
}

impl Reads {
    pub(super) fn of(set: &DataSet, keys: &[u64], seed: u64) -> Reads {
        let mut keys = keys.to_vec();
        let mut random = Random(seed);
        for at in (1..keys.len()).rev() {
            keys.swap(at, random.below(at as u64 + 1) as usize);
        }
        Reads { statement: statement(set, "?"), keys: keys.into(), number: 0 }
    }
}

impl Requests for Reads {
    fn statements(&self) -> Vec<String> {
        vec![self.statement.clone()]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let key = self.keys.get(self.number % self.keys.len().max(1)).copied().unwrap_or(0);
        self.number += 1;
        (0, vec![key.to_be_bytes().to_vec()])
    }
}

/// All parts of a row.
pub(super) fn statement(set: &DataSet, key: &str) -> String {
    let table = set.table();
    format!("SELECT part_1, part_2, part_3, part_4 FROM {KEYSPACE}.{table} WHERE id = {key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In each SSTable two chosen rows are as far apart as was asked, and every stretch of neighbours has one that is read before.
    #[test]
    fn chosen_rows_share_no_chunk() {
        const HALF: usize = 10;
        let Rows { before, measured } = Rows::choose(1000, 4, HALF as u64);
        assert_eq!((before.len(), measured.len()), (50, 50));
        for group in 0..4 {
            let mut ordered: Vec<u64> = (0..1000).filter(|key| key % 4 == group).collect();
            ordered.sort_by_key(|key| murmur3_token(&key.to_be_bytes()));
            let places = |chosen: &[u64]| {
                let chosen = chosen.iter().filter(|key| *key % 4 == group);
                let place = |key: &u64| ordered.iter().position(|other| other == key);
                let mut places: Vec<usize> = chosen.filter_map(place).collect();
                places.sort_unstable();
                places
            };
            let mut all = [places(&before), places(&measured)].concat();
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= HALF), "{all:?}");
            let before = places(&before);
            assert!(before.windows(2).all(|pair| pair[1] - pair[0] <= 2 * HALF), "{before:?}");
        }
    }
}
