//! The cartesian product of IN restrictions, bounded, because a short statement can make it very large.

use crate::plan::execution::Work;
use halcyon_syntax::{Error, Result};

/// Cassandra's guardrail `in_select_cartesian_product_fail_threshold` is off by default; memory is bounded here all the same.
const MAX_COMBINATIONS: usize = 1_000_000;
const MAX_BYTES: usize = 256 << 20;

/// What one costs to be made, put in order and looked up, in units of work.
const COMBINATION: u64 = 500;
/// Bytes of memory that one takes beside its values: lists, allocations, the key that is made of it.
const COMBINATION_MEMORY: usize = 256;

/// One value for each of some columns.
type Values = Vec<Vec<u8>>;

/// Each of `so_far` followed by each of `next`, in this order. `what` is the key that they are of.
pub(in crate::plan) fn product(
    so_far: &[Values],
    next: &[Values],
    what: &str,
    work: &Work<'_>,
) -> Result<Vec<Values>> {
    let combinations = so_far.len().saturating_mul(next.len());
    let bytes = |of: &[Values]| of.iter().flatten().map(Vec::len).fold(0, usize::saturating_add);
    let left = bytes(so_far).saturating_mul(next.len());
    let total = left.saturating_add(bytes(next).saturating_mul(so_far.len()));
    if combinations > MAX_COMBINATIONS {
        return Err(Error::InvalidRequest(format!(
            "Aborting query because the cartesian product of the IN restrictions on {what} produces {combinations} values, \
             this exceeds fail threshold of {MAX_COMBINATIONS}."
        )));
    }
    if total > MAX_BYTES {
        return Err(Error::InvalidRequest(format!(
            "Aborting query because the cartesian product of the IN restrictions on {what} produces {total} bytes, \
             this exceeds fail threshold of {MAX_BYTES}."
        )));
    }
    work.spend_on(combinations, COMBINATION)?;
    let memory = total.saturating_add(combinations.saturating_mul(COMBINATION_MEMORY));
    if memory as u64 > work.memory() {
        return Err(Error::InvalidRequest(format!(
            "Aborting query because the cartesian product of the IN restrictions on {what} takes {memory} bytes of memory, \
             this exceeds fail threshold of {}.",
            work.memory()
        )));
    }
    let join = |left: &Values, right: &Values| left.iter().chain(right).cloned().collect();
    Ok(so_far.iter().flat_map(|left| next.iter().map(move |right| join(left, right))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: u32) -> Vec<Values> {
        (0..count).map(|n| vec![n.to_be_bytes().to_vec()]).collect()
    }

    /// Proves that each value comes with each, the left ones slowest.
    #[test]
    fn combinations_are_in_order() {
        let found = product(&values(2), &values(2), "partition key", &Work::small()).expect("few");
        let numbers: Vec<Vec<u8>> =
            found.iter().map(|v| v.iter().map(|b| b[3]).collect()).collect();
        assert_eq!(numbers, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    }

    /// Proves that a product of lists that are harmless alone is refused before it is made.
    #[test]
    fn too_many_combinations_are_refused() {
        let list = values(2_000);
        let error = product(&list, &list, "clustering key", &Work::small())
            .expect_err("too many")
            .to_string();
        let expected = "Aborting query because the cartesian product of the IN restrictions on clustering key produces 4000000 values, \
                        this exceeds fail threshold of 1000000.";
        assert_eq!(error, expected);
        let long: Vec<Values> = (0..700u32).map(|_| vec![vec![0; 1000]]).collect();
        let error = product(&long, &long, "partition key", &Work::small())
            .expect_err("too long")
            .to_string();
        assert!(error.contains("produces 980000000 bytes"), "{error}");
        let time = || true;
        let work = Work::while_there_is_time(&time).with_memory(1 << 20);
        assert!(product(&values(50), &values(50), "partition key", &work).is_ok());
        let error = product(&values(100), &values(100), "partition key", &work)
            .expect_err("too much memory")
            .to_string();
        assert!(
            error.ends_with(
                "takes 2640000 bytes of memory, this exceeds fail threshold of 1048576."
            ),
            "{error}"
        );
    }
}
