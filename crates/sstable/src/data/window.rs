//! The scanner's interface to the data: a window of contiguous bytes from a position on.

use super::chunk_read::DataReader;
use crate::{Error, Result};

pub trait DataWindow {
    fn data_length(&self) -> u64;

    /// Position in the data of the first available byte.
    fn position(&self) -> u64;

    fn available(&self) -> &[u8];

    /// Bytes of data from here to the end, available or not.
    fn remaining(&self) -> u64 {
        self.data_length().saturating_sub(self.position())
    }

    fn consume(&mut self, n: usize);

    /// Makes at least `at_least` bytes available, or all that remain.
    async fn fill(&mut self, at_least: usize) -> Result<()>;

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error;
}

/// A window that can be moved.
pub trait SeekWindow: DataWindow {
    /// Continues at another position of the data.
    async fn seek(&mut self, position: u64) -> Result<()>;
}

impl DataWindow for DataReader {
    fn data_length(&self) -> u64 {
        self.data_length()
    }

    #[inline]
    fn position(&self) -> u64 {
        self.position()
    }

    #[inline]
    fn available(&self) -> &[u8] {
        self.available()
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.consume(n);
    }

    async fn fill(&mut self, at_least: usize) -> Result<()> {
        self.fill(at_least).await
    }

    fn corrupt(&self, offset: u64, what: impl Into<String>) -> Error {
        self.corrupt(offset, what)
    }
}

impl SeekWindow for DataReader {
    async fn seek(&mut self, position: u64) -> Result<()> {
        self.seek(position).await
    }
}
