//! What is read: single rows of the set, hot ones (few, again and again) and cold ones (each from the device).

use crate::load::Random;
use crate::paced::Requests;

pub(crate) const HOT: u8 = 0;
pub(crate) const COLD: u8 = 1;

/// Partitions are numbered; the first `hot` of them are the hot set. Their tokens are spread like everybody's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) partitions: u64,
    pub(crate) hot: u64,
    /// One read in this many is cold; zero: none.
    pub(crate) cold_every: u64,
    /// The hot rows in their order, so that all of them are met.
    pub(crate) sweeps: bool,
}

pub(crate) struct Reads {
    statement: String,
    keys: Keys,
    random: Random,
    number: u64,
}

impl Keys {
    /// Of a partition's number and a row's.
    pub(crate) fn statement(table: &str) -> String {
        format!("SELECT amount, body, digest, kind, rate FROM {table} WHERE device = ? AND at = ?")
    }

    pub(crate) fn reads(self, table: &str, seed: u64) -> Reads {
        let statement = Keys::statement(table);
        Reads { statement, keys: self, random: Random(seed), number: 0 }
    }
}

impl Requests for Reads {
    fn statements(&self) -> Vec<String> {
        // One for each class.
        vec![self.statement.clone(), self.statement.clone()]
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let Keys { partitions, hot, cold_every, sweeps } = self.keys;
        self.number += 1;
        let is_cold = cold_every > 0 && self.number.is_multiple_of(cold_every);
        let partition = match (is_cold, sweeps) {
            (true, _) => hot + self.random.below(partitions.saturating_sub(hot).max(1)),
            (false, true) => self.number % hot.max(1),
            (false, false) => self.random.below(hot.max(1)),
        };
        let class = if is_cold { COLD } else { HOT };
        // The first row of every partition.
        (usize::from(class), vec![partition.to_be_bytes().to_vec(), 0u64.to_be_bytes().to_vec()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_keys_are_not_hot() {
        let keys = Keys { partitions: 100, hot: 10, cold_every: 4, sweeps: false };
        let mut reads = keys.reads("t", 1);
        let drawn: Vec<(usize, u64)> = std::iter::repeat_with(|| reads.next())
            .take(400)
            .map(|(class, values)| {
                (class, u64::from_be_bytes(values[0].as_slice().try_into().unwrap()))
            })
            .collect();
        assert_eq!(drawn.iter().filter(|(class, _)| *class == usize::from(COLD)).count(), 100);
        assert!(drawn.iter().all(|(class, key)| (*class == usize::from(HOT)) == (*key < 10)));
    }
}
