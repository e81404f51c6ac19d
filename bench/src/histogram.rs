//! Counts of latencies in powers of two, as `biolatency` and Halcyon's own tables have them.

use std::collections::BTreeMap;

use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};

use crate::connection::{Connection, bigint};

/// Histograms by what they are of: a purpose, a kind of request.
pub(super) type ByKind = BTreeMap<String, Histogram>;

const BUCKETS: usize = 64;

/// `counts[b]` lasted `[2^b, 2^(b+1))` nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Bucket>", into = "Vec<Bucket>")]
pub(super) struct Histogram {
    counts: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: [0; BUCKETS] }
    }
}

impl Histogram {
    pub(super) fn add(&mut self, nanos: u64, count: u64) {
        let bucket = nanos.max(1).ilog2() as usize;
        if let Some(counted) = self.counts.get_mut(bucket) {
            *counted += count;
        }
    }

    pub(super) fn add_all(&mut self, other: &Histogram) {
        for (bucket, count) in self.counts.iter_mut().zip(other.counts) {
            *bucket += count;
        }
    }

    pub(super) fn since(&self, before: Option<&Histogram>) -> Histogram {
        let earlier = |bucket: usize| before.map_or(0, |before| before.counts[bucket]);
        let counts =
            std::array::from_fn(|bucket| self.counts[bucket].saturating_sub(earlier(bucket)));
        Histogram { counts }
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share that lasted longer; inside a bucket, latencies are taken to be spread evenly.
    pub(super) fn share_over(&self, nanos: u64) -> f64 {
        let of_bucket = |(bucket, count): (usize, &u64)| {
            let (from, to) = (2f64.powi(bucket as i32), 2f64.powi(bucket as i32 + 1));
            *count as f64 * ((to - nanos as f64) / (to - from)).clamp(0.0, 1.0)
        };
        self.counts.iter().enumerate().map(of_bucket).sum::<f64>() / self.count().max(1) as f64
    }

    /// In nanoseconds: where in its bucket it would lie if latencies were spread evenly.
    pub(super) fn quantile(&self, at: f64) -> f64 {
        self.bucket(at).map_or(0.0, |(bucket, within)| 2f64.powi(bucket) * (1.0 + within))
    }

    /// In nanoseconds: what this share is surely below.
    pub(super) fn below(&self, share: f64) -> Option<f64> {
        self.bucket(share).map(|(bucket, _)| 2f64.powi(bucket + 1))
    }

    /// The bucket of a quantile, and the share of the bucket that lies before it.
    fn bucket(&self, at: f64) -> Option<(i32, f64)> {
        let mut below = 0.0;
        let wanted = at * self.count() as f64;
        for (bucket, count) in (0..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            if below + *count as f64 >= wanted {
                return Some((bucket, (wanted - below) / *count as f64));
            }
            below += *count as f64;
        }
        None
    }

    /// Of the buckets from `from` to `until` nanoseconds, the share of all; what lies outside goes into the outermost.
    pub(super) fn shares(&self, from: u64, until: u64) -> Vec<f64> {
        let (first, last) = (from.ilog2() as usize, until.ilog2() as usize);
        let mut shares = vec![0.0; last - first + 1];
        let all = self.count().max(1) as f64;
        for (bucket, count) in self.counts.iter().enumerate() {
            shares[bucket.clamp(first, last) - first] += *count as f64 / all;
        }
        shares
    }
}

/// What came after `before`, of each kind.
pub(super) fn since(now: &ByKind, before: &ByKind) -> ByKind {
    let after = now.iter().map(|(kind, all)| (kind.clone(), all.since(before.get(kind))));
    after.filter(|(_, counted)| counted.count() > 0).collect()
}

/// A table of Halcyon's own counts: a kind, the nanoseconds that a bucket ends below, its count.
pub(super) fn counted(port: u16, statement: &str) -> Result<ByKind> {
    let mut found = ByKind::new();
    for row in Connection::open(port)?.rows(statement)?.rows {
        let [Some(kind), below, count] = row.as_slice() else { continue };
        let (Some(below), Some(count)) = (bigint(below.as_ref()), bigint(count.as_ref())) else {
            continue;
        };
        let kind = String::from_utf8_lossy(kind).into_owned();
        found.entry(kind).or_default().add(below / 2, count);
    }
    Ok(found)
}

/// Only what is there: the nanoseconds that a bucket ends below, and its count.
#[derive(Serialize, Deserialize)]
struct Bucket {
    below_ns: f64,
    count: u64,
}

impl From<Histogram> for Vec<Bucket> {
    fn from(histogram: Histogram) -> Vec<Bucket> {
        let counted = histogram.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let bucket =
            |(b, count): (usize, &u64)| Bucket { below_ns: 2f64.powi(b as i32 + 1), count: *count };
        counted.map(bucket).collect()
    }
}

impl From<Vec<Bucket>> for Histogram {
    fn from(buckets: Vec<Bucket>) -> Histogram {
        let mut histogram = Histogram::default();
        for Bucket { below_ns, count } in buckets {
            histogram.add((below_ns / 2.0) as u64, count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_quantiles() {
        let mut histogram = Histogram::default();
        histogram.add(1 << 10, 90);
        histogram.add((1 << 20) + 5, 10);
        assert_eq!(histogram.count(), 100);
        assert_eq!(histogram.share_over(1 << 20), 0.1);
        assert_eq!(histogram.share_over(3 << 19), 0.05);
        assert_eq!(histogram.quantile(0.9), 2048.0);
        assert_eq!(
            (histogram.below(0.5), histogram.below(0.95)),
            (Some(2048.0), Some(2_097_152.0))
        );
        assert_eq!(Histogram::default().below(0.5), None);
        assert_eq!(histogram.quantile(0.95), 1.5 * 1_048_576.0);
        assert_eq!(histogram.shares(1 << 11, 1 << 13), [0.9, 0.0, 0.1]);
        let before = histogram.clone();
        histogram.add(7, 1);
        assert_eq!(histogram.since(Some(&before)).count(), 1);
    }
}
