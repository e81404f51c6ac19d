//! Buckets of SSTables of similar size.

use super::candidates::{Candidate, total};
use halcyon_model::options::compaction::{Thresholds, Tiers};

/// Groups tables by size: a table joins a bucket if its size is near the bucket's average, or if both are small. If several buckets
/// fit, it joins the one with the largest SSTables.
pub(super) fn buckets<'a>(tables: &[&'a Candidate], tiers: &Tiers) -> Vec<Vec<&'a Candidate>> {
    let mut sorted = tables.to_vec();
    sorted.sort_by_key(|table| (table.size, table.id));
    let mut buckets: Vec<(u64, Vec<&Candidate>)> = Vec::new();
    for table in sorted {
        let size = table.size as f64;
        let similar = |average: u64| {
            let near = size > average as f64 * tiers.bucket_low
                && size < average as f64 * tiers.bucket_high;
            near || (table.size < tiers.min_sstable_size && average < tiers.min_sstable_size)
        };
        match buckets.iter_mut().rev().find(|(average, _)| similar(*average)) {
            None => buckets.push((table.size, vec![table])),
            Some((average, bucket)) => {
                let count = bucket.len() as u128;
                let sum = u128::from(*average) * count + u128::from(table.size);
                *average = (sum / (count + 1)) as u64;
                bucket.push(table);
            }
        }
    }
    buckets.into_iter().map(|(_, bucket)| bucket).collect()
}

/// The hottest bucket, among equals the one with the smallest SSTables; only its hottest SSTables if it is too large.
pub(super) fn most_interesting(
    buckets: Vec<Vec<&Candidate>>,
    thresholds: Thresholds,
) -> Vec<&Candidate> {
    let trimmed = buckets.into_iter().filter(|bucket| bucket.len() >= thresholds.min);
    let trimmed = trimmed.map(|mut bucket| {
        bucket.sort_by(|a, b| b.hotness.total_cmp(&a.hotness));
        bucket.truncate(thresholds.max);
        bucket
    });
    let heat = |bucket: &[&Candidate]| bucket.iter().map(|table| table.hotness).sum::<f64>();
    let average = |bucket: &[&Candidate]| total(bucket) / bucket.len().max(1) as u64;
    trimmed
        .max_by(|a, b| heat(a).total_cmp(&heat(b)).then_with(|| average(b).cmp(&average(a))))
        .unwrap_or_default()
}

pub(super) fn estimated_tasks(buckets: &[Vec<&Candidate>], thresholds: Thresholds) -> usize {
    let full = buckets.iter().filter(|bucket| bucket.len() >= thresholds.min);
    full.map(|bucket| bucket.len().div_ceil(thresholds.max)).sum()
}
