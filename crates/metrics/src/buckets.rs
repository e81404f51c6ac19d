//! The buckets of all histograms, and where a quantile lies in them.
//!
//! ```text
//!   4 per octave:  0 1 2 3 │ 4 5 6 7 │ 8–9 10–11 12–13 14–15 │ 16–19 20–23 …
//!   1 per octave:  0 │ 1 │ 2–3 │ 4–7 │ 8–15 …
//! ```
//! A bucket of `PER_OCTAVE`, a power of two, is at most that part of its values wide. Small values have one each. The last bucket also
//! takes all values above it.

/// The values of a bucket: from the first to the one before `below`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub from: u64,
    pub below: u64,
}

/// How many buckets hold all values below 2^`power`.
pub const fn buckets_below(per_octave: usize, power: u32) -> usize {
    per_octave * (power as usize + 1 - per_octave.ilog2() as usize)
}

/// The bucket of a value, before the last one takes all above it.
#[inline]
pub(crate) const fn bucket_of<const PER_OCTAVE: usize>(value: u64) -> usize {
    const { assert!(PER_OCTAVE.is_power_of_two(), "buckets per octave must be a power of two") };
    if value < PER_OCTAVE as u64 {
        return value as usize;
    }
    let shift = (value.ilog2() - PER_OCTAVE.ilog2()) as usize;
    PER_OCTAVE * shift + (value >> shift) as usize
}

const fn start<const PER_OCTAVE: usize>(bucket: usize) -> u64 {
    if bucket < PER_OCTAVE {
        return bucket as u64;
    }
    ((PER_OCTAVE + bucket % PER_OCTAVE) as u64) << (bucket / PER_OCTAVE - 1)
}

impl Bucket {
    pub(crate) const fn at<const PER_OCTAVE: usize>(bucket: usize) -> Bucket {
        Bucket { from: start::<PER_OCTAVE>(bucket), below: start::<PER_OCTAVE>(bucket + 1) }
    }

    /// Its largest value.
    pub fn largest(self) -> u64 {
        self.below - 1
    }
}

/// Where a quantile lies: in a bucket, behind `share` of its values. Three readings of it serve three uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    pub bucket: Bucket,
    share: f64,
}

impl Quantile {
    /// The quantile is less.
    pub fn below(self) -> u64 {
        self.bucket.below
    }

    /// The quantile is this at most.
    pub fn largest(self) -> u64 {
        self.bucket.largest()
    }

    /// The quantile if the values of a bucket are spread evenly.
    pub fn spread(self) -> f64 {
        let Bucket { from, below } = self.bucket;
        from as f64 + (below - from) as f64 * self.share
    }
}

/// Where the value of a rank lies among buckets with weights; the last one where rounding has made the rank too high. `None` without
/// weights.
pub(crate) fn at_rank<const PER_OCTAVE: usize>(
    weights: impl Iterator<Item = (usize, f64)>,
    rank: f64,
) -> Option<Quantile> {
    let (mut before, mut last) = (0.0, None);
    for (at, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        let bucket = Bucket::at::<PER_OCTAVE>(at);
        if before + weight >= rank {
            return Some(Quantile { bucket, share: (rank - before) / weight });
        }
        before += weight;
        last = Some(Quantile { bucket, share: 1.0 });
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow_each_other<const PER_OCTAVE: usize>(power: u32) {
        let count = buckets_below(PER_OCTAVE, power);
        for at in 0..count {
            let Bucket { from, below } = Bucket::at::<PER_OCTAVE>(at);
            let of = bucket_of::<PER_OCTAVE>;
            assert_eq!((of(from), of(below - 1), of(below)), (at, at, at + 1));
            assert!(below - from <= (from / PER_OCTAVE as u64).max(1), "{from} {below}");
        }
        assert_eq!(Bucket::at::<PER_OCTAVE>(count - 1).below, 1 << power);
    }

    /// Proves that buckets follow each other without a gap, are as wide as their resolution says, and end where they should.
    #[test]
    fn buckets_have_no_gaps() {
        follow_each_other::<1>(48);
        follow_each_other::<4>(40);
        follow_each_other::<8>(46);
        assert_eq!(bucket_of::<1>(u64::MAX), 64);
    }

    /// Proves the bounds that tables and records show: powers of two, quarters and eighths of octaves.
    #[test]
    fn bounds_are_those_that_users_know() {
        let bounds = |value: u64| {
            let bucket = |Bucket { from, below }| (from, below);
            (
                bucket(Bucket::at::<1>(bucket_of::<1>(value))),
                bucket(Bucket::at::<4>(bucket_of::<4>(value))),
                bucket(Bucket::at::<8>(bucket_of::<8>(value))),
            )
        };
        assert_eq!(bounds(1), ((1, 2), (1, 2), (1, 2)));
        assert_eq!(bounds(13), ((8, 16), (12, 14), (13, 14)));
        assert_eq!(
            bounds(1_000_000),
            ((524_288, 1_048_576), (917_504, 1_048_576), (983_040, 1_048_576))
        );
    }

    /// Proves that a rank beyond all weights, which rounding can make, is in the last bucket, and that empty buckets have no rank.
    #[test]
    fn ranks_find_buckets_with_weights() {
        let at = |rank| at_rank::<1>([0.0, 2.0, 0.0, 1.0].into_iter().enumerate(), rank);
        assert_eq!(at(0.0).map(Quantile::largest), Some(1));
        assert_eq!(at(2.0).map(Quantile::below), Some(2));
        assert_eq!(at(2.5).map(Quantile::spread), Some(6.0));
        assert_eq!(at(3.1).map(Quantile::largest), Some(7));
        assert_eq!(at_rank::<1>([0.0].into_iter().enumerate(), 0.0), None);
    }
}
