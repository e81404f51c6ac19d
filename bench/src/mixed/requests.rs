//! What is asked: reads of rows that were there before, inserts of rows that were not.

use crate::load::{Random, Request, random_bytes};
use crate::paced::Requests;

pub(super) const TABLE: &str = "mixed";
/// Of bytes that values are cut from: so many that no compressor finds one twice in a chunk.
const POOL: usize = 4 << 20;

#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) hot: u64,
    /// Bytes of a value.
    pub(super) value: usize,
}

pub(super) struct Reads {
    rows: Rows,
    /// None: in their order.
    random: Option<Random>,
    number: u64,
}

impl Reads {
    pub(super) fn in_order(rows: Rows) -> Reads {
        Reads { rows, random: None, number: 0 }
    }

    pub(super) fn at_random(rows: Rows) -> Reads {
        Reads { rows, random: Some(Random(1)), number: 0 }
    }
}

impl Requests for Reads {
    fn statements(&self) -> Vec<String> {
        Request::Read.statement(TABLE).into_iter().collect()
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        self.number += 1;
        let hot = self.rows.hot.max(1);
        let key = match &mut self.random {
            Some(random) => random.below(hot),
            None => self.number % hot,
        };
        (0, vec![key.to_be_bytes().to_vec()])
    }
}

pub(super) struct Inserts {
    rows: Rows,
    pool: Vec<u8>,
    random: Random,
    number: u64,
}

impl Inserts {
    pub(super) fn of(rows: Rows) -> Inserts {
        Inserts { rows, pool: random_bytes(3, POOL), random: Random(2), number: 0 }
    }
}

impl Requests for Inserts {
    fn statements(&self) -> Vec<String> {
        Request::Write.statement(TABLE).into_iter().collect()
    }

    fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let key = self.rows.hot + self.number;
        self.number += 1;
        let room = POOL.saturating_sub(self.rows.value) as u64;
        let at = self.random.below(room.max(1)) as usize;
        let value = self.pool.iter().skip(at).take(self.rows.value).copied().collect();
        let number = (key as u32).to_be_bytes().to_vec();
        (0, vec![key.to_be_bytes().to_vec(), number, format!("row {key}").into_bytes(), value])
    }
}
