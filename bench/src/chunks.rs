//! What a row's chunk is at the device.
//!
//! ```text
//!   blocks      │       │       │       │       │
//!   chunks          ├────────────┼──────────┤          begin anywhere
//!   read        ╞═══════════════════════╡              the blocks that the row's chunk is in: on average its bytes and one block more
//! ```

/// Bytes of the blocks that have a row, on average: of its chunk as stored, and, of a row that is in two chunks, of both.
pub(crate) fn aligned(stored: f64, row: f64, chunk: u64, block: u64) -> f64 {
    stored * (1.0 + row / chunk as f64) + block as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_across_two_chunks_costs_both() {
        assert_eq!(aligned(2048.0, 1024.0, 4096, 512), 2048.0 * 1.25 + 512.0);
    }
}
