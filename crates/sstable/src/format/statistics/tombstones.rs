//! When tombstones and expiring data may be dropped: a histogram of at most 100 points, built as it streams by.
//!
//! ```text
//! file   i32 bins, i32 bins, bins × (i64 seconds, i32 count)      ≥ oa
//!        i32 bins, i32 bins, bins × (f64 seconds, i64 count)      before
//! ```
//!
//! 1. A deletion time is rounded up to whole minutes.
//! 2. It is counted in the *spool*, a hash table of 2¹⁷ expected points that probes linearly.
//! 3. When the spool is full, or a point finds no cell among 100, and at the end, the spool is drained in the order of
//!    its cells into the *bins*; whenever there are 101 bins, the first nearest two become their weighted mean,
//!    again rounded up.
//!
//! The result depends on the draining order, so the spool's hash, cells and limits are Cassandra's
//! (`StreamingTombstoneHistogramBuilder`); only its memory differs: cells come in pages that exist once used.

use halcyon_model::bytes::Put;
use halcyon_model::time::MAX_DELETION_TIME;
use halcyon_model::{Cursor, DecodeResult};

use crate::format::version::Version;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TombstoneBin {
    /// Local deletion time in seconds.
    pub point: u32,
    pub count: u32,
}

/// In ascending order of points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TombstoneHistogram {
    pub bins: Vec<TombstoneBin>,
}

const MAX_COUNT: u32 = i32::MAX as u32;

impl TombstoneHistogram {
    /// Estimated number of deletion times up to `until` (`TombstoneHistogram.sum`): a bin is spread
    /// evenly towards its neighbours.
    pub fn sum(&self, until: u32) -> f64 {
        let mut sum = 0.0;
        let mut last: Option<TombstoneBin> = None;
        for bin in &self.bins {
            if bin.point > until {
                let Some(last) = last else { return 0.0 };
                let width = f64::from(bin.point - last.point);
                let weight = f64::from(until - last.point) / width;
                let before = f64::from(last.count);
                let at = before + (f64::from(bin.count) - before) * weight;
                return sum - before + (before + at) * weight / 2.0 + before / 2.0;
            }
            sum += f64::from(bin.count);
            last = Some(*bin);
        }
        sum
    }

    pub fn decode(cursor: &mut Cursor<'_>, version: Version) -> DecodeResult<TombstoneHistogram> {
        let max_bins = cursor.i32()?;
        let n = cursor.i32()?;
        let bin_length = if version.has_uint_deletion_time() { 12 } else { 16 };
        let sound = usize::try_from(n).ok().filter(|n| *n <= cursor.remaining() / bin_length);
        let n = sound.ok_or_else(|| cursor.error(format!("tombstone histogram of {n} bins")))?;
        cursor.note(|| format!("tombstone drop times: at most {max_bins}, {n} bins"));
        let mut bins: Vec<TombstoneBin> = Vec::with_capacity(n);
        for _ in 0..n {
            // Older files may hold times and counts that overflowed; they are clamped as Cassandra clamps them.
            let (point, count) = if version.has_uint_deletion_time() {
                (cursor.i64()?, i64::from(cursor.i32()?))
            } else {
                (cursor.f64()? as i64, cursor.i64()?)
            };
            let point = u32::try_from(point).unwrap_or(MAX_DELETION_TIME).min(MAX_DELETION_TIME);
            let count = count.clamp(0, i64::from(MAX_COUNT)) as u32;
            if bins.last().is_some_and(|last| last.point > point) {
                cursor.remark(format!("tombstone drop time {point} is out of order"));
            }
            cursor.note(|| format!("{count} droppable from {point}"));
            insert_bin(&mut bins, TombstoneBin { point, count });
        }
        Ok(TombstoneHistogram { bins })
    }

    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let n = self.bins.len() as i32;
        out.put_i32(n);
        out.put_i32(n);
        for bin in &self.bins {
            if version.has_uint_deletion_time() {
                out.put_i64(i64::from(bin.point));
                out.put_u32(bin.count);
            } else {
                out.put_f64(f64::from(bin.point));
                out.put_i64(i64::from(bin.count));
            }
        }
    }
}

const MAX_BINS: usize = 100;
const ROUND_SECONDS: u32 = 60;
/// Power of two from 100,000 up.
const SPOOL_CAPACITY: usize = 1 << 17;
const PROBES: usize = 100;
const PAGE: usize = 64;
const PAGES: usize = 2 * SPOOL_CAPACITY / PAGE;

/// No deletion time has this value.
const FREE: u32 = u32::MAX;

/// Into bins in ascending order; those of one point are one.
fn insert_bin(bins: &mut Vec<TombstoneBin>, bin: TombstoneBin) {
    let at = bins.partition_point(|other| other.point < bin.point);
    match bins.get_mut(at).filter(|other| other.point == bin.point) {
        Some(same) => same.count = same.count.saturating_add(bin.count).min(MAX_COUNT),
        None => bins.insert(at, bin),
    }
}

type Page = [TombstoneBin; PAGE];

#[derive(Debug, Default)]
pub struct TombstoneHistogramBuilder {
    /// Empty, or `PAGES` long.
    pages: Vec<Option<Box<Page>>>,
    spooled: usize,
    bins: Vec<TombstoneBin>,
    /// The last point and how often it came since it was last spooled: neighbours tend to expire together.
    repeated: Option<TombstoneBin>,
}

#[inline]
fn round_up(point: u64) -> u32 {
    let rounded = point.div_ceil(u64::from(ROUND_SECONDS)) * u64::from(ROUND_SECONDS);
    rounded.min(u64::from(MAX_DELETION_TIME)) as u32
}

impl TombstoneHistogramBuilder {
    /// Counts one deletion time, which is not "none".
    #[inline]
    pub fn add(&mut self, local_deletion_time: u32) {
        let point = round_up(u64::from(local_deletion_time));
        match &mut self.repeated {
            Some(repeated) if repeated.point == point && repeated.count < MAX_COUNT => {
                repeated.count += 1;
            }
            _ => self.add_other(point),
        }
    }

    fn add_other(&mut self, point: u32) {
        self.settle();
        if !self.spool(point, 1) {
            self.drain();
            self.spool(point, 1);
        }
        // A spool that is over its limit drains even for a point that it holds.
        if self.spooled <= SPOOL_CAPACITY {
            self.repeated = Some(TombstoneBin { point, count: 0 });
        }
    }

    /// Spools the repetitions of the last point, which has its cell.
    fn settle(&mut self) {
        if let Some(repeated) = self.repeated.take().filter(|repeated| repeated.count > 0) {
            self.spool(repeated.point, repeated.count);
        }
    }

    fn spool(&mut self, point: u32, count: u32) -> bool {
        if self.spooled > SPOOL_CAPACITY {
            return false;
        }
        if self.pages.is_empty() {
            self.pages.resize(PAGES, None);
        }
        let hash = u64::from(point).wrapping_mul(948_701_839) as usize & (SPOOL_CAPACITY - 1);
        for cell in hash..hash + PROBES {
            let Some(page) = self.pages.get_mut(cell / PAGE) else { return false };
            let page = page
                .get_or_insert_with(|| Box::new([TombstoneBin { point: FREE, count: 0 }; PAGE]));
            let Some(bin) = page.get_mut(cell % PAGE) else { return false };
            if bin.point == FREE {
                *bin = TombstoneBin { point, count };
                self.spooled += 1;
                return true;
            }
            if bin.point == point {
                bin.count = bin.count.saturating_add(count).min(MAX_COUNT);
                return true;
            }
        }
        false
    }

    fn drain(&mut self) {
        self.spooled = 0;
        for page in std::mem::take(&mut self.pages).into_iter().flatten() {
            for bin in page.iter().filter(|bin| bin.point != FREE) {
                self.add_bin(*bin);
            }
        }
    }

    fn add_bin(&mut self, bin: TombstoneBin) {
        insert_bin(&mut self.bins, bin);
        if self.bins.len() > MAX_BINS {
            self.merge_nearest();
        }
    }

    fn merge_nearest(&mut self) {
        let distance = |pair: &[TombstoneBin]| match pair {
            [left, right] => right.point - left.point,
            _ => u32::MAX,
        };
        let nearest = (0..).zip(self.bins.windows(2)).min_by_key(|(_, pair)| distance(pair));
        let Some((at, &[left, right])) = nearest else { return };
        let weight = u64::from(left.count) + u64::from(right.count);
        let shift = u64::from(right.count) * u64::from(right.point - left.point) / weight.max(1);
        let merged = TombstoneBin {
            point: round_up(u64::from(left.point) + shift),
            count: weight.min(u64::from(MAX_COUNT)) as u32,
        };
        self.bins.remove(at + 1);
        if let Some(bin) = self.bins.get_mut(at) {
            *bin = merged;
        }
    }

    pub fn build(mut self) -> TombstoneHistogram {
        self.settle();
        self.drain();
        TombstoneHistogram { bins: self.bins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::check_bytes;

    fn bins(times: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut builder = TombstoneHistogramBuilder::default();
        times.into_iter().for_each(|time| builder.add(time));
        builder.build().bins.iter().map(|bin| (bin.point, bin.count)).collect()
    }

    #[test]
    fn rounded_up_to_minutes() {
        assert_eq!(bins([]), []);
        assert_eq!(bins([0, 1, 59, 60, 61, 120, 1]), [(0, 1), (60, 4), (120, 2)]);
        assert_eq!(bins([u32::MAX - 1, MAX_DELETION_TIME]), [(MAX_DELETION_TIME, 2)]);
    }

    /// 101 points: the first pair at the smallest distance merges into its weighted mean.
    #[test]
    fn nearest_points_merge() {
        let spread = (0..99).map(|i| 600 * i);
        let merged = bins(spread.clone().chain([100_000, 100_060, 100_060, 100_060]));
        assert_eq!(merged.len(), 100);
        assert_eq!(merged.last(), Some(&(100_080, 4)), "100065 rounded up");
        let merged = bins(spread.chain([100_000, 100_360]));
        assert_eq!(merged.last(), Some(&(100_200, 2)), "between 100020 and 100380");
        let total: u32 = bins((0..5_000).map(|i| i * 7919 % 600_000)).iter().map(|b| b.1).sum();
        assert_eq!(total, 5_000);
    }

    /// The same, done plainly: one array of cells, every point looked up, bins sorted each time.
    fn plain(times: &[u32]) -> Vec<(u32, u32)> {
        let mut cells: Vec<Option<(u32, u32)>> = vec![None; 2 * SPOOL_CAPACITY];
        let (mut spooled, mut bins) = (0, Vec::new());
        for time in times {
            let point = round_up(u64::from(*time));
            let home = (u64::from(point) * 948_701_839) as usize % SPOOL_CAPACITY;
            let find = |cells: &[Option<(u32, u32)>], spooled: usize| {
                let mut probes = home..home + PROBES;
                let fits = |cell: &usize| cells[*cell].is_none_or(|(p, _)| p == point);
                if spooled > SPOOL_CAPACITY { None } else { probes.find(fits) }
            };
            let cell = find(&cells, spooled).unwrap_or_else(|| {
                cells.iter_mut().filter_map(Option::take).for_each(|b| plain_bin(&mut bins, b));
                spooled = 0;
                home
            });
            spooled += usize::from(cells[cell].is_none());
            cells[cell] = Some((point, cells[cell].map_or(0, |(_, count)| count) + 1));
        }
        cells.into_iter().flatten().for_each(|bin| plain_bin(&mut bins, bin));
        bins
    }

    fn plain_bin(bins: &mut Vec<(u32, u32)>, (point, count): (u32, u32)) {
        match bins.iter_mut().find(|bin| bin.0 == point) {
            Some(bin) => bin.1 += count,
            None => bins.push((point, count)),
        }
        bins.sort_unstable();
        if bins.len() > MAX_BINS {
            let gap = |i: &usize| bins[i + 1].0 - bins[*i].0;
            let i = (0..MAX_BINS).min_by_key(gap).expect("bins");
            let (right, left) = (bins.remove(i + 1), bins[i]);
            let sum = left.1 + right.1;
            let shift = u64::from(right.1) * u64::from(right.0 - left.0) / u64::from(sum);
            bins[i] = (round_up(u64::from(left.0) + shift), sum);
        }
    }

    /// Clustered, scattered, repeated; more points than the spool takes; points that crowd the same cells.
    #[test]
    fn as_done_plainly() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below) as u32
        };
        let near: Vec<u32> = (0..3000).map(|_| 1_700_000_000 + random(40_000)).collect();
        let far: Vec<u32> = (0..3000).map(|_| random(u64::from(u32::MAX))).collect();
        let runs: Vec<u32> = far.iter().flat_map(|time| [*time; 5]).collect();
        let many: Vec<u32> = (0..140_000).map(|i| i * 60).chain([0, 0, 60]).collect();
        // The hash keeps the low 17 bits: points that differ above them share a cell.
        let crowd: Vec<u32> = (0..150u32).map(|i| (i * 60) << 17).collect();
        for times in [near, far, runs, many, crowd] {
            assert!(bins(times.iter().copied()) == plain(&times), "{:?}", &times[..9]);
        }
    }

    /// Files that overflowed (CASSANDRA-14092) have their bins in the order of the times before the overflow.
    #[test]
    fn bins_out_of_order_are_sorted() {
        let bins = |points: [u32; 4]| TombstoneHistogram {
            bins: points.map(|point| TombstoneBin { point, count: 1 }).to_vec(),
        };
        for version in [Version::MC, Version::NB, Version::OA] {
            let mut bytes = Vec::new();
            bins([600, 60, 6000, 60]).encode(version, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            let read = TombstoneHistogram::decode(&mut cursor, version).expect("readable");
            let counts: Vec<_> = read.bins.iter().map(|bin| (bin.point, bin.count)).collect();
            assert_eq!(counts, [(60, 2), (600, 1), (6000, 1)]);
            assert_eq!(cursor.remarks().len(), 2, "{:?}", cursor.remarks());
        }
    }

    #[test]
    fn bytes_and_sum() {
        let mut builder = TombstoneHistogramBuilder::default();
        [60, 60, 600, 6000].into_iter().for_each(|time| builder.add(time));
        let histogram = builder.build();
        for version in [Version::NB, Version::OA, Version::EA] {
            let mut bytes = Vec::new();
            histogram.encode(version, &mut bytes);
            assert_eq!(check_bytes(&bytes, |c| TombstoneHistogram::decode(c, version)), histogram);
        }
        assert_eq!((histogram.sum(0), histogram.sum(60), histogram.sum(6000)), (0.0, 1.0, 4.0));
    }
}
