//! Finds matches from left to right: the first one that there is.

use super::sequences::{MIN_MATCH, Sequences};
use super::table::Table;

/// The last bytes of a block are literals.
const LAST_LITERALS: usize = 5;
/// Bytes from the beginning of the last match to the end of the block.
const LAST_MATCH: usize = 12;

/// Writes the sequences of a block, up to its last match. `SLOTS`: of the table, a power of two. `BYTES`: that are hashed. `FAR`: the
/// input may have more than 64 KiB. `patience`: after `1 << patience` misses in a row each one skips one more position.
pub(super) fn matches<const SLOTS: usize, const BYTES: u32, const FAR: bool>(
    block: &mut Sequences,
    patience: u32,
) {
    let input = block.input;
    // A probe of two positions.
    let Some(last) = input.len().checked_sub(LAST_MATCH + 1) else { return };
    let end = input.len() - LAST_LITERALS;
    let mut search = Search::<SLOTS, BYTES, FAR> { input, table: Table::new() };
    let mut at = 1;
    while let Some((found, candidate)) = search.probe(at, last, patience) {
        let after = search.forward(found + MIN_MATCH, candidate + MIN_MATCH, end);
        let back = search.backward(found, candidate, block.from);
        block.push(found - back, after.min(end), found - candidate);
        at = after;
        while at <= last
            && let Some((candidate, after)) = search.repeat(at, end)
        {
            block.repeat(at, after.min(end), at - candidate);
            at = after;
        }
        at += 1;
    }
}

struct Search<'a, const SLOTS: usize, const BYTES: u32, const FAR: bool> {
    input: &'a [u8],
    table: Table<SLOTS>,
}

impl<const SLOTS: usize, const BYTES: u32, const FAR: bool> Search<'_, SLOTS, BYTES, FAR> {
    /// The first match from `at` on that begins at `last` or earlier, and the place that it repeats.
    #[inline(always)]
    fn probe(&mut self, mut at: usize, last: usize, patience: u32) -> Option<(usize, usize)> {
        let mut misses = 0;
        while at <= last {
            let bytes = eight(self.input, at);
            if let Some(candidate) = self.candidate(bytes, at) {
                return Some((at, candidate));
            }
            if let Some(candidate) = self.candidate(bytes >> 8, at + 1) {
                return Some((at + 1, candidate));
            }
            at += 2 + (misses >> patience);
            misses += 1;
        }
        None
    }

    /// A match at `at` itself: the place that it repeats, and where it ends. The end may lie behind `end`.
    #[inline(always)]
    fn repeat(&mut self, at: usize, end: usize) -> Option<(usize, usize)> {
        let bytes = eight(self.input, at);
        let candidate = self.seen(bytes, at);
        let differing = bytes ^ eight(self.input, candidate);
        if differing as u32 != 0 || (FAR && candidate == at) {
            return None;
        }
        if differing != 0 {
            return Some((candidate, at + equal(differing)));
        }
        Some((candidate, self.forward(at + 8, candidate + 8, end)))
    }

    /// Where the same four bytes were before.
    #[inline(always)]
    fn candidate(&mut self, bytes: u64, at: usize) -> Option<usize> {
        let candidate = self.seen(bytes, at);
        let same = four(self.input, candidate) == bytes as u32;
        (same && (!FAR || candidate != at)).then_some(candidate)
    }

    /// Where the same bytes may have been before.
    #[inline(always)]
    fn seen(&mut self, bytes: u64, at: usize) -> usize {
        let seen = self.table.put::<BYTES>(bytes, at);
        if FAR { at - usize::from((at as u16).wrapping_sub(seen)) } else { usize::from(seen) }
    }

    /// The end of a match that has reached `at` and `candidate`. It may lie up to seven bytes behind `end`.
    #[inline(always)]
    fn forward(&self, at: usize, candidate: usize, end: usize) -> usize {
        if at + 8 > self.input.len() {
            return self.forward_far(at, candidate, end);
        }
        let differing = eight(self.input, at) ^ eight(self.input, candidate);
        if differing != 0 {
            return at + equal(differing);
        }
        self.forward_far(at + 8, candidate + 8, end)
    }

    #[inline(always)]
    fn forward_far(&self, mut at: usize, mut candidate: usize, end: usize) -> usize {
        while at + 8 <= end {
            let differing = eight(self.input, at) ^ eight(self.input, candidate);
            if differing != 0 {
                return at + equal(differing);
            }
            (at, candidate) = (at + 8, candidate + 8);
        }
        while at < end && self.input.get(at) == self.input.get(candidate) {
            (at, candidate) = (at + 1, candidate + 1);
        }
        at
    }

    /// By how much a match begins earlier; never before `from`.
    #[inline(always)]
    fn backward(&self, at: usize, candidate: usize, from: usize) -> usize {
        let most = (at - from).min(candidate);
        let same = |back: usize| self.input.get(at - back) == self.input.get(candidate - back);
        let mut back = 0;
        while back < most && same(back + 1) {
            back += 1;
        }
        back
    }
}

/// Bytes that are the same, of eight.
#[inline(always)]
fn equal(differing: u64) -> usize {
    (differing.trailing_zeros() / 8) as usize
}

/// The eight bytes at a place; zeros if the input ends before.
#[inline(always)]
fn eight(input: &[u8], at: usize) -> u64 {
    let bytes = input.get(at..at.wrapping_add(8)).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline(always)]
fn four(input: &[u8], at: usize) -> u32 {
    let bytes = input.get(at..at.wrapping_add(4)).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
