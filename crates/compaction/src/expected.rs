//! How many keys the outputs of a compaction will have: what their Bloom filters are made for.
//!
//! A compaction that splits its outputs would waste memory on filters for all of its keys: each of a hundred outputs would have a hundred
//! times the bits that it needs. Cassandra divides the keys of all inputs by the number of outputs that their bytes make
//! (`MaxSSTableSizeWriter`), or that the boundaries do (`ShardedCompactionWriter`). Here an input also counts by the part of its tokens
//! that the output can have, and fewer bytes are expected where keys are in several inputs.

use std::sync::Arc;

use halcyon_io::Disk;
use halcyon_model::Partitioner;
use halcyon_sstable::SSTable;
use halcyon_sstable::format::statistics::cardinality::Cardinality;
use halcyon_stream::Layout;

struct Input {
    keys: u64,
    /// First and last, if they are known.
    tokens: Option<(i64, i64)>,
}

pub(crate) struct ExpectedKeys {
    inputs: Vec<Input>,
    /// Distinct keys for each key of an input.
    distinct: f64,
    /// Keys of the inputs for each stored byte. All outputs together have the same part of the inputs' bytes as of their keys.
    by_byte: f64,
}

impl ExpectedKeys {
    /// What tokens the inputs have is looked at only if outputs end at boundaries.
    pub(crate) async fn of(
        disk: &Disk,
        inputs: &[Arc<SSTable>],
        layout: &Layout,
        boundaries: &[i64],
    ) -> ExpectedKeys {
        let looks = matches!(layout.partitioner, Partitioner::Murmur3) && !boundaries.is_empty();
        let mut counted = Vec::with_capacity(inputs.len());
        for sstable in inputs {
            // A summary that cannot be read costs memory, not the compaction.
            let ends = if looks { sstable.ends(disk).await.ok().flatten() } else { None };
            let tokens = ends.map(|(first, last)| (first.token, last.token));
            counted.push(Input { keys: sstable.estimated_keys(), tokens });
        }
        let keys: u64 = counted.iter().map(|input| input.keys).sum();
        let distinct = distinct_keys(inputs).map_or(1.0, |all| all as f64 / keys.max(1) as f64);
        let bytes: u64 = inputs.iter().map(|input| input.file_length()).sum();
        ExpectedKeys { inputs: counted, distinct, by_byte: keys as f64 / bytes.max(1) as f64 }
    }

    /// Of an output that begins at a token. It ends at the next boundary, `until`, and at `size` stored bytes; `before` are the keys of an
    /// average output that ended at that size.
    pub(crate) fn of_output(
        &self,
        first: i64,
        until: Option<i64>,
        size: Option<f64>,
        before: Option<u64>,
    ) -> u64 {
        let share = |input: &Input| input.keys as f64 * input.share(first, until);
        let left = self.inputs.iter().map(share).sum::<f64>() * self.distinct;
        let of_size = size
            .map_or(f64::INFINITY, |size| (size * self.by_byte).max(before.unwrap_or(0) as f64));
        left.min(of_size).ceil().max(1.0) as u64
    }
}

impl Input {
    /// The part of its keys that an output can have.
    fn share(&self, from: i64, until: Option<i64>) -> f64 {
        let Some((first, last)) = self.tokens else { return 1.0 };
        let width = |from: i64, last: i64| (i128::from(last) - i128::from(from) + 1).max(0) as f64;
        let end = until.map_or(last, |until| last.min(until.saturating_sub(1)));
        width(first.max(from), end) / width(first, last).max(1.0)
    }
}

/// From the union of the sketches, if all inputs have one.
fn distinct_keys(inputs: &[Arc<SSTable>]) -> Option<u64> {
    let mut union = Cardinality::default();
    for input in inputs {
        match input.statistics().compaction.as_ref().map(|c| c.cardinality()) {
            Some(Ok(sketch)) if sketch.estimate() > 0 => union.merge(&sketch),
            _ => return None,
        }
    }
    Some(union.estimate())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(inputs: &[(u64, Option<(i64, i64)>)], distinct: f64, bytes: u64) -> ExpectedKeys {
        let keys: u64 = inputs.iter().map(|(keys, _)| keys).sum();
        let inputs = inputs.iter().map(|(keys, tokens)| Input { keys: *keys, tokens: *tokens });
        let by_byte = keys as f64 / bytes.max(1) as f64;
        ExpectedKeys { inputs: inputs.collect(), distinct, by_byte }
    }

    /// Two inputs of a hundred thousand keys, 100 MiB together.
    fn two(distinct: f64) -> ExpectedKeys {
        expected(&[(100_000, Some((0, 999))), (100_000, Some((0, 999)))], distinct, 100 << 20)
    }

    #[test]
    fn a_single_output_has_all() {
        assert_eq!(two(1.0).of_output(0, None, None, None), 200_000);
        assert_eq!(two(0.5).of_output(0, None, None, None), 100_000);
        let unknown = expected(&[(1000, None), (10, Some((-5, 5)))], 1.0, 1);
        assert_eq!(unknown.of_output(-5, None, None, None), 1010);
        assert_eq!(expected(&[], 1.0, 0).of_output(0, None, None, None), 1);
    }

    /// Proves that an output of a certain size has as many keys as fit in, also where inputs have the same ones.
    #[test]
    fn by_size() {
        let tenth = Some((10 << 20) as f64);
        assert_eq!(two(1.0).of_output(0, None, tenth, None), 20_000);
        // Half the keys have half the bytes, so there are five outputs of a fifth.
        assert_eq!(two(0.5).of_output(0, None, tenth, None), 20_000);
        assert_eq!(two(1.0).of_output(0, None, tenth, Some(30_000)), 30_000);
        assert_eq!(two(1.0).of_output(950, None, tenth, Some(30_000)), 10_000, "no more are left");
        assert_eq!(two(1.0).of_output(0, None, Some(1e12), None), 200_000);
        assert_eq!(two(1.0).of_output(0, None, Some(0.0), None), 1);
    }

    #[test]
    fn by_boundaries() {
        assert_eq!(two(1.0).of_output(0, Some(500), None, None), 100_000);
        assert_eq!(two(1.0).of_output(500, Some(2000), None, None), 100_000);
        assert_eq!(two(1.0).of_output(-9, Some(10), None, None), 2_000);
        let apart = expected(&[(1000, Some((0, 9))), (50, Some((10, 19)))], 1.0, 1);
        assert_eq!(apart.of_output(0, Some(10), None, None), 1000);
        assert_eq!(apart.of_output(10, Some(20), None, None), 50);
        let whole = expected(&[(1000, Some((i64::MIN, i64::MAX)))], 1.0, 1);
        assert_eq!(whole.of_output(i64::MIN, Some(0), None, None), 500);
    }
}
