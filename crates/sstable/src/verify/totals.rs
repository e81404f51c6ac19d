//! Compares Statistics.db with statistics collected again from the data.
//!
//! Cassandra skips SSTables by bounds (of keys, clusterings, timestamps, deletion times) and by the marker of partition
//! deletions: data outside of them is an error.  All else is estimates and totals, which may only be called wrong.

use halcyon_model::{Clusterings, Cursor};

use super::content::Content;
use super::report::VerifyReport;
use crate::format::statistics::Statistics;
use crate::format::statistics::collector::Provenance;
use crate::format::statistics::covered::CoveredClustering;
use crate::format::statistics::stats::Stats;
use crate::{Component, Version};

/// A sketch of 2^13 registers errs by 1.1 % (one standard deviation).
const MAX_SKETCH_ERROR: f64 = 0.06;

struct Comparison<'a> {
    report: &'a mut VerifyReport,
    version: Version,
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
    // Older versions lack some statistics: compared is the encoding in the file's version.
    let mut bytes = Vec::new();
    computed.encode(version, &mut bytes);
    let computed = Statistics::decode(&mut Cursor::new(&bytes), version).unwrap_or(computed);
    let clusterings = stored.header.clusterings();
    let mut comparison = Comparison { report, version };
    comparison.bounds(&stored.stats, &computed.stats);
    comparison.keys(&stored.stats, &computed.stats);
    comparison.covered(&clusterings, &stored.stats.covered, &computed.stats.covered);
    comparison.totals(&stored.stats, &computed.stats);
    comparison.sketch(stored, partitions);
}

impl Comparison<'_> {
    fn error(&mut self, what: String) {
        self.report.error(Component::Statistics, None, what);
    }

    fn warning(&mut self, what: String) {
        self.report.warning(Component::Statistics, None, what);
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
        if stored.0 > is.0 || stored.1 < is.1 { self.error(what) } else { self.warning(what) }
    }

    fn bounds(&mut self, stored: &Stats, is: &Stats) {
        let (s, c) = (stored, is);
        self.range(
            "timestamps",
            (s.min_timestamp, s.max_timestamp),
            (c.min_timestamp, c.max_timestamp),
        );
        self.range(
            "local deletion times",
            (s.min_local_deletion_time, s.max_local_deletion_time),
            (c.min_local_deletion_time, c.max_local_deletion_time),
        );
        if (s.min_ttl, s.max_ttl) != (c.min_ttl, c.max_ttl) {
            self.warning(format!(
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
                    self.error(format!("another {which} key than the data"));
                }
            }
        }
        if self.version.has_partition_level_deletions_marker() {
            match (stored.has_partition_level_deletions, is.has_partition_level_deletions) {
                (false, true) => self.error("denies partition deletions, the data has some".into()),
                (true, false) => {
                    self.warning("claims partition deletions, the data has none".into());
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
            self.warning("covered clusterings are wider than the data's".into());
        } else {
            self.error("rows lie outside the covered clusterings".into());
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
                self.warning(format!("{stored} {name}, the data has {is}"));
            }
        }
        for (name, stored, is) in [
            ("sizes", &stored.partition_sizes, &is.partition_sizes),
            ("cells", &stored.cells_per_partition, &is.cells_per_partition),
        ] {
            if stored.count() == is.count() && stored != is {
                self.warning(format!("histogram of partition {name} is not the data's"));
            }
        }
        if is.has_legacy_counter_shards && !stored.has_legacy_counter_shards {
            self.warning("denies legacy counter shards, the data has some".into());
        }
    }

    fn sketch(&mut self, stored: &Statistics, partitions: u64) {
        let Some(compaction) = &stored.compaction else {
            return self.warning("no sketch of the keys".into());
        };
        match compaction.cardinality() {
            Ok(sketch) => {
                let estimate = sketch.estimate();
                let difference = estimate.abs_diff(partitions) as f64;
                if difference > (MAX_SKETCH_ERROR * partitions as f64).max(2.0) {
                    let what = format!("sketch of {estimate} keys, the data has {partitions}");
                    self.warning(what);
                }
            }
            Err(error) => self.warning(format!("sketch of the keys: {}", error.what)),
        }
    }
}
