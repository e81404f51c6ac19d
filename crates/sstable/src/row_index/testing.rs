//! A source over bytes in memory, and a generator of numbers whose seed tests print.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use halcyon_model::DecodeError;

use super::IndexSource;

pub(crate) struct Memory<'a>(pub(crate) &'a [u8]);

impl<'a> IndexSource for Memory<'a> {
    type Bytes = &'a [u8];
    type Error = DecodeError;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    async fn read(&self, offset: u64, length: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or(rest))
    }

    fn corrupt(&self, error: DecodeError) -> DecodeError {
        error
    }
}

/// Runs a future that never has to wait.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("memory is always ready"),
    }
}

/// SplitMix64: what Cassandra wrote of its sequence is in `bti/tests/cassandra.rs`, so `halcyon_io::Random` cannot replace it.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.any() % limit
    }
}

/// A seed that differs from run to run, or `HALCYON_SEED`; always printed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("HALCYON_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(0)
    });
    println!("HALCYON_SEED={seed}");
    seed
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
