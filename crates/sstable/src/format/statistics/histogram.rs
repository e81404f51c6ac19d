//! Estimated histograms: counts in buckets whose bounds grow by a fifth.
//!
//! ```text
//! bounds   1  2  3  4  5  6  7  8  10  12  14  17  20 …           o₀ = 1, oᵢ₊₁ = round(1.2·oᵢ), at least one more
//! file     i32 n, n × (i64 bound, i64 count)                       n = bounds + 1, the last counts larger values
//!          (o₀, c₀) (o₀, c₁) (o₁, c₂) … (oₙ₋₂, cₙ₋₁)               the first bound is written twice
//! ```
//!
//! Bucket `i` counts values in `(oᵢ₋₁, oᵢ]`.

use halcyon_model::bytes::Put;
use halcyon_model::{Cursor, DecodeResult};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EstimatedHistogram {
    /// Strictly ascending, unless a file has others.
    bounds: Vec<i64>,
    /// One per bound, and one for values beyond the last.
    counts: Vec<i64>,
}

/// Bounds for partition sizes, up to 1.7 PB, and for cells per partition, up to 2.4 billion.
const PARTITION_SIZE_BOUNDS: usize = 155;
const CELL_COUNT_BOUNDS: usize = 118;

impl EstimatedHistogram {
    pub fn of_partition_sizes() -> EstimatedHistogram {
        EstimatedHistogram::with_bounds(PARTITION_SIZE_BOUNDS)
    }

    pub fn of_cell_counts() -> EstimatedHistogram {
        EstimatedHistogram::with_bounds(CELL_COUNT_BOUNDS)
    }

    fn with_bounds(n: usize) -> EstimatedHistogram {
        let mut bounds = Vec::with_capacity(n);
        let mut bound = 1i64;
        for _ in 0..n {
            bounds.push(bound);
            let grown = (bound as f64 * 1.2).round() as i64;
            bound = grown.max(bound + 1);
        }
        EstimatedHistogram { bounds, counts: vec![0; n + 1] }
    }

    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
    }

    /// Bounds with their counts; the values beyond the last bound have none.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<i64>, i64)> + '_ {
        self.counts.iter().enumerate().map(|(i, count)| (self.bounds.get(i).copied(), *count))
    }

    pub fn count(&self) -> i64 {
        self.counts.iter().fold(0i64, |sum, count| sum.saturating_add(*count))
    }

    /// Every value counts as its bucket's bound; values beyond the last bound are excluded.
    pub fn mean(&self) -> f64 {
        let inside = || self.bounds.iter().zip(&self.counts);
        let values: f64 = inside().map(|(_, count)| *count as f64).sum();
        let sum: f64 = inside().map(|(bound, count)| *bound as f64 * *count as f64).sum();
        if values > 0.0 { sum / values } else { 0.0 }
    }

    /// The bound of the bucket in which the fraction `p` of all values is reached; 0 without values.
    pub fn percentile(&self, p: f64) -> i64 {
        let wanted = (self.count() as f64 * p).ceil() as i64;
        if wanted <= 0 {
            return 0;
        }
        let mut seen = 0i64;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            seen = seen.saturating_add(*count);
            if seen >= wanted {
                return *bound;
            }
        }
        self.bounds.last().copied().unwrap_or(0)
    }

    /// Bounds of the smallest and of the largest value (`min` and `max` of Cassandra's histogram).
    pub fn extremes(&self) -> Option<(i64, i64)> {
        let lowest = self.counts.iter().position(|count| *count > 0)?;
        let highest = self.counts.iter().rposition(|count| *count > 0)?;
        let below = lowest.checked_sub(1).and_then(|i| self.bounds.get(i));
        let above = self.bounds.get(highest).copied();
        Some((below.map_or(0, |bound| bound.saturating_add(1)), above.unwrap_or(i64::MAX)))
    }

    pub fn decode(cursor: &mut Cursor<'_>, what: &str) -> DecodeResult<EstimatedHistogram> {
        let n = cursor.i32()?;
        let sound = usize::try_from(n).ok().filter(|n| *n >= 2 && *n <= cursor.remaining() / 16);
        let n = sound.ok_or_else(|| cursor.error(format!("{what}: histogram of {n} buckets")))?;
        cursor.note(|| format!("{what}: {n} buckets"));
        let mut bounds = Vec::with_capacity(n - 1);
        let mut counts = Vec::with_capacity(n);
        for i in 0..n {
            let bound = cursor.i64()?;
            let count = cursor.i64()?;
            if i > 0 {
                if bounds.last().is_some_and(|last| *last >= bound) {
                    cursor.remark(format!("{what}: bound {bound} does not ascend"));
                }
                bounds.push(bound);
            }
            if count < 0 {
                cursor.remark(format!("{what}: negative count {count}"));
            }
            counts.push(count.max(0));
            cursor.note(|| match i {
                0 => format!("{what}: {count} up to {bound}"),
                _ => format!("{what}: {count} above {bound}"),
            });
        }
        Ok(EstimatedHistogram { bounds, counts })
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(self.counts.len() as i32);
        let bounds = self.bounds.first().into_iter().chain(&self.bounds);
        for (bound, count) in bounds.zip(&self.counts) {
            out.put_i64(*bound);
            out.put_i64(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::check_bytes;

    #[test]
    fn buckets_and_bytes() {
        let mut sizes = EstimatedHistogram::of_partition_sizes();
        assert_eq!(sizes.bounds.get(..13), Some(&[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20][..]));
        assert_eq!(EstimatedHistogram::of_cell_counts().counts.len(), 119);
        assert_eq!((sizes.percentile(0.5), sizes.extremes()), (0, None));
        for value in [0, 1, 2, 9, 10, 11, u64::MAX] {
            sizes.add(value);
        }
        let filled: Vec<_> = sizes.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(Some(1), 2), (Some(2), 1), (Some(10), 2), (Some(12), 1), (None, 1)]);
        assert_eq!((sizes.count(), sizes.percentile(0.5)), (7, 10));
        assert_eq!(sizes.buckets().last(), Some((None, 1)));
        assert_eq!(sizes.extremes(), Some((0, i64::MAX)));
        let mut bytes = Vec::new();
        sizes.encode(&mut bytes);
        assert_eq!(bytes.len(), 4 + 156 * 16);
        assert_eq!(check_bytes(&bytes, |c| EstimatedHistogram::decode(c, "size")), sizes);
    }

    /// Nothing that is read of the data depends on it.
    #[test]
    fn a_wrong_histogram_is_read() {
        let mut bytes = Vec::new();
        bytes.put_i32(3);
        [7, -1, 7, 2, 3, 5].into_iter().for_each(|number| bytes.put_i64(number));
        let mut cursor = Cursor::new(&bytes);
        let read = EstimatedHistogram::decode(&mut cursor, "size").expect("readable");
        assert_eq!((read.bounds.as_slice(), read.counts.as_slice()), (&[7, 3][..], &[0, 2, 5][..]));
        assert_eq!(
            (read.count(), read.percentile(0.5), read.extremes()),
            (7, 3, Some((8, i64::MAX)))
        );
        assert_eq!(cursor.remarks().len(), 2, "{:?}", cursor.remarks());
    }
}
