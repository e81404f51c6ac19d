//! Statistics.db that is sound as a file and wrong about the data.

use halcyon_model::{BoundKind, Cursor};
use halcyon_sstable::format::statistics::covered::CoveredClustering;
use halcyon_sstable::format::statistics::histogram::EstimatedHistogram;
use halcyon_sstable::format::statistics::{Compaction, Statistics, cardinality::Cardinality};
use halcyon_sstable::{Component, Version};

use super::copy::Copy;

type Change = fn(&mut Statistics);

/// Wrong statements that make reads go wrong.
const ERRORS: [(&str, Change); 7] = [
    ("timestamps", |s| s.stats.min_timestamp += 1),
    ("timestamps", |s| s.stats.max_timestamp -= 1),
    ("local deletion times", |s| s.stats.max_local_deletion_time -= 1),
    ("first key", |s| s.stats.first_key = Some(b"?".to_vec())),
    ("last key", |s| s.stats.last_key = s.stats.first_key.clone()),
    ("partition deletions", |s| s.stats.has_partition_level_deletions = false),
    ("covered", |s| s.stats.covered.start.kind = BoundKind::ExclStart),
];

/// Wrong statements that are only hints.
const WARNINGS: [(&str, Change); 9] = [
    ("timestamps", |s| s.stats.min_timestamp -= 1),
    ("local deletion times", |s| s.stats.min_local_deletion_time -= 1),
    ("TTLs", |s| s.stats.max_ttl += 1),
    ("rows", |s| s.stats.total_rows += 1),
    ("columns set", |s| s.stats.total_columns_set -= 1),
    ("partitions by size", |s| s.stats.partition_sizes.add(5)),
    ("partitions by cells", |s| {
        s.stats.cells_per_partition = EstimatedHistogram::of_cell_counts();
    }),
    ("covered clusterings are wider", |s| {
        s.stats.covered = CoveredClustering::everything(s.stats.covered.types.clone());
    }),
    ("sketch", |s| {
        let mut sketch = Cardinality::default();
        (0..1000u32).for_each(|key| sketch.add_key(&key.to_be_bytes()));
        s.compaction = Some(Compaction::new(&sketch));
    }),
];

#[test]
fn wrong_statistics_are_found() {
    let copy = Copy::in_small_blocks("oa/deletions", Version::OA);
    let bytes = copy.files.get(&Component::Statistics).expect("statistics");
    let version = copy.descriptor.version;
    let sound = Statistics::decode(&mut Cursor::new(bytes), version).expect("sound");
    for (changes, is_error) in [(&ERRORS[..], true), (&WARNINGS[..], false)] {
        for (name, change) in changes {
            let mut changed = sound.clone();
            change(&mut changed);
            let mut bytes = Vec::new();
            changed.encode(version, &mut bytes);
            let report = copy.with(Component::Statistics, Some(&bytes));
            assert_eq!(report.has_problems(), is_error, "{name}: {report:?}");
            let named = report.findings.iter().any(|finding| finding.what.contains(name));
            assert!(named, "{name}: {report:?}");
        }
    }
}
