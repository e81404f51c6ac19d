//! LZ4 blocks, without a length in front. Blocks are written by an encoder of our own, made for 4 to 64 KiB, and read by `lz4_flex`.
//!
//! ```text
//! block      sequence … sequence, last literals
//! sequence   token (literals 0–15 : match - 4, 0–15), more of the first length, literals, offset (2), more of the second length
//! ```
//! 1. `search.rs` finds matches; `table.rs` remembers where five (or six) bytes were last; `sequences.rs` writes the block.
//! 2. Two positions are probed for each load of eight bytes. A miss moves on by two, and by one more after each 8 or 16 misses in a row,
//!    so bytes that nothing compresses cost little.
//! 3. Two matches of three begin where the last one ended: that place is tried first, on a path without literals.
//!
//! Measured: the table is cleared for each block. Positions that carry a generation, to spare that, cost a fifth: the check is one more
//! branch that cannot be predicted, at each position (see docs/internals/compaction.md).
//!
//! Invariants:
//! - What the format demands of a block's end: the last five bytes are literals, the last match begins twelve bytes before the end or
//!   earlier, no offset is above 65,535. `tests.rs` parses blocks to check it.
//! - A block depends on its input and its effort alone.

mod search;
mod sequences;
mod table;

use lz4_flex::block;

use self::sequences::Sequences;
use crate::{Algorithm, Effort, Error, Result};

/// Up to this length a small table is enough, and is cleared sooner.
const SHORT: usize = 1 << 10;
/// Up to this length more misses are needed before positions are skipped: what is missed cannot be found later.
const SMALL: usize = 8 << 10;
/// Up to this length two bytes are enough for each position.
const NEAR: usize = 1 << 16;

pub(crate) fn compress(effort: Effort, input: &[u8], output: &mut [u8]) -> Result<usize> {
    let mut block = Sequences::new(input, output);
    let is_small = input.len() <= SMALL;
    match effort {
        Effort::Literals => {}
        Effort::Fast => search_by::<6>(&mut block, if is_small { 2 } else { 1 }),
        Effort::Default => search_by::<5>(&mut block, if is_small { 4 } else { 3 }),
    }
    block.finish().ok_or_else(|| Error::refused(Algorithm::Lz4, "output too small"))
}

/// By a hash of `BYTES` bytes, with a table that fits the length.
fn search_by<const BYTES: u32>(block: &mut Sequences, patience: u32) {
    let len = block.input.len();
    if len <= SHORT {
        search::matches::<{ 1 << 10 }, BYTES, false>(block, patience);
    } else if len <= NEAR {
        search::matches::<{ 1 << 13 }, BYTES, false>(block, patience);
    } else {
        search::matches::<{ 1 << 13 }, BYTES, true>(block, patience);
    }
}

/// Most bytes of a block: each 255 literals take one more, and the token has its place.
pub(crate) fn bound(len: usize) -> usize {
    len.saturating_add(len / 255).saturating_add(16)
}

pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    block::decompress_into(input, output).map_err(|e| Error::refused(Algorithm::Lz4, e))
}

#[cfg(test)]
mod tests;
