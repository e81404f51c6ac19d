//! The values of one row, as far as they are fetched.

use std::ops::Range;

/// When a cell was written, and when it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellTime {
    pub timestamp: i64,
    /// Remaining seconds; `None` if it does not expire.
    pub ttl: Option<i32>,
    /// Of a cell of a collection or user type.
    pub path: Vec<u8>,
    /// The column has one cell, with the whole value.
    pub simple: bool,
}

/// One row; reused from row to row. What belongs to the whole partition is set first and kept (`mark`, `back`).
#[derive(Debug, Clone, Default)]
pub struct RowValues {
    bytes: Vec<u8>,
    spans: Vec<Option<Range<usize>>>,
    times: Vec<Vec<CellTime>>,
}

/// Bytes of most rows: room for them is made at once.
const USUAL: usize = 256;

impl RowValues {
    pub fn new(fetched: usize) -> RowValues {
        RowValues {
            bytes: Vec::with_capacity(if fetched == 0 { 0 } else { USUAL }),
            spans: vec![None; fetched],
            times: vec![Vec::new(); fetched],
        }
    }

    pub fn value(&self, fetch: usize) -> Option<&[u8]> {
        let span = self.spans.get(fetch)?.as_ref()?;
        self.bytes.get(span.clone())
    }

    pub fn times(&self, fetch: usize) -> &[CellTime] {
        self.times.get(fetch).map_or(&[], Vec::as_slice)
    }

    pub fn set(&mut self, fetch: usize, value: &[u8]) {
        self.set_with(fetch, |bytes| bytes.extend_from_slice(value));
    }

    /// Sets a value to the bytes that a function appends.
    pub fn set_with(&mut self, fetch: usize, append: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        append(&mut self.bytes);
        if let Some(span) = self.spans.get_mut(fetch) {
            *span = Some(start..self.bytes.len());
        }
    }

    pub fn add_time(&mut self, fetch: usize, time: CellTime) {
        if let Some(times) = self.times.get_mut(fetch) {
            times.push(time);
        }
    }

    /// Forgets one value.
    pub fn unset(&mut self, fetch: usize) {
        if let Some(span) = self.spans.get_mut(fetch) {
            *span = None;
        }
        if let Some(times) = self.times.get_mut(fetch) {
            times.clear();
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        for fetch in 0..self.spans.len() {
            self.unset(fetch);
        }
    }

    /// A place to go `back` to.
    pub fn mark(&self) -> usize {
        self.bytes.len()
    }

    /// Gives up the bytes of values that were set after a mark; the values themselves must be unset.
    pub fn back(&mut self, mark: usize) {
        self.bytes.truncate(mark);
    }
}
