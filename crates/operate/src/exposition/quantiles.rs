//! Several quantiles of a distribution in one pass: most of a scrape's time would else be spent on passes over empty buckets.

use halcyon_metrics::Distribution;

/// In the order of `at`, which rises: the largest value of the bucket with each quantile, as [`Distribution::quantile`] has it; 0 without
/// values.
pub(super) fn quantiles<const N: usize>(values: &dyn Distribution, at: [f64; N]) -> [u64; N] {
    // Most tables of many are idle.
    if values.count() == 0 {
        return [0; N];
    }
    let mut filled = Vec::new();
    values.buckets(&mut |bucket, weight| filled.push((bucket.largest(), weight)));
    let total: f64 = filled.iter().map(|(_, weight)| weight).sum();
    let last = filled.last().map_or(0, |(largest, _)| *largest);
    let mut left = filled.into_iter();
    let (mut below, mut reached) = (0.0, None);
    at.map(|quantile| {
        let rank = total * quantile;
        while reached.is_none() || below < rank {
            // Without values; or rounding has made the rank too high.
            let Some((largest, weight)) = left.next() else { return last };
            (below, reached) = (below + weight, Some(largest));
        }
        reached.unwrap_or(last)
    })
}

#[cfg(test)]
mod tests {
    use halcyon_metrics::{Reservoir, Seconds, Summary, buckets_below};

    use super::*;

    const BUCKETS: usize = buckets_below(4, 40);

    /// Proves that one pass finds what one pass for each quantile does, also where values are 0, few or none.
    #[test]
    fn one_pass_finds_the_same() {
        let at = [0.0, 0.5, 0.75, 0.95, 0.98, 0.99, 0.999, 1.0];
        for count in [0_u64, 1, 2, 3, 10, 1000, 5000] {
            let reservoir = Reservoir::<4, BUCKETS>::default();
            for value in 0..count {
                reservoir.record(value * value % 7919, Seconds(60 + value / 10));
            }
            let mut summary = Summary::nothing();
            summary.add(&reservoir, Seconds(600));
            let expected = at.map(|quantile| summary.quantile(quantile));
            assert_eq!(quantiles(&summary, at), expected, "{count} values");
        }
    }
}
