//! Compares Statistics.db with statistics collected again from the data.
//!
//! Cassandra skips SSTables by bounds (of keys, clusterings, timestamps, deletion times) and by the marker of partition
//! deletions: data outside of them is an error.  All else is estimates and totals, which may only be called wrong.

use halcyon_model::time::{INVALID_DELETION_TIME, NO_DELETION_TIME};
use halcyon_model::{Clusterings, Cursor};

use super::content::Content;
use super::report::VerifyReport;
use crate::format::statistics::Statistics;
use crate::format::statistics::collector::Provenance;
use crate::format::statistics::covered::CoveredClustering;
use crate::format::statistics::stats::{Stats, legacy_time};
use crate::{Component, Version};

/// A sketch of 2^13 registers errs by 1.1 % (one standard deviation).
const MAX_SKETCH_ERROR: f64 = 0.06;

struct Comparison<'a> {
    report: &'a mut VerifyReport,
    version: Version,
    /// The data has local deletion times that overflowed when they were written.
    impossible: bool,
}

pub(super) fn check(
    stored: &Statistics,
    version: Version,
    content: Content,
    partitions: u64,
    report: &mut VerifyReport,
) {
    let provenance = Provenance::new(String::new(), 1.0);
    let computed = content.collector.finish(stored.header.clone(), provenance);
    let times = [computed.stats.min_local_deletion_time, computed.stats.max_local_deletion_time];
    let impossible = times.contains(&INVALID_DELETION_TIME);
    // Older versions lack some statistics: compared is the encoding in the file's version.
    let mut bytes = Vec::new();
    computed.encode(version, &mut bytes);
    let computed = Statistics::decode(&mut Cursor::new(&bytes), version).unwrap_or(computed);
    let clusterings = stored.header.clusterings();
    let mut comparison = Comparison { report, version, impossible };
    comparison.bounds(&stored.stats, &computed.stats);
    comparison.keys(&stored.stats, &computed.stats);
    comparison.covered(&clusterings, &stored.stats.covered, &computed.stats.covered);
    comparison.totals(&stored.stats, &computed.stats);
    comparison.sketch(stored, partitions);
}

impl Comparison<'_> {
    fn problem(&mut self, what: String) {
        self.report.problem(Component::Statistics, None, what);
    }

    fn remark(&mut self, what: String) {
        self.report.remark(Component::Statistics, None, what);
    }

    /// The stored range must hold the computed one, and should be it.
    fn range<T: Ord + std::fmt::Display>(&mut self, name: &str, stored: (T, T), is: (T, T)) {
        let what = || {
            let ((a, b), (c, d)) = (&stored, &is);
            format!("{name} {a} to {b}, the data has {c} to {d}")
        };
        if stored == is {
            return;
        }
        let what = what();
        if stored.0 > is.0 || stored.1 < is.1 { self.problem(what) } else { self.remark(what) }
    }

    fn bounds(&mut self, stored: &Stats, is: &Stats) {
        let (s, c) = (stored, is);
        self.range(
            "timestamps",
            (s.min_timestamp, s.max_timestamp),
            (c.min_timestamp, c.max_timestamp),
        );
        // The other side has been in the file's version, whose times end in 2038.
        let time = |time: u32| match time {
            NO_DELETION_TIME => time,
            _ if self.version.has_uint_deletion_time() => time,
            _ => legacy_time(time),
        };
        let stored = (time(s.min_local_deletion_time), time(s.max_local_deletion_time));
        let is = (c.min_local_deletion_time, c.max_local_deletion_time);
        if self.impossible && stored != is {
            self.remark(
                "other local deletion times than the data, which has impossible ones".into(),
            );
        } else {
            self.range("local deletion times", stored, is);
        }
        if (s.min_ttl, s.max_ttl) != (c.min_ttl, c.max_ttl) {
            self.remark(format!(
                "TTLs {} to {}, the data has {} to {}",
                s.min_ttl, s.max_ttl, c.min_ttl, c.max_ttl
            ));
        }
    }

    fn keys(&mut self, stored: &Stats, is: &Stats) {
        if self.version.has_key_range() {
            for (which, stored, is) in [
                ("first", &stored.first_key, &is.first_key),
                ("last", &stored.last_key, &is.last_key),
            ] {
                if stored != is {
                    self.problem(format!("another {which} key than the data"));
                }
            }
        }
        if self.version.has_partition_level_deletions_marker() {
            match (stored.has_partition_level_deletions, is.has_partition_level_deletions) {
                (false, true) => {
                    self.problem("denies partition deletions, the data has some".into())
                }
                (true, false) => {
                    self.remark("claims partition deletions, the data has none".into());
                }
                _ => {}
            }
        }
    }

    fn covered(
        &mut self,
        clusterings: &Clusterings,
        stored: &CoveredClustering,
        is: &CoveredClustering,
    ) {
        if (&stored.start, &stored.end) == (&is.start, &is.end) {
            return;
        }
        let nothing = CoveredClustering::nothing(is.types.clone());
        let is_nothing = (&is.start, &is.end) == (&nothing.start, &nothing.end);
        let from = clusterings.compare(stored.start.position(), is.start.position());
        let to = clusterings.compare(stored.end.position(), is.end.position());
        if is_nothing || from.is_le() && to.is_ge() {
            self.remark("covered clusterings are wider than the data's".into());
        } else {
            self.problem("rows lie outside the covered clusterings".into());
        }
    }

    fn totals(&mut self, stored: &Stats, is: &Stats) {
        let bins = |stats: &Stats| -> u64 {
            let bins = stats.tombstone_drop_times.bins.iter();
            bins.map(|bin| u64::from(bin.count)).sum()
        };
        for (name, stored, is) in [
            ("rows", stored.total_rows, is.total_rows),
            ("columns set", stored.total_columns_set, is.total_columns_set),
            ("partitions by size", stored.partition_sizes.count(), is.partition_sizes.count()),
            (
                "partitions by cells",
                stored.cells_per_partition.count(),
                is.cells_per_partition.count(),
            ),
            ("drop times of tombstones", bins(stored) as i64, bins(is) as i64),
        ] {
            if stored != is {
                self.remark(format!("{stored} {name}, the data has {is}"));
            }
        }
        for (name, stored, is) in [
            ("sizes", &stored.partition_sizes, &is.partition_sizes),
            ("cells", &stored.cells_per_partition, &is.cells_per_partition),
        ] {
            if stored.count() == is.count() && stored != is {
                self.remark(format!("histogram of partition {name} is not the data's"));
            }
        }
        if is.has_legacy_counter_shards && !stored.has_legacy_counter_shards {
            self.remark("denies legacy counter shards, the data has some".into());
        }
    }

    fn sketch(&mut self, stored: &Statistics, partitions: u64) {
        let Some(compaction) = &stored.compaction else {
            return self.remark("no sketch of the keys".into());
        };
        match compaction.cardinality() {
            Ok(sketch) => {
                let estimate = sketch.estimate();
                let difference = estimate.abs_diff(partitions) as f64;
                if difference > (MAX_SKETCH_ERROR * partitions as f64).max(2.0) {
                    let what = format!("sketch of {estimate} keys, the data has {partitions}");
                    self.remark(what);
                }
            }
            Err(error) => self.remark(format!("sketch of the keys: {}", error.what)),
        }
    }
}
