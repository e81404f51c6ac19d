//! Counts of latencies in powers of two, as `biolatency` and Halcyon's own tables have them.

use std::collections::BTreeMap;

use halcyon_metrics::{Counts, Quantile, buckets_below};
use halcyon_oracle::Result;
use serde::{Deserialize, Serialize};

use crate::connection::{self, bigint};

/// Histograms by what they are of: a purpose, a kind of request.
pub(super) type ByKind = BTreeMap<String, Histogram>;

const BUCKETS: usize = buckets_below(1, 63);

/// Nanoseconds, at least one.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Bucket>", into = "Vec<Bucket>")]
pub(super) struct Histogram(Counts<1, BUCKETS>);

impl Histogram {
    pub(super) fn add(&mut self, nanos: u64, count: u64) {
        self.0.record_many(nanos.max(1), count);
    }

    pub(super) fn since(&self, before: Option<&Histogram>) -> Histogram {
        before.map_or_else(|| self.clone(), |before| Histogram(self.0.since(&before.0)))
    }

    pub(super) fn count(&self) -> u64 {
        self.0.total()
    }

    /// The share that lasted longer; inside a bucket, latencies are taken to be spread evenly.
    pub(super) fn share_over(&self, nanos: u64) -> f64 {
        self.0.larger_than(nanos) / self.count().max(1) as f64
    }

    /// In nanoseconds: where in its bucket it would lie if latencies were spread evenly.
    pub(super) fn quantile(&self, at: f64) -> f64 {
        self.0.at_rank(at * self.count() as f64).map_or(0.0, Quantile::spread)
    }

    /// Of the buckets from `from` to `until` nanoseconds, the share of all; what lies outside goes into the outermost.
    pub(super) fn shares(&self, from: u64, until: u64) -> Vec<f64> {
        let (first, last) = (from.ilog2() as usize, until.ilog2() as usize);
        let mut shares = vec![0.0; last - first + 1];
        let all = self.count().max(1) as f64;
        for (bucket, count) in self.0.filled() {
            let power = bucket.from.ilog2() as usize;
            shares[power.clamp(first, last) - first] += count as f64 / all;
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
    for row in connection::open(port)?.page(statement)?.rows {
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
        let bucket = |(bucket, count): (halcyon_metrics::Bucket, u64)| Bucket {
            below_ns: bucket.below as f64,
            count,
        };
        histogram.0.filled().map(bucket).collect()
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
        assert_eq!(Histogram::default().quantile(0.5), 0.0);
        assert_eq!(histogram.quantile(0.95), 1.5 * 1_048_576.0);
        assert_eq!(histogram.shares(1 << 11, 1 << 13), [0.9, 0.0, 0.1]);
        let before = histogram.clone();
        histogram.add(7, 1);
        assert_eq!(histogram.since(Some(&before)).count(), 1);
    }
}
